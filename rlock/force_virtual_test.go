package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// forceUnheard has the client of l force the lock open when the next op of this kind has taken it and its answer is still
// under way. first: the answer to ForceUnlock comes first.
func forceUnheard(t *testing.T, spy *handSpy, l interface {
	ForceUnlock(context.Context) (bool, error)
}, op string, first bool) (forced <-chan error) {
	armed, gone, done := true, make(chan struct{}), make(chan error, 1)
	spy.wrap(func(ops []string, next func() error) error {
		err := next()
		switch {
		case armed && err == nil && slices.Contains(ops, op):
			armed = false
			told := make(chan struct{})
			go func() {
				freed, err := l.ForceUnlock(t.Context())
				if err == nil && !freed {
					err = fmt.Errorf("ForceUnlock freed nothing")
				}
				done <- err
				close(told)
			}()
			<-gone
			if first {
				<-told
			}
		case !armed && slices.Contains(ops, "unlock"):
			select {
			case <-gone:
			default:
				close(gone)
				if !first {
					time.Sleep(time.Millisecond)
				}
			}
		}
		return err
	})
	return done
}

// Inv1, P12: a hold that its own client forces open before the client knows that it has it is lost at once, whichever
// answer comes first. Its lease is one that no renewal would look at.
func TestForceUnlockOfAHoldThatIsUnderWay(t *testing.T) {
	const lease = 15 * time.Second
	for _, first := range []bool{true, false} {
		for what, c := range map[string]struct {
			op   string
			wait bool // for the hold of another goroutine
			lock func(*fenced.Lock) (context.Context, error)
		}{
			"handoff":           {"transfer", true, func(l *fenced.Lock) (context.Context, error) { return l.LockLease(context.Background(), lease) }},
			"handoff, watchdog": {"transfer", true, func(l *fenced.Lock) (context.Context, error) { return l.Lock(context.Background()) }},
			"acquire":           {"acquire", false, func(l *fenced.Lock) (context.Context, error) { return l.LockLease(context.Background(), lease) }},
			"acquire that can wait": {"acquire", false, func(l *fenced.Lock) (context.Context, error) {
				return l.TryLock(context.Background(), time.Minute, lease)
			}},
			"acquire without wait": {"acquire", false, func(l *fenced.Lock) (context.Context, error) { return l.TryLock(context.Background(), 0, lease) }},
		} {
			for _, opts := range [][]fenced.Option{nil, {fenced.WithTokenBlocks()}} {
				t.Run(fmt.Sprintf("%s, blocks %t, ForceUnlock first %t", what, opts != nil, first), func(t *testing.T) {
					bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
						spy := handSpyOn(rdb)
						c1, c2 := bhClient(t, rdb), bhClient(t, redistest.PipeClient(t, m))
						l, other := fenced.NewLock(c1, "l", opts...), fenced.NewLock(c2, "l")
						var former context.Context
						if c.wait {
							former = handTake(t, l, 1)
						}
						start := func() <-chan bhGot { return bhGo(func() (context.Context, error) { return c.lock(l) }) }
						var waiting <-chan bhGot
						if c.wait {
							waiting = start()
							synctest.Wait()
						}
						forced := forceUnheard(t, spy, l, c.op, first)
						if c.wait {
							bhOK(t, l.Unlock(former))
						} else {
							waiting = start()
						}
						got := <-waiting
						bhOK(t, got.err)
						bhOK(t, <-forced)
						bhIs(t, got.ctx.Err(), rlock.ErrLost)
						bhIs(t, context.Cause(got.ctx), rlock.ErrLost)
						held, err := other.TryLock(t.Context(), 0, 0)
						bhOK(t, err)
						bhIs(t, l.Unlock(got.ctx), rlock.ErrLost)
						bhAsleep(time.Millisecond)
						bhOK(t, other.Check(held))
						bhLocked(t, rlock.NewLock(c2, "l"), true)
						bhOK(t, other.Unlock(held))
						bhAsleep(2 * lease)
						handFree(t, m, 0, c1, c2)
					})
				})
			}
		}
	}
}

// The same of a hold that is passed on with a token of a block, without a command, while the answer to ForceUnlock is
// under way.
func TestForceUnlockOfABlock(t *testing.T) {
	for i := range 30 {
		handBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *handSpy, c *rlock.Client, l *fenced.Lock) {
			first := handTake(t, l, 1)
			var all []<-chan handGot
			for range 3 {
				all = append(all, handGo(func() (context.Context, int64, error) { return l.LockLeaseAndGetToken(t.Context(), time.Hour) }))
				synctest.Wait()
			}
			bhOK(t, l.Unlock(first))
			one := <-all[0]
			bhOK(t, one.err)
			spy.wrap(func(ops []string, next func() error) error {
				err := next()
				if slices.Contains(ops, "unlock") {
					go func() { _ = l.Unlock(one.ctx) }()
					if i%2 == 0 {
						time.Sleep(10 * time.Microsecond)
					}
				}
				return err
			})
			freed, err := l.ForceUnlock(t.Context())
			bhOK(t, err)
			bhEqual(t, "freed", freed, true)
			spy.wrap(nil)
			two := <-all[1]
			bhOK(t, two.err)
			alive := 0
			for _, held := range []context.Context{one.ctx, two.ctx} {
				if held.Err() == nil {
					alive++
				}
			}
			fields, _ := m.HKeys("l")
			if alive > len(fields) {
				t.Errorf("%d contexts are alive, and in Redis there is %v", alive, fields)
			}
			_ = l.Unlock(two.ctx)
			three := <-all[2]
			bhOK(t, three.err)
			_ = l.Unlock(three.ctx)
			handFree(t, m, 200*time.Millisecond, c)
		})
	}
}
