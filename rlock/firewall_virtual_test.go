package rlock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P8: idle connections whose other end is gone without a word fail one after the other, each after the ReadTimeout. Renewals go past more of
// them than there is time for in one lease.
func TestP8_DeadConnectionsAreLeft(t *testing.T) {
	for _, c := range []struct {
		lease time.Duration
		dead  int
	}{{30 * time.Second, manyIdle}, {3 * time.Second, 40}} {
		t.Run(fmt.Sprintf("%v, %d dead", c.lease, c.dead), func(t *testing.T) {
			redistest.FreshTimers(t)
			redistest.Virtual(t, func(t *testing.T) {
				m, direct := redistest.Pipe(t)
				var firewall redistest.Firewall
				rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.PoolSize, o.Dialer = c.dead, firewall.Dialer(o.Dialer) })
				client := newClient(t, rdb, rlock.WithLease(c.lease))
				l := rlock.NewLock(client, "a")
				held, err := l.Lock(t.Context())
				locktest.NoError(t, err)
				redistest.LeaveIdle(t, rdb, c.dead)
				firewall.Forget()
				time.Sleep(3 * c.lease)
				locktest.NoError(t, held.Err())
				if left := direct.PTTL(t.Context(), "a").Val(); left < c.lease/2 {
					t.Errorf("the lock has %v left", left)
				}
				locktest.NoError(t, l.Unlock(held))
				runtime.KeepAlive(client)
			})
		})
	}
}

// How long a call may take behind any number of dead connections up to manyIdle, and of connections that fail at once.
const (
	pastDead  = 3 * time.Second
	pastEnded = time.Second
)

// P8: a call of any kind goes past idle connections whose other end is gone without a word, and past those that fail at once, which go-redis
// hands out where it does not see that they have ended: with TLS, or a dialer of the user's.
func TestP8_CallsPastDeadConnections(t *testing.T) {
	type site struct {
		l      *rlock.Lock // of a client behind the firewall
		other  *rlock.Lock // of another client
		direct *redis.Client
	}
	free := func(t *testing.T, s *site) error {
		if s.direct.Exists(t.Context(), "a").Val() == 1 {
			return errors.New("the lock is held still")
		}
		return nil
	}
	for name, prepare := range map[string]func(t *testing.T, s *site) (call func() error){
		"Lock": func(t *testing.T, s *site) func() error {
			return func() error { return lockOnly(s.l.Lock(t.Context())) }
		},
		"TryLock": func(t *testing.T, s *site) func() error {
			return func() error { return lockOnly(s.l.TryLock(t.Context(), 8*time.Second, 0)) }
		},
		"TryLock that does not wait": func(t *testing.T, s *site) func() error {
			return func() error { return lockOnly(s.l.TryLock(t.Context(), 0, 0)) }
		},
		"refused": func(t *testing.T, s *site) func() error {
			locktest.NoError(t, lockOnly(s.other.Lock(t.Context())))
			return func() error {
				if err := lockOnly(s.l.TryLock(t.Context(), 0, 0)); !errors.Is(err, rlock.ErrNotAcquired) {
					return fmt.Errorf("TryLock says %v", err)
				}
				return nil
			}
		},
		"Unlock": func(t *testing.T, s *site) func() error {
			held, err := s.l.Lock(t.Context())
			locktest.NoError(t, err)
			return func() error { return errors.Join(s.l.Unlock(held), free(t, s)) }
		},
		"handoff": func(t *testing.T, s *site) func() error {
			held, err := s.l.Lock(t.Context())
			locktest.NoError(t, err)
			taken := make(chan error, 1)
			go func() { taken <- lockOnly(s.l.Lock(t.Context())) }()
			time.Sleep(time.Second)
			return func() error { return errors.Join(s.l.Unlock(held), <-taken) }
		},
		"re-entry": func(t *testing.T, s *site) func() error {
			held, err := s.l.Lock(t.Context())
			locktest.NoError(t, err)
			return func() error { return lockOnly(s.l.Lock(held)) }
		},
		"inner Unlock": func(t *testing.T, s *site) func() error {
			held, err := s.l.Lock(t.Context())
			locktest.NoError(t, err)
			inner, err := s.l.Lock(held)
			locktest.NoError(t, err)
			return func() error { return s.l.Unlock(inner) }
		},
		"IsLocked": func(t *testing.T, s *site) func() error {
			return func() error { _, err := s.l.IsLocked(t.Context()); return err }
		},
		"HoldCount": func(t *testing.T, s *site) func() error {
			held, err := s.l.Lock(t.Context())
			locktest.NoError(t, err)
			return func() error {
				if n, err := s.l.HoldCount(held); n != 1 {
					return fmt.Errorf("the count is %d, %v", n, err)
				}
				return nil
			}
		},
		"TTL": func(t *testing.T, s *site) func() error {
			return func() error { _, err := s.l.TTL(t.Context()); return err }
		},
		"ForceUnlock": func(t *testing.T, s *site) func() error {
			locktest.NoError(t, lockOnly(s.other.Lock(t.Context())))
			return func() error {
				freed, err := s.l.ForceUnlock(t.Context())
				if err == nil && !freed {
					err = errors.New("not freed")
				}
				return errors.Join(err, free(t, s))
			}
		},
		"a wait that ends": func(t *testing.T, s *site) func() error {
			held, err := s.other.Lock(t.Context())
			locktest.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() { gone <- lockOnly(s.l.Lock(ctx)) }()
			time.Sleep(time.Second)
			return func() error {
				cancel()
				if err := <-gone; !errors.Is(err, context.Canceled) {
					return err
				}
				redistest.Eventually(t, pastDead, func() bool { return s.direct.ZCard(t.Context(), "fencelock_line:{a}").Val() == 0 }, "the client leaves the line")
				return s.other.Check(held)
			}
		},
		"a waiter that is woken": func(t *testing.T, s *site) func() error {
			held, err := s.other.Lock(t.Context())
			locktest.NoError(t, err)
			taken := make(chan error, 1)
			go func() { taken <- lockOnly(s.l.Lock(t.Context())) }()
			time.Sleep(time.Second)
			return func() error { return errors.Join(s.other.Unlock(held), <-taken) }
		},
	} {
		for _, c := range []struct {
			is   string
			n    int
			end  func(*redistest.Firewall)
			most time.Duration
		}{
			{"dead", 1, (*redistest.Firewall).Forget, pastDead},
			{"dead", 4, (*redistest.Firewall).Forget, pastDead},
			{"dead", manyIdle, (*redistest.Firewall).Forget, pastDead},
			{"ended", manyIdle, (*redistest.Firewall).Refuse, pastEnded},
		} {
			t.Run(fmt.Sprintf("%s, %d %s", name, c.n, c.is), func(t *testing.T) {
				redistest.FreshTimers(t)
				redistest.Virtual(t, func(t *testing.T) {
					m, direct := redistest.Pipe(t)
					var firewall redistest.Firewall
					var through atomic.Bool // what is dialed goes through the firewall
					rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
						o.PoolSize = manyIdle + 1 // all may be dead but one
						plain, walled := o.Dialer, firewall.Dialer(o.Dialer)
						o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
							if through.Load() {
								return walled(ctx, network, addr)
							}
							return plain(ctx, network, addr)
						}
					})
					client, other := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
					s := &site{l: rlock.NewLock(client, "a"), other: rlock.NewLock(other, "a"), direct: direct}
					call := prepare(t, s)
					alive := int(rdb.PoolStats().IdleConns) // they are used last
					through.Store(true)
					redistest.LeaveIdle(t, rdb, alive+c.n)
					through.Store(false)
					c.end(&firewall)
					began := time.Now()
					err := call()
					if took := time.Since(began); err != nil || took > c.most {
						t.Errorf("%v after %v", err, took)
					}
					runtime.KeepAlive(client)
				})
			})
		}
	}
}

// lockOnly is the error of an acquire whose context is not needed.
func lockOnly(_ context.Context, err error) error { return err }

// Inv12: where dials hang, no call whose context lives hears that something was cancelled.
func TestInv12_HangingDialsCancelNoCall(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
			o.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		client := newClient(t, rdb)
		var all sync.WaitGroup
		for i := range 60 {
			l := rlock.NewLock(client, fmt.Sprint("a", i))
			for name, call := range map[string]func() error{
				"Lock":        func() error { return lockOnly(l.Lock(t.Context())) },
				"TryLock":     func() error { return lockOnly(l.TryLock(t.Context(), 0, 0)) },
				"IsLocked":    func() error { _, err := l.IsLocked(t.Context()); return err },
				"ForceUnlock": func() error { _, err := l.ForceUnlock(t.Context()); return err },
			} {
				all.Go(func() {
					time.Sleep(time.Duration(i) * 77 * time.Millisecond)
					if err := call(); err == nil || errors.Is(err, context.Canceled) {
						t.Errorf("%s says %v", name, err)
					}
				})
			}
		}
		all.Wait()
		locktest.NoError(t, client.Close())
		locktest.NoError(t, rdb.Close())
		time.Sleep(time.Minute) // the dials end
	})
}

// lateAnswer is a hook by which the answer to the first command with this op comes so late that a copy is sent before.
func lateAnswer(op string) locktest.Hook {
	var first atomic.Bool
	return func(_ context.Context, cmd redis.Cmder, send func() error) error {
		late := slices.Contains(locktest.Ops(cmd.Args()), op) && first.CompareAndSwap(false, true)
		err := send()
		if late {
			time.Sleep(4 * time.Second)
		}
		return err
	}
}

// knowScripts makes the server know the scripts, so that the first command for each is executed.
func knowScripts(t *testing.T, rdb *redis.Client) {
	t.Helper()
	l := rlock.NewLock(newClient(t, rdb), "known")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(held))
}

// P12: a release is answered by its copy, which finds nothing, because Redis has executed the first one. That is no loss.
func TestP12_UnlockAnsweredByItsCopy(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		knowScripts(t, rdb)
		rdb.AddHook(lateAnswer("unlock"))
		client := newClient(t, rdb)
		l := rlock.NewLock(client, "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		began := time.Now()
		locktest.NoError(t, l.Unlock(held))
		if took := time.Since(began); took > time.Second {
			t.Errorf("Unlock took %v", took)
		}
		time.Sleep(time.Minute)
		runtime.KeepAlive(client)
	})
}

// P12: a handoff is answered by its copy, which finds nothing, because the waiter has given up and what it was handed is released. That is no
// loss either.
func TestP12_HandoffAnsweredByItsCopy(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		defer time.Sleep(time.Minute)
		knowScripts(t, rdb)
		locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText("transfer")).Err())
		rdb.AddHook(lateAnswer("transfer"))
		client := newClient(t, rdb)
		l := rlock.NewLock(client, "a")
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		ctx, giveUp := context.WithCancel(t.Context())
		waits := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
		locktest.Sleep(0) // no handoff begins 20 ms after the lock was taken
		unlocked := locktest.Start(func() error { return l.Unlock(held) })
		time.Sleep(50 * time.Millisecond)
		giveUp()
		locktest.IsError(t, (<-waits).Err, context.Canceled)
		time.Sleep(200 * time.Millisecond)
		locktest.Equal(t, "the waiter's hold is there when the copy comes", m.Exists("a"), false)
		locktest.NoError(t, <-unlocked)
		runtime.KeepAlive(client)
	})
}

// P12: ForceUnlock whose release is answered by its copy has freed the lock.
func TestP12_ForceUnlockAnsweredByItsCopy(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		client, other := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		locktest.NoError(t, lockOnly(rlock.NewLock(other, "a").Lock(t.Context())))
		knowScripts(t, rdb)
		rdb.AddHook(lateAnswer("unlock"))
		freed, err := rlock.NewLock(client, "a").ForceUnlock(t.Context())
		if err != nil || !freed {
			t.Errorf("ForceUnlock says %v, %v", freed, err)
		}
		time.Sleep(time.Minute)
		runtime.KeepAlive(other)
	})
}

// lateOnce is a connection on which the first command for this lock is late, as in a network that sends again what was lost.
type lateOnce struct {
	net.Conn
	lock  string
	first *atomic.Bool
	by    time.Duration
}

// Write implements net.Conn.
func (c lateOnce) Write(b []byte) (int, error) {
	if !bytes.Contains(b, []byte("\r\n"+c.lock+"\r\n")) || !c.first.CompareAndSwap(false, true) {
		return c.Conn.Write(b)
	}
	late := slices.Clone(b)
	time.AfterFunc(c.by, func() { _, _ = c.Conn.Write(late) })
	return len(b), nil
}

// P3: an acquire is answered by its copy. What the first one takes when it arrives after the Unlock is released.
func TestP3_FirstCopyOfAcquireAfterItsUnlock(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, direct := redistest.Pipe(t)
		const arrives = 4 * time.Second
		var first atomic.Bool
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
			dial := o.Dialer
			o.ReadTimeout = 5 * time.Second
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dial(ctx, network, addr)
				return lateOnce{conn, "late", &first, arrives}, err
			}
		})
		knowScripts(t, rdb)
		client := newClient(t, rdb)
		l, began := rlock.NewLock(client, "late"), time.Now()
		held, err := l.Lock(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(held))
		time.Sleep(arrives - time.Since(began) + time.Millisecond)
		locktest.Equal(t, "the first copy has the lock", direct.Exists(t.Context(), "late").Val(), 1)
		time.Sleep(10 * time.Second) // a third of the lease
		locktest.Equal(t, "it has the lock", direct.Exists(t.Context(), "late").Val(), 0)
		time.Sleep(time.Minute)
		locktest.Equal(t, "books", client.Books(), "")
	})
}
