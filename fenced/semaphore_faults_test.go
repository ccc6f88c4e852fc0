package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

func booksOf(c *rlock.Client) string { return engine.ClientOf(c).Books() }

// P5: the context that Do gives to fn is said to be that of the permit; it has to look at the clocks itself.
func TestPermit_DoContextLooksAtTheClock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		lease := 500 * time.Millisecond
		look := func(what string, ctx context.Context, began time.Time) {
			time.Sleep(time.Until(began.Add(lease - 6*time.Millisecond)))
			if ctx.Err() == nil {
				t.Errorf("%s: the context is alive at the end of the lease", what)
			}
		}
		for range 50 {
			began := time.Now()
			_ = fenced.NewLock(c, "l").Do(t.Context(), func(ctx context.Context, _ int64) error { look("lock", ctx, began); return nil }, rlock.Wait(0), rlock.Lease(lease))
			locktest.Sleep(time.Second)
			began = time.Now()
			_ = fenced.NewSemaphore(c, "jobs", 2).Do(t.Context(), func(ctx context.Context, p *fenced.Hold) error {
				look("semaphore", ctx, began)
				return nil
			}, rlock.Wait(0), rlock.Lease(lease))
			locktest.Sleep(time.Second)
		}
	})
}

// fn's ctx keeps the deadline of the caller's.
func TestPermit_DoContextDeadline(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check := func(what string, in context.Context) error {
			if _, ok := in.Deadline(); !ok {
				t.Errorf("%s: no deadline", what)
			}
			<-in.Done()
			if !errors.Is(in.Err(), context.DeadlineExceeded) {
				t.Errorf("%s: Err is %v, cause %v", what, in.Err(), context.Cause(in))
			}
			return nil
		}
		_ = fenced.NewSemaphore(c, "jobs", 2).Do(ctx, func(in context.Context, p *fenced.Hold) error { return check("semaphore", in) })
		ctx2, cancel2 := context.WithTimeout(t.Context(), time.Second)
		defer cancel2()
		_ = fenced.NewLock(c, "l").Do(ctx2, func(in context.Context, _ int64) error { return check("lock", in) })
	})
}

// A permit that this client has released by ForceRelease before the answer to its acquire came is lost when the answer comes.
func TestPermit_ForceReleaseBeforeTheAnswer(t *testing.T) {
	for _, kind := range []string{"lock", "semaphore"} {
		t.Run(kind, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				s, l := fenced.NewSemaphore(c, "jobs", 1), fenced.NewLock(c, "lock")
				locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context()))
				locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil }))
				answer := make(chan struct{})
				once(rdb, func(send func() error) error {
					err := send()
					<-answer
					return err
				})
				var errNow func() error
				done := locktest.Start(func() error {
					if kind == "lock" {
						h, err := l.Acquire(t.Context())
						if err == nil {
							errNow = h.Err
						}
						return err
					}
					p, err := s.Acquire(t.Context())
					if err == nil {
						errNow = p.Err
					}
					return err
				})
				synctest.Wait()
				var freed bool
				var err error
				if kind == "lock" {
					freed, err = l.ForceUnlock(t.Context())
				} else {
					freed, err = s.ForceRelease(t.Context(), 0)
				}
				locktest.NoError(t, err)
				locktest.Equal(t, "freed", freed, true)
				// another one takes it
				other := newClient(t, redistest.PipeClient(t, m))
				var otherErr func() error
				if kind == "lock" {
					h, err := fenced.NewLock(other, "lock").Acquire(t.Context())
					locktest.NoError(t, err)
					otherErr = h.Err
				} else {
					otherErr = acquirePermit(t, fenced.NewSemaphore(other, "jobs", 1)).Err
				}
				close(answer)
				if err := <-done; err == nil && errNow() == nil && otherErr() == nil {
					t.Errorf("two living holders of one %s, although this client has forced it open itself", kind)
				}
			})
		})
	}
}

// A slot that something else has is taken, whichever slot it is.
func TestPermit_ForeignKey(t *testing.T) {
	for slot := range 3 {
		t.Run(fmt.Sprint(slot), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 3)
				locktest.NoError(t, m.Set(fmt.Sprintf("{jobs}:%d", slot), "not a lock"))
				a, b := acquirePermit(t, s), acquirePermit(t, s)
				_, err := s.Acquire(t.Context(), rlock.Wait(0))
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				_, err = s.Acquire(t.Context(), rlock.Wait(time.Second))
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				got := locktest.Start(func() error { _, err := s.Acquire(t.Context()); return err })
				locktest.Sleep(time.Second)
				locktest.NoError(t, a.Unlock(t.Context()))
				locktest.NoError(t, <-got)
				locktest.NoError(t, b.Unlock(t.Context()))
			})
		})
	}
}

// P8: calls go past dead connections.
func TestPermit_DeadConnections(t *testing.T) {
	const manyIdle = 32
	for _, dead := range []int{1, 4, manyIdle} {
		for name, call := range map[string]func(s *fenced.Semaphore, l *fenced.Lock) error{
			"semaphore Acquire": func(s *fenced.Semaphore, l *fenced.Lock) error { _, err := s.Acquire(context.Background()); return err },
			"semaphore TryAcquire": func(s *fenced.Semaphore, l *fenced.Lock) error {
				_, err := s.Acquire(context.Background(), rlock.Wait(0))
				return err
			},
			"semaphore Try 8s": func(s *fenced.Semaphore, l *fenced.Lock) error {
				_, err := s.Acquire(context.Background(), rlock.Wait(8*time.Second))
				return err
			},
			"lock Lock": func(s *fenced.Semaphore, l *fenced.Lock) error {
				_, _, err := l.LockAndGetToken(context.Background())
				return err
			},
			"lock TryLock": func(s *fenced.Semaphore, l *fenced.Lock) error {
				_, _, err := l.TryLockAndGetToken(context.Background(), 0, 0)
				return err
			},
		} {
			t.Run(fmt.Sprintf("%s, %d", name, dead), func(t *testing.T) {
				redistest.FreshTimers(t)
				redistest.Virtual(t, func(t *testing.T) {
					m, _ := redistest.Pipe(t)
					var firewall redistest.Firewall
					var through atomic.Bool
					rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
						o.PoolSize = manyIdle + 1
						plain, walled := o.Dialer, firewall.Dialer(o.Dialer)
						o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
							if through.Load() {
								return walled(ctx, network, addr)
							}
							return plain(ctx, network, addr)
						}
					})
					c := newClient(t, rdb)
					s, l := fenced.NewSemaphore(c, "jobs", 4), fenced.NewLock(c, "l")
					through.Store(true)
					redistest.LeaveIdle(t, rdb, dead)
					firewall.Forget()
					began := time.Now()
					err := call(s, l)
					took := time.Since(began)
					if err != nil || took > 3*time.Second {
						t.Errorf("P8: after %v: %v", took, err)
					}
					time.Sleep(time.Minute)
					n := 0
					for i := range 4 {
						if m.Exists(fmt.Sprintf("{jobs}:%d", i)) {
							n++
						}
					}
					if n > 1 {
						t.Errorf("%d slots are taken a minute later", n)
					}
				})
			})
		}
	}
}

// One client uses the semaphore, the lock of a slot and a lock of the same name at once.
func TestPermit_OneClientAllKinds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s, slot, lock := fenced.NewSemaphore(c, "jobs", 2), fenced.NewLock(c, "{jobs}:0"), fenced.NewLock(c, "jobs")
		var all sync.WaitGroup
		var in [2]atomic.Int64
		var inLock atomic.Int64
		for i := range 12 {
			all.Go(func() {
				for k := range 30 {
					var err error
					switch (i + k) % 3 {
					case 0:
						err = s.Do(t.Context(), func(ctx context.Context, p *fenced.Hold) error {
							if in[p.Slot()].Add(1) != 1 {
								t.Error("two in a slot")
							}
							defer in[p.Slot()].Add(-1)
							time.Sleep(time.Millisecond)
							if p.Slot() == 0 && k%2 == 0 {
								if err := slot.Do(p.Context(), func(context.Context, int64) error { return nil }); err != nil {
									return err
								}
							}
							return lock.Do(ctx, func(context.Context, int64) error {
								if inLock.Add(1) != 1 {
									t.Error("two in the lock")
								}
								defer inLock.Add(-1)
								time.Sleep(time.Millisecond)
								return nil
							})
						})
					case 1:
						err = slot.Do(t.Context(), func(context.Context, int64) error {
							if in[0].Add(1) != 1 {
								t.Error("two in slot 0")
							}
							defer in[0].Add(-1)
							time.Sleep(time.Millisecond)
							return nil
						})
					case 2:
						err = lock.Do(t.Context(), func(context.Context, int64) error {
							if inLock.Add(1) != 1 {
								t.Error("two in the lock")
							}
							defer inLock.Add(-1)
							time.Sleep(time.Millisecond)
							return nil
						})
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		began := time.Now()
		all.Wait()
		t.Log("took", time.Since(began))
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "books", booksOf(c), "")
		for _, k := range m.Keys() {
			if !strings.HasPrefix(k, "redisson_lock_token:") {
				t.Error("left:", k)
			}
		}
	})
}

// Unlocking by the lock of the slot, and inner levels that outlive the permit's own Unlock.
func TestPermit_Levels(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 1)
		s, slot := fenced.NewSemaphore(c, "jobs", 1), fenced.NewLock(c, "{jobs}:0")
		p := acquirePermit(t, s)
		inner, _, err := slot.LockAndGetToken(p.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, p.Unlock(t.Context()))
		locktest.IsError(t, p.Err(), rlock.ErrUnlocked)
		locktest.DeepEqual(t, "taken", taken(m, s, 1), []int{0})
		got := locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(time.Second)
		began := time.Now()
		locktest.NoError(t, slot.Unlock(inner))
		locktest.NoError(t, <-got)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Error("the waiter has it after", took)
		}
		p = acquirePermit(t, s)
		got = locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(time.Second)
		began = time.Now()
		locktest.NoError(t, slot.Unlock(p.Context()))
		locktest.NoError(t, <-got)
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Error("the waiter has it after", took)
		}
		locktest.IsError(t, p.Unlock(t.Context()), rlock.ErrNotHeld)
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "books", booksOf(c), "")
	})
}

// Panics and Goexit in Do.
func TestPermit_Panics(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s := fenced.NewSemaphore(c, "jobs", 1)
		func() {
			defer func() {
				if recover() != "no" {
					t.Error("the panic is gone")
				}
			}()
			_ = s.Do(t.Context(), func(context.Context, *fenced.Hold) error { panic("no") })
		}()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Do(t.Context(), func(context.Context, *fenced.Hold) error { runtime.Goexit(); return nil })
		}()
		<-done
		locktest.NoError(t, s.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(0)))
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "books", booksOf(c), "")
	})
}

// Close and Shutdown at each moment of an Acquire whose answer is late.
func TestPermit_CloseAtEachMoment(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 3 * time.Second} {
		for _, closes := range []time.Duration{0, 1, time.Millisecond, 40 * time.Millisecond, 51 * time.Millisecond, time.Second} {
			for _, hard := range []bool{true, false} {
				for _, executed := range []bool{true, false} {
					t.Run(fmt.Sprint(late, closes, hard, executed), func(t *testing.T) {
						locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
							c := newClient(t, rdb)
							s := fenced.NewSemaphore(c, "jobs", 2)
							locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context()))
							once(rdb, func(send func() error) error {
								if executed {
									err := send()
									time.Sleep(late)
									return err
								}
								time.Sleep(late)
								return send()
							})
							var p *fenced.Hold
							done := locktest.Start(func() (err error) { p, err = s.Acquire(t.Context()); return err })
							time.Sleep(closes)
							closed := locktest.Start(func() error {
								if hard {
									return c.Close()
								}
								ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
								defer cancel()
								return c.Shutdown(ctx)
							})
							err := <-done
							if err != nil && !errors.Is(err, rlock.ErrClosed) {
								t.Error(err)
							}
							if err == nil && p.Err() == nil {
								_ = p.Unlock(t.Context())
							} else if err == nil {
								_ = p.Unlock(t.Context())
							}
							<-closed
							locktest.Sleep(5 * time.Second)
							if got := taken(m, s, 2); len(got) > 0 {
								t.Errorf("left: %v (Acquire: %v)", got, err)
							}
							locktest.Equal(t, "books", booksOf(c), "")
						})
					})
				}
			}
		}
	}
}

// Contexts that end at each moment.
func TestPermit_ContextsThatEnd(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		s := fenced.NewSemaphore(c, "jobs", 2)
		rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
			time.Sleep(3 * time.Millisecond)
			err := send()
			time.Sleep(3 * time.Millisecond)
			return err
		}))
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 777 * time.Microsecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%23)*time.Millisecond)
				defer cancel()
				p, err := s.Acquire(ctx)
				if err == nil {
					time.Sleep(2 * time.Millisecond)
					locktest.NoError(t, p.Unlock(ctx))
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		locktest.Sleep(5 * time.Second)
		locktest.DeepEqual(t, "taken", taken(m, s, 2), []int(nil))
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "books", booksOf(c), "")
		for _, k := range m.Keys() {
			if !strings.HasPrefix(k, "redisson_lock_token:") {
				t.Error("left:", k)
			}
		}
	})
}

// Extend by its own field for permits with a lease of their own, and Remaining.
func TestPermit_Extend(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 2)
		p, err := s.Acquire(t.Context(), rlock.Wait(0), rlock.Lease(time.Second))
		locktest.NoError(t, err)
		for range 10 {
			locktest.Sleep(700 * time.Millisecond)
			locktest.NoError(t, p.Extend(t.Context(), time.Second))
			if r := p.Remaining(); r < 900*time.Millisecond {
				t.Error(r)
			}
		}
		locktest.Sleep(1100 * time.Millisecond)
		locktest.IsError(t, p.Err(), rlock.ErrLost)
		locktest.IsError(t, p.Extend(t.Context(), time.Second), rlock.ErrLost)
		locktest.IsError(t, p.Unlock(t.Context()), rlock.ErrLost)
		_, err = s.Acquire(t.Context(), rlock.Wait(0), rlock.Lease(time.Millisecond))
		t.Log(err)
		_, err = s.Acquire(t.Context(), rlock.Wait(-1))
		t.Log(err)
	})
}

// P32: those who wait further behind in the line look every 1 to 10 s, more and more rarely, not all the time.
func TestPermit_LooksOfACrowd(t *testing.T) {
	{
		count := map[string]int64{}
		for _, kind := range []string{"lock", "semaphore"} {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				first := newClient(t, rdb)
				var held any
				if kind == "lock" {
					h, err := fenced.NewLock(first, "l").Acquire(t.Context())
					locktest.NoError(t, err)
					held = h
				} else {
					held = acquirePermit(t, fenced.NewSemaphore(first, "jobs", 1))
				}
				defer runtime.KeepAlive(held)
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var asks atomic.Int64
				for range 20 {
					theirs := redistest.PipeClient(t, m)
					theirs.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
						for _, op := range locktest.Ops(cmd.Args()) {
							if op == "acquire" {
								asks.Add(1)
							}
						}
						return send()
					}))
					c := newClient(t, theirs)
					all.Go(func() {
						if kind == "lock" {
							_, _, _ = fenced.NewLock(c, "l").LockAndGetToken(ctx)
						} else {
							_, _ = fenced.NewSemaphore(c, "jobs", 1).Acquire(ctx)
						}
					})
					locktest.Sleep(10 * time.Millisecond)
				}
				locktest.Sleep(time.Minute)
				asks.Store(0)
				locktest.Sleep(5 * time.Minute)
				count[kind] = asks.Load()
				stop()
				all.Wait()
			})
		}
		t.Logf("20 clients that wait for 5 minutes ask %d times for a lock, %d times for a permit", count["lock"], count["semaphore"])
		if count["semaphore"] > 2*count["lock"] {
			t.Errorf("P32: %d questions for a permit, %d for a lock", count["semaphore"], count["lock"])
		}
	}
}

// The minimal form of what TestPermit_DeadConnections and TestPermit_FrozenServer found: an attempt gets no answer, and no further one is sent.
func TestPermit_SecondAttemptAfterSilence(t *testing.T) {
	for _, kind := range []string{"permit", "Acquire with Wait 8s"} {
		t.Run(kind, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				rdb := redistest.PipeClient(t, m)
				s := fenced.NewSemaphore(newClient(t, rdb), "jobs", 4)
				locktest.NoError(t, acquirePermit(t, s).Unlock(t.Context())) // the script is loaded
				once(rdb, func(send func() error) error {
					time.Sleep(20 * time.Second) // the connection is dead; others are not
					return send()
				})
				began := time.Now()
				var opts []rlock.AcquireOption
				if kind != "permit" {
					opts = append(opts, rlock.Wait(8*time.Second))
				}
				p, err := s.Acquire(t.Context(), opts...)
				took := time.Since(began)
				if err != nil || took > time.Second {
					t.Fatalf("after %v: %v", took, err)
				}
				locktest.NoError(t, p.Unlock(t.Context()))
				locktest.Sleep(time.Minute)
			})
		})
	}
}
