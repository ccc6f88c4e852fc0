package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// P56, Inv1, Inv9: nodes are down within a series. It goes on for as long as it may, also where a majority is down: no longer than a hold of that
// age is trusted in any case. Then others ask the nodes, and nothing is left.
func TestP56_NodesDownWithinASeries(t *testing.T) {
	for _, dead := range [][]int{{0}, {1, 2}, {0, 1, 2, 3, 4}} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				u, other := s.user(local(100)), s.user()
				known(t, u)
				known(t, other)
				var began time.Time
				var got <-chan error
				all := series(t, u, 12, func(i int, _ *fenced.Lock, held context.Context) {
					switch i {
					case 0:
						began = time.Now()
						got = locktest.Start(func() error {
							return other.lock("l").Do(t.Context(), func(ctx context.Context, _ int64) error { return ctx.Err() })
						})
						synctest.Wait()
					case 2:
						u.down(dead...)
						time.AfterFunc(time.Second, u.up)
					}
					time.Sleep(4 * time.Millisecond)
					locktest.NoError(t, held.Err())
					if i < 5 && time.Since(began) != time.Duration(i+1)*4*time.Millisecond {
						t.Errorf("waiter %d has waited for nodes: it is done %v after the first began", i, time.Since(began))
					}
				})
				locktest.Equal(t, "waiters served", len(all), 12)
				for i, one := range all {
					if one.err != nil && len(dead) < 3 {
						t.Errorf("waiter %d: %v", i, one.err)
					}
				}
				locktest.NoError(t, <-got)
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
			})
		})
	}
}

// T8, Inv2: a node of a series' majority forgets everything within it. Who has no other node in common with that majority gets larger tokens than
// all of the series, and, where the node has restarted, not before the lease is over (Inv1).
func TestT8_ANodeForgetsWithinASeries(t *testing.T) {
	for _, restart := range []bool{true, false} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				left, right := s.user(local(1000)), s.user(rlock.WithPatience(time.Minute))
				known(t, left)
				known(t, right)
				left.down(1, 2)
				right.down(3, 4)
				all := series(t, left, 30, func(i int, _ *fenced.Lock, _ context.Context) {
					switch {
					case i != 10:
					case restart:
						s.restart(0)
					default:
						s.minis[0].FlushAll()
					}
				})
				locktest.Equal(t, "waiters served", len(all), 30)
				held, token, err := right.lock("l").TryLockAndGetToken(t.Context(), time.Minute, 0)
				locktest.NoError(t, err)
				if token <= all[29].token {
					t.Errorf("Inv2: token %d after %d", token, all[29].token)
				}
				locktest.NoError(t, right.lock("l").Unlock(held))
			})
		})
	}
}

// P56, Inv1: a hold whose lease is over within a series is passed on to nobody, and nobody of the series has trusted it for longer than the lease.
func TestP56_ALeaseEndsWithinASeries(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		const lease = 2 * time.Second
		u := s.user(local(100))
		known(t, u)
		l := u.lock("l")
		first, _, err := l.LockLeaseAndGetToken(t.Context(), lease)
		locktest.NoError(t, err)
		var began time.Time
		var calls sync.WaitGroup
		for i := range 6 {
			calls.Go(func() {
				held, _, err := l.LockLeaseAndGetToken(t.Context(), lease)
				locktest.NoError(t, err)
				if i == 0 {
					began = time.Now()
				}
				time.Sleep(time.Millisecond)
				if i == 3 { // it sleeps beyond the lease
					<-held.Done()
					if took := time.Since(began); took > lease {
						t.Errorf("the hold was trusted for %v", took)
					}
					locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
					return
				}
				locktest.NoError(t, l.Unlock(held))
			})
			synctest.Wait()
		}
		locktest.NoError(t, l.Unlock(first))
		calls.Wait()
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
	})
}

// P56, Inv1: a lease that was asked for, and that no majority has confirmed, is not passed on.
func TestP56_AQuorumsLeaseWithoutAnAnswerIsNotPassedOn(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(local(100))
		known(t, u)
		l := u.lock("l")
		var got <-chan locktest.Result
		series(t, u, 2, func(i int, l *fenced.Lock, held context.Context) {
			if i == 1 {
				return
			}
			got = locktest.StartLock(func() (context.Context, error) {
				return locktest.NoToken(l.LockLeaseAndGetToken(t.Context(), 20*time.Second))
			})
			synctest.Wait()
			u.down(0, 1, 2)
			ctx, cancel := context.WithTimeout(held, 5*time.Millisecond)
			defer cancel()
			if _, _, err := l.LockLeaseAndGetToken(ctx, 20*time.Second); err == nil {
				t.Error("it was confirmed")
			}
			u.up()
		})
		one := <-got
		locktest.NoError(t, one.Err)
		left, err := l.Remaining(one.Ctx)
		there := 0
		for _, m := range s.minis {
			if m.TTL("l") >= left {
				there++
			}
		}
		if err != nil || there < 3 {
			t.Errorf("%v remain: %v; so long %d nodes keep it", left, err, there)
		}
		locktest.NoError(t, l.Unlock(one.Ctx))
	})
}

// P56, Inv9: a hold that is passed on locally to a call which ends in that moment is released, and so is that of a client that shuts down or closes.
func TestP56_LocalHandoffsLeaveNothingOnNodes(t *testing.T) {
	for name, end := range map[string]func(u *user, cancel func()){
		"the calls end": func(_ *user, cancel func()) { cancel() },
		"Close":         func(u *user, _ func()) { _ = u.Close() },
		"Shutdown":      func(u *user, _ func()) { _ = u.Shutdown(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				for range 20 {
					u := s.user(local(20))
					known(t, u)
					l := u.lock("l")
					ctx, cancel := context.WithCancel(t.Context())
					held, _, err := l.LockAndGetToken(t.Context())
					locktest.NoError(t, err)
					var calls sync.WaitGroup
					for i := range 6 {
						calls.Go(func() {
							held, _, err := l.LockAndGetToken(ctx)
							if i == 1 {
								go end(u, cancel)
							}
							if err == nil {
								err = l.Unlock(held)
							}
							if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, rlock.ErrClosed) {
								t.Error(err)
							}
						})
						synctest.Wait()
					}
					_ = l.Unlock(held)
					calls.Wait()
					cancel()
					locktest.NoError(t, u.Close())
					synctest.Wait()
					locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
				}
			})
		})
	}
}
