package lockcertmagic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/fencelock/fencelock/adapters/lockcertmagic"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

const key = "certmagic:lock:a"

func newLocker(t *testing.T, client *rlock.Client, opts ...lockcertmagic.Option) *lockcertmagic.Locker {
	t.Helper()
	locker, err := lockcertmagic.New(client, opts...)
	locktest.NoError(t, err)
	return locker
}

// tryLock requires that TryLock returns want.
func tryLock(t *testing.T, locker certmagic.TryLocker, want bool) {
	t.Helper()
	got, err := locker.TryLock(t.Context(), "a")
	locktest.NoError(t, err)
	locktest.Equal(t, "TryLock", got, want)
}

// The lock is held until Unlock, also when the context of Lock has ended, and Unlock works with one that has ended.
func TestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		mine, others := newLocker(t, s.Client()), newLocker(t, s.Client())
		ctx, cancel := context.WithCancel(t.Context())
		locktest.NoError(t, mine.Lock(ctx, "a"))
		cancel()
		time.Sleep(time.Hour)
		tryLock(t, others, false)
		tryLock(t, mine, false)
		bounded, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		locktest.IsError(t, others.Lock(bounded, "a"), context.DeadlineExceeded)
		locktest.NoError(t, others.Lock(t.Context(), "b"))
		locktest.NoError(t, others.Unlock(t.Context(), "b"))

		took := locktest.Start(func() error { return others.Lock(t.Context(), "a") })
		s.WaitForWaiters(key, 1)
		locktest.NoError(t, mine.Unlock(ctx, "a"))
		locktest.NoError(t, <-took)
		locktest.IsError(t, mine.Unlock(t.Context(), "a"), rlock.ErrNotHeld)
		locktest.Equal(t, "hold count", s.HoldCount(key), 1)
		locktest.NoError(t, others.Unlock(t.Context(), "a"))
		tryLock(t, mine, true)
		locktest.NoError(t, mine.Unlock(t.Context(), "a"))
	})
}

// A goroutine loses its lock, and another one of the process takes it. The late Unlock of the first one leaves it to the second one, whether the
// loss was noticed or not.
func TestLateUnlock(t *testing.T) {
	for name, steal := range map[string]func(s *rlocktest.Server) *rlocktest.Other{
		"noticed":   func(s *rlocktest.Server) *rlocktest.Other { return s.Steal(key) },
		"unnoticed": func(s *rlocktest.Server) *rlocktest.Other { return s.StealUnnoticed(key) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rlocktest.New(t)
				locker := newLocker(t, s.Client())
				locktest.NoError(t, locker.Lock(t.Context(), "a"))
				steal(s).Unlock()
				locktest.NoError(t, locker.Lock(t.Context(), "a"))
				holder := s.Holder(key)
				locktest.NoError(t, locker.RenewLockLease(t.Context(), "a", time.Minute))
				locktest.NoError(t, locker.Unlock(t.Context(), "a")) // that of the first Lock
				locktest.Equal(t, "the holder after the late Unlock", s.Holder(key), holder)
				locktest.NoError(t, locker.Unlock(t.Context(), "a"))
				locktest.Equal(t, "hold count", s.HoldCount(key), 0)
				locktest.IsError(t, locker.Unlock(t.Context(), "a"), rlock.ErrNotHeld)
			})
		})
	}
}

// A lock that was lost, and that nobody has taken again, is nothing to release, and nothing to renew.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		locker := newLocker(t, s.Client())
		locktest.NoError(t, locker.Lock(t.Context(), "a"))
		thief := s.Steal(key)
		locktest.IsError(t, locker.RenewLockLease(t.Context(), "a", time.Minute), rlock.ErrLost)
		locktest.NoError(t, locker.Unlock(t.Context(), "a"))
		locktest.Equal(t, "hold count", s.HoldCount(key), 1)
		thief.Unlock()
	})
}

// RenewLockLease makes the lease longer, up to the bound, and is not needed for the hold to go on.
func TestRenewLockLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		locker := newLocker(t, s.Client(), lockcertmagic.WithMaxLease(10*time.Minute))
		lease := func() time.Duration { return s.Redis().PTTL(t.Context(), key).Val() }
		locktest.IsError(t, locker.RenewLockLease(t.Context(), "a", time.Minute), rlock.ErrNotHeld)
		locktest.NoError(t, locker.Lock(t.Context(), "a"))
		locktest.NoError(t, locker.RenewLockLease(t.Context(), "a", 2*time.Minute))
		locktest.Equal(t, "lease", lease(), 2*time.Minute)
		locktest.NoError(t, locker.RenewLockLease(t.Context(), "a", 30*24*time.Hour))
		locktest.Equal(t, "lease", lease(), 10*time.Minute)
		time.Sleep(time.Hour)
		tryLock(t, newLocker(t, s.Client()), false)
		locktest.NoError(t, locker.Unlock(t.Context(), "a"))
	})
}

// When Redis does not answer no call says that it went well. What was to be released is released when Redis is back.
func TestWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		client := s.Client()
		locker := newLocker(t, client)
		locktest.NoError(t, locker.Lock(t.Context(), "a"))
		s.Stop(client)
		if locker.RenewLockLease(t.Context(), "a", time.Minute) == nil || locker.Unlock(t.Context(), "a") == nil || locker.Lock(t.Context(), "b") == nil {
			t.Error("a call returned no error")
		}
		if got, err := locker.TryLock(t.Context(), "b"); got || err == nil {
			t.Errorf("TryLock returned %v, %v", got, err)
		}
		s.Continue(client)
		s.Wait("the lock is free", func() bool { return s.HoldCount(key) == 0 })
	})
}

func TestBadInput(t *testing.T) {
	_, err := lockcertmagic.New(nil)
	locktest.ErrorSays(t, err, "rlock.New")
	client := rlocktest.New(t).Client()
	_, err = lockcertmagic.New(client, lockcertmagic.WithMaxLease(0))
	locktest.ErrorSays(t, err, "WithMaxLease(0s)", "10 ms")
	_, err = lockcertmagic.New(client, lockcertmagic.WithPrefix("tls:"))
	locktest.NoError(t, err)
}

// tells is a storage that tells when certmagic calls Lock: it has not found a certificate then.
type tells struct {
	certmagic.Storage
	locks chan string
}

func (s tells) Lock(ctx context.Context, name string) error {
	s.locks <- name
	return s.Storage.Lock(ctx, name)
}

// Two processes want the same certificate: one of them has it issued, and the other one finds it.
func TestTwoProcesses(t *testing.T) {
	realtime.Test(t, "a second process with a lease of 6 s")
	t.Parallel()
	server, folder := redistest.Real(t), t.TempDir()
	rdb := server.Client()
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	defer client.Close()
	obtained := locktest.StartSecond(t, server.Addr(), folder).Start("obtain", "example.test")
	locktest.NoError(t, rdb.BLPop(t.Context(), bound, "begun").Err())

	storage := tells{newLocker(t, client).Storage(&certmagic.FileStorage{Path: folder}), make(chan string, 1)}
	config, stop := configure(rdb, storage)
	defer stop()
	mine := locktest.Start(func() error { return config.ObtainCertSync(t.Context(), "example.test") })
	redistest.Await(t, bound, storage.locks, "this process wants the lock")
	locktest.NothingComes(t, mine, 100*time.Millisecond, "a certificate before it is issued")
	rdb.RPush(t.Context(), "end", "", "")
	locktest.Equal(t, "the other process", redistest.Await(t, bound, obtained, "the certificate of the other process"), "ok\t")
	locktest.NoError(t, redistest.Await(t, bound, mine, "the certificate of this process"))
	locktest.Equal(t, "issued a second time", rdb.LLen(t.Context(), "begun").Val(), 0)
}

// The lock of a process that has died is free at the end of its lease.
func TestDeadProcess(t *testing.T) {
	realtime.Test(t, "a second process with a lease of 6 s")
	t.Parallel()
	server := redistest.Real(t)
	client, err := rlock.New(server.Client())
	locktest.NoError(t, err)
	defer client.Close()
	locker, other := newLocker(t, client), locktest.StartSecond(t, server.Addr(), t.TempDir())
	other.Call("lock", "a")
	tryLock(t, locker, false)
	other.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	locktest.NoError(t, locker.Lock(ctx, "a"))
	locktest.NoError(t, locker.Unlock(ctx, "a"))
}
