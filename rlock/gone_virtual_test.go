package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// ways are the ways in which a client that waits is gone, until the test is over.
var ways = map[string]func(p *lineClient, over <-chan struct{}){
	"killed": func(p *lineClient, _ <-chan struct{}) { p.link.cut(true) },
	"frozen": func(p *lineClient, over <-chan struct{}) {
		p.spy.Wrap(func(_ []string, next func() error) error {
			<-over
			return next()
		})
	},
	"behind a link that hands on nothing": func(p *lineClient, _ <-chan struct{}) { p.link.silent.Store(true) },
}

// P24, P55: clients that were called, or asked for a sign of life, and are gone keep nobody waiting: a call that does not wait gets in with its second try, 200 ms
// after the first; one that waits for 50 ms with the third; one that waits for 350 ms with its first.
func TestP24_WhoIsGoneKeepsNobodyWaiting(t *testing.T) {
	tries := map[string]struct {
		wait  time.Duration
		tries int
	}{"without a wait": {0, 2}, "50 ms": {50 * time.Millisecond, 3}, "350 ms": {350 * time.Millisecond, 1}}
	for name, kind := range goneKinds {
		for way, goes := range ways {
			for _, n := range []int{1, 2, 6} {
				if n < 6 && way != "frozen" {
					continue
				}
				for how, call := range tries {
					for _, knows := range []bool{false, true} { // the client that comes has been in the line before
						t.Run(fmt.Sprintf("%s/%d %s/%s/%v", name, n, way, how, knows), func(t *testing.T) {
							redistest.Virtual(t, func(t *testing.T) {
								m, rdb := redistest.Pipe(t)
								isGone(t, m, rdb, kind, n, goes, call.wait, call.tries, knows)
							})
						})
					}
				}
			}
		}
	}
}

// A goneKind is a kind of hold that somebody has, and unlocks if unlocks is true when those who wait are gone, and what another client comes for then.
type goneKind struct {
	has, waits, comes func(ctx context.Context, c *rlock.Client, opts ...rlock.AcquireOption) (taken, error)
	unlocks           bool
}

var goneKinds = map[string]goneKind{
	"lock":                 {takeLock, takeLock, takeLock, true},
	"permit":               {takePermit, takePermit, takePermit, true},
	"write":                {takeWrite, takeWrite, takeWrite, true},
	"read behind readers":  {takeWrite, takeRead, takeRead, true},
	"read beside readers":  {takeRead, takeWrite, takeRead, false},
	"write behind writers": {takeRead, takeWrite, takeWrite, true},
}

func isGone(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, kind goneKind, n int, goes func(*lineClient, <-chan struct{}), wait time.Duration, tries int, knows bool) {
	ctx, holds, comes := context.Background(), newClient(t, rdb), lineNew(t, m)
	h, err := kind.has(ctx, holds)
	locktest.NoError(t, err)
	var gone []*lineClient
	end, stop := context.WithCancel(ctx)
	defer stop()
	for range n {
		p := lineNew(t, m)
		gone = append(gone, p)
		go func() { _, _ = kind.waits(end, p.c) }()
		locktest.Sleep(50 * time.Millisecond)
	}
	if knows {
		_, err := kind.comes(ctx, comes.c, rlock.Wait(40*time.Millisecond))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Sleep(50 * time.Millisecond)
	}
	for _, p := range gone {
		goes(p, end.Done())
	}
	if kind.unlocks {
		locktest.NoError(t, h.Unlock(ctx))
	}
	synctest.Wait()
	for i := range tries {
		began := time.Now()
		h, err := kind.comes(ctx, comes.c, rlock.Wait(wait))
		if err == nil {
			t.Logf("try %d, after %v", i+1, time.Since(began))
			locktest.NoError(t, h.Unlock(ctx))
			return
		}
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		time.Sleep(200*time.Millisecond - time.Since(began))
	}
	t.Errorf("not in %d tries", tries)
}

// P24: a client that is far from Redis, and was called, keeps its place however many others try, or ask for less than it needs to come.
func TestP24_AFarClientKeepsItsPlace(t *testing.T) {
	for name, kind := range goneKinds {
		if name == "read behind readers" {
			continue // where others read as soon as it does
		}
		t.Run(name, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				m, rdb := redistest.Pipe(t)
				ctx, near, tries, far := context.Background(), newClient(t, rdb), lineNew(t, m), lineNew(t, m)
				far.link.way = 125 * time.Millisecond
				for range 3 { // it learns how far it is
					h, err := kind.has(ctx, near)
					locktest.NoError(t, err)
					_, err = kind.waits(ctx, far.c, rlock.Wait(3*time.Second))
					locktest.IsError(t, err, rlock.ErrNotAcquired)
					locktest.NoError(t, h.Unlock(ctx))
					locktest.Sleep(5 * time.Second)
				}
				h, err := kind.has(ctx, near)
				locktest.NoError(t, err)
				got := make(chan error, 1)
				go func() {
					h, err := kind.waits(ctx, far.c)
					if err == nil {
						time.Sleep(time.Second)
						err = h.Unlock(ctx)
					}
					got <- err
				}()
				locktest.Sleep(5 * time.Second)
				time.AfterFunc(time.Second, func() { _ = h.Unlock(ctx) })
				for range 60 {
					for _, wait := range []time.Duration{0, 10 * time.Millisecond} {
						if name == "lock" && wait == 0 {
							continue // which takes a free lock whoever waits
						}
						if h, err := kind.comes(ctx, tries.c, rlock.Wait(wait)); err == nil {
							t.Fatalf("another one has passed it, %v", h.Unlock(ctx))
						}
						time.Sleep(10 * time.Millisecond)
					}
				}
				locktest.NoError(t, <-got)
			})
		})
	}
}
