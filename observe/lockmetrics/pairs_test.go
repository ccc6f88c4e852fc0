package lockmetrics_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// gauges are what HoldActive, WaiterActive and ReleaseDelayed show, and what HoldOldest and WaiterOldest are told by.
type gauges struct {
	openHolds                         lockmetrics.Open[uint64]
	openWaits                         lockmetrics.Open[time.Time]
	holds, waiters, releases          atomic.Int64
	allHolds, allWaiters, allReleases atomic.Int64 // ever
}

func (g *gauges) option() rlock.Option {
	up := func(gauge, all *atomic.Int64) { gauge.Add(1); all.Add(1) }
	return rlock.WithTrace(&locktrace.Trace{
		WaitStarted: func(e locktrace.WaitStarted) {
			up(&g.waiters, &g.allWaiters)
			g.openWaits.Begin(e.Began, e.Began)
		},
		AcquireDone: func(e locktrace.AcquireDone) {
			if e.Contended {
				g.waiters.Add(-1)
				g.openWaits.End(e.Began)
			}
			if lockmetrics.Begins(e) {
				up(&g.holds, &g.allHolds)
				g.openHolds.Begin(e.Hold, e.Began.Add(e.Took))
			}
		},
		HoldDone: func(e locktrace.HoldDone) {
			g.holds.Add(-1)
			g.openHolds.End(e.Hold)
		},
		ReleaseDelayed: func(locktrace.ReleaseDelayed) { up(&g.releases, &g.allReleases) },
		ReleaseEnded:   func(locktrace.ReleaseEnded) { g.releases.Add(-1) },
	})
}

func (g *gauges) want(t *testing.T, when string, holds, waiters, releases int64) {
	t.Helper()
	if h, w, r := g.holds.Load(), g.waiters.Load(), g.releases.Load(); h != holds || w != waiters || r != releases {
		t.Errorf("%s: %d holds, %d waiters, %d releases behind, want %d, %d, %d", when, h, w, r, holds, waiters, releases)
	}
	if h, w := g.openHolds.Oldest(), g.openWaits.Oldest(); holds == 0 && h != 0 || waiters == 0 && w != 0 {
		t.Errorf("%s: the oldest hold is %v old, the oldest wait %v", when, h, w)
	}
}

// Each way in which a hold, a wait or a delayed release can end takes it off its gauge, and Close takes off what is left.
func TestGaugesComeBack(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var g gauges
		c, err := rlock.New(rdb, g.option(), rlock.WithUnlockTimeout(time.Second))
		locktest.NoError(t, err)
		other, err := rlock.New(redistest.PipeClient(t, m))
		locktest.NoError(t, err)
		defer other.Close()
		others, err := rlock.NewLock(other, "taken").Lock(t.Context())
		locktest.NoError(t, err)
		lock := func(name string, lease time.Duration) context.Context {
			t.Helper()
			held, err := rlock.NewLock(c, name).LockLease(context.Background(), lease)
			locktest.NoError(t, err)
			return held
		}
		ctx, cancel := context.WithCancel(t.Context())
		taken := rlock.NewLock(c, "taken")
		waits := []<-chan error{
			locktest.Start(func() error { _, err := taken.TryLock(t.Context(), time.Second, 0); return err }),
			locktest.Start(func() error { _, err := taken.Lock(ctx); return err }),
			locktest.Start(func() error { _, err := taken.Lock(t.Context()); return err }),
		}
		_, err = taken.TryLock(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Sleep(time.Millisecond)
		g.want(t, "three wait, one does not", 0, 3, 0)
		locktest.Sleep(time.Second)
		locktest.IsError(t, <-waits[0], rlock.ErrNotAcquired)
		g.want(t, "the first has given up", 0, 2, 0)
		cancel()
		locktest.IsError(t, <-waits[1], context.Canceled)
		g.want(t, "the second was canceled", 0, 1, 0)

		outer := lock("reentered", 0)
		inner, err := rlock.NewLock(c, "reentered").Lock(outer)
		locktest.NoError(t, err)
		g.want(t, "a re-entry is no hold", 1, 1, 0)
		locktest.NoError(t, rlock.NewLock(c, "reentered").Unlock(inner))
		locktest.NoError(t, rlock.NewLock(c, "reentered").Unlock(outer))
		g.want(t, "unlocked", 0, 1, 0)

		short := lock("short", time.Second)
		lock("short and dropped", time.Second)
		lock("dropped", 0)
		deleted := lock("deleted", 0)
		forced := lock("forced", 0)
		g.want(t, "five holds", 5, 1, 0)
		m.Del("deleted")
		_, err = rlock.NewLock(c, "forced").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		g.want(t, "one is forced open", 4, 1, 0)
		for range 9 {
			runtime.GC()
			locktest.Sleep(10 * time.Second)
		}
		g.want(t, "all are over", 0, 1, 0)
		runtime.KeepAlive([]context.Context{short, deleted, forced})

		behind := lock("behind", 0)
		kept := lock("kept", 0)
		m.SetError("LOADING away")
		if rlock.NewLock(c, "behind").Unlock(behind) == nil {
			t.Error("the release was confirmed")
		}
		locktest.Sleep(time.Millisecond)
		g.want(t, "one is kept, one is behind", 1, 1, 1)
		locktest.NoError(t, c.Close())
		locktest.IsError(t, <-waits[2], rlock.ErrClosed)
		locktest.Sleep(time.Second)
		g.want(t, "closed", 0, 0, 0)
		runtime.KeepAlive([]context.Context{kept, others})
		m.SetError("")
	})
}

// What many callers do is taken off the gauges too, where connections break all the time and the client is closed under them.
func TestGaugesComeBackFromAStorm(t *testing.T) {
	var g gauges
	proxy := redistest.NewProxy(t, redistest.Start(t))
	var clients []*rlock.Client
	for range 2 {
		c, err := rlock.New(redistest.Client(t, proxy.Addr()), g.option(), rlock.WithUnlockTimeout(50*time.Millisecond))
		locktest.NoError(t, err)
		clients = append(clients, c)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			l := fenced.NewLock(clients[i%2], []string{"a", "b"}[i/2%2])
			for n := 0; ; n++ {
				life := time.Hour
				if n%4 == 0 {
					life = time.Duration(1+rand.IntN(20)) * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(context.Background(), life)
				wait := []time.Duration{0, 5 * time.Millisecond, time.Second}[rand.IntN(3)]
				lease := time.Duration(n%2) * 200 * time.Millisecond
				held, _, err := l.TryLockAndGetToken(ctx, wait, lease)
				switch {
				case err == nil && (lease == 0 || n%7 != 0):
					_ = l.Unlock(held) // the connection may be away
				case err == nil && n%3 == 0:
					_, _ = l.ForceUnlock(ctx)
				} // otherwise the hold is dropped
				cancel()
				if errors.Is(err, rlock.ErrClosed) {
					return
				}
			}
		})
	}
	for round := range 6 {
		holds, waits := g.allHolds.Load(), g.allWaiters.Load()
		redistest.Eventually(t, time.Minute, func() bool { return g.allHolds.Load() > holds+20 && g.allWaiters.Load() > waits+20 }, "round %d", round)
		proxy.Cut()
	}
	for _, c := range clients {
		locktest.NoError(t, c.Close())
	}
	all.Wait()
	redistest.Eventually(t, time.Minute, func() bool { return g.releases.Load() == 0 }, "the last release is told of")
	g.want(t, "closed", 0, 0, 0)
	t.Logf("%d holds, %d waits, %d releases behind", g.allHolds.Load(), g.allWaiters.Load(), g.allReleases.Load())
}
