package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// both runs a test in a bubble and outside of one.
func both(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
	t.Run("real time", test)
}

func lockAndGetToken(t *testing.T, l *fenced.Lock) (context.Context, int64) {
	t.Helper()
	held, token, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	return held, token
}

func TestClientsAreProcesses(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		a, b := s.Client(), s.Client()
		held, token := lockAndGetToken(t, fenced.NewLock(a, "x"))
		locktest.Equal(t, "token", token, 1)
		locktest.Equal(t, "holder", s.Holder("x"), a.ID())
		nested, _, err := fenced.NewLock(a, "x").LockAndGetToken(held)
		locktest.NoError(t, err)
		locktest.Equal(t, "hold count", s.HoldCount("x"), 2)
		locktest.NoError(t, fenced.NewLock(a, "x").Unlock(nested))
		_, _, err = fenced.NewLock(b, "x").TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)

		waits := locktest.StartLock(func() (context.Context, error) {
			return locktest.NoToken(fenced.NewLock(b, "x").LockAndGetToken(t.Context()))
		})
		s.WaitForWaiters("x", 1)
		locktest.NoError(t, fenced.NewLock(a, "x").Unlock(held))
		got := <-waits
		locktest.NoError(t, got.Err)
		locktest.Equal(t, "holder", s.Holder("x"), b.ID())
		locktest.Equal(t, "last token", s.LastToken("x"), 3)
		locktest.NoError(t, fenced.NewLock(b, "x").Unlock(got.Ctx))
		locktest.Equal(t, "holder", s.Holder("x"), "")
		locktest.Equal(t, "hold count", s.HoldCount("x"), 0)
	})
}

func TestHoldAndUnlock(t *testing.T) {
	for _, opts := range [][]rlocktest.HoldOption{nil, {rlocktest.AsRedisson()}} {
		both(t, func(t *testing.T) {
			s := rlocktest.New(t)
			other := s.Hold("x", opts...)
			locktest.Equal(t, "token", other.Token(), 1)
			lock := fenced.NewLock(s.Client(), "x")
			waits := locktest.StartFenced(func() (context.Context, int64, error) { return lock.LockAndGetToken(t.Context()) })
			s.WaitForWaiters("x", 1)
			other.Unlock()
			got := <-waits
			locktest.NoError(t, got.Err)
			locktest.Equal(t, "token", got.Token, 2)
			locktest.NoError(t, lock.Unlock(got.Ctx))
		})
	}
}

// A dead holder's lock is free when its lease is over.
func TestHoldFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		s.Hold("x", rlocktest.ExpiresAfter(8*time.Second))
		lock := fenced.NewLock(s.Client(), "x")
		_, _, err := lock.TryLockAndGetToken(t.Context(), 7*time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		held, _, err := lock.TryLockAndGetToken(t.Context(), 7*time.Second, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, lock.Unlock(held))
	})
}

func TestSteal(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		held, token := lockAndGetToken(t, lock)
		other := s.Steal("x")
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		if other.Token() <= token || !other.Held() {
			t.Errorf("token %d after %d, held: %v", other.Token(), token, other.Held())
		}
		locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
		locktest.Equal(t, "the other holds it", other.Held(), true)
		other.Unlock()
	})
}

func TestStealUnnoticed(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		held, _ := lockAndGetToken(t, lock)
		other := s.StealUnnoticed("x")
		locktest.NoError(t, held.Err())
		locktest.NoError(t, lock.Check(held))
		other.Unlock()
		locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
	})
	synctest.Test(t, func(t *testing.T) { // or the watchdog finds out
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		held, _ := lockAndGetToken(t, lock)
		s.StealUnnoticed("x")
		time.Sleep(11 * time.Second)
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
	})
}

func TestExpire(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		a, b := fenced.NewLock(s.Client(), "x"), fenced.NewLock(s.Client(), "x")
		held, _ := lockAndGetToken(t, a)
		waits := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(b.LockAndGetToken(t.Context())) })
		s.WaitForWaiters("x", 1)
		s.Expire("x")
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.ErrorSays(t, held.Err(), "the lease ran out")
		got := <-waits
		locktest.NoError(t, got.Err)
		locktest.IsError(t, a.Unlock(held), rlock.ErrLost)
		locktest.NoError(t, b.Unlock(got.Ctx))
	})
}

func TestForget(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		held, _ := lockAndGetToken(t, lock)
		s.Forget()
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		locktest.Equal(t, "last token", s.LastToken("x"), 0)
		again, token := lockAndGetToken(t, lock)
		locktest.Equal(t, "token", token, 1)
		locktest.NoError(t, lock.Unlock(again))
	})
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		held, _ := lockAndGetToken(t, lock)
		s.Pause()
		time.Sleep(31 * time.Second)
		locktest.IsError(t, held.Err(), rlock.ErrLost)
		s.Resume()
		locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
		again, _ := lockAndGetToken(t, lock)
		locktest.NoError(t, lock.Unlock(again))
	})
}

func TestRefuse(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "x")
		s.Refuse(errors.New("NOAUTH Authentication required."))
		_, _, err := lock.TryLockAndGetToken(t.Context(), 0, 0)
		locktest.ErrorSays(t, err, "NOAUTH")
		other := s.Hold("y") // the Server itself is refused nothing
		s.Refuse(nil)
		other.Unlock()
		held, _, err := lock.TryLockAndGetToken(t.Context(), 0, 0)
		locktest.NoError(t, err)
		locktest.NoError(t, lock.Unlock(held))
	})
}

func TestStopAndContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		client := s.Client()
		lock := fenced.NewLock(client, "x")
		held, _ := lockAndGetToken(t, lock)
		s.Stop(client)
		other := s.Steal("x")
		time.Sleep(20 * time.Second)
		locktest.NoError(t, held.Err()) // it has not heard of it
		time.Sleep(10 * time.Second)
		locktest.IsError(t, held.Err(), rlock.ErrLost) // but it has a clock
		s.Continue(client)
		locktest.IsError(t, lock.Unlock(held), rlock.ErrLost)
		locktest.Equal(t, "the other holds it", other.Held(), true)
		other.Unlock()
		again, _ := lockAndGetToken(t, lock)
		locktest.NoError(t, lock.Unlock(again))
	})
}

func TestKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		dead, client := s.Client(), s.Client()
		lockAndGetToken(t, fenced.NewLock(dead, "x"))
		s.Kill(dead)
		began := time.Now()
		held, _ := lockAndGetToken(t, fenced.NewLock(client, "x"))
		if took := time.Since(began); took < 29*time.Second || took > 41*time.Second {
			t.Errorf("the lease was over after %v", took)
		}
		locktest.NoError(t, fenced.NewLock(client, "x").Unlock(held))
	})
}

// A killed client whose calls wait goes on in its own goroutines, and keeps neither others nor the end of the test waiting.
func TestKillOfOneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		dead, client := s.Client(rlock.WithLease(time.Second)), s.Client()
		lockAndGetToken(t, fenced.NewLock(dead, "x"))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		done := make(chan error, 2)
		for _, c := range []*rlock.Client{dead, client} {
			go func() { done <- fenced.NewLock(c, "x").Do(ctx, func(context.Context, int64) error { return nil }) }()
		}
		s.WaitForWaiters("x", 2)
		s.Kill(dead)
		locktest.Equal(t, "waiters, without that of the dead client", s.Waiters("x"), 1)
		locktest.NoError(t, <-done)
		time.Sleep(time.Minute)
		if err := <-done; err == nil {
			t.Error("a call of the killed client got the lock")
		}
	})
}

func TestRedisIsForData(t *testing.T) {
	both(t, func(t *testing.T) {
		s := rlocktest.New(t)
		rdb := s.Redis()
		locktest.NoError(t, rdb.Set(t.Context(), "balance", 10, 0).Err())
		n, err := rdb.IncrBy(t.Context(), "balance", 5).Result()
		locktest.NoError(t, err)
		locktest.Equal(t, "balance", n, 15)
	})
}

// recorder is a testing.TB that keeps what a test is told. Its Fatalf ends the goroutine.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	told     []string
	cleanups []func()
}

func (r *recorder) Helper()                           {}
func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool                      { return false }
func (r *recorder) Errorf(format string, args ...any) { r.tell(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.fatal(fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) { r.fatal(fmt.Sprintf(format, args...)) }
func (r *recorder) fatal(text string) {
	r.tell(text)
	runtime.Goexit()
}

func (r *recorder) tell(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, text)
}

// run runs a test to its end, cleanups and all.
func (r *recorder) run(t *testing.T, test func(t testing.TB)) {
	r.TB = t
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	for _, f := range r.cleanups {
		defer f()
	}
}

// told runs a test in a bubble and returns what it was told to its end.
func told(t *testing.T, test func(t testing.TB)) string {
	r := &recorder{}
	synctest.Test(t, func(t *testing.T) { r.run(t, test) })
	return strings.Join(r.told, "\n")
}

func TestWhatIsLeftFailsTheTest(t *testing.T) {
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		_, _, err := fenced.NewLock(s.Client(), "forgotten").LockAndGetToken(context.Background())
		locktest.NoError(t, err)
	})
	if !strings.Contains(got, `"forgotten"] held`) || !strings.Contains(got, "Unlock is missing") {
		t.Errorf("a hold that is left: the test was told %q", got)
	}
	got = told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		s.Hold("x")
		lock := fenced.NewLock(s.Client(), "x")
		go func() { _, _, _ = lock.LockAndGetToken(context.Background()) }()
		s.WaitForWaiters("x", 1)
	})
	if !strings.Contains(got, `"x"] waited for`) {
		t.Errorf("a waiter that is left: the test was told %q", got)
	}
	got = told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		s.Client()
		s.Hold("x") // somebody else's is nobody's business
	})
	locktest.Equal(t, "told of nothing", got, "")
}

func TestWhatIsNotPossible(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(t testing.TB, s *rlocktest.Server)
		says string
	}{
		"Hold of a lock that is held":  {func(t testing.TB, s *rlocktest.Server) { s.Hold("x"); s.Hold("x") }, "Steal takes it"},
		"Steal of a free lock":         {func(t testing.TB, s *rlocktest.Server) { s.Steal("x") }, "nobody holds"},
		"Expire of a free lock":        {func(t testing.TB, s *rlocktest.Server) { s.Expire("x") }, "nobody holds"},
		"Hold of no name":              {func(t testing.TB, s *rlocktest.Server) { s.Hold("") }, "Hold: the lock's name is empty"},
		"a second Unlock":              {func(t testing.TB, s *rlocktest.Server) { o := s.Hold("x"); o.Unlock(); o.Unlock() }, "not held any more"},
		"a client of somewhere else":   {func(t testing.TB, s *rlocktest.Server) { s.Stop(rlocktest.New(t).Client()) }, "no client of the Server"},
		"a lease of nothing":           {func(t testing.TB, s *rlocktest.Server) { s.Hold("x", rlocktest.ExpiresAfter(3)) }, "a millisecond or more"},
		"a wait for what never comes":  {func(t testing.TB, s *rlocktest.Server) { s.Wait("godot", func() bool { return false }) }, "not within 1m0s: godot"},
		"an option that cannot be had": {func(t testing.TB, s *rlocktest.Server) { s.Client(rlock.WithLease(-1)) }, "WithLease"},
	} {
		t.Run(name, func(t *testing.T) {
			got := told(t, func(t testing.TB) { test.do(t, rlocktest.New(t)) })
			if !strings.Contains(got, test.says) {
				t.Errorf("the test was told %q, want %q", got, test.says)
			}
		})
	}
}
