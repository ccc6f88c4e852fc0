package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// tracer keeps what a trace was told.
type tracer struct {
	mu     sync.Mutex
	events []any
	tells  func() // called with each event
}

func (tr *tracer) note(e any) {
	tr.mu.Lock()
	tr.events = append(tr.events, e)
	tr.mu.Unlock()
	if tr.tells != nil {
		tr.tells()
	}
}

// forget drops what was told.
func (tr *tracer) forget() {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	clear(tr.events)
	tr.events = nil
}

// option is a trace that notes everything.
func (tr *tracer) option() rlock.Option {
	return rlock.WithTrace(&locktrace.Trace{
		WaitStarted:         func(e locktrace.WaitStarted) { tr.note(e) },
		AcquireDone:         func(e locktrace.AcquireDone) { tr.note(e) },
		HoldDone:            func(e locktrace.HoldDone) { tr.note(e) },
		RenewalDone:         func(e locktrace.RenewalDone) { tr.note(e) },
		SubscriptionChanged: func(e locktrace.SubscriptionChanged) { tr.note(e) },
		ReleaseDelayed:      func(e locktrace.ReleaseDelayed) { tr.note(e) },
		ReleaseEnded:        func(e locktrace.ReleaseEnded) { tr.note(e) },
	})
}

// told are the events of one kind so far.
func told[E any](tr *tracer) (all []E) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, e := range tr.events {
		if e, is := e.(E); is {
			all = append(all, e)
		}
	}
	return all
}

// one is the event of this kind, the only one.
func one[E any](t *testing.T, tr *tracer) (e E) {
	t.Helper()
	all := told[E](tr)
	if len(all) != 1 {
		t.Fatalf("%d events of type %T, want one: %+v", len(all), e, all)
	}
	return all[0]
}

// An acquire of a free lock, a re-entry, and the hold's end.
func TestTraceOfAHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		l := fenced.NewLock(newClient(t, rdb, tr.option()), "l")
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "mine")
		outer, _, err := l.LockAndGetToken(ctx)
		locktest.NoError(t, err)
		e := one[locktrace.AcquireDone](t, &tr)
		fields, _ := m.HKeys("l")
		if e.Lock != "l" || e.Context.Value(key{}) != "mine" || e.By != locktrace.FromRedis || e.Contended || e.Attempts != 1 || e.Token != 1 || e.Err != nil ||
			e.Hold == 0 || !slices.Contains(fields, e.Field) || !strings.HasPrefix(e.Field, e.Client+":") || len(told[locktrace.WaitStarted](&tr)) != 0 {
			t.Errorf("the acquire: %+v; the lock has the fields %v", e, fields)
		}
		inner, _, err := l.LockAndGetToken(outer)
		locktest.NoError(t, err)
		again := told[locktrace.AcquireDone](&tr)[1]
		if again.By != locktrace.Reentry || again.Hold != e.Hold || again.Field != e.Field || again.Token != 2 {
			t.Errorf("the re-entry: %+v", again)
		}
		locktest.Sleep(5 * time.Second)
		locktest.NoError(t, l.Unlock(inner))
		locktest.Equal(t, "ends after the inner unlock", len(told[locktrace.HoldDone](&tr)), 0)
		locktest.NoError(t, l.Unlock(outer))
		end := one[locktrace.HoldDone](t, &tr)
		if end.Lock != "l" || end.Client != e.Client || end.Hold != e.Hold || end.Field != e.Field || end.Token != 2 || end.End != locktrace.Unlocked || end.Err != nil || end.Held != 5*time.Second {
			t.Errorf("the end: %+v", end)
		}
	})
}

// A call that waits: for another client, in vain, and for a hold of its own client, by a handoff.
func TestTraceOfAWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		l := fenced.NewLock(newClient(t, rdb, tr.option()), "l")
		other := fenced.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
		held, _, err := other.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		_, _, err = l.TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		e := one[locktrace.AcquireDone](t, &tr)
		if e.By != locktrace.NotAcquired || e.Contended || e.Hold != 0 || e.Field != "" {
			t.Errorf("a call that does not wait: %+v", e)
		}
		locktest.IsError(t, e.Err, rlock.ErrNotAcquired)
		locktest.Equal(t, "waits", len(told[locktrace.WaitStarted](&tr)), 0)

		tr.forget()
		_, _, err = l.TryLockAndGetToken(t.Context(), time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		e, w := one[locktrace.AcquireDone](t, &tr), one[locktrace.WaitStarted](t, &tr)
		if !e.Contended || e.Took != time.Second || w.Began != e.Began || w.Lock != "l" || w.Context != e.Context {
			t.Errorf("a wait in vain: %+v, %+v", w, e)
		}

		tr.forget()
		got := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(3 * time.Second)
		locktest.Equal(t, "waits", len(told[locktrace.WaitStarted](&tr)), 1)
		locktest.NoError(t, other.Unlock(held))
		r := <-got
		locktest.NoError(t, r.Err)
		e = one[locktrace.AcquireDone](t, &tr)
		if !e.Contended || e.By != locktrace.FromRedis || e.Attempts < 2 || e.Took < 3*time.Second || e.Took > 3100*time.Millisecond {
			t.Errorf("a wait for another client: %+v", e)
		}
		locktest.NoError(t, l.Unlock(r.Ctx))
	})
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		l := fenced.NewLock(newClient(t, rdb, tr.option()), "l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error { return nil })) })
		}
		locktest.Sleep(time.Millisecond)
		locktest.NoError(t, l.Unlock(held))
		all.Wait()
		ways, holds, tokens := map[locktrace.Way]int{}, map[uint64]bool{}, map[int64]bool{}
		for _, e := range told[locktrace.AcquireDone](&tr) {
			ways[e.By]++
			holds[e.Hold], tokens[e.Token] = true, true
		}
		locktest.Equal(t, "waits", len(told[locktrace.WaitStarted](&tr)), 3)
		if ways[locktrace.FromHandoff] == 0 || ways[locktrace.FromRedis] == 0 || len(holds) != 4 || len(tokens) != 4 {
			t.Errorf("the ways %v, %d holds, %d tokens", ways, len(holds), len(tokens))
		}
		ends := told[locktrace.HoldDone](&tr)
		locktest.Equal(t, "ends", len(ends), 4)
		for _, e := range ends {
			if !holds[e.Hold] || !tokens[e.Token] || e.End != locktrace.Unlocked {
				t.Errorf("%+v", e)
			}
		}
	})
}

// A hold's end is told once, with how it came.
func TestTraceOfEnds(t *testing.T) {
	type end struct {
		how    locktrace.End
		unlock error  // what the Unlock after it says
		err    string // a part of the event's error
	}
	for name, c := range map[string]struct {
		end   end
		cause func(t *testing.T, m *miniredis.Miniredis, c *rlock.Client, l *rlock.Lock, held context.Context)
	}{
		"lease ran out": {end{locktrace.Lost, rlock.ErrLost, "ran out"}, func(t *testing.T, m *miniredis.Miniredis, _ *rlock.Client, _ *rlock.Lock, held context.Context) {
			m.SetError("ERR away")
			<-held.Done()
			m.SetError("")
		}},
		"key deleted": {end{locktrace.Lost, rlock.ErrLost, "its key is gone"}, func(t *testing.T, m *miniredis.Miniredis, _ *rlock.Client, _ *rlock.Lock, held context.Context) {
			m.Del("l")
			<-held.Done()
		}},
		"found by Unlock": {end{locktrace.Lost, rlock.ErrLost, ""}, func(t *testing.T, m *miniredis.Miniredis, _ *rlock.Client, _ *rlock.Lock, held context.Context) {
			m.Del("l")
		}},
		"forced": {end{locktrace.Forced, rlock.ErrLost, "forced open"}, func(t *testing.T, _ *miniredis.Miniredis, _ *rlock.Client, l *rlock.Lock, _ context.Context) {
			_, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
		}},
		"closed": {end{locktrace.Closed, nil, "closed"}, func(t *testing.T, _ *miniredis.Miniredis, c *rlock.Client, _ *rlock.Lock, _ context.Context) {
			locktest.NoError(t, c.Close())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var tr tracer
				client := newClient(t, rdb, tr.option())
				l := rlock.NewLock(client, "l")
				held, err := l.Lock(t.Context())
				locktest.NoError(t, err)
				c.cause(t, m, client, l, held)
				err = l.Unlock(held)
				if c.end.unlock == nil {
					locktest.NoError(t, err)
				} else {
					locktest.IsError(t, err, c.end.unlock)
				}
				locktest.Sleep(time.Minute)
				e := one[locktrace.HoldDone](t, &tr)
				if e.End != c.end.how || e.Token != 0 || e.Err == nil || !strings.Contains(e.Err.Error(), c.end.err) {
					t.Errorf("got %+v, want %v: %s", e, c.end.how, c.end.err)
				}
			})
		})
	}
	t.Run("dropped", func(t *testing.T) {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			var tr tracer
			l := rlock.NewLock(newClient(t, rdb, tr.option()), "l")
			_, err := l.Lock(context.Background())
			locktest.NoError(t, err)
			tr.forget() // the events have the context
			for range 7 {
				runtime.GC()
				locktest.Sleep(10 * time.Second)
			}
			locktest.Equal(t, "end", one[locktrace.HoldDone](t, &tr).End, locktrace.Dropped)
		})
	})
}

// The end of a hold tells whether the context that it was taken with had ended before: not where that comes after, nor of a hold of Acquire.
func TestTraceOfAContextThatEndsBeforeItsHold(t *testing.T) {
	for name, c := range map[string]struct {
		take  func(ctx context.Context, l *rlock.Lock) (unlock func() error, err error)
		then  func(cancel context.CancelFunc, unlock func() error) error
		ended bool
	}{
		"before":               {takeByLock, cancelAndUnlock, true},
		"before, with a lease": {takeWithALease, cancelAndUnlock, true},
		"before, of Acquire":   {takeByAcquire, cancelAndUnlock, false},
		"until the lease is over": {takeByLock, func(cancel context.CancelFunc, unlock func() error) error {
			cancel()
			locktest.Sleep(time.Minute)
			return unlock()
		}, true},
		"after": {takeByLock, func(cancel context.CancelFunc, unlock func() error) error {
			defer cancel()
			return unlock()
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
				var tr tracer
				l := rlock.NewLock(newClient(t, rdb, tr.option()), "l")
				ctx, cancel := context.WithCancel(t.Context())
				unlock, err := c.take(ctx, l)
				locktest.NoError(t, err)
				_ = c.then(cancel, unlock)
				e := one[locktrace.HoldDone](t, &tr)
				locktest.Equal(t, "the context had ended", errors.Is(e.ContextErr, context.Canceled), c.ended)
				locktest.Equal(t, "an error", e.ContextErr != nil, c.ended)
			})
		})
	}
}

// A context that ends while its hold is released, which is over by then, has not ended before it.
func TestTraceOfAContextThatEndsDuringTheRelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, _ *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		spy := locktest.SpyOn(rdb)
		l := rlock.NewLock(newClient(t, rdb, tr.option()), "l")
		ctx, cancel := context.WithCancel(t.Context())
		held, err := l.Lock(ctx)
		locktest.NoError(t, err)
		spy.Wrap(func(_ []string, next func() error) error {
			cancel()
			return next()
		})
		locktest.NoError(t, l.Unlock(held))
		locktest.IsError(t, ctx.Err(), context.Canceled)
		locktest.NoError(t, one[locktrace.HoldDone](t, &tr).ContextErr)
	})
}

func takeByLock(ctx context.Context, l *rlock.Lock) (func() error, error) {
	held, err := l.Lock(ctx)
	return func() error { return l.Unlock(held) }, err
}

func takeWithALease(ctx context.Context, l *rlock.Lock) (func() error, error) {
	held, err := l.TryLock(ctx, 0, time.Minute)
	return func() error { return l.Unlock(held) }, err
}

func takeByAcquire(ctx context.Context, l *rlock.Lock) (func() error, error) {
	h, err := l.Acquire(ctx)
	return func() error { return h.Unlock(context.Background()) }, err
}

func cancelAndUnlock(cancel context.CancelFunc, unlock func() error) error {
	cancel()
	return unlock()
}

// The release of a hold that was lost is left to the background only where Redis may have the hold still: not where Redis has said that it is
// gone, nor where this client has forced it open.
func TestTraceOfReleasesOfLostHolds(t *testing.T) {
	for name, c := range map[string]struct {
		delayed int
		lose    func(t *testing.T, m *miniredis.Miniredis, l *rlock.Lock, held context.Context)
	}{
		"lease ran out": {delayed: 1, lose: func(_ *testing.T, m *miniredis.Miniredis, _ *rlock.Lock, held context.Context) {
			m.SetError("ERR away")
			<-held.Done()
			m.SetError("")
		}},
		"key deleted": {lose: func(_ *testing.T, m *miniredis.Miniredis, _ *rlock.Lock, held context.Context) {
			m.Del("l")
			<-held.Done()
		}},
		"forced": {lose: func(t *testing.T, _ *miniredis.Miniredis, l *rlock.Lock, _ context.Context) {
			_, err := l.ForceUnlock(t.Context())
			locktest.NoError(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var tr tracer
				l := rlock.NewLock(newClient(t, rdb, tr.option()), "l")
				held, err := l.Lock(t.Context())
				locktest.NoError(t, err)
				c.lose(t, m, l, held)
				locktest.Sleep(time.Millisecond) // the watchdog has told the hold all of it
				locktest.IsError(t, held.Err(), rlock.ErrLost)
				m.SetError("ERR away") // a release that is sent is late
				locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
				locktest.Sleep(3 * time.Second)
				m.SetError("")
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "releases that were delayed", len(told[locktrace.ReleaseDelayed](&tr)), c.delayed)
				locktest.Equal(t, "releases that are over", len(told[locktrace.ReleaseEnded](&tr)), c.delayed)
			})
		})
	}
}

// Each round trip of the watchdog, with what was left of the shortest lease.
func TestTraceOfRenewals(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		c := newClient(t, rdb, tr.option())
		var held []context.Context
		for _, name := range []string{"a", "b"} {
			ctx, err := rlock.NewLock(c, name).Lock(t.Context())
			locktest.NoError(t, err)
			held = append(held, ctx)
		}
		defer runtime.KeepAlive(held)
		renewed := func() (locks, gone, failed int, all []locktrace.RenewalDone) {
			all = told[locktrace.RenewalDone](&tr)
			for _, e := range all {
				locks, gone, failed = locks+e.Locks, gone+e.Gone, failed+e.Failed
			}
			tr.forget()
			return locks, gone, failed, all
		}
		locktest.Sleep(15 * time.Second)
		locks, gone, failed, all := renewed()
		if locks < 2 || gone+failed > 0 {
			t.Errorf("%d locks renewed, %d gone, %d failed", locks, gone, failed)
		}
		for _, e := range all {
			if e.Margin < 15*time.Second || e.Margin > 30*time.Second || e.Err != nil || e.LastLock != "" {
				t.Errorf("a renewal: %+v", e)
			}
		}
		m.SetError("ERR away")
		locktest.Sleep(15 * time.Second)
		locks, gone, failed, all = renewed()
		if locks < 4 || failed != locks || gone > 0 {
			t.Fatalf("%d locks not renewed, %d gone, %d failed", locks, gone, failed)
		}
		if first, last := all[0], all[len(all)-1]; last.Margin >= first.Margin || last.Margin <= 0 || !strings.Contains(fmt.Sprint(last.Err), "away") || last.LastLock == "" {
			t.Errorf("renewals that failed: %+v to %+v", first, last)
		}
		m.SetError("")
		m.Del("a")
		locktest.Sleep(10 * time.Second)
		if _, gone, failed, _ = renewed(); gone != 1 {
			t.Errorf("%d gone, %d failed", gone, failed)
		}
	})
}

// A release that Redis did not confirm, until it has.
func TestTraceOfAReleaseBehind(t *testing.T) {
	s := newSite(t)
	var tr tracer
	l := rlock.NewLock(s.client(tr.option(), rlock.WithUnlockTimeout(400*time.Millisecond)), "l")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	s.proxy.Refuse(true)
	s.proxy.Cut()
	if l.Unlock(held) == nil {
		t.Fatal("Unlock was confirmed")
	}
	redistest.Eventually(t, time.Minute, func() bool { return len(told[locktrace.ReleaseDelayed](&tr)) > 0 }, "the release is delayed")
	end, delayed := one[locktrace.HoldDone](t, &tr), one[locktrace.ReleaseDelayed](t, &tr)
	if end.End != locktrace.Unlocked || end.Err == nil || delayed.Lock != "l" || delayed.Field != end.Field || delayed.Client != end.Client {
		t.Errorf("%+v, %+v", end, delayed)
	}
	s.proxy.Refuse(false)
	redistest.Eventually(t, time.Minute, func() bool { return len(told[locktrace.ReleaseEnded](&tr)) > 0 }, "the release is over")
	// The question for what was released lately (P38) may find the hold before the release does. Then the hold is released twice.
	for _, e := range told[locktrace.ReleaseEnded](&tr) {
		if !e.Confirmed || e.Took <= 0 || e.Field != end.Field {
			t.Errorf("%+v", e)
		}
	}
}

// The connection on which a waiter listens is there, is away, and is back.
func TestTraceOfASubscription(t *testing.T) {
	s := newSite(t)
	var tr tracer
	l := rlock.NewLock(s.client(tr.option()), "l")
	other := rlock.NewLock(s.other(), "l")
	held, err := other.Lock(t.Context())
	locktest.NoError(t, err)
	got := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
	changes := func(want ...bool) {
		t.Helper()
		redistest.Eventually(t, time.Minute, func() bool { return len(told[locktrace.SubscriptionChanged](&tr)) >= len(want) }, "%d changes", len(want))
		for i, e := range told[locktrace.SubscriptionChanged](&tr) {
			if i >= len(want) || e.Up != want[i] || e.Client == "" || e.Node != "" {
				t.Fatalf("change %d is %+v, want %v", i, e, want)
			}
		}
	}
	changes(true)
	s.proxy.Refuse(true)
	s.proxy.Cut()
	changes(true, false)
	s.proxy.Refuse(false)
	changes(true, false, true)
	locktest.NoError(t, other.Unlock(held))
	locktest.NoError(t, (<-got).Err)
}

// The functions may call the client: none of its locks is held. In virtual time a call that waits for ever is found out.
func TestTraceIsCalledWithoutALock(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var tr tracer
		c := newClient(t, rdb, tr.option())
		l := fenced.NewLock(c, "l")
		var deep sync.Mutex
		tr.tells = func() {
			if !deep.TryLock() {
				return // an event of what this one does
			}
			defer deep.Unlock()
			_, _ = l.IsLocked(context.Background())
			for _, name := range []string{"l", "m"} {
				if held, err := rlock.NewLock(c, name).TryLock(context.Background(), 0, 0); err == nil {
					_ = rlock.NewLock(c, name).Unlock(held)
				}
			}
		}
		for range 3 {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if held, _, err := l.TryLockAndGetToken(t.Context(), time.Second, 0); err == nil {
						time.Sleep(time.Millisecond)
						_ = l.Unlock(held)
					}
				})
			}
			all.Wait()
			held, _, err := l.LockAndGetToken(t.Context())
			locktest.NoError(t, err)
			locktest.Sleep(11 * time.Second)
			m.Del("l")
			<-held.Done()
			locktest.IsError(t, l.Unlock(held), rlock.ErrLost)
		}
		kinds := map[string]int{}
		for _, e := range told[any](&tr) {
			kinds[fmt.Sprintf("%T", e)]++
		}
		if kinds["locktrace.RenewalDone"] == 0 || kinds["locktrace.WaitStarted"] == 0 || kinds["locktrace.SubscriptionChanged"] == 0 {
			t.Errorf("events: %v", kinds)
		}
	})
}

// A function may close the client, also where Close calls it: neither Close waits for the other one for ever.
func TestTraceThatCloses(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var c *rlock.Client
		var ends atomic.Int32 // Close waits for the function for as long as the function may wait for Close
		c = newClient(t, rdb, rlock.WithUnlockTimeout(time.Second), rlock.WithTrace(&locktrace.Trace{HoldDone: func(locktrace.HoldDone) {
			ends.Add(1)
			locktest.NoError(t, c.Close())
		}}))
		l := rlock.NewLock(c, "l")
		held := take(t, l, t.Context())
		began := time.Now()
		locktest.NoError(t, c.Close())
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		locktest.Equal(t, "ends", ends.Load(), 1)
		locktest.NoError(t, l.Unlock(held))
	})
}

// A trace may have one function only. It is told what it is told beside others.
func TestTraceWithOneFunction(t *testing.T) {
	for name, only := range map[string]struct {
		trace func(note func(any)) *locktrace.Trace
		want  func(events []any) bool // of the events, of which there are some; nil for nothing
	}{
		"WaitStarted": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{WaitStarted: func(e locktrace.WaitStarted) { note(e) }}
		}},
		"AcquireDone": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) { note(e) }}
		}, want: func(events []any) bool {
			return !slices.ContainsFunc(events, func(e any) bool { return e.(locktrace.AcquireDone).Hold == 0 })
		}},
		"HoldDone": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{HoldDone: func(e locktrace.HoldDone) { note(e) }}
		}, want: func(events []any) bool { return len(events) == 2 }},
		"RenewalDone": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { note(e) }}
		}, want: func(events []any) bool {
			gone := 0
			for _, e := range events {
				gone += e.(locktrace.RenewalDone).Gone
			}
			return gone == 1
		}},
		"SubscriptionChanged": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{SubscriptionChanged: func(e locktrace.SubscriptionChanged) { note(e) }}
		}},
		"ReleaseDelayed": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{ReleaseDelayed: func(e locktrace.ReleaseDelayed) { note(e) }}
		}},
		"ReleaseEnded": {trace: func(note func(any)) *locktrace.Trace {
			return &locktrace.Trace{ReleaseEnded: func(e locktrace.ReleaseEnded) { note(e) }}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				var tr tracer
				spy := locktest.SpyOn(rdb)
				c := newClient(t, rdb, rlock.WithTrace(only.trace(tr.note)))
				l, other := rlock.NewLock(c, "l"), rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
				theirs := take(t, other, t.Context())
				waits := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
				locktest.Sleep(time.Second)
				locktest.NoError(t, other.Unlock(theirs))
				mine := <-waits
				locktest.NoError(t, mine.Err)
				lost := take(t, rlock.NewLock(c, "lost"), t.Context())
				m.Del("lost")
				locktest.Sleep(15 * time.Second)
				locktest.IsError(t, lost.Err(), rlock.ErrLost)
				spy.Wrap(func([]string, func() error) error { return io.EOF })
				if l.Unlock(mine.Ctx) == nil {
					t.Error("unlocked, though Redis is away")
				}
				spy.Wrap(nil)
				locktest.Sleep(time.Minute)
				events := told[any](&tr)
				if len(events) == 0 || only.want != nil && !only.want(events) {
					t.Errorf("told of %+v", events)
				}
			})
		})
	}
}

// What is left of a hold's lease, without asking Redis.
func TestRemaining(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		l := rlock.NewLock(newClient(t, rdb), "l")
		_, err := l.Remaining(t.Context())
		locktest.IsError(t, err, rlock.ErrNotHeld)
		held, err := l.LockLease(t.Context(), 10*time.Second)
		locktest.NoError(t, err)
		for _, passed := range []time.Duration{0, 4 * time.Second, 5 * time.Second} {
			locktest.Sleep(passed)
			left, err := l.Remaining(held)
			locktest.NoError(t, err)
			if deadline := time.Now().Add(left); left > m.TTL("l") || left < m.TTL("l")-200*time.Millisecond {
				t.Errorf("%v are left, until %v; in Redis %v", left, deadline, m.TTL("l"))
			}
		}
		<-held.Done()
		_, err = l.Remaining(held)
		locktest.IsError(t, err, rlock.ErrLost)
	})
}
