package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Inv12: while no majority counts each call ends with its patience, however many clients ask: what one client's attempt leaves on nodes for a
// moment is no holder to the others, and no split vote.
func TestInv12_PatienceOfSeveralClients(t *testing.T) {
	const patience = 2 * time.Second
	all := []int{0, 1, 2, 3, 4}
	for what, spoil := range map[string]func(s *site, users []*user, order []int){
		"all have started a moment ago": func(s *site, _ []*user, order []int) {
			for _, node := range order {
				s.restart(node)
			}
		},
		"all but the home are down": func(_ *site, users []*user, order []int) {
			for _, u := range users {
				u.down(order[1:]...)
			}
		},
		"the home and one more count": func(s *site, users []*user, order []int) {
			for _, u := range users {
				u.down(order[2])
			}
			s.restart(order[3])
			s.restart(order[4])
		},
	} {
		for _, clients := range []int{3, 8} {
			for _, waits := range []bool{false, true} { // when that happens, for a holder that loses the lock by it
				t.Run(fmt.Sprintf("%s, %d clients, waiting %v", what, clients, waits), func(t *testing.T) {
					virtual(t, 5, func(t *testing.T, s *site) {
						var users []*user
						for range clients + 1 {
							u := s.user(rlock.WithPatience(patience))
							u.on(func(_ int, _ string, _ []any, next func() error) error {
								time.Sleep(300 * time.Microsecond)
								return next()
							}, all...)
							locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
							users = append(users, u)
						}
						holder, order := users[clients], quorum.Order(users[0].Client, "l")
						locktest.Sleep(2 * time.Second)
						if waits {
							_, _, err := holder.lock("l").LockAndGetToken(t.Context())
							locktest.NoError(t, err)
						} else {
							spoil(s, users, order)
						}
						began := time.Now()
						var calls []<-chan error
						for _, u := range users[:clients] {
							calls = append(calls, locktest.Start(func() error {
								_, _, err := u.lock("l").TryLockAndGetToken(t.Context(), time.Minute, 0)
								return err
							}))
						}
						if waits {
							locktest.Sleep(3 * time.Second)
							began = time.Now()
							spoil(s, users, order)
						}
						for _, call := range calls {
							err := <-call
							if tooFew := (*quorum.MajorityError)(nil); !errors.As(err, &tooFew) {
								t.Errorf("got %v, want a MajorityError", err)
							}
						}
						most := patience + time.Second/4
						if waits {
							most += 2 * time.Second // until the second look, which asks others than the home
						}
						tookAtMost(t, began, most, "the slowest call")
					})
				})
			}
		}
	}
}

// What another client has on the home says nothing while the home does not count: others that count may have the lock for this one.
func TestARestartedHomeRefusesNobody(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		home := quorum.Order(u.Client, "l")[0]
		s.restart(home)
		s.stranger("1:1", home)
		held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}
