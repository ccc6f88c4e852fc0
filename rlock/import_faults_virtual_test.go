package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P58: an import that replicas confirm late is repeated, as to give up would release what another process works under.
func TestP58_AnImportIsConfirmedLate(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		locktest.NoError(t, rdb.Ping(t.Context()).Err())
		var lacks atomic.Int64
		m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
			if cmd != "WAIT" {
				return false
			}
			c.WriteInt(map[bool]int{true: 0, false: 1}[lacks.Add(-1) >= 0])
			return true
		})
		from := newClient(t, rdb, rlock.WithReplicas(1, time.Second))
		to := newClient(t, redistest.PipeClient(t, m), rlock.WithReplicas(1, time.Second))
		h, text := export(t, fenced.NewLock(from, "l"))
		lacks.Store(3)
		next, err := fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		locktest.Equal(t, "token", next.Token(), h.Token()+1)
		locktest.NoError(t, next.Unlock(t.Context()))
	})
}

// Inv6: an import takes no longer than WithPatience, however its attempts fail.
func TestInv6_AnImportKeepsItsBound(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, there := newClient(t, rdb), redistest.PipeClient(t, m)
		began, silent := time.Now(), make(chan struct{})
		locktest.SpyOn(there).Wrap(func(ops []string, next func() error) error {
			switch {
			case !slices.Contains(ops, "import"):
				return next()
			case time.Since(began) < 9*time.Second:
				time.Sleep(time.Millisecond)
			default:
				<-silent
			}
			return errors.New("unexpected EOF")
		})
		_, text := export(t, fenced.NewLock(from, "l"))
		_, err := fenced.NewLock(newClient(t, there), "l").Import(t.Context(), text)
		if took := time.Since(began); err == nil || took > 10100*time.Millisecond {
			t.Errorf("Import says %v after %v", err, took)
		}
		close(silent)
	})
}

// P4, P58: an Export that fails changes nothing: the hold that is dropped then is not renewed.
func TestP58_AnExportThatFails(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		func() {
			h := acquire(t, t.Context(), l)
			inner, err := l.Acquire(h.Context(), rlock.Reenter())
			locktest.NoError(t, err)
			locktest.NoError(t, inner.Unlock(t.Context()))
			_, err = inner.Export()
			locktest.IsError(t, err, rlock.ErrUnlocked)
		}()
		for range 7 {
			runtime.GC()
			runtime.GC()
			locktest.Sleep(10 * time.Second)
		}
		locktest.Equal(t, "the lock is taken", m.Exists("l"), false)
	})
}

// P58: a client follows all holds that it has exported, also those with leases of their own.
func TestP58_ManyExportedHolds(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		var text string
		var h *rlock.Hold
		for i := range 1002 {
			h = acquire(t, t.Context(), rlock.NewLock(from, "l"+strconv.Itoa(i)), rlock.Lease(time.Hour))
			var err error
			text, err = h.Export()
			locktest.NoError(t, err)
		}
		locktest.Sleep(time.Second)
		_, err := rlock.NewLock(to, "l1001").Import(t.Context(), text)
		locktest.NoError(t, err)
		synctest.Wait()
		locktest.IsError(t, h.Err(), rlock.ErrImported)
	})
}

// P11, P58: a lock that was taken within a hold which is imported is not renewed any more.
func TestP58_AnInnerLockOfAnImportedHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		h, text := export(t, fenced.NewLock(from, "l"))
		inner, err := rlock.NewLock(from, "x").Lock(h.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		_, err = fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		locktest.Sleep(time.Minute)
		locktest.IsError(t, inner.Err(), rlock.ErrImported)
		locktest.Equal(t, "the inner lock is taken", m.Exists("x"), false)
	})
}

// Inv8, P58: who waits as Redisson does, for as long as the lease was, is told where an import makes it shorter.
func TestP58_AnImportWithAShorterLease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		java := redistest.PipeClient(t, m).Subscribe(t.Context(), lockChannel)
		defer java.Close()
		_, err := java.Receive(t.Context())
		locktest.NoError(t, err)
		releases := func() (n int) {
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				got, err := java.ReceiveMessage(ctx)
				if cancel(); err != nil {
					return n
				}
				if got.Payload == "0" {
					n++
				}
			}
		}
		_, text := export(t, fenced.NewLock(from, "l"), rlock.Lease(time.Hour))
		next, err := fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		locktest.Equal(t, "it is told", releases(), 1)
		text, err = next.Export()
		locktest.NoError(t, err)
		_, err = fenced.NewLock(to, "l").Import(t.Context(), text, rlock.Lease(time.Hour))
		locktest.NoError(t, err)
		locktest.Equal(t, "it is told", releases(), 0)
	})
}

// P58: the exporting client's own import ends the old hold at once, though its channel is not confirmed yet.
func TestP58_ImportRightAfterExport(t *testing.T) {
	for name, of := range movables {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
				var log locktest.Log
				c := newClient(t, rdb, rlock.WithLogger(log.Logger()))
				h, text := export(t, of(c))
				next, err := of(c).Import(t.Context(), text)
				locktest.NoError(t, err)
				locktest.IsError(t, h.Err(), rlock.ErrImported)
				locktest.NoError(t, next.Unlock(t.Context()))
				locktest.Equal(t, "warnings", log.Count("WARN"), 0)
			})
		})
	}
}

// A level that reads within one's own write lock is one of a hold that can be exported by its writing level alone.
func TestExportOfAReadingLevel(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		rw := fenced.NewRWLock(newClient(t, rdb), "l")
		w, err := rw.Write().Acquire(t.Context())
		locktest.NoError(t, err)
		r, err := rw.Read().Acquire(w.Context(), rlock.Reenter())
		locktest.NoError(t, err)
		_, err = r.Export()
		locktest.ErrorSays(t, err, "that reads")
		_, err = w.Export()
		locktest.NoError(t, err)
	})
}
