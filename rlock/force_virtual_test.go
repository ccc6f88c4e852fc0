package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// forceUnheard has the client of l force the lock open when the next op of this kind has taken it and its answer is still
// under way. first: the answer to ForceUnlock comes first.
func forceUnheard(t *testing.T, spy *locktest.Spy, l interface {
	ForceUnlock(context.Context) (bool, error)
}, op string, first bool) (forced <-chan error) {
	armed, gone, done := true, make(chan struct{}), make(chan error, 1)
	spy.Wrap(func(ops []string, next func() error) error {
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
					locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
						spy := locktest.SpyOn(rdb)
						c1, c2 := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
						l, other := fenced.NewLock(c1, "l", opts...), fenced.NewLock(c2, "l")
						var former context.Context
						if c.wait {
							former = takeToken(t, l, t.Context(), 1)
						}
						start := func() <-chan locktest.Result {
							return locktest.StartLock(func() (context.Context, error) { return c.lock(l) })
						}
						var waiting <-chan locktest.Result
						if c.wait {
							waiting = start()
							synctest.Wait()
						}
						forced := forceUnheard(t, spy, l, c.op, first)
						if c.wait {
							locktest.NoError(t, l.Unlock(former))
						} else {
							waiting = start()
						}
						got := <-waiting
						locktest.NoError(t, got.Err)
						locktest.NoError(t, <-forced)
						locktest.IsError(t, got.Ctx.Err(), rlock.ErrLost)
						locktest.IsError(t, context.Cause(got.Ctx), rlock.ErrLost)
						held, err := other.TryLock(t.Context(), 0, 0)
						locktest.NoError(t, err)
						locktest.IsError(t, l.Unlock(got.Ctx), rlock.ErrLost)
						locktest.Sleep(time.Millisecond)
						locktest.NoError(t, other.Check(held))
						wantLocked(t, rlock.NewLock(c2, "l"), true)
						locktest.NoError(t, other.Unlock(held))
						locktest.Sleep(2 * lease)
						wantFree(t, m, 0, c1, c2)
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
		withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
			first := takeToken(t, l, t.Context(), 1)
			var all []<-chan locktest.Result
			for range 3 {
				all = append(all, locktest.StartFenced(func() (context.Context, int64, error) { return l.LockLeaseAndGetToken(t.Context(), time.Hour) }))
				synctest.Wait()
			}
			locktest.NoError(t, l.Unlock(first))
			one := <-all[0]
			locktest.NoError(t, one.Err)
			var meanwhile sync.WaitGroup
			spy.Wrap(func(ops []string, next func() error) error {
				err := next()
				if slices.Contains(ops, "unlock") {
					meanwhile.Go(func() { _ = l.Unlock(one.Ctx) })
					if i%2 == 0 {
						time.Sleep(10 * time.Microsecond)
					}
				}
				return err
			})
			freed, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, "freed", freed, true)
			spy.Wrap(nil)
			two := <-all[1]
			locktest.NoError(t, two.Err)
			alive := 0
			for _, held := range []context.Context{one.Ctx, two.Ctx} {
				if held.Err() == nil {
					alive++
				}
			}
			fields, _ := m.HKeys("l")
			if alive > len(fields) {
				t.Errorf("%d contexts are alive, and in Redis there is %v", alive, fields)
			}
			_ = l.Unlock(two.Ctx)
			three := <-all[2]
			locktest.NoError(t, three.Err)
			_ = l.Unlock(three.Ctx)
			meanwhile.Wait()
			wantFree(t, m, 200*time.Millisecond, c)
		})
	}
}
