package rlock_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A handoff is one command; tokens grow by one, the order is that of arrival, and the former holder's context
// has ended before the next one's begins.
func TestHandoffIsOneCommand(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const n = 12
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		l := fenced.NewLock(c, "l")
		last := takeToken(t, l, t.Context(), 1)
		next := 0
		done := queueUp(n, func(i int) {
			held, token, err := l.LockAndGetToken(longContext(t))
			if err != nil {
				t.Error(err)
				return
			}
			if i != next || token != int64(i+2) {
				t.Errorf("waiter %d came with token %d in place of waiter %d", i, token, next)
			}
			if last.Err() == nil || held.Err() != nil || l.Check(held) != nil {
				t.Errorf("the former holder's context: %v, the new one's: %v, Check: %v", last.Err(), held.Err(), l.Check(held))
			}
			locktest.IsError(t, context.Cause(last), rlock.ErrUnlocked)
			last = held
			next++
			if got, err := l.Token(held); err != nil || got != token {
				t.Errorf("Token: %v, %v; want %d", got, err, token)
			}
			if err := l.Unlock(held); err != nil {
				t.Error(err)
			}
		})
		locktest.Sleep(time.Millisecond)
		spy.Reset()
		locktest.NoError(t, l.Unlock(last))
		done()
		locktest.Equal(t, "waiters served", next, n)
		if spy.Commands() > n+1 {
			t.Errorf("%d commands for %d handoffs and a release: %v", spy.Commands(), n, spy)
		}
		locktest.Equal(t, "transfers", spy.Count("transfer"), n)
		locktest.Equal(t, "releases", spy.Count("unlock"), 1)
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// P15: a transfer publishes nothing, the release at the end of a series does; a series is bounded by WithHandoffs.
func TestHandoffsAreBoundedByCount(t *testing.T) {
	for _, test := range []struct{ bound, transfers, releases int }{{0, 0, 9}, {1, 4, 5}, {3, 6, 3}, {7, 7, 2}, {8, 8, 1}, {100, 8, 1}} {
		t.Run(fmt.Sprint(test.bound), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := locktest.SpyOn(rdb)
				c := newClient(t, rdb, rlock.WithHandoffs(test.bound))
				l := fenced.NewLock(c, "l")
				listener := redistest.PipeClient(t, m).Subscribe(t.Context(), lockChannel)
				defer listener.Close()
				_, err := listener.Receive(t.Context())
				locktest.NoError(t, err)
				messages := listener.Channel()
				first := takeToken(t, l, t.Context(), 1)
				var in section
				done := queueUp(8, func(i int) {
					held, token, err := l.LockAndGetToken(longContext(t))
					if err != nil {
						t.Error(err)
						return
					}
					leave := in.enter(t, held, token)
					if token != int64(i+2) {
						t.Errorf("waiter %d has token %d", i, token)
					}
					leave()
					if err := l.Unlock(held); err != nil {
						t.Error(err)
					}
				})
				locktest.Sleep(10 * time.Millisecond)
				spy.Reset()
				locktest.NoError(t, l.Unlock(first))
				done()
				synctest.Wait()
				locktest.Equal(t, "transfers", spy.Count("transfer"), test.transfers)
				locktest.Equal(t, "releases", spy.Count("unlock"), test.releases)
				locktest.Equal(t, "messages", len(messages), test.releases)
				wantFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P15: a series is bounded by 20 ms, whatever WithHandoffs says; and a section of that length is followed by a release.
func TestHandoffsAreBoundedByTime(t *testing.T) {
	for _, section := range []time.Duration{3 * time.Millisecond, 19 * time.Millisecond, 25 * time.Millisecond, time.Second} {
		t.Run(section.String(), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				const n = 40
				c := newClient(t, rdb, rlock.WithHandoffs(1000))
				l := rlock.NewLock(c, "l")
				series := time.Now()
				spy := locktest.SpyOn(rdb)
				spy.Wrap(func(ops []string, next func() error) error {
					for _, op := range ops {
						if op == "transfer" && time.Since(series) > 20*time.Millisecond {
							t.Errorf("a transfer after %v", time.Since(series))
						}
						if op == "acquire" {
							series = time.Now()
						}
					}
					return next()
				})
				first := take(t, l, t.Context())
				done := queueUp(n, func(int) {
					if err := l.Do(longContext(t), func(context.Context) error { time.Sleep(section); return nil }); err != nil {
						t.Error(err)
					}
				})
				locktest.NoError(t, l.Unlock(first))
				done()
				each := int(20*time.Millisecond/section) + 1 // holds of a series
				if least := n / each; spy.Count("unlock") < least {
					t.Errorf("%d releases, %d transfers; want %d releases", spy.Count("unlock"), spy.Count("transfer"), least)
				}
				if section > 20*time.Millisecond {
					// the first hold was short
					if got := spy.Count("transfer"); got > 1 {
						t.Errorf("%d transfers after sections of %v", got, section)
					}
				} else if spy.Count("transfer") == 0 {
					t.Error("no transfers")
				}
				wantFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P15, P6: the lease in Redis and the deadline are the new holder's, longer or shorter than the former's.
func TestHandoffLeaseIsTheNewHolders(t *testing.T) {
	for _, leases := range [][2]time.Duration{{10 * time.Second, 3 * time.Second}, {3 * time.Second, 10 * time.Second}, {0, 3 * time.Second}, {3 * time.Second, 0}} {
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := locktest.SpyOn(rdb)
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				held, err := l.LockLease(longContext(t), leases[0])
				locktest.NoError(t, err)
				call := locktest.StartLock(func() (context.Context, error) { return l.LockLease(longContext(t), leases[1]) })
				locktest.Sleep(5 * time.Millisecond)
				locktest.NoError(t, l.Unlock(held))
				got := <-call
				locktest.NoError(t, got.Err)
				locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
				want := leases[1]
				if want == 0 {
					want = 30 * time.Second
				}
				locktest.Equal(t, "TTL", m.TTL("l"), want)
				wantHolds(t, l, got.Ctx, 1)
				wantHolds(t, l, held, 0)
				if leases[1] == 0 {
					locktest.Sleep(time.Minute)
					locktest.NoError(t, l.Check(got.Ctx))
					locktest.NoError(t, l.Unlock(got.Ctx))
				} else {
					locktest.Sleep(want - want/20)
					locktest.NoError(t, l.Check(got.Ctx))
					locktest.Sleep(want/20 - time.Millisecond)
					locktest.IsError(t, l.Check(got.Ctx), rlock.ErrLost)
					locktest.IsError(t, got.Ctx.Err(), rlock.ErrLost)
					locktest.IsError(t, l.Unlock(got.Ctx), rlock.ErrLost)
					locktest.Sleep(time.Millisecond)
				}
				wantFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P9: the lock passes between fenced and unfenced holders; only the fenced ones take tokens.
func TestHandoffFencedAndUnfenced(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		f, u := fenced.NewLock(c, "l"), rlock.NewLock(c, "l")
		first := takeToken(t, f, t.Context(), 1)
		var order []int64
		done := queueUp(6, func(i int) {
			if i%2 == 0 {
				held, err := u.Lock(longContext(t))
				locktest.NoError(t, err)
				if _, ok := fenced.TokenFrom(held, "l"); ok {
					t.Error("an unfenced hold has a token")
				}
				order = append(order, 0)
				locktest.NoError(t, u.Unlock(held))
				return
			}
			held, token, err := f.LockAndGetToken(longContext(t))
			locktest.NoError(t, err)
			order = append(order, token)
			locktest.NoError(t, f.Unlock(held))
		})
		locktest.NoError(t, f.Unlock(first))
		done()
		locktest.Equal(t, "tokens", fmt.Sprint(order), "[0 2 0 3 0 4]")
		locktest.Equal(t, "transfers", spy.Count("transfer"), 6)
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// P2: a hold that was re-entered passes on whole: one field, with count 1, and nothing of the former.
func TestHandoffOfAHoldWithReentries(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb)
		l := fenced.NewLock(c, "l")
		outer := takeToken(t, l, t.Context(), 1)
		inner, _, err := l.LockAndGetToken(outer)
		locktest.NoError(t, err)
		innermost, _, err := l.LockAndGetToken(inner)
		locktest.NoError(t, err)
		call := locktest.StartFenced(func() (context.Context, int64, error) { return l.LockAndGetToken(longContext(t)) })
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, l.Unlock(innermost))
		locktest.NoError(t, l.Unlock(inner))
		locktest.NothingComes(t, call, time.Millisecond, "the lock passed on before its last Unlock")
		locktest.NoError(t, l.Unlock(outer))
		got := <-call
		locktest.NoError(t, got.Err)
		locktest.Equal(t, "token", got.Token, 4)
		locktest.Equal(t, "fields", len(rdb.HGetAll(t.Context(), "l").Val()), 1)
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		locktest.Equal(t, "count", rdb.HVals(t.Context(), "l").Val()[0], "1")
		again, token, err := l.LockAndGetToken(got.Ctx) // its own numbering of changes begins anew
		locktest.NoError(t, err)
		locktest.Equal(t, "token", token, 5)
		n, err := l.HoldCount(again)
		locktest.NoError(t, err)
		locktest.Equal(t, "hold count", n, 2)
		locktest.NoError(t, l.Unlock(again))
		locktest.NoError(t, l.Unlock(got.Ctx))
		wantFree(t, m, 100*time.Millisecond, c)
	})
}

// P12: an Unlock whose handoff gets no answer, and whose release gets none either, takes no longer than its bound altogether.
func TestP12_UnlockAfterASilentHandoff(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const bound = 3 * time.Second
		spy := locktest.SpyOn(rdb)
		c := newClient(t, rdb, rlock.WithUnlockTimeout(bound))
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		ctx, giveUp := context.WithCancel(t.Context())
		waits := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
		locktest.Sleep(time.Millisecond)
		thaw := make(chan struct{})
		spy.Wrap(func(_ []string, next func() error) error {
			<-thaw
			return next()
		})
		began := time.Now()
		err := l.Unlock(held)
		locktest.Equal(t, "Unlock took", time.Since(began), bound)
		locktest.ErrorSays(t, err, "release not confirmed")
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		giveUp()
		locktest.IsError(t, (<-waits).Err, context.Canceled)
		close(thaw)
		locktest.Sleep(time.Minute)
		wantFree(t, m, 0, c)
	})
}

// P3: a hold whose first attempt got no answer stays on the list of releases also where it was handed on, and not released: what that
// attempt takes when it arrives late is released.
func TestP3_FirstCopyOfAcquireAfterAHandoff(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		for _, name := range []string{"acquire", "try", "wait"} { // the attempt that comes late is sent by its digest
			locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText(name)).Err())
		}
		spy := locktest.SpyOn(rdb)
		late := new(lateAcquire)
		rdb.AddHook(locktest.Hook(late.keep))
		l := rlock.NewLock(newClient(t, rdb), "l")
		late.on.Store(true)
		first := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		for late.args.Load() == nil {
			locktest.Sleep(time.Millisecond)
		}
		late.on.Store(false)
		r := <-first
		locktest.NoError(t, r.Err)
		second := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, l.Unlock(r.Ctx))
		r = <-second
		locktest.NoError(t, r.Err)
		locktest.Equal(t, "transfers", spy.Count("transfer"), 1)
		locktest.NoError(t, l.Unlock(r.Ctx))
		locktest.Sleep(time.Millisecond) // the first release is over, and the next one is sent a tenth of a second later
		wantLocked(t, l, false)
		locktest.NoError(t, rdb.Do(t.Context(), *late.args.Load()...).Err()) // the frozen connection goes on
		wantLocked(t, l, true)
		locktest.Sleep(15 * time.Second)
		if fields, _ := m.HKeys("l"); len(fields) > 0 {
			t.Errorf("P3: a ghost has the lock, TTL %v: %v", m.TTL("l"), fields)
		}
	})
}

// P9: another client's waiter is told at the end of a series and has its turn; tokens grow over both.
func TestHandoffThenTheOtherClientsTurn(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithHandoffs(2))
		other := newClient(t, redistest.PipeClient(t, m))
		l, theirs := fenced.NewLock(c, "l"), fenced.NewLock(other, "l")
		first := takeToken(t, l, t.Context(), 1)
		var in section
		var order []string
		work := func(l *fenced.Lock, name string) {
			held, token, err := l.LockAndGetToken(longContext(t))
			if err != nil {
				t.Error(err)
				return
			}
			leave := in.enter(t, held, token)
			order = append(order, name)
			leave()
			if err := l.Unlock(held); err != nil {
				t.Error(err)
			}
		}
		theirDone := queueUp(1, func(int) { work(theirs, "other") })
		locktest.Sleep(time.Millisecond)
		done := queueUp(5, func(int) { work(l, "own") })
		locktest.NoError(t, l.Unlock(first))
		done()
		theirDone()
		locktest.Equal(t, "order", fmt.Sprint(order), "[own own other own own own]")
		wantFree(t, m, 100*time.Millisecond, c, other)
	})
}

// P15, Inv8: the waiter is told when the transfer to it gets no answer, a third of the unlock's bound after it was sent: it
// gets the lock with the release that follows, and does not wait for the answer.
func TestHandoffWithoutAnAnswer(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := locktest.SpyOn(rdb)
		end := make(chan struct{})
		spy.Wrap(func(ops []string, next func() error) error {
			if ops[0] == "transfer" {
				<-end
				return io.EOF
			}
			return next()
		})
		c := newClient(t, rdb, rlock.WithUnlockTimeout(3*time.Second))
		l := fenced.NewLock(c, "l")
		held := takeToken(t, l, t.Context(), 1)
		var took time.Duration
		var next context.Context
		done := queueUp(1, func(int) {
			began := time.Now()
			var err error
			if next, _, err = l.LockAndGetToken(longContext(t)); err != nil {
				t.Error(err)
			}
			took = time.Since(began)
		})
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, l.Unlock(held))
		done()
		if took > 1010*time.Millisecond {
			t.Errorf("the waiter got the lock after %v", took)
		}
		close(end)
		locktest.NoError(t, l.Unlock(next))
		wantFree(t, m, 40*time.Second, c)
	})
}

// A handoffSlow is a lock that one call of a client has, and behind it further calls of that client,
// and then one of another. Redis passes the lock on at once, and says so 15 ms later: the client waits
// for 10 ms.
type handoffSlow struct {
	l, other *rlock.Lock
	held     context.Context
	mine     []<-chan locktest.Result
	theirs   <-chan locktest.Result
}

func slowHandoffs(t *testing.T, mine int, test func(t *testing.T, s *handoffSlow)) {
	t.Helper()
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText("transfer")).Err())
		locktest.SpyOn(rdb).Wrap(func(ops []string, next func() error) error {
			err := next()
			if slices.Contains(ops, "transfer") {
				time.Sleep(15 * time.Millisecond)
			}
			return err
		})
		s := &handoffSlow{
			l:     rlock.NewLock(newClient(t, rdb, rlock.WithUnlockTimeout(30*time.Millisecond)), "l"),
			other: rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l"),
		}
		s.held = take(t, s.l, t.Context())
		for range mine {
			s.mine = append(s.mine, waits(t.Context(), s.l))
			locktest.Sleep(0)
		}
		s.theirs = waits(t.Context(), s.other)
		locktest.Sleep(0)
		test(t, s)
	})
}

// P36: a hold that was passed on without an answer, and that a repeat of the attempt has found, calls
// who has entered the line behind the hold before.
func TestP36_AfterAHandoffWithoutAnAnswer(t *testing.T) {
	slowHandoffs(t, 1, func(t *testing.T, s *handoffSlow) {
		unlocked := locktest.Start(func() error { return s.l.Unlock(s.held) })
		got := <-s.mine[0]
		locktest.NoError(t, got.Err)
		locktest.NoError(t, <-unlocked)
		locktest.Sleep(6 * time.Millisecond) // the answer is there: no release is to be sent again
		began := time.Now()
		locktest.NoError(t, s.l.Unlock(got.Ctx))
		next := <-s.theirs
		locktest.NoError(t, next.Err)
		locktest.Equal(t, "the other client has the lock after", next.At.Sub(began), 0)
		locktest.NoError(t, s.other.Unlock(next.Ctx))
	})
}

// P15: a series of handoffs ends after 20 ms, also where none of them has an answer in time.
func TestP15_ASeriesWithoutAnswers(t *testing.T) {
	slowHandoffs(t, 9, func(t *testing.T, s *handoffSlow) {
		held := s.held
		for i, call := range s.mine {
			locktest.Sleep(time.Millisecond)
			go func() { _ = s.l.Unlock(held) }()
			select {
			case got := <-call:
				locktest.NoError(t, got.Err)
				held = got.Ctx
			case next := <-s.theirs:
				locktest.NoError(t, next.Err)
				locktest.Equal(t, "handoffs", i, 2)
				locktest.NoError(t, s.other.Unlock(next.Ctx))
				return
			}
		}
		t.Error("the other client waits for all")
	})
}
