package quorum_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Inv2: tokens grow although any one node has forgotten all of them: many locks, which are taken by nodes that have only
// that one in common with those by which they are taken next.
func TestReal_TokensAfterANodeForgot(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d nodes", n), func(t *testing.T) {
			s := masters(t, n)
			const locks = 30
			last := make([]int64, locks)
			take := func(u *user) {
				t.Helper()
				for i := range last {
					l := u.lock(fmt.Sprint("lock", i))
					locktest.NoError(t, l.Do(t.Context(), func(_ context.Context, token int64) error {
						if token <= last[i] {
							t.Errorf("Inv2: lock %d: token %d after %d", i, token, last[i])
						}
						last[i] = token
						return nil
					}, rlock.Wait(bound)))
				}
			}
			all, left, right := s.user(lease(), patient()), s.user(lease(), patient()), s.user(lease(), patient())
			for node := range n {
				left.up()
				right.up()
				for i := 1; i < n; i++ { // both have a majority with this node, and no other in common
					if other := (node + i) % n; i <= n/2 {
						left.down(other)
					} else {
						right.down(other)
					}
				}
				take(all)
				take(left)
				take(left)
				s.servers[node].Restart()
				s.ripen(node)
				take(right)
			}
			take(all)
		})
	}
}

// The same where a node's clock is wrong when it has a part in a token, and right, or wrong the other way, when it has
// forgotten: the token goes by what most say. restart: it forgets by a restart, and else while it runs.
func TestInv2_ANodeThatForgetsAndItsClock(t *testing.T) {
	for _, n := range []int{3, 5} {
		for _, restart := range []bool{true, false} {
			for _, first := range []time.Duration{-time.Minute, 0, time.Hour} {
				for _, then := range []time.Duration{-time.Minute, 0, time.Hour} {
					t.Run(fmt.Sprintf("%d nodes, restart %t, clock %v, %v", n, restart, first, then), func(t *testing.T) {
						virtual(t, n, func(t *testing.T, s *site) {
							left, right := s.user(), s.user() // have no other node in common
							for i := 1; i < n; i++ {
								if i <= n/2 {
									left.down(i)
									s.clock(i, -time.Second) // others differ by a little too
								} else {
									right.down(i)
								}
							}
							s.clock(0, first)
							var last int64
							take := func(u *user) {
								t.Helper()
								locktest.NoError(t, u.lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
									if token <= last {
										t.Errorf("Inv2: token %d after %d", token, last)
									}
									last = token
									return nil
								}))
							}
							take(left)
							locktest.Sleep(10 * time.Second)
							take(left)
							if restart {
								s.restart(0)
								locktest.Sleep(2 * time.Minute)
							} else {
								s.minis[0].FlushAll()
							}
							s.clock(0, then)
							take(right)
							take(right)
						})
					})
				}
			}
		}
	}
}
