package limits_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// A site is a server with limits, and what its clients log.
type site struct {
	t       *testing.T
	connect func() redis.UniversalClient
	nodes   func() []redis.UniversalClient // three servers of their own, with the limits
	looks   time.Duration                  // a call that waits looks for the lock meanwhile
	log     locktest.Log
}

func (s *site) client(opts ...rlock.Option) *rlock.Client {
	c, err := rlock.New(s.connect(), append(opts, rlock.WithLogger(s.log.Logger()))...)
	locktest.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// features are what a user may do: each does it, and returns the first error.
var features = []struct {
	name string
	try  func(ctx context.Context, s *site) error
}{
	{"lock", func(ctx context.Context, s *site) error {
		c, all := s.client(), make(chan error)
		for i := range 20 { // some travel together
			l := rlock.NewLock(c, fmt.Sprint("l", i))
			go func() { all <- l.Do(ctx, func(ctx context.Context) error { return l.Do(ctx, l.Check) }) }()
		}
		var err error
		for range 20 {
			err = cmp.Or(err, <-all)
		}
		return err
	}},
	{"line", func(ctx context.Context, s *site) error {
		return handed(ctx, s, func(int) (*fenced.Hold, error) { return fenced.NewLock(s.client(), "l").Acquire(ctx) })
	}},
	{"semaphore", func(ctx context.Context, s *site) error {
		permit := func(int) (*fenced.Hold, error) { return fenced.NewSemaphore(s.client(), "s", 2).Acquire(ctx) }
		first, err := permit(0)
		if err != nil {
			return err
		}
		return errors.Join(handed(ctx, s, permit), first.Unlock(ctx))
	}},
	{"read-write lock", func(ctx context.Context, s *site) error {
		return handed(ctx, s, func(n int) (*fenced.Hold, error) {
			side := []func(*fenced.RWLock) *fenced.Lock{(*fenced.RWLock).Read, (*fenced.RWLock).Write, (*fenced.RWLock).Read}[n]
			return side(fenced.NewRWLock(s.client(), "rw", fenced.WithClockFloor())).Acquire(ctx)
		})
	}},
	{"WithReplicas", func(ctx context.Context, s *site) error {
		return rlock.NewLock(s.client(rlock.WithReplicas(1, 100*time.Millisecond)), "l").Do(ctx, func(context.Context) error { return nil })
	}},
	{"presence", func(ctx context.Context, s *site) error {
		return rlock.NewLock(s.client(rlock.WithPresence("service")), "l").Do(ctx, func(ctx context.Context) error {
			time.Sleep(1500 * time.Millisecond) // it is written again after a second
			in, err := inspect.New(s.connect())
			if err != nil {
				return err
			}
			known, err := in.Known(ctx)
			if err == nil && (len(known) != 1 || known[0].Holder == nil) {
				err = fmt.Errorf("known are %+v", known)
			}
			return err
		})
	}},
	{"inspect", func(ctx context.Context, s *site) error {
		in, err := inspect.New(s.connect())
		if err != nil {
			return err
		}
		return rlock.NewLock(s.client(), "l").Do(ctx, func(ctx context.Context) error {
			for l, err := range in.Scan(ctx, "*", inspect.Pace{}) {
				if err != nil || l.Holder == nil {
					return fmt.Errorf("found is %+v, %w", l, err)
				}
			}
			if _, err := in.Contended(ctx); err != nil {
				return err
			}
			_, err := in.Listeners(ctx, "l")
			return err
		})
	}},
	{"guard", func(ctx context.Context, s *site) error {
		g, err := redisguard.New(s.connect())
		if err != nil {
			return err
		}
		if err := g.Writer("{account}", 2).Do(ctx, "SET", "{account}:balance", 1).Err(); err != nil {
			return err
		}
		if g.Writer("{account}", 1).Do(ctx, "SET", "{account}:balance", 2).Err() == nil {
			return errors.New("a stale write")
		}
		return g.Writer("{account}", 3).Once("id").Do(ctx, "INCR", "{account}:balance").Err()
	}},
	{"quorum", func(ctx context.Context, s *site) error {
		nodes := s.nodes()
		time.Sleep(3500 * time.Millisecond) // they are up for longer than a lease, and count
		c, err := quorum.New(nodes, rlock.WithLogger(s.log.Logger()), rlock.WithLease(time.Second))
		if err != nil {
			return err
		}
		defer c.Close()
		return fenced.NewLock(c, "l").Do(ctx, func(context.Context, int64) error { return nil })
	}},
}

// handed has two callers wait for what a first one has. A release that somebody hears of late is an error, and one that nobody looks for within a
// second fails the test.
func handed(ctx context.Context, s *site, acquire func(n int) (*fenced.Hold, error)) error {
	hold, err := acquire(0)
	if err != nil {
		return err
	}
	type got struct {
		hold *fenced.Hold
		err  error
	}
	waiters := make(chan got, 2)
	for n := range cap(waiters) {
		go func() {
			h, err := acquire(n + 1)
			waiters <- got{h, err}
		}()
		time.Sleep(s.looks)
	}
	var late error
	for range cap(waiters) {
		began := time.Now()
		if err := hold.Unlock(ctx); err != nil {
			return err
		}
		next := <-waiters
		if next.err != nil {
			return next.err
		}
		switch took := time.Since(began); {
		case took > redistest.Bound(began, 1100*time.Millisecond):
			s.t.Errorf("%v: handed over after %v", s.log.String(), took)
		case took > redistest.Bound(began, 200*time.Millisecond):
			late = fmt.Errorf("%w after %v", errLate, took)
		}
		hold = next.hold
		time.Sleep(300 * time.Millisecond)
	}
	return errors.Join(late, hold.Unlock(ctx))
}

var errLate = errors.New("handed over")
