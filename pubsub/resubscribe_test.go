package pubsub_test

import (
	"fmt"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// Channels that were just given up are wanted again: the server's answers to the unsubscribing, which come after that, are
// no sign that the slot has left, and no reason to give up a connection that others use.
func TestCluster_AnswerToAnUnsubscribeIsNoMovedSlot(t *testing.T) {
	t.Parallel()
	c := needSharded(t, newCluster(t, 1))
	b, _ := newBus(t, c.rdb, pubsub.On)
	keep := listen(b, "keep")
	keep.eventually(t)
	name := func(i int) string { return fmt.Sprintf("{a}%d", i) }
	const channels = 1000
	all := make([]*listener, channels)
	open := func() {
		for i := range all {
			all[i] = listen(b, name(i))
		}
	}
	open()
	for _, l := range all {
		l.eventually(t)
	}
	woken := keep.woken.Load()
	for range 3 {
		for _, l := range all {
			l.Close()
		}
		redistest.Eventually(t, bound, func() bool {
			gone := 0
			for _, i := range []int{0, 250, 500, 750, 999} {
				if c.sharded(0, name(i)) == 0 {
					gone++
				}
			}
			return gone > 0
		}, "they are given up")
		open()
		for _, l := range all {
			l.eventually(t)
		}
	}
	if n := keep.woken.Load() - woken; n > 0 || !keep.Live() {
		t.Errorf("the connection was replaced: a subscription beside them was woken %d times", n)
	}
}
