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
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
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
			"handoff": {"transfer", true, func(l *fenced.Lock) (context.Context, error) {
				return locktest.NoToken(l.LockLeaseAndGetToken(context.Background(), lease))
			}},
			"handoff, watchdog": {"transfer", true, func(l *fenced.Lock) (context.Context, error) {
				return locktest.NoToken(l.LockAndGetToken(context.Background()))
			}},
			"acquire": {"acquire", false, func(l *fenced.Lock) (context.Context, error) {
				return locktest.NoToken(l.LockLeaseAndGetToken(context.Background(), lease))
			}},
			"acquire that can wait": {"acquire", false, func(l *fenced.Lock) (context.Context, error) {
				return locktest.NoToken(l.TryLockAndGetToken(context.Background(), time.Minute, lease))
			}},
			"acquire without wait": {"acquire", false, func(l *fenced.Lock) (context.Context, error) {
				return locktest.NoToken(l.TryLockAndGetToken(context.Background(), 0, lease))
			}},
		} {
			t.Run(fmt.Sprintf("%s, ForceUnlock first %t", what, first), func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					spy := locktest.SpyOn(rdb)
					c1, c2 := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
					l, other := fenced.NewLock(c1, "l"), fenced.NewLock(c2, "l")
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
					held, _, err := other.TryLockAndGetToken(t.Context(), 0, 0)
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
