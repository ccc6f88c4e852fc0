package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P3: a server that stood still for longer than a lease runs, when it goes on, what lay in its sockets: acquires that were given up long ago.
// A second later all locks can be taken.
func TestP3_AFreezeLongerThanTheLease(t *testing.T) {
	for _, c := range []struct {
		freeze, lease  time.Duration
		callers, locks int
		calling        time.Duration // so long they call again and again
	}{
		{freeze: 30 * time.Second, lease: 10 * time.Second, callers: 20, locks: 10, calling: 3 * time.Second},
		{freeze: 30 * time.Second, lease: 10 * time.Second, callers: 20, locks: 10, calling: 30 * time.Second},
		{freeze: 25 * time.Second, lease: 5 * time.Second, callers: 20, locks: 10, calling: 3 * time.Second},
		{freeze: time.Minute, lease: 30 * time.Second, callers: 200, locks: 50, calling: 3 * time.Second},
		{freeze: time.Minute, lease: 30 * time.Second, callers: 200, locks: 50, calling: time.Minute},
		{freeze: time.Hour, lease: 30 * time.Second, callers: 10, locks: 10, calling: 3 * time.Second},
	} {
		t.Run(fmt.Sprintf("%v with a lease of %v, calls for %v", c.freeze, c.lease, c.calling), func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				m, direct := redistest.Pipe(t)
				var gate memredis.Gate
				client := newClient(t, redistest.GatedClient(t, m, &gate), rlock.WithLease(c.lease))
				name := func(i int) string { return fmt.Sprint("lock-", i%c.locks) }
				useOnce(t, client)
				gate.Shut()
				ctx, cancel := context.WithTimeout(t.Context(), c.calling)
				defer cancel()
				var calls []<-chan error
				for i := range c.callers {
					calls = append(calls, locktest.Start(func() error {
						for l := rlock.NewLock(client, name(i)); ctx.Err() == nil; {
							within, cancel := context.WithTimeout(ctx, time.Duration(1+i%5)*time.Second)
							held, err := l.Lock(within)
							cancel()
							if err == nil {
								return fmt.Errorf("a server that stands still has given %v", held)
							}
						}
						return nil
					}))
				}
				for _, call := range calls {
					locktest.NoError(t, <-call)
				}
				time.Sleep(c.freeze - c.calling)
				gate.Open()
				locktest.Sleep(time.Second)
				taken := 0
				for i := range c.locks {
					if m.Exists(name(i)) {
						taken++
					}
				}
				locktest.Equal(t, "locks that nobody has, and that are taken a second after the server goes on", taken, 0)
				other := newClient(t, direct)
				for i := range c.locks {
					l := rlock.NewLock(other, name(i))
					locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
				}
				locktest.Sleep(c.lease + 10*time.Second)
				locktest.Equal(t, "books", client.Books(), "")
			})
		})
	}
}

// useOnce takes and releases locks at once, so that there are connections, and the server knows the scripts.
func useOnce(t *testing.T, c *rlock.Client) {
	t.Helper()
	var calls []<-chan error
	for i := range 50 {
		calls = append(calls, locktest.Start(func() error {
			return rlock.NewLock(c, fmt.Sprint("once-", i)).Do(t.Context(), func(context.Context) error { return nil })
		}))
	}
	for _, call := range calls {
		locktest.NoError(t, <-call)
	}
}

// P3, P15: a handoff that lay in the socket of a server that stood still gives the lock to a waiter that has given up long ago.
func TestP15_AHandoffToAServerThatStandsStill(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, _ := redistest.Pipe(t)
		var gate memredis.Gate
		rdb := redistest.GatedClient(t, m, &gate)
		locktest.NoError(t, rdb.ScriptLoad(t.Context(), locktest.ScriptText("transfer")).Err())
		const lease = 10 * time.Second
		client := newClient(t, rdb, rlock.WithLease(lease))
		useOnce(t, client)
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(client, "l")
		held, err := l.LockLease(t.Context(), time.Hour)
		locktest.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		waiter := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
		locktest.Sleep(time.Millisecond) // a run of handoffs is short
		gate.Shut()
		if err := l.Unlock(held); err == nil {
			t.Error("Unlock is confirmed by a server that stands still")
		}
		locktest.IsError(t, (<-waiter).Err, context.DeadlineExceeded)
		locktest.Equal(t, "handoffs", spy.Count("transfer"), 1)
		locktest.Sleep(3 * lease)
		gate.Open()
		locktest.Sleep(time.Second)
		if m.Exists("l") {
			t.Errorf("the lock is taken, for %v", m.TTL("l"))
		}
		locktest.Sleep(lease + time.Minute)
		locktest.Equal(t, "books", client.Books(), "")
	})
}
