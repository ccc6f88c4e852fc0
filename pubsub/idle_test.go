package pubsub_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/pubsub"
)

// "A channel is given up a second after its last subscription was closed, and the connection with its last channel" (doc)
// also while there is no connection: nobody wants one any more.
func TestChannelIsGivenUpWhileRedisIsAway(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		n.cut(true)
		l := listen(b, "a")
		time.Sleep(5 * time.Second)
		l.Close()
		time.Sleep(5 * time.Second)
		before := n.dialed()
		time.Sleep(time.Hour)
		synctest.Wait()
		if dials := n.dialed() - before; dials > 0 {
			t.Errorf("%d attempts to connect within an hour, for nobody", dials)
		}
	})
}
