package redistest_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

func TestPipeExpiresByTheClockOfTheBubble(t *testing.T) {
	redistest.CheckGoroutines(t)
	begin := time.Now()
	synctest.Test(t, func(t *testing.T) {
		m, c := redistest.Pipe(t)
		other := redistest.PipeClient(t, m)
		locktest.NoError(t, c.Set(ctx, "n", 1, 30*time.Second).Err())
		time.Sleep(29 * time.Second)
		want(t, other, "1")
		time.Sleep(2 * time.Second)
		want(t, other, "")
	})
	if d := time.Since(begin); d > bound {
		t.Errorf("31 seconds in the bubble took %v", d)
	}
}

func TestPipePubSub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := redistest.Pipe(t)
		sub := redistest.PipeClient(t, m).Subscribe(ctx, "news")
		_, err := sub.Receive(ctx)
		locktest.NoError(t, err)
		messages := sub.Channel()
		time.Sleep(time.Hour) // go-redis pings every 3 seconds
		locktest.NoError(t, c.Publish(ctx, "news", "hello").Err())
		if got := <-messages; got.Payload != "hello" {
			t.Errorf("got %v", got)
		}
		locktest.NoError(t, sub.Close())
	})
}

// A subscriber that does not read holds up nobody.
func TestPipeKeepsWhatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := redistest.Pipe(t)
		sub := c.Subscribe(ctx, "news")
		_, err := sub.Receive(ctx)
		locktest.NoError(t, err)
		for range 1000 {
			locktest.NoError(t, c.Publish(ctx, "news", "hello").Err())
		}
		locktest.NoError(t, sub.Subscribe(ctx, "more"))
		for range 1000 {
			if _, err := sub.ReceiveMessage(ctx); err != nil {
				t.Fatal(err)
			}
		}
		locktest.NoError(t, sub.Close())
	})
}

// A pipeline larger than any buffer, and many callers at once.
func TestPipeLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := redistest.Pipe(t)
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 10_000 {
				p.Incr(ctx, "n")
			}
			return nil
		})
		locktest.NoError(t, err)
		var calls []<-chan result
		for range 500 {
			calls = append(calls, async(c))
		}
		for _, call := range calls {
			locktest.NoError(t, (<-call).err)
		}
		want(t, c, "10500")
	})
}

func TestPipeTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := redistest.Pipe(t)
		begin := time.Now()
		if err := c.BLPop(ctx, time.Minute, "list").Err(); err != redis.Nil {
			t.Errorf("got %v", err)
		}
		if d := time.Since(begin); d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("waited %v", d)
		}
	})
}

// Links dial until the very end, and after it: go-redis waits for none of them
// when it closes. Nobody dials beside the end of the server (the race detector
// sees it), nor wakes it up again.
func TestPipeEndsWhileLinksDial(t *testing.T) {
	var dial func(context.Context, string, string) (net.Conn, error)
	var dialing sync.WaitGroup
	errs := new(double).run(t, func(t testing.TB) {
		m, _ := redistest.Pipe(t)
		redistest.PipeClient(t, m, func(o *redis.Options) { dial = o.Dialer })
		begun := make(chan struct{}, 8)
		for range cap(begun) {
			dialing.Go(func() {
				for n := 0; n < 10_000; n++ {
					c, err := dial(ctx, "", "")
					if n == 0 {
						begun <- struct{}{}
					}
					if err != nil {
						return
					}
					_ = c.Close()
				}
			})
		}
		for range cap(begun) {
			<-begun
		}
	})
	dialing.Wait()
	if len(errs) != 0 {
		t.Errorf("got %q", errs)
	}
	if _, err := dial(ctx, "", ""); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after the test a dial ends with %v", err)
	}
}
