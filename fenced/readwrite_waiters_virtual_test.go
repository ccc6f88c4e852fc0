package fenced_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// waitsToWrite is a client that waits to write. frozen stops what it sends, until the test ends.
func waitsToWrite(t *testing.T, m *miniredis.Miniredis) (got <-chan locktest.Result, frozen func()) {
	t.Helper()
	rdb, goesOn := redistest.PipeClient(t, m), make(chan struct{})
	spy := locktest.SpyOn(rdb)
	l := fenced.NewRWLock(newClient(t, rdb), "repo").Write()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	stopped := false
	t.Cleanup(func() {
		if stopped {
			close(goesOn)
		}
	})
	got = locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(ctx)) })
	locktest.Sleep(time.Second)
	return got, func() {
		stopped = true
		spy.Wrap(func(_ []string, next func() error) error {
			<-goesOn
			return next()
		})
	}
}

// P55: a client that waits to write and is frozen keeps those that come to read from a lock that others read for less than a second.
func TestP55_TheWriterIsFrozen(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		reads := hold(t, repo(t, m).Read())
		_, frozen := waitsToWrite(t, m)
		frozen()
		for range 2 { // the first one takes the writer out of the line
			began := time.Now()
			h := hold(t, repo(t, m).Read(), rlock.Wait(5*time.Second))
			if took := time.Since(began); took > time.Second {
				t.Errorf("a reader came after %v", took)
			}
			locktest.NoError(t, h.Unlock(t.Context()))
		}
		locktest.NoError(t, reads.Unlock(t.Context()))
	})
}

// P55, P50: a client that waits to write and is alive keeps its place, however long others read and wait to read. What that costs.
func TestP55_TheWriterIsAlive(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		reads := hold(t, repo(t, m).Read())
		written, _ := waitsToWrite(t, m)
		spy := locktest.SpyOn(rdb)
		second := fenced.NewRWLock(newClient(t, rdb), "repo").Read()
		read := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(second.LockAndGetToken(t.Context())) })
		locktest.Sleep(10 * time.Minute)
		if n := spy.Count("acquire"); n > 150 {
			t.Errorf("the second in the line has asked %d times in ten minutes", n)
		}
		line, err := m.ZMembers("fencelock_line:{repo}")
		locktest.NoError(t, err)
		locktest.Equal(t, "clients in the line", len(line), 2)
		for range 5 {
			_, _, err := repo(t, m).Read().TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		locktest.NoError(t, reads.Unlock(t.Context()))
		w := <-written
		locktest.NoError(t, w.Err)
		select {
		case <-read:
			t.Error("the reader came before the writer")
		default:
		}
	})
}

// P55: the first in the line is called, frozen, and an outsider writes before it is late. The second looks at its times alone.
func TestP55_TheWriterIsFrozenAndAnotherWrites(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		writes := hold(t, repo(t, m).Write())
		_, frozen := waitsToWrite(t, m)
		spy := locktest.SpyOn(rdb)
		reader := fenced.NewRWLock(newClient(t, rdb), "repo").Read()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		read := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(reader.LockAndGetToken(ctx)) })
		locktest.Sleep(10 * time.Second)
		frozen()
		locktest.NoError(t, writes.Unlock(t.Context()))
		m.HSet("repo", "mode", "write", "1d8a7b4a-0b0b-4f6e-9f5e-0d5f4c5b6a7e:41:write", "1")
		m.SetTTL("repo", time.Hour)
		spy.Reset()
		locktest.Sleep(time.Minute)
		if n := spy.Count("acquire"); n < 2 || n > 30 {
			t.Errorf("the second has asked %d times in a minute", n)
		}
		cancel()
		<-read
	})
}

// A call that is to read asks once beside all others, and then in the queue. Where Redis has said that somebody writes, and owes the second answer, the
// lock is not to be had.
func TestReaderWithoutTheSecondAnswer(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		writes := hold(t, repo(t, m).Write())
		var asked atomic.Int32
		locktest.SpyOn(rdb).Wrap(func(_ []string, next func() error) error {
			err := next()
			if asked.Add(1) > 1 {
				locktest.Sleep(50 * time.Millisecond)
			}
			return err
		})
		read := fenced.NewRWLock(newClient(t, rdb), "repo").Read()
		_, _, err := read.TryLockAndGetToken(t.Context(), 10*time.Millisecond, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "attempts", asked.Load(), 2)
		locktest.NoError(t, writes.Unlock(t.Context()))
	})
}
