package fenced_test

import (
	"context"
	"runtime"
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

// ofAllKinds are a plain lock, a write side, and a semaphore with one permit, which is taken last: its name in Redis is {x}:*.
func ofAllKinds(c *rlock.Client) []fenced.Acquirer {
	return []fenced.Acquirer{fenced.NewLock(c, "y"), fenced.NewRWLock(c, "z").Write(), fenced.NewSemaphore(c, "x", 1)}
}

// One hold of several is for all of them: it outlives the context of its acquire, is renewed and extended, has the token of each, and its Unlock frees all.
func TestAcquireAll(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		all, others := ofAllKinds(newClient(t, rdb)), ofAllKinds(newClient(t, redistest.PipeClient(t, m)))
		before, err := others[0].Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, before.Unlock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		h, err := fenced.AcquireAll(ctx, all)
		locktest.NoError(t, err)
		cancel()
		locktest.Sleep(10 * time.Minute)
		locktest.NoError(t, h.Err())
		for i, want := range []struct {
			name  string
			token int64
			slot  int
		}{{"y", 2, -1}, {"z", 1, -1}, {"{x}:0", 1, 0}} {
			one := h.Each()[i]
			locktest.Equal(t, "name", one.Name(), want.name)
			locktest.Equal(t, "token", one.Token(), want.token)
			locktest.Equal(t, "slot", one.Slot(), want.slot)
			if token, ok := fenced.TokenFrom(h.Context(), want.name); !ok || token != want.token {
				t.Errorf("%s: token %d in the context", want.name, token)
			}
			_, err := others[i].Acquire(t.Context(), rlock.Wait(0))
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		locktest.Equal(t, "token of all", h.Token(), 0)
		locktest.Equal(t, "slot of all", h.Slot(), -1)
		locktest.NoError(t, h.Extend(t.Context(), time.Hour))
		if left := h.Remaining(); left < 59*time.Minute {
			t.Errorf("%v are left", left)
		}

		waited := h.Waited()
		select {
		case <-waited:
			t.Error("nobody waits")
		default:
		}
		theirs := make(chan *fenced.Hold)
		go func() {
			h, err := fenced.AcquireAll(t.Context(), others[:2])
			locktest.NoError(t, err)
			theirs <- h
		}()
		locktest.Sleep(time.Second)
		<-waited
		locktest.NoError(t, h.Unlock(t.Context()))
		locktest.IsError(t, h.Err(), rlock.ErrUnlocked)
		locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrNotHeld)
		next := <-theirs
		locktest.NoError(t, next.Unlock(t.Context()))
		locktest.Sleep(time.Second)
		for _, name := range []string{"x", "y", "z", "{x}:0"} {
			locktest.Equal(t, name+" is taken", m.Exists(name), false)
		}
	})
}

// The loss of any ends the hold of all, and its Unlock says which one was lost and frees the others.
func TestAcquireAllLosesOne(t *testing.T) {
	for _, key := range []string{"y", "z", "{x}:0"} {
		t.Run(key, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				h, err := fenced.AcquireAll(t.Context(), ofAllKinds(newClient(t, rdb)))
				locktest.NoError(t, err)
				m.Del(key)
				<-h.Done()
				locktest.IsError(t, h.Err(), rlock.ErrLost)
				err = h.Unlock(t.Context())
				locktest.IsError(t, err, rlock.ErrLost)
				locktest.ErrorSays(t, err, `Unlock "`+key+`"`)
				locktest.Sleep(time.Second)
				for _, name := range []string{"y", "z", "{x}:0"} {
					locktest.Equal(t, name+" is taken", m.Exists(name), false)
				}
			})
		})
	}
}

// Where one is not to be had within the wait, or the call ends, or one that was taken is lost meanwhile, nothing is held.
func TestAcquireAllInVain(t *testing.T) {
	for _, busy := range []int{0, 1, 2} {
		for what, c := range map[string]struct {
			opts []rlock.AcquireOption
			want error
			says string
			took time.Duration
		}{
			"no wait":                  {opts: []rlock.AcquireOption{rlock.Wait(0)}, want: rlock.ErrNotAcquired},
			"a wait":                   {opts: []rlock.AcquireOption{rlock.Wait(3 * time.Second)}, want: rlock.ErrNotAcquired, took: 3 * time.Second},
			"its context":              {want: context.DeadlineExceeded, took: time.Hour},
			"what it has is too short": {opts: []rlock.AcquireOption{rlock.Lease(10 * time.Second)}, want: rlock.ErrLost, took: 10 * time.Second},
		} {
			if what == "what it has is too short" && busy == 0 {
				continue // it is the first one
			}
			t.Run(what, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					all, others := ofAllKinds(newClient(t, rdb)), ofAllKinds(newClient(t, redistest.PipeClient(t, m)))
					theirs, err := others[busy].Acquire(t.Context())
					locktest.NoError(t, err)
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began := time.Now()
					h, err := fenced.AcquireAll(ctx, all, c.opts...)
					locktest.IsError(t, err, c.want)
					locktest.ErrorSays(t, err, `AcquireAll "`+all[busy].Name()+`"`)
					locktest.Equal(t, "a hold", h, nil)
					if took := time.Since(began); took < c.took-time.Second || took > c.took+time.Second {
						t.Errorf("it took %v, want %v", took, c.took)
					}
					locktest.Sleep(time.Second)
					for i, key := range []string{"y", "z", "{x}:0"} {
						locktest.Equal(t, key+" is taken", m.Exists(key), i == busy)
					}
					locktest.NoError(t, theirs.Unlock(t.Context()))
				})
			})
		}
	}
}

// Inv12: what cannot be taken together is refused before Redis is asked.
func TestAcquireAllRefuses(t *testing.T) {
	rdb, c, l := newLock(t)
	spy := locktest.SpyOn(rdb)
	for says, all := range map[string][]fenced.Acquirer{
		"no locks":          nil,
		"element 1":         {l, nil},
		"NewLock":           {l, (*fenced.Lock)(nil)},
		"NewSemaphore":      {l, (*fenced.Semaphore)(nil)},
		"semaphore \"":      {fenced.NewSemaphore(c, "s", 2), fenced.NewSemaphore(c, "s", 2)},
		"both sides":        {fenced.NewRWLock(c, "w").Read(), fenced.NewRWLock(c, "w").Write()},
		"different clients": {l, fenced.NewLock(c, "l", fenced.WithStableToken())},
	} {
		_, err := fenced.AcquireAll(t.Context(), all)
		locktest.ErrorSays(t, err, "AcquireAll", says)
	}
	locktest.Equal(t, "commands", spy.Commands(), 0)
	h, err := fenced.AcquireAll(t.Context(), []*fenced.Lock{l, l})
	locktest.NoError(t, err)
	_, err = fenced.AcquireAll(h.Context(), []*fenced.Lock{l})
	locktest.ErrorSays(t, err, "rlock.Reenter()")
	inner, err := fenced.AcquireAll(h.Context(), []*fenced.Lock{l}, rlock.Reenter())
	locktest.NoError(t, err)
	locktest.NoError(t, inner.Unlock(t.Context()))
	locktest.NoError(t, h.Err())
	locktest.NoError(t, h.Unlock(t.Context()))
}

// A hold that the context of the call is of, of any of the locks, is an error before Redis is asked: the call would wait for itself.
func TestAcquireAllOfAnOwnHold(t *testing.T) {
	rdb, c, l := newLock(t)
	h, err := l.Acquire(t.Context())
	locktest.NoError(t, err)
	spy := locktest.SpyOn(rdb)
	for _, before := range []string{"a", "z"} { // of the name of l
		_, err := fenced.AcquireAll(h.Context(), []*fenced.Lock{fenced.NewLock(c, before), l}, rlock.Wait(time.Second))
		locktest.ErrorSays(t, err, "AcquireAll \"l\"", "rlock.Reenter()")
	}
	locktest.Equal(t, "commands", spy.Commands(), 0)
	locktest.NoError(t, h.Unlock(t.Context()))
}

// P39: where a function of the user's ends the call nothing is held.
func TestP39_AcquireAllIsBrokenOff(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, all []*fenced.Lock){
		"AcquireAll": func(ctx context.Context, all []*fenced.Lock) { _, _ = fenced.AcquireAll(ctx, all) },
		"DoAll": func(ctx context.Context, all []*fenced.Lock) {
			_ = fenced.DoAll(ctx, all, func(context.Context, []int64) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c, err := rlock.New(rdb, rlock.WithTrace(&locktrace.Trace{WaitStarted: func(locktrace.WaitStarted) { runtime.Goexit() }}))
				locktest.NoError(t, err)
				t.Cleanup(func() { _ = c.Close() })
				a, b := fenced.NewLock(c, "a"), fenced.NewLock(c, "b")
				theirs, err := b.Acquire(t.Context())
				locktest.NoError(t, err)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					call(t.Context(), []*fenced.Lock{a, b})
				}()
				<-ended
				locktest.Equal(t, "a is taken", m.Exists("a"), false)
				locktest.NoError(t, theirs.Unlock(t.Context()))
			})
		})
	}
}

// Waited of a hold of several returns one channel, however often it is asked.
func TestWaitedOfAllAgainAndAgain(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		all, err := fenced.AcquireAll(t.Context(), ofAllKinds(c))
		locktest.NoError(t, err)
		plain, err := rlock.AcquireAll(t.Context(), []*rlock.Lock{rlock.NewLock(c, "p"), rlock.NewLock(c, "q")})
		locktest.NoError(t, err)
		for _, waited := range []func() <-chan struct{}{all.Waited, plain.Waited} {
			first, second := waited(), waited()
			locktest.Equal(t, "the channel", second, first)
		}
		locktest.NoError(t, all.Unlock(t.Context()))
		locktest.NoError(t, plain.Unlock(t.Context()))
	})
}
