package rlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// localHandoffs plays n callers that wait behind a first hold of a client with WithLocalHandoffs(most). use is what each does with
// its hold; the n-th one has the number n-1.
func localHandoffs(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, most, n int, use func(i int, l *fenced.Lock, held context.Context, token int64)) *locktest.Spy {
	t.Helper()
	spy := locktest.SpyOn(rdb)
	c := newClient(t, rdb, rlock.WithLocalHandoffs(most), rlock.WithHandoffs(0))
	l := fenced.NewLock(c, "l")
	last, most64, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	next := 0
	done := queueUp(n, func(i int) {
		held, token, err := l.LockAndGetToken(longContext(t))
		if err != nil {
			t.Error(err)
			return
		}
		if i != next || token <= most64 {
			t.Errorf("waiter %d came with token %d in place of waiter %d, after token %d", i, token, next, most64)
		}
		if last.Err() == nil || held.Err() != nil {
			t.Errorf("the former holder's context: %v, the new one's: %v", last.Err(), held.Err())
		}
		last, most64 = held, token
		next++
		use(i, l, held, token)
	})
	locktest.Sleep(time.Millisecond)
	spy.Reset()
	locktest.NoError(t, l.Unlock(last))
	done()
	locktest.Equal(t, "waiters served", next, n)
	wantFree(t, m, 100*time.Millisecond, c)
	return spy
}

// P56: a hold is passed on among the callers of a client in the order of arrival, each with a holder, a context and a larger token of
// its own, and Redis is asked once for all.
func TestP56_LocalHandoffsAskNobody(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		first := int64(0)
		spy := localHandoffs(t, m, rdb, 20, 12, func(i int, l *fenced.Lock, held context.Context, token int64) {
			if first == 0 {
				first = token
			}
			locktest.Equal(t, "token", token, first+int64(i))
			locktest.NoError(t, l.Check(held))
			if left, err := l.Remaining(held); err != nil || left < 29*time.Second {
				t.Errorf("Remaining: %v, %v", left, err)
			}
			locktest.NoError(t, l.Unlock(held))
			locktest.IsError(t, context.Cause(held), rlock.ErrUnlocked)
			locktest.IsError(t, l.Unlock(held), rlock.ErrNotHeld)
		})
		locktest.Equal(t, "transfers and acquires", spy.Count("transfer")+spy.Count("acquire"), 1)
		locktest.Equal(t, "releases", spy.Count("unlock"), 2)
		if counter, _ := m.Get("redisson_lock_token:{l}"); counter != "22" {
			t.Errorf("the counter is %s: the first took one token, the one for which others waited 21", counter)
		}
	})
}

// P56: a series is bounded by its number and by 20 ms; after it others may have the lock.
func TestP56_ASeriesOfLocalHandoffsIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		most, releases int
		section        time.Duration
	}{
		"by number":         {most: 3, releases: 3},
		"by time":           {most: 100, releases: 3, section: 9 * time.Millisecond},
		"by a long section": {most: 100, releases: 9, section: 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := localHandoffs(t, m, rdb, c.most, 9, func(_ int, l *fenced.Lock, held context.Context, _ int64) {
					time.Sleep(c.section)
					locktest.NoError(t, l.Unlock(held))
				})
				if got := spy.Count("unlock"); got < c.releases {
					t.Errorf("%d releases, want %d: %v", got, c.releases, spy)
				}
			})
		})
	}
}

// P56, Inv2: a re-entry reserves tokens too, so that a series goes on after it, and its tokens grow.
func TestP56_LocalHandoffsAfterAReentry(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		most := int64(0)
		spy := localHandoffs(t, m, rdb, 20, 8, func(i int, l *fenced.Lock, held context.Context, token int64) {
			if token <= most {
				t.Errorf("token %d after %d", token, most)
			}
			if most = token; i%3 == 1 {
				inner, again, err := l.LockAndGetToken(held)
				locktest.NoError(t, err)
				if again <= most {
					t.Errorf("the re-entry has token %d after %d", again, most)
				}
				most = again
				locktest.NoError(t, l.Unlock(inner))
			}
			locktest.NoError(t, l.Unlock(held))
		})
		locktest.Equal(t, "transfers and acquires", spy.Count("transfer")+spy.Count("acquire"), 1)
		locktest.Equal(t, "releases", spy.Count("unlock"), 2)
	})
}

// P56: a call that asks for another lease, or for a token where the hold has none, does not get the hold locally.
func TestP56_OtherTermsAskRedis(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb, rlock.WithLocalHandoffs(20))
		plain, fencing := rlock.NewLock(c, "l"), fenced.NewLock(c, "l")
		for what, next := range map[string]func() (context.Context, error){
			"a lease": func() (context.Context, error) { return plain.LockLease(longContext(t), 7*time.Second) },
			"a token": func() (context.Context, error) { return locktest.NoToken(fencing.LockAndGetToken(longContext(t))) },
		} {
			held := take(t, plain, t.Context())
			call := locktest.StartLock(next)
			locktest.Sleep(time.Millisecond)
			spy.Reset()
			locktest.NoError(t, plain.Unlock(held))
			got := <-call
			locktest.NoError(t, got.Err)
			locktest.Equal(t, what+": transfers", spy.Count("transfer"), 1)
			if what == "a lease" {
				locktest.Equal(t, "TTL", m.TTL("l"), 7*time.Second)
			}
			locktest.NoError(t, plain.Unlock(got.Ctx))
		}
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// P56, Inv1, Inv2: a hold that somebody has forced open within a series is lost to the last of the series at the latest, and whoever
// takes the lock meanwhile has a larger token than all of them.
func TestP56_AHoldIsForcedOpenWithinASeries(t *testing.T) {
	for _, at := range []int{0, 3, 7} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			c, other := newClient(t, rdb, rlock.WithLocalHandoffs(20)), fenced.NewLock(newClient(t, rdb), "l")
			l := fenced.NewLock(c, "l")
			held, _, err := l.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			var mu sync.Mutex
			var tokens, lost []int64 // of the client's holds, and of those that were told
			larger := int64(0)
			done := queueUp(8, func(i int) {
				held, token, err := l.LockAndGetToken(longContext(t))
				if err != nil {
					t.Error(err)
					return
				}
				if i == at {
					_, err := other.ForceUnlock(t.Context())
					locktest.NoError(t, err)
					outside, its, err := other.TryLockAndGetToken(t.Context(), 0, 0)
					locktest.NoError(t, err)
					larger = its
					locktest.NoError(t, other.Unlock(outside))
				}
				err = l.Unlock(held)
				mu.Lock()
				defer mu.Unlock()
				if tokens = append(tokens, token); errors.Is(err, rlock.ErrLost) {
					lost = append(lost, token)
				} else if err != nil {
					t.Error(err)
				}
			})
			locktest.NoError(t, l.Unlock(held))
			done()
			if slices.Sort(tokens); len(slices.Compact(tokens)) != 8 {
				t.Errorf("a token was given twice: %v", tokens)
			}
			if after, _ := slices.BinarySearch(tokens, larger); len(lost) != 1 || lost[0] != tokens[after-1] {
				t.Errorf("%v were told that their hold was forced open, want the last before %d: %v", lost, larger, tokens)
			}
			wantFree(t, m, time.Second, c)
		})
	}
}

// P56, Inv9: a hold that is passed on locally to a call which ends in that moment is released, and so is that of a client that shuts
// down or closes.
func TestP56_LocalHandoffsLeaveNothing(t *testing.T) {
	for name, end := range map[string]func(c *rlock.Client, cancel func()){
		"the calls end": func(_ *rlock.Client, cancel func()) { cancel() },
		"Close":         func(c *rlock.Client, _ func()) { _ = c.Close() },
		"Shutdown":      func(c *rlock.Client, _ func()) { _ = c.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				for range 50 {
					c := newClient(t, rdb, rlock.WithLocalHandoffs(20))
					l := rlock.NewLock(c, "l")
					ctx, cancel := context.WithCancel(t.Context())
					held := take(t, l, t.Context())
					done := queueUp(6, func(int) {
						held, err := l.Lock(ctx)
						if err == nil {
							_ = l.Unlock(held)
						}
					})
					go end(c, cancel)
					_ = l.Unlock(held)
					done()
					cancel()
					synctest.Wait()
					locktest.NoError(t, c.Close())
					wantFree(t, m, time.Minute, c)
				}
			})
		})
	}
}
