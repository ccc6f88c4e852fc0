package fenced_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// slowly makes each command take so long.
func slowly(rdb *redis.Client, d time.Duration) {
	rdb.AddHook(locktest.Hook(func(_ context.Context, _ redis.Cmder, send func() error) error {
		time.Sleep(d)
		return send()
	}))
}

// P52: calls of one holder that read beside each other have levels of one hold, whichever comes first and ends first.
func TestP52_CallsOfOneHolderReadBesideEachOther(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewRWLock(newClient(t, rdb), "repo")
		holder := rlock.NewHolder(t.Context())
		a, _, err := l.Read().LockAndGetToken(holder)
		locktest.NoError(t, err)
		b, _, err := l.Read().TryLockAndGetToken(holder, 0, 0)
		locktest.NoError(t, err)
		fields, err := m.HKeys("repo")
		locktest.NoError(t, err)
		locktest.Equal(t, "mode, phase and the holds in Redis", len(fields), 3)
		locktest.NoError(t, l.Read().Unlock(a))
		locktest.NoError(t, l.Read().Check(b))
		locktest.NoError(t, l.Read().Unlock(b))
		locktest.Equal(t, "the lock is there", m.Exists("repo"), false)

		slowly(rdb, 5*time.Millisecond)
		var done []<-chan error
		for i := range 5 {
			done = append(done, locktest.Start(func() error {
				return l.Read().Do(holder, func(ctx context.Context, _ int64) error {
					time.Sleep(time.Duration(1+i%3) * time.Second)
					return ctx.Err()
				})
			}))
		}
		for _, one := range done {
			locktest.NoError(t, <-one)
		}
		locktest.Sleep(time.Second) // what the other calls had taken is released
		locktest.DeepEqual(t, "keys", m.Keys(), []string{"redisson_lock_token:{repo}"})
	})
}

// P49: a writer unlocks, and all calls of one client that wait to read do so after a few round trips, not one after the other.
func TestP49_AllCallsOfAClientReadAtOnce(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewRWLock(newClient(t, rdb), "repo")
		locktest.NoError(t, hold(t, l.Read()).Unlock(t.Context())) // the scripts are loaded
		writes := hold(t, repo(t, m).Write())
		slowly(rdb, 5*time.Millisecond)
		all := make(chan struct{})
		var done []<-chan error
		for range 100 {
			done = append(done, locktest.Start(func() error {
				h, err := l.Read().Acquire(t.Context(), rlock.Wait(2*time.Second))
				if err != nil {
					return err
				}
				<-all // nobody reads for a moment alone
				return h.Unlock(t.Context())
			}))
		}
		locktest.Sleep(time.Second)
		locktest.NoError(t, writes.Unlock(t.Context()))
		locktest.Sleep(200 * time.Millisecond) // 40 round trips
		holds, _ := fields(t, m)
		locktest.Equal(t, "calls that read", len(holds), len(done))
		close(all)
		for _, one := range done {
			locktest.NoError(t, <-one)
		}
	})
}

// Inv12: a call whose wait ends before Redis has answered that it may read as well was kept from the
// lock by others, and not by silence.
func TestInv12_TheWaitEndsAsOthersRead(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := fenced.NewRWLock(newClient(t, rdb), "repo")
		locktest.NoError(t, hold(t, l.Read()).Unlock(t.Context())) // the scripts are loaded
		writes := hold(t, repo(t, m).Write())
		slowly(rdb, 100*time.Millisecond)
		first := locktest.Start(func() error { _, err := l.Read().Acquire(t.Context(), rlock.Wait(time.Minute)); return err })
		locktest.Sleep(500 * time.Millisecond)
		second := locktest.Start(func() error { _, err := l.Read().Acquire(t.Context(), rlock.Wait(2*time.Second)); return err })
		locktest.Sleep(1850 * time.Millisecond)
		locktest.NoError(t, writes.Unlock(t.Context()))
		locktest.NoError(t, <-first)
		locktest.IsError(t, <-second, rlock.ErrNotAcquired)
	})
}

// Inv6, Inv12: a wait to read ends in time where Redis is silent, and says so.
func TestInv6_AWaitToReadWhereRedisIsSilent(t *testing.T) {
	for _, wait := range []time.Duration{100 * time.Millisecond, 600 * time.Millisecond} {
		locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
			l := fenced.NewRWLock(newClient(t, rdb), "repo")
			slowly(rdb, 3*time.Second)
			began := time.Now()
			_, _, err := l.Read().TryLockAndGetToken(t.Context(), wait, 0)
			locktest.IsError(t, err, context.DeadlineExceeded)
			locktest.IsNotError(t, err, rlock.ErrNotAcquired)
			if took := time.Since(began); took != wait {
				t.Errorf("it took %v of %v", took, wait)
			}
			locktest.Sleep(time.Minute)
		})
	}
}

// P52: what a level that reads within a hold that writes says of itself, and who may unlock which.
func TestP52_ReadWithinAWrite(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		var ways []locktrace.Way
		c, err := rlock.New(rdb, rlock.WithTrace(&locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) { ways = append(ways, e.By) }}))
		locktest.NoError(t, err)
		defer c.Close()
		l := fenced.NewRWLock(c, "repo")
		writes, _, err := l.Write().LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		err = l.Read().Unlock(writes)
		locktest.IsError(t, err, rlock.ErrNotHeld)
		locktest.ErrorSays(t, err, "by the write lock")
		locktest.NoError(t, l.Write().Check(writes))
		reads, _, err := l.Read().LockAndGetToken(writes)
		locktest.NoError(t, err)
		is, err := l.Read().IsHeld(reads)
		locktest.NoError(t, err)
		locktest.Equal(t, "it reads", is, true)
		n, err := l.Read().HoldCount(reads)
		locktest.NoError(t, err)
		locktest.Equal(t, "levels", n, 2)
		err = l.Write().Unlock(reads)
		locktest.IsError(t, err, rlock.ErrNotHeld)
		locktest.ErrorSays(t, err, "by the read lock")
		locktest.NoError(t, l.Read().Check(reads))
		locktest.NoError(t, l.Read().Unlock(reads))
		locktest.NoError(t, l.Write().Unlock(writes))
		locktest.DeepEqual(t, "how they were taken", ways, []locktrace.Way{locktrace.FromRedis, locktrace.Reentry})
	})
}

// A read-write lock without tokens is the same lock; a hold of it has none to give.
func TestReadWriteWithoutTokens(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		plain, l := rlock.NewRWLock(c, "repo"), fenced.NewRWLock(c, "repo")
		locktest.Equal(t, "name", plain.Name(), "repo")
		reads, err := plain.Read().Lock(t.Context())
		locktest.NoError(t, err)
		_, _, err = l.Write().TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		_, _, err = l.Read().LockAndGetToken(reads)
		locktest.ErrorSays(t, err, "without a token")
		beside, err := l.Read().Acquire(t.Context())
		locktest.NoError(t, err)
		if beside.Token() == 0 {
			t.Error("it has no token")
		}
		locktest.NoError(t, beside.Unlock(t.Context()))
		locktest.NoError(t, plain.Read().Unlock(reads))
		locktest.NoError(t, plain.Write().Do(t.Context(), func(context.Context) error { return nil }))
		locktest.Equal(t, "the lock is there", m.Exists("repo"), false)
	})
}

// DoAll with both sides of a read-write lock would wait for itself, and so would a plain lock of its name. It says so before it asks Redis.
func TestDoAllWithBothSides(t *testing.T) {
	client := newClient(t, redistest.New(t))
	page := fenced.NewRWLock(client, "page")
	for _, locks := range [][]*fenced.Lock{{page.Read(), page.Write()}, {page.Write(), page.Read()}} {
		err := fenced.DoAll(t.Context(), locks, func(context.Context, []int64) error { return nil })
		locktest.ErrorSays(t, err, "both sides", `"page"`)
	}
	locktest.NoError(t, fenced.DoAll(t.Context(), []*fenced.Lock{page.Write(), page.Write()}, func(context.Context, []int64) error { return nil }))
	plain := fenced.NewLock(client, "page")
	err := fenced.DoAll(t.Context(), []*fenced.Lock{page.Read(), plain}, func(context.Context, []int64) error { return nil })
	locktest.ErrorSays(t, err, "a plain lock and a read-write lock", `"page"`)
}
