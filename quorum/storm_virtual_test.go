package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// Minutes of a bad network and of nodes that forget everything, in virtual time: commands that are lost, come late, or
// twice, links that are down for a while, nodes that restart empty, holders that hold for too long. At most one holder
// whose context is alive; tokens that grow; and nothing is left (Inv1, Inv2, Inv5, Inv9). QUORUM_SEEDS is how many storms
// there are.
func TestInv5_Storm(t *testing.T) {
	t.Parallel()
	seeds := 2
	if s, err := strconv.Atoi(os.Getenv("QUORUM_SEEDS")); err == nil {
		seeds = s
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				holds, wrong := virtualStorm(t, s, seed, 4, 1, func(*user) {})
				if wrong != nil {
					t.Error(wrong)
				}
				if holds < 5 {
					t.Errorf("only %d holds", holds)
				}
			})
		})
	}
}

// Such a storm sees what it is there to see: with nodes that count although they have forgotten, two holders at once.
func TestInv5_StormCatchesTheNaiveForm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		caught := false
		virtual(t, 5, func(t *testing.T, s *site) {
			_, wrong := virtualStorm(t, s, seed, 1, 3, func(u *user) { quorum.Naive(u.Client) })
			caught = wrong != nil
		})
		if caught {
			return
		}
	}
	t.Error("nobody noticed")
}

// virtualStorm has so many restarts in one of so many steps, of a second each, until it has seen what is wrong.
func virtualStorm(t *testing.T, s *site, seed uint64, calm, restarts int, prepare func(*user)) (int, error) {
	var w witness
	ctx, stop := context.WithCancel(t.Context())
	var users []*user
	var workers sync.WaitGroup
	all := []int{0, 1, 2, 3, 4}
	var copies []*redis.Client // by which commands come late, or once more
	for i := range all {
		copies = append(copies, s.connect(i))
	}
	var mu sync.Mutex
	dice := rand.New(rand.NewPCG(seed, 1))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(n)
	}
	for i := range 4 {
		callers := 1 + 3*(i%2) // of which those of one client pass the lock on
		u := s.user(local(20, rlock.WithLease(2*time.Second), rlock.WithPatience(time.Minute)), quorum.WithRetryDelay(50*time.Millisecond, 500*time.Millisecond))
		prepare(u)
		users = append(users, u)
		u.on(func(node int, _ string, args []any, next func() error) error {
			time.Sleep(time.Duration(roll(1000)) * time.Microsecond)
			switch roll(60) {
			case 0: // never comes
				time.Sleep(time.Duration(roll(1000)) * time.Millisecond)
				return io.EOF
			case 1: // is done, and the answer lost
				_ = next()
				time.Sleep(time.Duration(roll(1000)) * time.Millisecond)
				return io.EOF
			case 2: // comes late
				time.Sleep(time.Duration(roll(1000)) * time.Millisecond)
				return next()
			case 3: // comes once more
				time.AfterFunc(time.Duration(roll(5000))*time.Millisecond, func() { copies[node].Do(context.Background(), args...) })
			case 4: // comes when nobody expects it any more
				time.AfterFunc(time.Duration(roll(5000))*time.Millisecond, func() { copies[node].Do(context.Background(), args...) })
				return io.EOF
			}
			return next()
		}, all...)
		l := u.lock("a", fenced.WithClockFloor())
		work := func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(roll(300)) * time.Millisecond)
				var lease time.Duration
				if roll(3) == 0 {
					lease = time.Duration(100+roll(1900)) * time.Millisecond
				}
				held, token, err := l.TryLockAndGetToken(ctx, 20*time.Second, lease)
				if err != nil {
					continue
				}
				w.enter(held, token)
				time.Sleep(time.Duration(roll(20)) * time.Millisecond)
				if roll(5) == 0 {
					time.Sleep(time.Duration(roll(1500)) * time.Millisecond)
				}
				if roll(4) == 0 {
					if inner, next, err := l.TryLockAndGetToken(held, time.Second, 0); err == nil {
						w.raise(held, token, next)
						_ = l.Unlock(inner)
					}
				}
				if i == 0 && roll(10) == 0 {
					time.Sleep(time.Duration(roll(5000)) * time.Millisecond)
				}
				w.leave(held)
				if err := l.Unlock(held); errors.Is(err, rlock.ErrNotHeld) {
					t.Errorf("Unlock: %v", err)
				}
			}
		}
		for range callers {
			workers.Go(work)
		}
	}
	for range 25 {
		time.Sleep(time.Duration(roll(2000)) * time.Millisecond)
		for _, u := range users { // each does without up to two nodes
			u.each(all, func(l *link) { l.down = false })
			u.down(roll(5), roll(5))
		}
		if roll(calm) == 0 {
			for range restarts {
				s.restart(roll(5))
			}
		}
		if _, wrong := w.verdict(); wrong != nil {
			break
		}
	}
	stop()
	workers.Wait()
	for _, u := range users {
		u.up()
	}
	locktest.Sleep(time.Minute)
	if n := s.has("a"); n > 0 {
		t.Errorf("Inv9: %d nodes have the lock", n)
	}
	for i, u := range users {
		if n := quorum.Records(u.Client); n > 64 {
			t.Errorf("Inv9: client %d keeps %d records", i, n)
		}
	}
	return w.verdict()
}
