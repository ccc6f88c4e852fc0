package rlock_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// DESIGN 6: a handoff is one command; tokens grow by one, the order is that of arrival, and the former holder's context
// has ended before the next one's begins.
func TestHandoffIsOneCommand(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const n = 12
		spy := handSpyOn(rdb)
		c := bhClient(t, rdb)
		l := fenced.NewLock(c, "l")
		last := handTake(t, l, 1)
		next := 0
		done := handLine(n, func(i int) {
			held, token, err := l.LockAndGetToken(handCtx(t))
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
			bhIs(t, context.Cause(last), rlock.ErrUnlocked)
			last = held
			next++
			if got, err := l.Token(held); err != nil || got != token {
				t.Errorf("Token: %v, %v; want %d", got, err, token)
			}
			if err := l.Unlock(held); err != nil {
				t.Error(err)
			}
		})
		bhAsleep(time.Millisecond)
		spy.reset()
		bhOK(t, l.Unlock(last))
		done()
		bhEqual(t, "waiters served", next, n)
		if spy.commands > n+1 {
			t.Errorf("%d commands for %d handoffs and a release: %v", spy.commands, n, spy)
		}
		bhEqual(t, "transfers", spy.count("transfer"), n)
		bhEqual(t, "releases", spy.count("unlock"), 1)
		handFree(t, m, 100*time.Millisecond, c)
	})
}

// P15: a transfer publishes nothing, the release at the end of a series does; a series is bounded by WithHandoffs.
func TestHandoffsAreBoundedByCount(t *testing.T) {
	for _, test := range []struct{ bound, transfers, releases int }{{0, 0, 9}, {1, 4, 5}, {3, 6, 3}, {7, 7, 2}, {8, 8, 1}, {100, 8, 1}} {
		t.Run(fmt.Sprint(test.bound), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := handSpyOn(rdb)
				c := bhClient(t, rdb, rlock.WithHandoffs(test.bound))
				l := fenced.NewLock(c, "l")
				listener := redistest.PipeClient(t, m).Subscribe(t.Context(), bhChannel)
				defer listener.Close()
				_, err := listener.Receive(t.Context())
				bhOK(t, err)
				messages := listener.Channel()
				first := handTake(t, l, 1)
				var in handInside
				done := handLine(8, func(i int) {
					held, token, err := l.LockAndGetToken(handCtx(t))
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
				bhAsleep(10 * time.Millisecond)
				spy.reset()
				bhOK(t, l.Unlock(first))
				done()
				synctest.Wait()
				bhEqual(t, "transfers", spy.count("transfer"), test.transfers)
				bhEqual(t, "releases", spy.count("unlock"), test.releases)
				bhEqual(t, "messages", len(messages), test.releases)
				handFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P15: a series is bounded by 20 ms, whatever WithHandoffs says; and a section of that length is followed by a release.
func TestHandoffsAreBoundedByTime(t *testing.T) {
	for _, section := range []time.Duration{3 * time.Millisecond, 19 * time.Millisecond, 25 * time.Millisecond, time.Second} {
		t.Run(section.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				const n = 40
				c := bhClient(t, rdb, rlock.WithHandoffs(1000))
				l := rlock.NewLock(c, "l")
				series := time.Now()
				spy := handSpyOn(rdb)
				spy.wrap(func(ops []string, next func() error) error {
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
				first := bhLock(t, l, t.Context())
				done := handLine(n, func(int) {
					if err := l.Do(handCtx(t), func(context.Context) error { time.Sleep(section); return nil }); err != nil {
						t.Error(err)
					}
				})
				bhOK(t, l.Unlock(first))
				done()
				each := int(20*time.Millisecond/section) + 1 // holds of a series
				if least := n / each; spy.count("unlock") < least {
					t.Errorf("%d releases, %d transfers; want %d releases", spy.count("unlock"), spy.count("transfer"), least)
				}
				if section > 20*time.Millisecond {
					// the first hold was short
					if got := spy.count("transfer"); got > 1 {
						t.Errorf("%d transfers after sections of %v", got, section)
					}
				} else if spy.count("transfer") == 0 {
					t.Error("no transfers")
				}
				handFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P15, P6: the lease in Redis and the deadline are the new holder's, longer or shorter than the former's.
func TestHandoffLeaseIsTheNewHolders(t *testing.T) {
	for _, leases := range [][2]time.Duration{{10 * time.Second, 3 * time.Second}, {3 * time.Second, 10 * time.Second}, {0, 3 * time.Second}, {3 * time.Second, 0}} {
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				spy := handSpyOn(rdb)
				c := bhClient(t, rdb)
				l := rlock.NewLock(c, "l")
				held, err := l.LockLease(handCtx(t), leases[0])
				bhOK(t, err)
				call := bhGo(func() (context.Context, error) { return l.LockLease(handCtx(t), leases[1]) })
				bhAsleep(5 * time.Millisecond)
				bhOK(t, l.Unlock(held))
				got := <-call
				bhOK(t, got.err)
				bhEqual(t, "transfers", spy.count("transfer"), 1)
				want := leases[1]
				if want == 0 {
					want = 30 * time.Second
				}
				bhEqual(t, "TTL", m.TTL("l"), want)
				bhCount(t, l, got.ctx, 1)
				bhCount(t, l, held, 0)
				if leases[1] == 0 {
					bhAsleep(time.Minute)
					bhOK(t, l.Check(got.ctx))
					bhOK(t, l.Unlock(got.ctx))
				} else {
					bhAsleep(want - want/20)
					bhOK(t, l.Check(got.ctx))
					bhAsleep(want/20 - time.Millisecond)
					bhIs(t, l.Check(got.ctx), rlock.ErrLost)
					bhIs(t, got.ctx.Err(), rlock.ErrLost)
					bhIs(t, l.Unlock(got.ctx), rlock.ErrLost)
					bhAsleep(time.Millisecond)
				}
				handFree(t, m, 100*time.Millisecond, c)
			})
		})
	}
}

// P9: the lock passes between fenced and unfenced holders; only the fenced ones take tokens.
func TestHandoffFencedAndUnfenced(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := handSpyOn(rdb)
		c := bhClient(t, rdb)
		f, u := fenced.NewLock(c, "l"), rlock.NewLock(c, "l")
		first := handTake(t, f, 1)
		var order []int64
		done := handLine(6, func(i int) {
			if i%2 == 0 {
				held, err := u.Lock(handCtx(t))
				bhOK(t, err)
				if _, ok := fenced.TokenFrom(held, "l"); ok {
					t.Error("an unfenced hold has a token")
				}
				order = append(order, 0)
				bhOK(t, u.Unlock(held))
				return
			}
			held, token, err := f.LockAndGetToken(handCtx(t))
			bhOK(t, err)
			order = append(order, token)
			bhOK(t, f.Unlock(held))
		})
		bhOK(t, f.Unlock(first))
		done()
		bhEqual(t, "tokens", fmt.Sprint(order), "[0 2 0 3 0 4]")
		bhEqual(t, "transfers", spy.count("transfer"), 6)
		handFree(t, m, 100*time.Millisecond, c)
	})
}

// P2: a hold that was re-entered passes on whole: one field, with count 1, and nothing of the former.
func TestHandoffOfAHoldWithReentries(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := handSpyOn(rdb)
		c := bhClient(t, rdb)
		l := fenced.NewLock(c, "l")
		outer := handTake(t, l, 1)
		inner, err := l.Lock(outer)
		bhOK(t, err)
		innermost, err := l.Lock(inner)
		bhOK(t, err)
		call := handGo(func() (context.Context, int64, error) { return l.LockAndGetToken(handCtx(t)) })
		bhAsleep(time.Millisecond)
		bhOK(t, l.Unlock(innermost))
		bhOK(t, l.Unlock(inner))
		bhNone(t, call, time.Millisecond, "the lock passed on before its last Unlock")
		bhOK(t, l.Unlock(outer))
		got := <-call
		bhOK(t, got.err)
		bhEqual(t, "token", got.token, 4)
		bhEqual(t, "fields", len(rdb.HGetAll(t.Context(), "l").Val()), 1)
		bhEqual(t, "transfers", spy.count("transfer"), 1)
		bhEqual(t, "count", rdb.HVals(t.Context(), "l").Val()[0], "1")
		again, token, err := l.LockAndGetToken(got.ctx) // its own numbering of changes begins anew
		bhOK(t, err)
		bhEqual(t, "token", token, 5)
		n, err := l.HoldCount(again)
		bhOK(t, err)
		bhEqual(t, "hold count", n, 2)
		bhOK(t, l.Unlock(again))
		bhOK(t, l.Unlock(got.ctx))
		handFree(t, m, 100*time.Millisecond, c)
	})
}

// P9, DESIGN 6: another client's waiter is told at the end of a series and has its turn; tokens grow over both.
func TestHandoffThenTheOtherClientsTurn(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb, rlock.WithHandoffs(2))
		other := bhClient(t, redistest.PipeClient(t, m))
		l, theirs := fenced.NewLock(c, "l"), fenced.NewLock(other, "l")
		first := handTake(t, l, 1)
		var in handInside
		var order []string
		work := func(l *fenced.Lock, name string) {
			held, token, err := l.LockAndGetToken(handCtx(t))
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
		theirDone := handLine(1, func(int) { work(theirs, "other") })
		bhAsleep(time.Millisecond)
		done := handLine(5, func(int) { work(l, "own") })
		bhOK(t, l.Unlock(first))
		done()
		theirDone()
		bhEqual(t, "order", fmt.Sprint(order), "[own own other own own own]")
		handFree(t, m, 100*time.Millisecond, c, other)
	})
}

// P15, Inv8: the waiter is told when the transfer to it gets no answer, a third of the unlock's bound after it was sent: it
// gets the lock with the release that follows, and does not wait for the answer.
func TestHandoffWithoutAnAnswer(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := handSpyOn(rdb)
		end := make(chan struct{})
		spy.wrap(func(ops []string, next func() error) error {
			if ops[0] == "transfer" {
				<-end
				return io.EOF
			}
			return next()
		})
		c := bhClient(t, rdb, rlock.WithUnlockTimeout(3*time.Second))
		l := fenced.NewLock(c, "l")
		held := handTake(t, l, 1)
		var took time.Duration
		var next context.Context
		done := handLine(1, func(int) {
			began := time.Now()
			var err error
			if next, err = l.Lock(handCtx(t)); err != nil {
				t.Error(err)
			}
			took = time.Since(began)
		})
		bhAsleep(time.Millisecond)
		bhOK(t, l.Unlock(held))
		done()
		if took > 1010*time.Millisecond {
			t.Errorf("the waiter got the lock after %v", took)
		}
		close(end)
		bhOK(t, l.Unlock(next))
		handFree(t, m, 40*time.Second, c)
	})
}
