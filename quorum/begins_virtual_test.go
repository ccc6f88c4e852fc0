package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// slowFirst delays the first command of each connection pool to a node, as dialing among many others does, and each later one by a little. It returns
// how many attempts there were by now, and how many votes were asked of the nodes but one.
func slowFirst(u *user, dice *rand.Rand, first, later time.Duration) (attempts func() int, elsewhere func(home int) int) {
	var mu sync.Mutex
	seen, fields, votes := map[int]bool{}, map[string]bool{}, map[int]int{}
	u.on(func(node int, op string, args []any, next func() error) error {
		mu.Lock()
		if op == "vote" {
			fields[fieldOf(args)] = true
			votes[node]++
		}
		most := later
		if !seen[node] {
			seen[node], most = true, first
		}
		took := time.Duration(dice.Int64N(int64(most)))
		mu.Unlock()
		time.Sleep(took)
		return next()
	}, 0, 1, 2, 3, 4)
	attempts = func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(fields)
	}
	elsewhere = func(home int) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for node, asked := range votes {
			if node != home {
				n += asked
			}
		}
		return n
	}
	return attempts, elsewhere
}

// Many clients that have not heard of any node ask for one lock at the same moment: the home decides who is first, and the others wait there,
// and have no votes of the winner's.
func TestNewClients_AtOnce(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		const clients = 60
		var calls []<-chan error
		var mu sync.Mutex
		var took []time.Duration
		var users []*user
		var elsewhere []func(int) int
		for i := range uint64(clients) {
			u := s.user()
			_, votes := slowFirst(u, rand.New(rand.NewPCG(i, 1)), 40*time.Millisecond, 2*time.Millisecond)
			users, elsewhere = append(users, u), append(elsewhere, votes)
		}
		began := time.Now()
		for _, u := range users {
			calls = append(calls, locktest.Start(func() error {
				h, err := u.lock("l").Acquire(t.Context(), rlock.Wait(10*time.Second))
				if err != nil {
					return err
				}
				mu.Lock()
				took = append(took, time.Since(began))
				if len(took) == 1 {
					votes, home := 0, quorum.Order(u.Client, "l")[0]
					for _, by := range elsewhere {
						votes += by(home)
					}
					if votes > clients/4 {
						t.Errorf("nodes other than the home were asked for %d votes before the first had the lock", votes)
					}
				}
				mu.Unlock()
				return h.Unlock(t.Context())
			}))
		}
		for _, call := range calls {
			locktest.NoError(t, <-call)
		}
		if took[0] > 110*time.Millisecond {
			t.Errorf("the first has the lock after %v", took[0])
		}
		longest := took[0]
		for i, at := range took[1:] {
			longest = max(longest, at-took[i])
		}
		if longest > 500*time.Millisecond {
			t.Errorf("nobody had the lock for %v", longest)
		}
	})
}

// A new client that the home refuses asks no other node for a vote.
func TestNewClients_RefusedAtHome(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		other, u := s.user(), s.user()
		held, _, err := other.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		counted := count(u)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(15*time.Millisecond, cancel) // before it looks
		_, err = u.lock("l").Acquire(ctx, rlock.Wait(time.Minute))
		locktest.IsError(t, err, context.Canceled)
		locktest.Equal(t, "nodes asked for a vote", counted.nodes("vote"), 1)
		locktest.NoError(t, other.lock("l").Unlock(held))
	})
}

// A new client whose nodes take long for a first answer takes a lock that nobody has by one attempt of a call that does not wait.
func TestNewClients_SlowFirstAnswers(t *testing.T) {
	for seed := range uint64(20) {
		virtual(t, 5, func(t *testing.T, s *site) {
			u := s.user()
			attempts, _ := slowFirst(u, rand.New(rand.NewPCG(seed, 2)), 200*time.Millisecond, 40*time.Millisecond)
			h, err := u.lock("l").Acquire(t.Context(), rlock.Wait(0))
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if n := attempts(); n != 1 {
				t.Errorf("seed %d: %d attempts", seed, n)
			}
			locktest.NoError(t, h.Unlock(t.Context()))
		})
	}
}

// A hold that a minority of the nodes has left, of a program that ended before it was released everywhere, keeps nobody out, also where the home has it.
func TestRemnantOfAHold(t *testing.T) {
	for _, on := range [][]int{{0}, {0, 1}, {0, 4}, {1, 2}} { // in the order of the lock
		for _, wait := range []time.Duration{0, 2 * time.Second} {
			for _, stranger := range []bool{false, true} {
				t.Run(fmt.Sprint(on, wait, stranger), func(t *testing.T) {
					virtual(t, 5, func(t *testing.T, s *site) {
						u := s.user()
						order := quorum.Order(u.Client, "l")
						if !stranger {
							known(t, u)
						}
						for _, i := range on {
							m := s.minis[order[i]]
							m.HSet("l", "6b1f0d1e-0000-4000-8000-000000000001:1", "1")
							m.SetTTL("l", 30*time.Second)
						}
						for i, most := range []time.Duration{150 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond} {
							began := time.Now()
							h, err := u.lock("l").Acquire(t.Context(), rlock.Wait(wait))
							locktest.NoError(t, err)
							tookAtMost(t, began, most, fmt.Sprint("acquire ", i))
							locktest.Sleep(15 * time.Millisecond)
							if line, err := s.minis[order[0]].ZMembers(scripts.KeysOf("l").Line); err == nil {
								t.Errorf("acquire %d: in the line is %q", i, line)
							}
							locktest.NoError(t, h.Unlock(t.Context()))
						}
					})
				})
			}
		}
	}
}

// A call that does not wait is told of a holder where a majority has one, and of split votes where nobody has the lock for the second that it asks.
func TestOnce_WhoHasTheLock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u, other := s.user(), s.user()
		known(t, u)
		h, err := other.lock("l").Acquire(t.Context())
		locktest.NoError(t, err)
		for _, who := range []*user{u, u, s.user()} {
			began := time.Now()
			_, err = who.lock("l").Acquire(t.Context(), rlock.Wait(0))
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			if errors.Is(err, quorum.ErrSplitVote) {
				t.Error(err)
			}
			tookAtMost(t, began, 200*time.Millisecond, "the answer")
		}
		locktest.NoError(t, h.Unlock(t.Context()))
		for i, m := range s.minis {
			m.HSet("l", fmt.Sprintf("6b1f0d1e-0000-4000-8000-00000000000%d:1", i/2), "1")
			m.SetTTL("l", time.Minute)
		}
		began := time.Now()
		_, err = u.lock("l").Acquire(t.Context(), rlock.Wait(0))
		locktest.IsError(t, err, quorum.ErrSplitVote)
		if took := time.Since(began); took < 500*time.Millisecond || took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A node that executes a vote behind the release of its attempt, as commands of several connections come in any order, is released again as soon as the
// vote is answered.
func TestP3_AVoteBehindItsRelease(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		order := quorum.Order(u.Client, "l")
		for _, i := range order[1:] {
			s.minis[i].HSet("l", "6b1f0d1e-0000-4000-8000-000000000001:1", "1")
			s.minis[i].SetTTL("l", 30*time.Second)
		}
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "vote" {
				time.Sleep(45 * time.Millisecond)
			}
			return next()
		}, order[0])
		_, err := u.lock("l").Acquire(t.Context(), rlock.Wait(10*time.Millisecond))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Sleep(90 * time.Millisecond)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 4)
	})
}

// What a client has given up itself, and is not released everywhere yet, is no holder that keeps it out.
func TestOnce_OwnVotesThatComeLate(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		var mu sync.Mutex
		seen := map[int]bool{}
		u.on(func(node int, op string, _ []any, next func() error) error {
			mu.Lock()
			first := !seen[node]
			seen[node] = true
			mu.Unlock()
			switch {
			case op == "vote" && first:
				time.Sleep(55 * time.Millisecond)
			case op == "withdraw":
				time.Sleep(40 * time.Millisecond)
			}
			return next()
		}, 0, 1, 2, 3, 4)
		h, err := u.lock("l").Acquire(t.Context(), rlock.Wait(0))
		locktest.NoError(t, err)
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}
