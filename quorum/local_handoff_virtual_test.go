package quorum_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// local is the options of users with so many local handoffs.
func local(n int, opts ...rlock.Option) rlock.Option {
	return together(append([]rlock.Option{rlock.WithLocalHandoffs(n)}, opts...)...)
}

// A served is what one of several waiters has come to.
type served struct {
	token int64
	err   error // of its Unlock
}

// series has n callers of a client wait behind a first hold, and returns what they have come to, in the order of their turns. use is
// what each does with its hold; the first waiter has the number 0.
func series(t *testing.T, u *user, n int, use func(i int, l *fenced.Lock, held context.Context), opts ...fenced.Option) (all []served) {
	t.Helper()
	l := u.lock("l", opts...)
	first, last, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() {
			held, token, err := l.LockAndGetToken(ctx)
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			mu.Lock()
			if token <= last {
				t.Errorf("Inv2: waiter %d has token %d after %d", i, token, last)
			}
			last = token
			mu.Unlock()
			if use != nil {
				use(i, l, held)
			}
			err = l.Unlock(held)
			mu.Lock()
			all = append(all, served{token, err})
			mu.Unlock()
		})
		synctest.Wait()
	}
	_ = l.Unlock(first)
	calls.Wait()
	// the next one may be done before the one that has passed the lock on
	slices.SortFunc(all, func(a, b served) int { return cmp.Compare(a.token, b.token) })
	return all
}

// counters is how many nodes have this counter.
func (s *site) counters(name string, value int64) (n int) {
	for _, m := range s.minis {
		if got, _ := m.Get(scripts.KeysOf(name).Token); got == fmt.Sprint(value) {
			n++
		}
	}
	return n
}

// P56, T8: a hold of a majority is passed on among the callers of a client, each with the next of the tokens that the majority has taken
// with its votes, and no node is asked.
func TestP56_LocalHandoffsAskNoNode(t *testing.T) {
	for _, opts := range [][]fenced.Option{nil, {fenced.WithStableToken()}, {fenced.WithCounterExpiry(time.Hour)}} {
		virtual(t, 5, func(t *testing.T, s *site) {
			u := s.user(local(20))
			known(t, u)
			counted, voted := count(u), 0
			all := series(t, u, 12, func(i int, l *fenced.Lock, held context.Context) {
				if i == 0 {
					voted = counted.all("vote")
				}
				locktest.NoError(t, l.Check(held))
				if left, err := l.Remaining(held); err != nil || left < 29*time.Second {
					t.Errorf("Remaining: %v, %v", left, err)
				}
			}, opts...)
			for i, one := range all {
				locktest.NoError(t, one.err)
				locktest.Equal(t, "token", one.token, all[0].token+int64(i))
			}
			locktest.Equal(t, "votes for the others", counted.all("vote")-voted, 0)
			locktest.Equal(t, "second rounds", counted.all("raise"), 0)
			locktest.Equal(t, "nodes whose counter is behind all tokens", s.counters("l", all[0].token+20), 3)
			locktest.NoError(t, s.user().lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
				if token <= all[0].token+20 {
					t.Errorf("Inv2: token %d, of those reserved up to %d", token, all[0].token+20)
				}
				return nil
			}))
		})
	}
}

// all is how many nodes were asked for this, each as often as it was, also together with other things.
func (t *tally) all(op string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, asked := range t.asked {
		for ops, times := range asked {
			if slices.Contains(strings.Fields(ops), op) {
				n += times
			}
		}
	}
	return n
}

// P56: a series has an end, by number, by time and by a tenth of the lease, and others get the lock.
func TestP56_ASeriesOfAQuorumIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		most           int
		section, lease time.Duration
		votes          int // rounds, for nine waiters
	}{
		"by number":               {3, 0, 30 * time.Second, 3},
		"by time":                 {100, 9 * time.Millisecond, 30 * time.Second, 3},
		"by a tenth of the lease": {100, 9 * time.Millisecond, 100 * time.Millisecond, 5},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				u := s.user(local(c.most, rlock.WithLease(c.lease)), quorum.WithMaxLease(30*time.Second))
				known(t, u)
				counted := count(u)
				all := series(t, u, 9, func(int, *fenced.Lock, context.Context) { time.Sleep(c.section) })
				locktest.Equal(t, "waiters served", len(all), 9)
				for _, one := range all {
					locktest.NoError(t, one.err)
				}
				if got := counted.all("vote") / 3; got < c.votes {
					t.Errorf("%d votes, want %d or more", got, c.votes)
				}
			})
		})
	}
}

// T8, Inv2: a token of a second round is one alone, and so is that of a re-entry, and far ahead of the time no more than 33 are taken: the hold is
// not passed on with numbers that the nodes do not know to be taken.
func TestT8_FewerTokensThanAskedFor(t *testing.T) {
	const most = 100
	for name, c := range map[string]struct {
		first          func(s *site) // before the client has heard of the nodes
		before         func(t *testing.T, s *site)
		use            func(t *testing.T, i int, l *fenced.Lock, held context.Context)
		waiters, holds int // so many at least
	}{
		"second rounds": {waiters: 8, holds: 8, first: func(s *site) {
			for i := range s.nodes { // no number suits most
				s.clock(i, time.Duration(i)*time.Minute)
			}
		}},
		"counters that are ahead": {waiters: 70, holds: 3, before: func(t *testing.T, s *site) {
			for _, m := range s.minis {
				locktest.NoError(t, m.Set(scripts.KeysOf("l").Token, fmt.Sprint(time.Now().Add(time.Minute).UnixMicro())))
			}
			locktest.NoError(t, s.user().lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
		}},
		"re-entries": {waiters: 8, holds: 8, use: func(t *testing.T, i int, l *fenced.Lock, held context.Context) {
			outer, _ := fenced.TokenFrom(held, "l")
			inner, token, err := l.LockAndGetToken(held)
			locktest.NoError(t, err)
			if i < 7 && token < outer+33 { // behind the last nobody waits
				t.Errorf("Inv2: the re-entry has token %d, of those reserved with %d", token, outer)
			}
			locktest.NoError(t, l.Unlock(inner))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				if c.first != nil {
					c.first(s)
				}
				u := s.user(local(most))
				known(t, u)
				if c.before != nil {
					c.before(t, s)
				}
				var mu sync.Mutex
				holds := map[string]bool{}
				u.on(func(_ int, op string, args []any, next func() error) error {
					mu.Lock()
					if op == "vote" {
						holds[fieldOf(args)] = true
					}
					mu.Unlock()
					return next()
				}, 0, 1, 2, 3, 4)
				series(t, u, c.waiters, func(i int, l *fenced.Lock, held context.Context) {
					if c.use != nil {
						c.use(t, i, l, held)
					}
				})
				if got := len(holds) - 1; got < c.holds || c.holds < c.waiters && got > 2*c.holds {
					t.Errorf("%d holds for %d waiters, want %d", got, c.waiters, c.holds)
				}
			})
		})
	}
}

// P56, Inv1, Inv2: a hold that somebody forces open on a majority within a series is lost to the last of the series at the latest, and who takes
// the lock meanwhile has a larger token than all of them.
func TestP56_AQuorumsHoldIsForcedOpenWithinASeries(t *testing.T) {
	for _, at := range []int{0, 3, 7} {
		virtual(t, 5, func(t *testing.T, s *site) {
			u, other := s.user(local(20)), s.user()
			known(t, u)
			known(t, other)
			larger := int64(0)
			all := series(t, u, 8, func(i int, _ *fenced.Lock, _ context.Context) {
				if i != at {
					return
				}
				l := other.lock("l")
				_, err := l.ForceUnlock(t.Context())
				locktest.NoError(t, err)
				held, token, err := l.TryLockAndGetToken(t.Context(), time.Second, 0)
				locktest.NoError(t, err)
				larger = token
				locktest.NoError(t, l.Unlock(held))
			})
			lost := slices.IndexFunc(all, func(one served) bool { return errors.Is(one.err, rlock.ErrLost) })
			if lost < at || all[lost].token >= larger {
				t.Fatalf("waiter %d was told that its hold was forced open, with token %d, want the last before %d: %v", lost, all[lost].token, larger, all)
			}
			if lost+1 < len(all) && all[lost+1].token <= larger {
				t.Errorf("Inv2: token %d after %d", all[lost+1].token, larger)
			}
			locktest.Sleep(time.Minute)
			locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
		})
	}
}
