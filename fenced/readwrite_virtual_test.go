package fenced_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// repo is the read-write lock repo of a client of its own.
func repo(t testing.TB, m *miniredis.Miniredis) *fenced.RWLock {
	t.Helper()
	return fenced.NewRWLock(newClient(t, redistest.PipeClient(t, m)), "repo")
}

// hold is Acquire that must succeed.
func hold(t testing.TB, l *fenced.Lock, opts ...rlock.AcquireOption) *fenced.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	return h
}

// fields are the fields of the hash of the lock repo: those of holds, and the others.
func fields(t testing.TB, m *miniredis.Miniredis) (holds, others []string) {
	t.Helper()
	all, err := m.HKeys("repo")
	locktest.NoError(t, err)
	for _, field := range all {
		if strings.Contains(field, ":") {
			holds = append(holds, field)
		} else {
			others = append(others, field)
		}
	}
	return holds, others
}

// P43: an attempt to read or to write whose reply is lost is not repeated with its field. What it took comes free.
func TestP43_LostReplyOfAReadWriteLock(t *testing.T) {
	for what, side := range map[string]func(l *fenced.RWLock) *fenced.Lock{"read": (*fenced.RWLock).Read, "write": (*fenced.RWLock).Write} {
		for how, opts := range map[string][]rlock.AcquireOption{"waits": nil, "once": {rlock.Wait(0)}} {
			t.Run(what+" "+how, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					l := side(fenced.NewRWLock(newClient(t, rdb), "repo"))
					locktest.NoError(t, hold(t, l).Unlock(t.Context())) // the scripts are loaded
					once(rdb, func(send func() error) error {
						_ = send()
						return io.EOF
					})
					h := hold(t, l, opts...)
					locktest.Sleep(time.Minute)
					locktest.NoError(t, h.Err())
					holds, _ := fields(t, m)
					locktest.Equal(t, "holds in Redis", len(holds), 1)
					locktest.NoError(t, h.Unlock(t.Context()))
					locktest.Sleep(time.Minute)
					locktest.DeepEqual(t, "keys", m.Keys(), []string{"redisson_lock_token:{repo}"})
				})
			})
		}
	}
}

// P50: a client that waits to write is not passed by others that read, and a call that does not wait passes nobody either. Those who wait to read behind the writer
// all read as soon as that has unlocked (P49).
func TestP50_AWriterIsNotPassed(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		first := hold(t, repo(t, m).Read())
		order := make(chan string, 10)
		begin := func(what string, side *fenced.Lock) {
			go func() {
				err := side.Do(context.Background(), func(context.Context, int64) error {
					order <- what
					time.Sleep(time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}()
			locktest.Sleep(100 * time.Millisecond)
		}
		begin("write", repo(t, m).Write())
		for range 4 {
			begin("read", repo(t, m).Read())
		}
		_, err := repo(t, m).Read().Acquire(t.Context(), rlock.Wait(0))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "calls that went past", len(order), 0)
		began := time.Now()
		locktest.NoError(t, first.Unlock(t.Context()))
		locktest.Equal(t, "the first", <-order, "write")
		for range 4 {
			locktest.Equal(t, "the next", <-order, "read")
		}
		if took := time.Since(began); took > 1100*time.Millisecond { // one second of the writer
			t.Errorf("the last one reads after %v", took)
		}
		locktest.Sleep(2 * time.Second)
		locktest.DeepEqual(t, "keys", m.Keys(), []string{"redisson_lock_token:{repo}"})
	})
}

// P49: a client that has waited to write and gives up lets those read who came after it.
func TestP49_AWriterThatGivesUp(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		first := hold(t, repo(t, m).Read())
		ctx, cancel := context.WithCancel(t.Context())
		writes := locktest.Start(func() error { _, err := repo(t, m).Write().Acquire(ctx); return err })
		locktest.Sleep(100 * time.Millisecond)
		var reads []<-chan error
		for range 3 {
			reads = append(reads, locktest.Start(func() error {
				return repo(t, m).Read().Do(t.Context(), func(context.Context, int64) error { return nil })
			}))
			locktest.Sleep(100 * time.Millisecond)
		}
		cancel()
		locktest.IsError(t, <-writes, context.Canceled)
		began := time.Now()
		for _, one := range reads {
			locktest.NoError(t, <-one)
		}
		if took := time.Since(began); took > 10*time.Millisecond { // the first listens after 20 ms
			t.Errorf("the last one reads after %v", took)
		}
		locktest.NoError(t, first.Unlock(t.Context()))
	})
}

// P46, P51, P53: the lock lasts as long as the longest lease of those that read, whichever of them ends first, and leases are renewed for each.
func TestP46_TheLongestLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		long, short, renewed := repo(t, m), repo(t, m), repo(t, m)
		a, b := hold(t, long.Read(), rlock.Lease(time.Minute)), hold(t, short.Read(), rlock.Lease(10*time.Second))
		if left := m.TTL("repo"); left < 50*time.Second {
			t.Errorf("the lock lasts for %v", left)
		}
		c := hold(t, renewed.Read())
		locktest.Sleep(9 * time.Second)
		for _, h := range []*fenced.Hold{a, b, c} {
			locktest.NoError(t, h.Err())
		}
		locktest.Sleep(2 * time.Second)
		locktest.IsError(t, b.Err(), rlock.ErrLost)
		locktest.IsError(t, b.Unlock(t.Context()), rlock.ErrLost)
		locktest.Sleep(38 * time.Second)
		locktest.NoError(t, a.Unlock(t.Context()))
		locktest.NoError(t, c.Err())
		_, err := long.Write().Acquire(t.Context(), rlock.Wait(0))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.NoError(t, c.Unlock(t.Context()))
		locktest.NoError(t, hold(t, long.Write(), rlock.Wait(0)).Unlock(t.Context()))
	})
}

// P51: a hold that reads and whose client has died keeps the lock for its own lease, and no longer, whatever the leases of others were.
func TestP51_TheDead(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		l := repo(t, m)
		hold(t, repo(t, m).Read(), rlock.Lease(5*time.Second)) // it is never unlocked
		living := hold(t, l.Read(), rlock.Lease(time.Minute))
		began := time.Now()
		writes := locktest.Start(func() error {
			return l.Write().Do(t.Context(), func(context.Context, int64) error { return nil })
		})
		locktest.Sleep(time.Second)
		locktest.NoError(t, living.Unlock(t.Context()))
		locktest.NoError(t, <-writes)
		if took := time.Since(began); took < 4900*time.Millisecond || took > 16*time.Second {
			t.Errorf("it writes after %v", took)
		}
	})
}

// P52: a level that is renewed, within a hold with a longer lease of its own, keeps the hold.
func TestP52_ARenewedLevel(t *testing.T) {
	for what, side := range map[string]func(l *fenced.RWLock) *fenced.Lock{"read": (*fenced.RWLock).Read, "write": (*fenced.RWLock).Write} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				l := side(repo(t, m))
				held, _, err := l.LockLeaseAndGetToken(t.Context(), 40*time.Second)
				locktest.NoError(t, err)
				locktest.Sleep(5 * time.Second) // the watchdog has asked whether to renew it
				inner, _, err := l.LockAndGetToken(held)
				locktest.NoError(t, err)
				locktest.Sleep(time.Minute)
				locktest.NoError(t, l.Check(inner))
				locktest.NoError(t, l.Unlock(inner))
				locktest.Sleep(time.Minute)
				locktest.IsError(t, l.Unlock(held), rlock.ErrLost) // nobody renews it any more
			})
		})
	}
}

// P53: a hold whose own key is gone, or whose field is, is lost at its next renewal.
func TestP53_RenewalFindsBoth(t *testing.T) {
	for what, remove := range map[string]func(m *miniredis.Miniredis, field string){
		"key":   func(m *miniredis.Miniredis, field string) { m.Del("{repo}:" + field + ":rwlock_timeout:1") },
		"field": func(m *miniredis.Miniredis, field string) { m.HDel("repo", field) },
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				a := hold(t, repo(t, m).Read())
				own, _ := fields(t, m)
				b := hold(t, repo(t, m).Read())
				locktest.Sleep(15 * time.Second)
				locktest.NoError(t, a.Err())
				remove(m, own[0])
				locktest.Sleep(15 * time.Second)
				locktest.IsError(t, a.Err(), rlock.ErrLost)
				locktest.NoError(t, b.Err())
				locktest.IsError(t, a.Unlock(t.Context()), rlock.ErrLost)
				locktest.NoError(t, b.Unlock(t.Context()))
			})
		})
	}
}

// P47: nothing but the mode, the phase and the holds is ever in the hash, also while others wait, and the phase is no number.
func TestP47_WhatIsInTheHash(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		l := repo(t, m)
		waits := func() <-chan error {
			done := locktest.Start(func() error {
				return repo(t, m).Write().Do(t.Context(), func(context.Context, int64) error { return nil })
			})
			locktest.Sleep(time.Second)
			return done
		}
		h := hold(t, l.Write())
		done := waits()
		holds, others := fields(t, m)
		locktest.Equal(t, "holds", len(holds), 1)
		locktest.DeepEqual(t, "other fields", others, []string{"mode"})
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-done)
		h = hold(t, l.Read())
		done = waits()
		holds, others = fields(t, m)
		locktest.Equal(t, "holds", len(holds), 1)
		locktest.DeepEqual(t, "other fields", others, []string{"mode", "phase"})
		locktest.Equal(t, "phase", m.HGet("repo", "phase"), fmt.Sprint("t", h.Token()))
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-done)
	})
}

// A hundred calls of one client that read at the same time ask in few round trips.
func TestReadersOfOneClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewRWLock(newClient(t, rdb), "repo")
		locktest.NoError(t, hold(t, l.Read()).Unlock(t.Context())) // the scripts are loaded
		spy := locktest.SpyOn(rdb)
		slowly(rdb, time.Millisecond) // so all calls have begun before the first has its answer
		all := make(chan struct{})
		var done []<-chan error
		for range 100 {
			done = append(done, locktest.Start(func() error {
				return l.Read().Do(t.Context(), func(context.Context, int64) error { <-all; return nil })
			}))
		}
		locktest.Sleep(100 * time.Millisecond)
		if n := spy.Commands(); n > 20 {
			t.Errorf("%d commands: %v", n, spy)
		}
		close(all)
		for _, one := range done {
			locktest.NoError(t, <-one)
		}
	})
}

// Close gives back what waits; Shutdown waits for what is held. Nothing is kept of either.
func TestReadWriteCloseAndShutdown(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l := fenced.NewRWLock(c, "repo")
		h := hold(t, l.Read())
		waits := locktest.Start(func() error { _, err := l.Write().Acquire(t.Context()); return err })
		locktest.Sleep(time.Second)
		shutdown := locktest.Start(func() error { return c.Shutdown(t.Context()) })
		locktest.IsError(t, <-waits, rlock.ErrClosed)
		locktest.Sleep(time.Second)
		inner, _, err := l.Read().LockAndGetToken(h.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, l.Read().Unlock(inner))
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.NoError(t, <-shutdown)
		locktest.DeepEqual(t, "keys", m.Keys(), []string{"redisson_lock_token:{repo}"})
	})
}

// Bad input fails before Redis is asked.
func TestReadWriteBadInput(t *testing.T) {
	rdb := redistest.New(t)
	c := newClient(t, rdb)
	for want, l := range map[string]*fenced.RWLock{
		"name is empty":          fenced.NewRWLock(c, ""),
		"client is nil":          fenced.NewRWLock(nil, "repo"),
		"is nil or a zero value": nil,
		"make it with NewLock":   new(fenced.RWLock),
		"slots of a semaphore":   fenced.NewRWLock(c, "{jobs}:*"),
	} {
		for _, side := range []*fenced.Lock{l.Read(), l.Write()} {
			_, _, err := side.TryLockAndGetToken(t.Context(), 0, 0)
			locktest.ErrorSays(t, err, want)
			_, err = side.Acquire(t.Context())
			locktest.ErrorSays(t, err, want)
		}
	}
	l := fenced.NewRWLock(c, "repo")
	err := fenced.DoAll(t.Context(), []*fenced.Lock{l.Read(), l.Write()}, func(context.Context, []int64) error { return nil })
	locktest.ErrorSays(t, err, "repo")
	locktest.Equal(t, "keys", len(rdb.Keys(t.Context(), "*").Val()), 0)
	var e *rlock.Error
	if _, _, err := l.Read().TryLockAndGetToken(t.Context(), -1, 0); !errors.As(err, &e) || e.Op != "TryLockAndGetToken" || e.Lock != "repo" {
		t.Errorf("got %v", err)
	}
}
