package quorum_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// ends closes the client in one of both ways.
func ends(t *testing.T, u *user, gently bool) {
	t.Helper()
	if gently {
		locktest.NoError(t, u.Shutdown(t.Context()))
	} else {
		locktest.NoError(t, u.Close())
	}
}

// P12: Close and Shutdown do not wait for a node that has not answered for a while, nor for more of them whose leases are over.
func TestP12_CloseLongAfterNodesDied(t *testing.T) {
	for _, c := range []struct {
		dead  int
		quiet time.Duration
	}{{1, 2 * time.Second}, {3, 31 * time.Second}} {
		for how, die := range map[string]func(u *user, gate *memredis.Gate, nodes []int){
			"connections end": func(u *user, _ *memredis.Gate, nodes []int) {
				u.on(func(int, string, []any, func() error) error { return io.EOF }, nodes...)
			},
			"connections end, and others are refused": func(u *user, _ *memredis.Gate, nodes []int) {
				u.on(func(node int, _ string, _ []any, _ func() error) error {
					u.down(node)
					return io.EOF
				}, nodes...)
			},
			"silence": func(_ *user, gate *memredis.Gate, _ []int) { gate.Shut() },
		} {
			if c.dead > 1 && how == "connections end" {
				continue // each command is sent again and again for half a minute, which takes seconds also in virtual time
			}
			for _, gently := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d of 5, %s, gently %v", c.dead, how, gently), func(t *testing.T) {
					virtual(t, 5, func(t *testing.T, s *site) {
						var gate memredis.Gate
						defer gate.Open()
						open, nodes := s.connect, []int{0, 1, 2, 3, 4}[:c.dead]
						s.connect = func(i int) *redis.Client {
							if i < c.dead {
								return redistest.GatedClient(t, s.minis[i], &gate)
							}
							return open(i)
						}
						u, other := s.user(quorum.WithAllNodes()), s.user()
						held, _, err := u.lock("l").LockAndGetToken(t.Context())
						locktest.NoError(t, err)
						_, _, err = other.lock("others").LockLeaseAndGetToken(t.Context(), time.Minute/2)
						locktest.NoError(t, err)
						locktest.Sleep(time.Second)
						die(u, &gate, nodes)
						_, _, _ = u.lock("others").TryLockAndGetToken(t.Context(), 0, 0) // is refused, and what the dead have got of it nobody knows
						_ = u.lock("l").Unlock(held)
						if held, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 100*time.Millisecond, 0); err == nil {
							_ = u.lock("l").Unlock(held)
						}
						locktest.Sleep(c.quiet)
						began := time.Now()
						ends(t, u, gently)
						tookAtMost(t, began, 10*time.Millisecond, "the end")
					})
				})
			}
		}
	}
}

// P12: Close and Shutdown wait for nodes that are slow to release a hold which most nodes have released, and so what has the votes of a part
// of the nodes.
func TestP12_CloseWaitsForSlowNodes(t *testing.T) {
	for _, slow := range []string{"withdraw", "vote"} {
		for _, gently := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gently %v", slow, gently), func(t *testing.T) {
				virtual(t, 5, func(t *testing.T, s *site) {
					u := s.user(quorum.WithAllNodes())
					known(t, u)
					u.on(func(_ int, op string, _ []any, next func() error) error {
						if op == slow {
							time.Sleep(300 * time.Millisecond)
						}
						return next()
					}, 1, 3)
					locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error {
						locktest.Sleep(time.Millisecond)
						return nil
					}))
					ends(t, u, gently)
					locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
				})
			})
		}
	}
}

// P12: Close waits for a node that has just ceased to answer, but not for long, and for a majority as long as it may.
func TestP12_CloseJustAfterNodesDied(t *testing.T) {
	for dead, most := range map[int]time.Duration{1: 1200 * time.Millisecond, 3: 2300 * time.Millisecond} {
		for _, gently := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d of 5, gently %v", dead, gently), func(t *testing.T) {
				virtual(t, 5, func(t *testing.T, s *site) {
					u := s.user(rlock.WithUnlockTimeout(3 * time.Second))
					known(t, u)
					held, _, err := u.lock("l").LockAndGetToken(t.Context())
					locktest.NoError(t, err)
					locktest.Sleep(time.Second)
					nodes := []int{0, 1, 2, 3, 4}[:dead]
					u.down(nodes...)
					if err := u.lock("l").Unlock(held); (err == nil) != (dead == 1) {
						t.Error(err)
					}
					back := time.AfterFunc(2*time.Second, u.up)
					defer back.Stop()
					began := time.Now()
					ends(t, u, gently)
					tookAtMost(t, began, most, "the end")
					if dead == 3 {
						locktest.Sleep(time.Millisecond) // what was sent with the last release comes
						locktest.Equal(t, "nodes that have the lock", s.has("l"), 0)
					}
				})
			})
		}
	}
}
