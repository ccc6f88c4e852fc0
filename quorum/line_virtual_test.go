package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// waiting begins a call that waits for the lock "l".
func waiting(ctx context.Context, u *user) <-chan locktest.Result {
	return locktest.StartFenced(func() (context.Context, int64, error) { return u.lock("l").LockAndGetToken(ctx) })
}

// stranger has the lock "l" on these nodes, for a hold of a client that is gone.
func (s *site) stranger(field string, nodes ...int) {
	for _, n := range nodes {
		s.minis[n].HSet("l", "6b1f0d1e-0000-4000-8000-00000000000"+field, "1")
		s.minis[n].SetTTL("l", time.Hour)
	}
}

// slowPoll is for a client that is to be told, and not to look.
func slowPoll() rlock.Option { return rlock.WithPollInterval(time.Minute) }

// votesOf counts the votes that a client asks for, by node, and makes each take so long.
func votesOf(u *user, takes time.Duration) *[5]atomic.Int32 {
	votes := new([5]atomic.Int32)
	u.on(func(node int, op string, _ []any, next func() error) error {
		votes[node].Add(int32(strings.Count(op, "vote")))
		time.Sleep(takes)
		return next()
	}, 0, 1, 2, 3, 4)
	return votes
}

func sum(votes *[5]atomic.Int32) (n int32) {
	for i := range votes {
		n += votes[i].Load()
	}
	return n
}

// P40: a client that waits asks the home alone, whose no is enough, and a client that is called asks a majority at once.
func TestP40_WhoWaitsAsksTheHomeAlone(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		holder, u := s.user(), s.user(slowPoll())
		known(t, holder)
		known(t, u)
		held, _, err := holder.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond)
		votes := votesOf(u, time.Millisecond)
		got := waiting(t.Context(), u)
		locktest.Sleep(15 * time.Millisecond) // before it looks, and asks all
		home := quorum.First(u.Client, "l")
		locktest.Equal(t, "votes of nodes other than the home", sum(votes)-votes[home].Load(), 2) // of the first attempt, before it is in the line
		began := time.Now()
		locktest.NoError(t, holder.lock("l").Unlock(held))
		r := <-got
		locktest.NoError(t, r.Err)
		if took := time.Since(began); took > 1500*time.Microsecond {
			t.Errorf("the client that was called had the lock after %v, and an answer takes 1 ms", took)
		}
		locktest.NoError(t, u.lock("l").Unlock(r.Ctx))
	})
}

// P40: who is called does not wait for the release to arrive at the other nodes, and the release is none of a lost hold for that.
func TestP40_WhoIsCalledDropsTheHold(t *testing.T) {
	for _, lasted := range []time.Duration{0, 20 * time.Millisecond} { // on three nodes, and on all
		virtual(t, 5, func(t *testing.T, s *site) {
			holder, u := s.user(), s.user(slowPoll())
			known(t, holder)
			known(t, u)
			held, _, err := holder.lock("l").LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			locktest.Sleep(lasted)
			got := waiting(t.Context(), u)
			locktest.Sleep(5 * time.Millisecond) // it is in the line, and has not looked
			home := quorum.First(u.Client, "l")
			holder.on(func(node int, op string, _ []any, next func() error) error {
				switch {
				case !strings.Contains(op, "withdraw"):
				case node == home:
					defer time.Sleep(10 * time.Millisecond)
				default:
					time.Sleep(5 * time.Millisecond)
				}
				return next()
			}, 0, 1, 2, 3, 4)
			began := time.Now()
			unlocked := make(chan error, 1)
			go func() { unlocked <- holder.lock("l").Unlock(held) }()
			r := <-got
			locktest.NoError(t, r.Err)
			tookAtMost(t, began, 2*time.Millisecond, "the handover")
			locktest.NoError(t, <-unlocked)
			locktest.Sleep(time.Second)
			locktest.NoError(t, r.Ctx.Err())
			locktest.NoError(t, u.lock("l").Unlock(r.Ctx))
		})
	}
}

// P40: a ForceUnlock that frees the home alone takes nothing from the holder on the other nodes, by way of the client that it calls.
func TestP40_AForceUnlockNamesNoHold(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		holder, u, admin := s.user(), s.user(slowPoll()), s.user()
		known(t, holder)
		known(t, u)
		known(t, admin)
		held, _, err := holder.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond)
		got := waiting(t.Context(), u)
		locktest.Sleep(time.Second)
		home := quorum.First(u.Client, "l")
		admin.on(func(node int, op string, _ []any, next func() error) error {
			if node != home && strings.Contains(op, "withdraw") {
				return errRefused
			}
			return next()
		}, 0, 1, 2, 3, 4)
		_, err = admin.lock("l").ForceUnlock(t.Context())
		locktest.IsError(t, err, quorum.ErrNoMajority)
		_ = admin.Close()
		locktest.Sleep(time.Second)
		select {
		case r := <-got:
			t.Fatalf("a waiter has the lock of a holder with a majority: %v", r.Err)
		default:
		}
		locktest.NoError(t, holder.lock("l").Unlock(held))
		r := <-got
		locktest.NoError(t, r.Err)
		locktest.NoError(t, u.lock("l").Unlock(r.Ctx))
	})
}

// P40: the release of an attempt that had the home, and no majority, tells nobody, who would fail too and tell the next one.
func TestP40_FailedAttemptsCallNobody(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order[1:]...)
		listening := s.connect(order[0]).Subscribe(t.Context(), scripts.KeysOf("l").Channel())
		defer func() { _ = listening.Close() }()
		_, err := listening.Receive(t.Context())
		locktest.NoError(t, err)
		var withdrawn atomic.Int32
		u.on(func(_ int, op string, _ []any, next func() error) error {
			withdrawn.Add(int32(strings.Count(op, "withdraw")))
			return next()
		}, order[0])
		_, _, err = u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NothingComes(t, listening.Channel(), time.Second, "a message of the failed attempt's release")
		if withdrawn.Load() == 0 {
			t.Error("no release was sent to the home")
		}
	})
}

// known2 makes a client know all nodes by another lock.
func known2(t *testing.T, u *user) {
	t.Helper()
	locktest.NoError(t, u.lock("another").Do(t.Context(), func(context.Context, int64) error { return nil }))
	locktest.Sleep(2 * time.Second)
	locktest.NoError(t, u.lock("another").Do(t.Context(), func(context.Context, int64) error { return nil }))
	locktest.Sleep(time.Second)
}

// P40: the home hears of the release of a hold that it has not got: waiters may be in its line.
func TestP40_TheHomeHearsOfAHoldThatItHasNot(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		holder, u := s.user(), s.user(slowPoll())
		known(t, holder)
		known(t, u)
		home := quorum.First(holder.Client, "l")
		holder.down(home)
		held, _, err := holder.lock("l").LockLeaseAndGetToken(t.Context(), 30*time.Second) // is not renewed
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond)
		holder.up()
		locktest.Sleep(2 * time.Second)
		known2(t, holder)
		locktest.Equal(t, "the home", quorum.First(holder.Client, "l"), home)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 4)
		s.stranger("1:1", home) // an attempt that fails, while the waiter comes
		got := waiting(t.Context(), u)
		locktest.Sleep(10 * time.Millisecond) // it has not looked yet
		s.minis[home].Del("l")
		began := time.Now()
		locktest.NoError(t, holder.lock("l").Unlock(held))
		r := <-got
		locktest.NoError(t, r.Err)
		tookAtMost(t, began, 5*time.Millisecond, "the handover")
		locktest.NoError(t, u.lock("l").Unlock(r.Ctx))
	})
}

// P1: a client in the line that looks, has some nodes, and is refused, waits in the line with the same ticket, under a new field.
func TestP1_ALookThatFailsStaysInTheLine(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPollInterval(time.Second))
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order[0])
		s.stranger("2:1", order[1], order[2])
		votes := votesOf(u, time.Millisecond)
		ctx, stop := context.WithCancel(t.Context())
		got := waiting(ctx, u)
		locktest.Sleep(time.Second / 2) // it is in the line
		begun, looks := votes[order[0]].Load(), 0
		for range 20_000 / 20 {
			before, others := votes[order[0]].Load(), votes[order[4]].Load()
			locktest.Sleep(20 * time.Millisecond)
			if votes[order[4]].Load() > others {
				looks++
			}
			if n := votes[order[0]].Load() - before; n > 1 {
				t.Errorf("the home was asked %d times in 20 ms", n)
			}
		}
		if looks < 2 {
			t.Errorf("%d looks that asked all, and %d votes of the home", looks, votes[order[0]].Load()-begun)
		}
		stop()
		<-got
	})
}

// P40: a client whose home moves is in the line of the new home, and in no other one, and leaves that.
func TestP40_TheHomeMoves(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPollInterval(2 * time.Second))
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order[0])
		s.stranger("2:1", order[1:]...)
		in := func(node int) int {
			members, _ := s.minis[node].ZMembers(scripts.KeysOf("l").Line)
			return len(members)
		}
		ctx, stop := context.WithCancel(t.Context())
		got := waiting(ctx, u)
		locktest.Sleep(15 * time.Millisecond)
		locktest.Equal(t, "tickets on the home", in(order[0]), 1)
		for began := time.Now(); in(order[0]) > 0 && time.Since(began) < 30*time.Second; {
			locktest.Sleep(time.Second / 10)
		}
		locktest.Sleep(time.Second / 10)
		moved := slices.IndexFunc(s.minis, func(m *miniredis.Miniredis) bool { return m.Exists(scripts.KeysOf("l").Line) })
		locktest.Equal(t, "tickets on the node "+fmt.Sprint(moved)+" of the owner", in(max(moved, 0)), 1)
		locktest.Equal(t, "tickets on the old home", in(order[0]), 0)
		for node, want := range map[int]int{moved: 1, order[0]: 0} {
			channels := s.minis[node].PubSubChannels("")
			calls := slices.DeleteFunc(channels, func(c string) bool { return !strings.HasPrefix(c, scripts.KeysOf("l").Line) })
			locktest.Equal(t, fmt.Sprintf("channels of calls on node %d", node), len(calls), want)
		}
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if strings.Contains(op, "vote") {
				return errRefused
			}
			return next()
		}, moved)
		for i := range 8 { // that node is no home any more
			locktest.NoError(t, u.lock(fmt.Sprint("other", i)).Do(t.Context(), func(context.Context, int64) error { return nil }))
		}
		if quorum.First(u.Client, "l") == moved {
			t.Error("the home has not moved")
		}
		stop()
		<-got
		locktest.Sleep(time.Second)
		locktest.Equal(t, "tickets when the client has left", in(0)+in(1)+in(2)+in(3)+in(4), 0)
	})
}

// Attempts that nobody wins follow each other after longer and longer pauses.
func TestSplitVotesPause(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order[1], order[2])
		s.stranger("2:1", order[3], order[4])
		votes := votesOf(u, 0)
		_, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 10*time.Second, 0)
		locktest.IsError(t, err, quorum.ErrSplitVote)
		t.Logf("%d votes", sum(votes))
		if n := sum(votes); n > 200 {
			t.Errorf("%d votes in 10 s", n)
		}
	})
}

// An attempt waits for the answer that shows the owner.
func TestOwnerWhoIsHeardOfLast(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order[1], order[2], order[4])
		s.stranger("2:1", order[3])
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			time.Sleep(time.Millisecond)
			return next()
		}, order[4])
		_, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		if errors.Is(err, quorum.ErrSplitVote) {
			t.Errorf("somebody has a majority: %v", err)
		}
	})
}

// P40: a client goes on waiting at a home that is slow, and has not said that the owner has not got it.
func TestP40_AHomeThatIsSlow(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		s.stranger("1:1", order...)
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			time.Sleep(time.Second)
			return next()
		}, order[0])
		_, _, err := u.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "where the client waits", quorum.First(u.Client, "l"), order[0])
		locktest.Sleep(5 * time.Second)
	})
}

// P40: a call names the hold that its holder releases, and not one that is forced open.
func TestP40_ACallNamesTheHold(t *testing.T) {
	for _, forced := range []bool{false, true} {
		virtual(t, 5, func(t *testing.T, s *site) {
			holder, u, admin := s.user(), s.user(slowPoll()), s.user()
			known(t, holder)
			known2(t, u)
			held, _, err := holder.lock("l").LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			home := quorum.First(u.Client, "l")
			field := s.fields("l")[home]
			calls := s.connect(home).PSubscribe(t.Context(), scripts.KeysOf("l").Line+":*")
			defer func() { _ = calls.Close() }()
			_, err = calls.Receive(t.Context())
			locktest.NoError(t, err)
			got := waiting(t.Context(), u)
			locktest.Sleep(5 * time.Millisecond)
			var called string
			ch := calls.Channel()
			if forced {
				_, err = admin.lock("l").ForceUnlock(t.Context())
			} else {
				err = holder.lock("l").Unlock(held)
			}
			locktest.NoError(t, err)
			for !strings.HasPrefix(called, "c ") {
				called = (<-ch).Payload
			}
			locktest.Equal(t, "the call names the hold", strings.Contains(called, " "+field+" "), !forced)
			r := <-got
			locktest.NoError(t, r.Err)
			locktest.NoError(t, u.lock("l").Unlock(r.Ctx))
		})
	}
}

// P12, P40: a hold that was dropped for the client that was called was released, and not lost.
func TestP40_ADroppedHoldWasReleased(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		held, _, err := u.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		for i, field := range s.fields("l") {
			if field != "" {
				s.minis[i].Del("l")
				locktest.NoError(t, s.minis[i].Set(scripts.KeysOf("l").Line+":"+field, "1"))
			}
		}
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}

// P40: a client that has unlocked a lock and takes it again, before its release has come to one of the nodes, asks no other node.
func TestP40_TheNextAcquireBringsTheRelease(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known2(t, u)
		order := quorum.Order(u.Client, "l")
		var mu sync.Mutex
		asked := map[int]bool{}
		u.on(func(node int, op string, _ []any, next func() error) error {
			if op == "withdraw" && node == order[2] { // a batch that has the next acquire too is not to be late
				time.Sleep(20 * time.Millisecond)
			}
			if strings.Contains(op, "vote") {
				mu.Lock()
				asked[node] = true
				mu.Unlock()
			}
			return next()
		}, 0, 1, 2, 3, 4)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
		held, _, err = l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		mu.Lock()
		n := len(asked)
		mu.Unlock()
		locktest.Sleep(time.Second)
		locktest.NoError(t, held.Err())
		locktest.NoError(t, l.Unlock(held))
		locktest.Equal(t, "nodes that were asked", n, 3)
	})
}

// P40: it names the hold that it has unlocked, whose release it brings. It does not name one that it has forced open: its holder has not given that up.
func TestP40_TheNextAcquireNamesNoForcedHold(t *testing.T) {
	for _, forced := range []bool{false, true} {
		t.Run(fmt.Sprint("forced: ", forced), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				u := s.user()
				known2(t, u)
				l := u.lock("l")
				held, _, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				locktest.Sleep(20 * time.Millisecond) // it has all nodes
				order := quorum.Order(u.Client, "l")
				field := s.fields("l")[order[0]]
				name := scripts.KeysOf("l").Line + ":" + field
				var named atomic.Int32
				u.on(func(node int, op string, args []any, next func() error) error {
					if op == "withdraw" && slices.Contains(order[2:4], node) {
						time.Sleep(20 * time.Millisecond)
					}
					if op == "vote" && slices.Contains(args, any(name)) {
						named.Add(1)
					}
					return next()
				}, 0, 1, 2, 3, 4)
				if forced {
					freed, err := l.ForceUnlock(t.Context())
					locktest.NoError(t, err)
					locktest.Equal(t, "freed", freed, true)
				} else {
					locktest.NoError(t, l.Unlock(held))
				}
				locktest.Equal(t, "nodes that the release has not come to", s.has("l"), 2)
				next, _, err := l.TryLockAndGetToken(t.Context(), time.Second, 0)
				locktest.NoError(t, err)
				locktest.Equal(t, "a vote names the hold", named.Load() > 0, !forced)
				locktest.NoError(t, l.Unlock(next))
			})
		})
	}
}

// P24: in a quorum clients that wait and are frozen keep a call of 50 ms from the lock for no more than two tries, 200 ms apart, and one of a second never.
func TestP24_FrozenClientsOfAQuorum(t *testing.T) {
	for _, n := range []int{1, 2, 6} {
		for wait, tries := range map[time.Duration]int{0: 2, 50 * time.Millisecond: 3, time.Second: 1} {
			virtual(t, 5, func(t *testing.T, s *site) {
				holder, comes := s.user(), s.user()
				frozen := []*user{}
				for range n {
					frozen = append(frozen, s.user(slowPoll()))
				}
				for _, u := range append(frozen, holder, comes) {
					known(t, u)
				}
				held, _, err := holder.lock("l").LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				end, stop := context.WithCancel(t.Context())
				defer stop()
				for _, u := range frozen {
					waiting(end, u)
					locktest.Sleep(50 * time.Millisecond)
				}
				for _, u := range frozen {
					u.on(func(_ int, _ string, _ []any, next func() error) error {
						<-end.Done()
						return next()
					}, 0, 1, 2, 3, 4)
				}
				locktest.NoError(t, holder.lock("l").Unlock(held))
				for range tries {
					began := time.Now()
					held, _, err = comes.lock("l").TryLockAndGetToken(t.Context(), wait, 0)
					if err == nil {
						locktest.NoError(t, comes.lock("l").Unlock(held))
						return
					}
					time.Sleep(200*time.Millisecond - time.Since(began))
				}
				t.Errorf("%d are frozen: not in %d tries of %v: %v", n, tries, wait, err)
			})
		}
	}
}
