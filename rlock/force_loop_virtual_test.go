package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// forceJava is the field of the hold number n of Redisson's.
func forceJava(n int) string { return fmt.Sprintf("6b1f0d1e-0000-4000-8000-000000000001:%d", n) }

// forceSite is a lock "l" that is held by Redisson's hold number 0, and the client that is to force it open. after is done
// whenever that has looked who holds the lock.
func forceSite(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, after func(look int), opts ...rlock.Option) (*rlock.Lock, *locktest.Spy) {
	own := redistest.PipeClient(t, m)
	spy := locktest.SpyOn(own)
	l := rlock.NewLock(newClient(t, own, opts...), "l")
	forceHands(m, 0)
	looks := 0
	spy.Wrap(func(ops []string, next func() error) error {
		err := next()
		if err == nil && slices.Contains(ops, "inspect") {
			after(looks)
			looks++
		}
		return err
	})
	return l, spy
}

// forceHands hands the lock on to Redisson's hold number n.
func forceHands(m *miniredis.Miniredis, n int) {
	m.Del("l")
	m.HSet("l", forceJava(n), "1")
	m.SetTTL("l", time.Minute)
}

// P12: a lock that is handed on between the look at its holder and the release is forced open all the same.
func TestForceUnlockOfALockThatIsHandedOn(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const times = 50
		l, spy := forceSite(t, m, rdb, func(look int) {
			if look < times {
				forceHands(m, look+1)
			}
		})
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.Equal(t, "looks", spy.Count("inspect"), times+1)
		locktest.Equal(t, "the lock is there", m.Exists("l"), false)
	})
}

// It goes on no longer than its bound, and says then why nothing was freed.
func TestForceUnlockIsBounded(t *testing.T) {
	for what, c := range map[string]struct {
		ctx  time.Duration
		want time.Duration
	}{"WithPatience": {5 * time.Second, time.Second}, "the context": {500 * time.Millisecond, 500 * time.Millisecond}} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				l, _ := forceSite(t, m, rdb, func(look int) { forceHands(m, look+1) }, rlock.WithPatience(time.Second))
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				defer cancel()
				began := time.Now()
				freed, err := l.ForceUnlock(ctx)
				locktest.Equal(t, "freed", freed, false)
				locktest.IsError(t, err, context.DeadlineExceeded)
				if !strings.Contains(err.Error(), "handed on") {
					t.Errorf("it says %v", err)
				}
				if took := time.Since(began); took < c.want || took > c.want+50*time.Millisecond {
					t.Errorf("it took %v, want %v", took, c.want)
				}
				locktest.Sleep(time.Millisecond) // its last look may be handing on
				locktest.Equal(t, "the lock is there", m.Exists("l"), true)
			})
		})
	}
}

// A hold that comes after a release is not meant: neither after one of its own, answered or not, nor where the lock was
// seen free.
func TestForceUnlockStopsAfterARelease(t *testing.T) {
	for what, c := range map[string]struct {
		freed bool
		looks int
		after func(m *miniredis.Miniredis, look int)
		end   func(m *miniredis.Miniredis) error // of the release
	}{
		"its own": {true, 1, func(*miniredis.Miniredis, int) {}, func(m *miniredis.Miniredis) error { forceHands(m, 7); return nil }},
		"its own, without an answer": {true, 1, func(*miniredis.Miniredis, int) {}, func(m *miniredis.Miniredis) error {
			forceHands(m, 7)
			return io.ErrUnexpectedEOF
		}},
		"seen free": {false, 2, func(m *miniredis.Miniredis, look int) {
			if m.Del("l"); look == 1 {
				forceHands(m, 7)
			}
		}, func(*miniredis.Miniredis) error { return nil }},
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				looks, ended := 0, false
				l, spy := forceSite(t, m, rdb, func(look int) { looks++; c.after(m, look) })
				var look func(ops []string, next func() error) error
				look = spy.Wrap(func(ops []string, next func() error) error {
					err := look(ops, next)
					if err == nil && !ended && slices.Contains(ops, "unlock") {
						ended = true
						err = c.end(m)
					}
					return err
				})
				freed, err := l.ForceUnlock(t.Context())
				locktest.NoError(t, err)
				locktest.Equal(t, "freed", freed, c.freed)
				locktest.Equal(t, "looks", looks, c.looks)
				fields, _ := m.HKeys("l")
				locktest.Equal(t, "fields", fmt.Sprint(fields), fmt.Sprint([]string{forceJava(7)}))
			})
		})
	}
}

// P3, P12: what a repeat took anew, after a ForceUnlock of the first attempt whose answer was lost, is a hold that came after
// the release: it is not lost.
func TestForceUnlockSparesWhatIsTakenAnew(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := rlock.NewLock(c, "l")
		spy, attempts := locktest.SpyOn(rdb), 0
		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if err == nil && slices.Contains(ops, "acquire") {
				if attempts++; attempts == 1 {
					freed, failed := l.ForceUnlock(t.Context())
					locktest.Equal(t, "freed", freed, true)
					return errors.Join(io.ErrUnexpectedEOF, failed)
				}
			}
			return err
		})
		held, err := l.LockLease(t.Context(), time.Minute)
		locktest.NoError(t, err)
		locktest.Equal(t, "attempts", attempts, 2)
		locktest.Sleep(time.Second)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(2 * time.Minute)
		wantFree(t, m, 0, c)
	})
}

// P12: a waiter of the same client that gets the lock before ForceUnlock has its answer keeps it.
func TestP12_ForceUnlockSparesTheNextHoldOfItsClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const way = 20 * time.Millisecond
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		theirs := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		former := take(t, theirs, t.Context())
		waits := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Millisecond)
		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if err == nil && slices.Contains(ops, "unlock") {
				time.Sleep(way) // of the answer
			}
			return err
		})
		began := time.Now()
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		spy.Wrap(nil)
		r := <-waits
		locktest.NoError(t, r.Err)
		if late := r.At.Sub(began); late >= way {
			t.Errorf("the waiter has got the lock after %v: this test shows nothing", late)
		}
		locktest.NoError(t, r.Ctx.Err())
		locktest.NoError(t, l.Unlock(r.Ctx))
		locktest.IsError(t, theirs.Unlock(former), rlock.ErrLost)
	})
}

// A hold of the client's own that ForceUnlock saw, and that was gone before the release came, is lost at once, and was not forced open.
func TestForceUnlockFindsAnOwnHoldGone(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, l, t.Context())
		spy.Wrap(func(ops []string, next func() error) error {
			err := next()
			if err == nil && slices.Contains(ops, "inspect") {
				m.Del("l")
			}
			return err
		})
		freed, err := l.ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, false)
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.ErrorSays(t, held.Err(), "released by someone else, or its key is gone")
		locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
	})
}
