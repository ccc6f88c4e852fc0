package pubsub_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/pubsub"
)

// A thousand subscriptions that begin together, as for locks that were taken together, ask the server one question and want one
// connection. Who asks besides gets the same answer, or stops waiting with its context.
func TestOneQuestionForAll(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		var dials atomic.Int64
		rdb := allSlots(t, "127.0.0.1:1", func(o *redis.ClusterOptions) {
			o.DialerRetries, o.MaxRedirects = 1, -1
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				here, there := net.Pipe()
				context.AfterFunc(t.Context(), func() { _ = there.Close() })
				return here, nil // and nobody answers
			}
		})
		b, _ := newBus(t, rdb, pubsub.Auto)
		for i := range 1000 {
			listen(b, strconv.Itoa(i))
			go b.Sharded(t.Context())
		}
		synctest.Wait()
		if n := dials.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		began := time.Now()
		if b.Sharded(ctx) {
			t.Error("sharded, although nobody has said so")
		}
		if d := time.Since(began); d != time.Millisecond {
			t.Errorf("it took %v", d)
		}
		b.Close()
		_ = rdb.Close()
		time.Sleep(time.Minute) // go-redis ends what it has begun, too
	})
}
