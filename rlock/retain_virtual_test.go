package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Each of two clients with one caller gets its holds by one command each; both have as many, as long as count bounds them; a series is bounded by
// half of WithHandoffs, and by 20 ms.
func TestRetainTakesOneCommandAHold(t *testing.T) {
	const byDefault = 32
	for _, test := range []struct {
		handoffs, most int // most: retained in a row
		commands       float64
	}{{0, 0, 2.1}, {1, 0, 2.1}, {2, 1, 1.6}, {5, 2, 1.4}, {16, 8, 1.2}, {byDefault, 16, 1.15}, {1000, 0, 1.1}} {
		t.Run(fmt.Sprint(test.handoffs), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				var most [2]int
				for i := range 2 {
					var opts []rlock.Option
					if test.handoffs != byDefault {
						opts = append(opts, rlock.WithHandoffs(test.handoffs))
					}
					s.client(t, 1, 0, opts...)
					var began time.Time
					var row int
					s.spies[i].wrap(func(ops []string, next func() error) error {
						switch {
						case slices.Contains(ops, "acquire"):
							began, row = time.Now(), 0
						case slices.Contains(ops, "retain"):
							if row++; time.Since(began) > 20*time.Millisecond {
								t.Errorf("retained %v after the series began", time.Since(began))
							}
							most[i] = max(most[i], row)
						}
						return next()
					})
				}
				bhOK(t, redistest.PipeClient(t, m).ScriptLoad(t.Context(), bhText("retain")).Err()) // sent twice otherwise
				time.Sleep(100 * time.Millisecond)
				sent := func() int { return s.spies[0].sent() + s.spies[1].sent() }
				before := sent()
				shares := s.shares(500 * time.Millisecond)
				commands := float64(sent()-before) / float64(shares[0]+shares[1])
				if test.handoffs < 1000 { // series that only time ends are as long as others stand back, and may follow each other
					turnsFair(t, shares, 0.9)
				}
				s.end(t)
				t.Logf("%.2f commands a hold, %d retained in a row", commands, most)
				if commands > test.commands {
					t.Errorf("%.2f commands a hold", commands)
				}
				if test.handoffs < 1000 && most != [2]int{test.most, test.most} {
					t.Errorf("retained in a row: %v, want %d", most, test.most)
				}
				if test.handoffs == 1000 && min(most[0], most[1]) < 16 {
					t.Errorf("retained in a row: %v", most)
				}
			})
		})
	}
}

// Inv8, Inv9: where nobody comes for it the lock is free after 1 ms, another client gets it and the token too, and it is not
// retained again before the calls have come back many times.
func TestRetainForNobody(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		other := s.other(t)
		s.retain(t)
		began, mine := time.Now(), s.fields()[0]
		call := handGo(func() (context.Context, int64, error) { return other.LockAndGetToken(handCtx(t)) })
		time.Sleep(time.Millisecond)
		bhEqual(t, "who has it", fmt.Sprint(s.fields()), fmt.Sprint([]string{mine}))
		got := <-call
		bhOK(t, got.err)
		if late := got.at.Sub(began); late > time.Millisecond+2*retainWay {
			t.Errorf("the other client got it after %v", late)
		}
		bhEqual(t, "token", got.token, s.token+1)
		bhEqual(t, "the counter", mustGet(m, handCounter), fmt.Sprint(got.token))
		bhOK(t, other.Unlock(got.ctx))
		bhEqual(t, "calls until it is retained again", s.retain(t), 1+16+3) // one comes back late
		s.free(t, retainOver)
		bhEqual(t, "the counter", mustGet(m, handCounter), fmt.Sprint(s.token))
	})
}

// Where nobody else listens any more Unlock releases the lock, by the same command: another client's try succeeds at once.
func TestRetainWhereNobodyListens(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		other := s.other(t)
		s.retain(t)
		got := <-s.call(t)
		bhOK(t, s.listener.Close())
		synctest.Wait()
		s.spy.reset()
		s.unlock(t, got)
		bhEqual(t, "commands", s.spy.String(), "retain")
		bhEqual(t, "left in Redis", len(s.fields()), 0)
		held, err := other.TryLock(t.Context(), 0, 0)
		bhOK(t, err)
		bhOK(t, other.Unlock(held))
		handFree(t, m, retainOver, s.c)
	})
}

// A client that would not hear that the lock is forced open does not retain it; nor one that takes what remains of its own
// subscription for somebody else.
func TestRetainByAClientThatDoesNotListen(t *testing.T) {
	for _, waited := range []bool{false, true} {
		t.Run(fmt.Sprint("any more ", waited), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb)
				s.free(t, retainOver)
				if waited {
					bhOK(t, s.listener.Close())
					s.wait(t, 5*time.Millisecond)
					bhEqual(t, "subscriptions", m.PubSubNumSub(bhChannel)[bhChannel], 1)
				}
				s.token = 0
				s.until(t, func() bool { return s.token > 50 })
				bhEqual(t, "retained", s.spy.count("retain"), 0)
			})
		})
	}
}

// P12: what was forced open while it was retained is not taken: by another client, and by this one, whose messages are lost.
func TestRetainForcedOpen(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprint("by itself ", own), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb)
				other := s.other(t)
				s.retain(t)
				began, forcing := time.Now(), other
				if own {
					s.link.drop.Store(true)
					forcing = s.l
				}
				forced, err := forcing.ForceUnlock(t.Context())
				bhOK(t, err)
				bhEqual(t, "forced", forced, true)
				if own {
					bhEqual(t, "commands", s.spy.String(), "inspect unlock")
				}
				held, token, err := other.TryLockAndGetToken(t.Context(), 0, 0)
				bhOK(t, err)
				time.Sleep(2 * retainWay) // the message
				_, err = s.l.TryLock(t.Context(), 0, 0)
				bhIs(t, err, rlock.ErrNotAcquired)
				if time.Since(began) >= time.Millisecond {
					t.Fatal("it would have been given up by now")
				}
				bhAsleep(10 * time.Millisecond) // what was retained is given up, and so is not its token
				bhOK(t, other.Check(held))
				bhEqual(t, "token", token, s.token+2)
				bhEqual(t, "the counter", mustGet(m, handCounter), fmt.Sprint(token))
				bhOK(t, other.Unlock(held))
				s.free(t, retainOver)
			})
		})
	}
}

// What is forced open before the client has heard that it retained it is not taken either.
func TestRetainForcedOpenAtOnce(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		other := s.other(t)
		s.retain(t)
		got := <-s.call(t)
		var theirs context.Context
		s.spy.wrap(func(ops []string, next func() error) error {
			err := next()
			if ops[0] == "retain" {
				_, forcing := other.ForceUnlock(t.Context())
				var locking error
				theirs, locking = other.TryLock(t.Context(), 0, 0)
				time.Sleep(2 * retainWay) // the message
				return errors.Join(err, forcing, locking)
			}
			return err
		})
		s.unlock(t, got)
		_, err := s.l.TryLock(t.Context(), 0, 0)
		bhIs(t, err, rlock.ErrNotAcquired)
		bhOK(t, other.Check(theirs))
		bhOK(t, other.Unlock(theirs))
		s.free(t, retainOver)
	})
}

// A key that is deleted is a hold that is lost: who took what was retained learns it from the next command.
func TestRetainDeleted(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.retain(t)
		m.Del("l")
		got := <-s.call(t)
		bhOK(t, got.err)
		bhEqual(t, "commands", s.spy.String(), "")
		bhIs(t, s.l.Unlock(got.ctx), rlock.ErrLost)
		s.retain(t)
		m.Del("l")
		got = <-s.call(t)
		bhOK(t, got.err)
		<-got.ctx.Done()
		bhIs(t, got.ctx.Err(), rlock.ErrLost)
		bhIs(t, s.l.Unlock(got.ctx), rlock.ErrLost)
		s.free(t, retainOver)
	})
}

// A call that wants something else waits until what was retained is given up.
func TestRetainForAnotherCall(t *testing.T) {
	for name, call := range map[string]func(s *retainSite) (context.Context, error){
		"unfenced": func(s *retainSite) (context.Context, error) {
			return rlock.NewLock(s.c, "l").Lock(context.Background())
		},
		"explicit lease": func(s *retainSite) (context.Context, error) { return s.l.LockLease(context.Background(), time.Minute) },
		"the watchdog's by name": func(s *retainSite) (context.Context, error) {
			return s.l.LockLease(context.Background(), 2*time.Minute)
		},
		"another lease": func(s *retainSite) (context.Context, error) { return s.l.LockLease(context.Background(), time.Minute) },
		"a floor": func(s *retainSite) (context.Context, error) {
			return fenced.NewLock(s.c, "l", fenced.WithClockFloor()).Lock(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb, rlock.WithLease(2*time.Minute))
				if name == "another lease" {
					s.acquire = func(ctx context.Context) (context.Context, int64, error) {
						return s.l.LockLeaseAndGetToken(ctx, 2*time.Minute)
					}
				}
				s.retain(t)
				began := time.Now()
				got := <-bhGo(func() (context.Context, error) { return call(s) })
				bhOK(t, got.err)
				if took := got.at.Sub(began); took < time.Millisecond || took > free20 {
					t.Errorf("it got the lock after %v", took)
				}
				if s.spy.count("acquire") == 0 {
					t.Errorf("it did not ask: %v", s.spy)
				}
				bhOK(t, s.l.Unlock(got.ctx))
				s.free(t, retainOver)
			})
		})
	}
}

// An explicit lease is retained for one of the same length, which is what remains in Redis but for a moment; one longer
// than the client's own is not retained, nor one of which that moment would be a part.
func TestRetainExplicitLease(t *testing.T) {
	for lease, want := range map[time.Duration]bool{100 * time.Millisecond: true, 10 * time.Second: true, 11 * time.Second: false, 99 * time.Millisecond: false} {
		t.Run(lease.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb, rlock.WithLease(10*time.Second))
				s.acquire = func(ctx context.Context) (context.Context, int64, error) { return s.l.LockLeaseAndGetToken(ctx, lease) }
				if !want {
					n, _ := s.until(t, func() bool { return s.token > 30 })
					bhEqual(t, "retained", s.spy.count("retain"), 0)
					t.Logf("%d holds", n)
					return
				}
				s.retain(t)
				retained := time.Now()
				time.Sleep(900 * time.Microsecond)
				got := <-s.call(t)
				bhOK(t, got.err)
				bhEqual(t, "commands", s.spy.String(), "")
				if ttl := m.TTL("l"); ttl > lease || ttl < lease-time.Millisecond-2*retainWay {
					t.Errorf("of a lease of %v there is %v", lease, ttl)
				}
				// It counts from when the retain was sent.
				trusted := retained.Add(lease - lease/100 - time.Millisecond - 2*retainWay)
				time.Sleep(time.Until(trusted) - lease/20)
				bhOK(t, s.l.Check(got.ctx))
				time.Sleep(lease / 20)
				bhIs(t, s.l.Check(got.ctx), rlock.ErrLost)
				bhIs(t, s.l.Unlock(got.ctx), rlock.ErrLost)
			})
		})
	}
}

// What was retained with a short lease, so that it does not matter for long if the client is gone, is renewed to the full one
// for who takes it.
func TestRetainIsRenewed(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.retain(t)
		got := <-s.call(t)
		bhOK(t, got.err)
		if ttl := m.TTL("l"); ttl > 5*time.Second {
			t.Errorf("the lease is %v", ttl)
		}
		time.Sleep(5 * time.Second)
		bhOK(t, s.l.Check(got.ctx))
		if ttl := m.TTL("l"); ttl < 20*time.Second {
			t.Errorf("after 5 s the lease is %v", ttl)
		}
		time.Sleep(time.Minute)
		bhOK(t, s.l.Check(got.ctx))
		s.unlock(t, got)
		s.free(t, retainOver)
	})
}

// P5: a process that was stopped while it retained the lock asks Redis before it takes it.
func TestRetainOverslept(t *testing.T) {
	for slept, want := range map[time.Duration]string{1900 * time.Microsecond: "", 2100 * time.Microsecond: "unlock acquire"} {
		t.Run(slept.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := retainNew(t, m, rdb)
				s.retain(t)
				wakeUp := s.c.Oversleep("l")
				time.Sleep(slept)
				held, err := s.l.TryLock(t.Context(), 0, 0)
				bhEqual(t, "commands", s.spy.String(), want)
				wakeUp()
				bhOK(t, err)
				bhOK(t, s.l.Unlock(held))
				s.free(t, retainOver)
			})
		})
	}
}

// P3: a call whose context ends as it takes what was retained leaves nothing.
func TestRetainForACallThatEnds(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		other := s.other(t)
		s.retain(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.l.Lock(&endsLater{ctx, cancel, 0})
		bhIs(t, err, context.Canceled)
		time.Sleep(retainWay + time.Microsecond)
		synctest.Wait()
		held, token, err := other.TryLockAndGetToken(t.Context(), 0, 0)
		bhOK(t, err)
		if token <= s.token {
			t.Errorf("Inv2: token %d after %d", token, s.token)
		}
		bhAsleep(10 * time.Second) // the release is repeated, and does not mean this hold
		bhOK(t, other.Check(held))
		bhOK(t, other.Unlock(held))
		s.free(t, time.Minute)
	})
}

// A call that comes while the lock is about to be retained gets it, without a command of its own.
func TestRetainForACallThatComesMeanwhile(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := retainNew(t, m, rdb)
		s.retain(t)
		var call <-chan handGot
		s.spy.wrap(func(ops []string, next func() error) error {
			if ops[0] == "retain" && call == nil {
				call = s.call(t)
				synctest.Wait()
			}
			return next()
		})
		s.until(t, func() bool { return call != nil })
		before := s.spy.String()
		got := <-call
		bhOK(t, got.err)
		bhEqual(t, "token", got.token, s.token+1)
		bhEqual(t, "commands", s.spy.String(), before)
		s.unlock(t, got)
		s.free(t, retainOver)
	})
}

// Inv1, Inv2: among clients whose callers come back, or do not, there is one holder at a time, and tokens grow.
func TestRetainTokensGrow(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		var in handInside
		var all sync.WaitGroup
		var spies []*handSpy
		var clients []*rlock.Client
		for i := range 3 {
			rdb := (&handLink{way: retainWay}).redis(t, m)
			spies, clients = append(spies, handSpyOn(rdb)), append(clients, bhClient(t, rdb))
			l := fenced.NewLock(clients[i], "l")
			all.Go(func() {
				for n := range 250 {
					held, token, err := l.LockAndGetToken(handCtx(t))
					if err != nil {
						t.Error(err)
						return
					}
					leave := in.enter(t, held, token)
					leave()
					if err := l.Unlock(held); err != nil {
						t.Error(err)
					}
					if n%(30+i) == 0 {
						time.Sleep(3 * time.Millisecond) // nobody comes for what is retained
					}
				}
			})
		}
		all.Wait()
		retained := 0
		for _, spy := range spies {
			retained += spy.count("retain")
		}
		t.Logf("%d of %d holds retained, the last token is %d", retained, len(in.tokens), in.most)
		if retained < 200 {
			t.Errorf("only %d of 750 holds were retained", retained)
		}
		handFree(t, m, 50*time.Millisecond, clients...)
	})
}
