package rlock_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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

// With WithHandoffs(0) every release is told to all clients, with token blocks too.
func TestBlocksWithoutHandoffs(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		const n = 20
		first := takeToken(t, l, t.Context(), 1)
		done := queueUp(n, func(i int) {
			held, _, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			locktest.NoError(t, l.Unlock(held))
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		done()
		synctest.Wait()
		locktest.Equal(t, "releases of 21 holds", spy.Count("unlock"), n+1)
	}, rlock.WithHandoffs(0))
}

// Tokens are reserved for calls that wait, and not for those that have waited in vain before.
func TestBlocksOfWaitersThatHaveLeft(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		other := fenced.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		theirs := takeToken(t, other, t.Context(), 1)
		done := queueUp(5, func(int) {
			_, _, err := l.TryLockAndGetToken(t.Context(), 100*time.Millisecond, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		})
		done()
		locktest.Equal(t, "states that the client keeps", c.LockStates(), 1)
		locktest.NoError(t, other.Unlock(theirs))
		held := takeToken(t, l, t.Context(), 2)
		locktest.Equal(t, "the counter", mustGet(m, tokenKey), "2")
		locktest.NoError(t, l.Unlock(held))
	})
}

// P15: a client whose holds pass on token blocks lets another client have the lock after 20 ms and the rest of a block, however many of its
// own calls wait.
func TestP15_BlocksEndTheirTurn(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		other := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		first := takeToken(t, l, t.Context(), 1)
		began := time.Now()
		var over atomic.Bool
		done := queueUp(8, func(int) {
			for !over.Load() && time.Since(began) < 2*time.Second {
				held, err := l.Lock(longContext(t))
				locktest.NoError(t, err)
				time.Sleep(time.Millisecond)
				locktest.NoError(t, l.Unlock(held))
			}
		})
		theirs := locktest.StartLock(func() (context.Context, error) { return other.Lock(t.Context()) })
		synctest.Wait()
		spy.Reset()
		locktest.NoError(t, l.Unlock(first))
		got := <-theirs
		over.Store(true)
		locktest.NoError(t, got.Err)
		if late := got.At.Sub(began); late > 100*time.Millisecond {
			t.Errorf("the other client has waited %v", late)
		}
		if spy.Count("reserve") == 0 {
			t.Error("nothing was reserved: this test shows nothing")
		}
		locktest.NoError(t, other.Unlock(got.Ctx))
		done()
	})
}

// P12: an Unlock that waits for tokens on their way takes no longer than its bound.
func TestP12_BlocksWaitWithinTheBound(t *testing.T) {
	const bound = 4 * time.Millisecond
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		slow := 0
		var mu sync.Mutex
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "reserve") {
				mu.Lock()
				slow++
				mu.Unlock()
				time.Sleep(8 * time.Millisecond) // nothing else is slow
			}
			return next()
		})
		first := takeToken(t, l, t.Context(), 1)
		done := queueUp(4, func(i int) {
			for range 3 {
				held, err := l.Lock(longContext(t))
				locktest.NoError(t, err)
				began := time.Now()
				_ = l.Unlock(held) // both batches may be busy with slow ones: it is sent again behind
				if d := time.Since(began); d > bound {
					t.Errorf("Unlock took %v, bound %v", d, bound)
				}
			}
		})
		locktest.NoError(t, l.Unlock(first))
		done()
		locktest.Sleep(10 * time.Second)
		if slow == 0 {
			t.Error("nothing was slow")
		}
	}, rlock.WithUnlockTimeout(bound))
}

// Inv2: tokens with a floor are not taken faster than the clock goes: no command takes many.
func TestInv2_BlocksWithAFloorAreSmall(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		spy := locktest.SpyOn(rdb)
		l := fenced.NewLock(c, "l", fenced.WithTokenBlocks(), fenced.WithClockFloor())
		held, first, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		last := first
		done := queueUp(60, func(i int) {
			held, token, err := l.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			last = max(last, token)
			locktest.NoError(t, l.Unlock(held))
		})
		spy.Reset()
		locktest.NoError(t, l.Unlock(held))
		done()
		commands := spy.Count("acquire") + spy.Count("transfer") + spy.Count("reserve")
		if most := int64(8 * commands); last-first > most || commands < 60/8 {
			t.Errorf("%d tokens by %d commands in no time", last-first, commands)
		}
	})
}

// Tokens that were reserved for calls which then gave up go back with the release, also where the client has not waited in the line.
func TestBlocksOfCallsThatGaveUpGoBack(t *testing.T) {
	withBlocks(t, func(t *testing.T, m *miniredis.Miniredis, spy *locktest.Spy, c *rlock.Client, l *fenced.Lock) {
		spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "acquire") {
				return locktest.Reply("LOADING Redis is loading the dataset in memory")
			}
			return next()
		})
		first := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		synctest.Wait()
		done := queueUp(4, func(int) {
			_, _, err := l.TryLockAndGetToken(t.Context(), 2*time.Second, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		})
		spy.Wrap(nil)
		r := <-first // its next attempt asks for tokens for the others too
		locktest.NoError(t, r.Err)
		locktest.Equal(t, "the counter", mustGet(m, tokenKey), "5")
		done()
		locktest.NoError(t, l.Unlock(r.Ctx))
		locktest.Equal(t, "the counter after the release", mustGet(m, tokenKey), "1")
		wantFree(t, m, 1, c)
	})
}
