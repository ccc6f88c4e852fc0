package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// A movable is what gives holds that can be exported.
type movable interface {
	Acquire(ctx context.Context, opts ...rlock.AcquireOption) (*fenced.Hold, error)
	Import(ctx context.Context, exported string, opts ...rlock.AcquireOption) (*fenced.Hold, error)
}

// movables are one of each kind, of which one hold can be there.
var movables = map[string]func(c *rlock.Client) movable{
	"a lock":          func(c *rlock.Client) movable { return fenced.NewLock(c, "l") },
	"the only permit": func(c *rlock.Client) movable { return fenced.NewSemaphore(c, "l", 1) },
	"a write lock":    func(c *rlock.Client) movable { return fenced.NewRWLock(c, "l").Write() },
}

// export takes what l gives, and exports it.
func export(t *testing.T, l movable, opts ...rlock.AcquireOption) (*fenced.Hold, string) {
	t.Helper()
	h, err := l.Acquire(t.Context(), opts...)
	locktest.NoError(t, err)
	text, err := h.Export()
	locktest.NoError(t, err)
	return h, text
}

// P58, Inv1, Inv2, Inv8: who imports a hold has it in one step, before all who wait, with a larger token; the exported one ends at
// once, with all its levels; the import's release calls who waits.
func TestP58_Import(t *testing.T) {
	for name, of := range movables {
		for _, client := range []string{"the same client", "another client"} {
			for _, local := range []int{0, 8} {
				t.Run(name+", "+client, func(t *testing.T) {
					locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
						ends := make(chan locktrace.End, 9)
						trace := &locktrace.Trace{HoldDone: func(e locktrace.HoldDone) { ends <- e.End }}
						from := newClient(t, rdb, rlock.WithLocalHandoffs(local), rlock.WithTrace(trace))
						ways := make(chan locktrace.Way, 9)
						to := from
						if client == "another client" {
							seen := &locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) { ways <- e.By }}
							to = newClient(t, redistest.PipeClient(t, m), rlock.WithLocalHandoffs(local), rlock.WithTrace(seen))
						}
						h, text := export(t, of(from))
						third := newClient(t, redistest.PipeClient(t, m))
						got := make(chan *fenced.Hold)
						go func() {
							h, err := of(third).Acquire(t.Context())
							locktest.NoError(t, err)
							got <- h
						}()
						locktest.Sleep(time.Minute)
						locktest.NoError(t, h.Err())

						next, err := of(to).Import(t.Context(), text)
						locktest.NoError(t, err)
						synctest.Wait()
						if next.Token() <= h.Token() || next.Slot() != h.Slot() || next.Name() != h.Name() {
							t.Errorf("token %d, slot %d, name %q after %d, %d, %q", next.Token(), next.Slot(), next.Name(), h.Token(), h.Slot(), h.Name())
						}
						locktest.IsError(t, h.Err(), rlock.ErrImported, rlock.ErrUnlocked, context.Canceled)
						locktest.IsNotError(t, h.Err(), rlock.ErrLost)
						locktest.IsError(t, context.Cause(h.Context()), rlock.ErrImported)
						locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrImported)
						locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrNotHeld)
						locktest.Equal(t, "end", <-ends, locktrace.Imported)
						if to != from {
							locktest.Equal(t, "way", <-ways, locktrace.FromImport)
						}
						_, err = of(from).Import(t.Context(), text)
						locktest.IsError(t, err, rlock.ErrNotHeld)
						_, err = h.Export()
						locktest.IsError(t, err, rlock.ErrUnlocked)

						locktest.Sleep(10 * time.Minute) // it is renewed
						locktest.NoError(t, next.Err())
						began := time.Now()
						locktest.NoError(t, next.Unlock(t.Context()))
						last := <-got
						locktest.Equal(t, "who waits has it after", time.Since(began), 0)
						if last.Token() <= next.Token() {
							t.Errorf("token %d after %d", last.Token(), next.Token())
						}
						locktest.NoError(t, last.Unlock(t.Context()))
						wantFree(t, m, time.Minute, from, to, third)
					})
				})
			}
		}
	}
}

// P36, P58: the release of an import calls a client that has entered the line a moment before. A call of the exporting client that does
// not wait asks Redis, also before that client has heard of the import.
func TestP58_TheReleaseOfAnImport(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, to, third := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m)), newClient(t, redistest.PipeClient(t, m))
		_, text := export(t, fenced.NewLock(from, "l"))
		call := locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(third, "l").Lock(longContext(t)) })
		locktest.Sleep(time.Millisecond)
		next, err := fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		began := time.Now()
		locktest.NoError(t, next.Unlock(t.Context()))
		got := <-call
		locktest.NoError(t, got.Err)
		if took := time.Since(began); took > 10*time.Millisecond { // it yields for a moment
			t.Errorf("who waits has it after %v", took)
		}
		locktest.NoError(t, rlock.NewLock(third, "l").Unlock(got.Ctx))

		_, text = export(t, fenced.NewLock(from, "l"))
		locktest.Sleep(time.Millisecond)
		back := lacking(m, "PUBLISH")
		next, err = fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		back()
		locktest.NoError(t, next.Unlock(t.Context()))
		got.Ctx, got.Err = rlock.NewLock(from, "l").TryLock(t.Context(), 0, 0)
		locktest.NoError(t, got.Err)
		locktest.NoError(t, rlock.NewLock(from, "l").Unlock(got.Ctx))
	})
}

// P58: the hold of a process that has died is imported until its lease is over, and not after that, nor after its Unlock or its
// release by force. A plain lock has no token.
func TestP58_ImportOfWhatIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, c *rlock.Client, h *rlock.Hold)
		there  bool
	}{
		"its client is closed": {func(t *testing.T, c *rlock.Client, _ *rlock.Hold) { locktest.NoError(t, c.Close()) }, true},
		"it was extended": {func(t *testing.T, _ *rlock.Client, h *rlock.Hold) {
			locktest.NoError(t, h.Extend(t.Context(), time.Hour))
		}, true},
		"re-entered": {func(t *testing.T, c *rlock.Client, h *rlock.Hold) {
			_, err := rlock.NewLock(c, "l").Acquire(h.Context(), rlock.Reenter())
			locktest.NoError(t, err)
		}, true},
		"the lease is over": {func(t *testing.T, c *rlock.Client, _ *rlock.Hold) {
			locktest.NoError(t, c.Close())
			locktest.Sleep(30 * time.Second)
		}, false},
		"unlocked": {func(t *testing.T, _ *rlock.Client, h *rlock.Hold) { locktest.NoError(t, h.Unlock(t.Context())) }, false},
		"taken again": {func(t *testing.T, c *rlock.Client, h *rlock.Hold) {
			locktest.NoError(t, h.Unlock(t.Context()))
			acquire(t, t.Context(), rlock.NewLock(c, "l"))
		}, false},
		"forced open": {func(t *testing.T, c *rlock.Client, _ *rlock.Hold) {
			_, err := rlock.NewLock(c, "l").ForceUnlock(t.Context())
			locktest.NoError(t, err)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
				h := acquire(t, t.Context(), rlock.NewLock(from, "l"))
				text, err := h.Export()
				locktest.NoError(t, err)
				c.before(t, from, h)
				locktest.Sleep(20 * time.Second)
				next, err := rlock.NewLock(to, "l").Import(t.Context(), text, rlock.Lease(time.Minute))
				if !c.there {
					locktest.IsError(t, err, rlock.ErrNotHeld)
					locktest.ErrorSays(t, err, `Import "l"`, "not held any more")
					return
				}
				locktest.NoError(t, err)
				locktest.Equal(t, "the lease in Redis", m.TTL("l"), time.Minute)
				wantHolds(t, rlock.NewLock(to, "l"), next.Context(), 1)
				locktest.NoError(t, next.Unlock(t.Context()))
				wantFree(t, m, time.Minute, to)
			})
		})
	}
}

// P4, P58: an exported hold is renewed though nobody refers to it, until it is imported.
func TestP58_AnExportedHoldIsRenewed(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
		text := func() string { _, text := export(t, fenced.NewLock(from, "l")); return text }()
		for range 20 {
			runtime.GC()
			runtime.GC()
			locktest.Sleep(10 * time.Second)
		}
		h, err := fenced.NewLock(to, "l").Import(t.Context(), text)
		locktest.NoError(t, err)
		locktest.NoError(t, h.Unlock(t.Context()))
		wantFree(t, m, time.Minute, from, to)
	})
}

// P58: a client that was not told of the import ends the hold at its next renewal, and at its Unlock, as lost, and says what may have been.
func TestP58_AnImportThatNobodyIsToldOf(t *testing.T) {
	for name, unlock := range map[string]bool{"a renewal": false, "the Unlock": true} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
				h, text := export(t, fenced.NewLock(from, "l"))
				locktest.Sleep(time.Second)
				lacking(m, "PUBLISH")
				next, err := fenced.NewLock(to, "l").Import(t.Context(), text)
				locktest.NoError(t, err)
				var over error
				if unlock {
					over = h.Unlock(t.Context())
				} else {
					locktest.Sleep(10 * time.Second)
					over = h.Err()
				}
				locktest.IsError(t, over, rlock.ErrLost)
				locktest.ErrorSays(t, over, "may have been imported")
				locktest.NoError(t, next.Err())
				locktest.NoError(t, next.Unlock(t.Context()))
			})
		})
	}
}

// P3, P58: an import without an answer is repeated, and counts once. Where none comes, what it has taken is released.
func TestP58_AnImportWithoutAnAnswer(t *testing.T) {
	for name, of := range movables {
		for _, lost := range []int32{1, 1 << 30} {
			t.Run(name, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					from, there := newClient(t, rdb), redistest.PipeClient(t, m)
					var left atomic.Int32
					left.Store(lost)
					locktest.SpyOn(there).Wrap(func(ops []string, next func() error) error {
						err := next()
						if err == nil && slices.Contains(ops, "import") && left.Add(-1) >= 0 {
							return errors.New("unexpected EOF")
						}
						return err
					})
					to := newClient(t, there)
					h, text := export(t, of(from))
					next, err := of(to).Import(t.Context(), text)
					if lost > 1 {
						if err == nil || errors.Is(err, rlock.ErrNotHeld) {
							t.Errorf("Import without an answer says %v", err)
						}
						locktest.Sleep(time.Minute)
						wantFree(t, m, time.Minute, from, to)
						return
					}
					locktest.NoError(t, err)
					locktest.Equal(t, "token", next.Token(), h.Token()+1)
					locktest.NoError(t, next.Unlock(t.Context()))
					wantFree(t, m, time.Minute, from, to)
				})
			})
		}
	}
}

// P3, P58: an attempt of the exporting client that got no answer may still come, and take the lock. It is released though nobody unlocks
// the hold that was exported.
func TestP58_ALateAttemptOfAnImportedHold(t *testing.T) {
	for _, told := range []bool{true, false} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			spy := locktest.SpyOn(rdb)
			var lost atomic.Bool
			spy.Wrap(func(ops []string, next func() error) error {
				err := next()
				if err == nil && slices.Contains(ops, "acquire") && !lost.Swap(true) {
					return errors.New("unexpected EOF")
				}
				return err
			})
			from, to := newClient(t, rdb), newClient(t, redistest.PipeClient(t, m))
			h, text := export(t, fenced.NewLock(from, "l"))
			locktest.Sleep(time.Second)
			back := func() {}
			if !told {
				back = lacking(m, "PUBLISH")
			}
			next, err := fenced.NewLock(to, "l").Import(t.Context(), text)
			locktest.NoError(t, err)
			back()
			locktest.Sleep(time.Minute)
			locktest.Equal(t, "it was imported", errors.Is(h.Err(), rlock.ErrImported), told)
			if spy.Count("unlock") == 0 {
				t.Error("the field of the exported hold is not released")
			}
			locktest.NoError(t, next.Err())
			locktest.NoError(t, next.Unlock(t.Context()))
		})
	}
}

// P56, P58: a hold that was exported is not passed on within its process: nobody's hold has its field afterwards.
func TestP58_AnExportedHoldIsNotPassedOnLocally(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb, rlock.WithLocalHandoffs(64))
		l := rlock.NewLock(c, "l")
		h := acquire(t, t.Context(), l)
		call := locktest.StartLock(func() (context.Context, error) { return l.Lock(longContext(t)) })
		locktest.Sleep(time.Millisecond)
		text, err := h.Export()
		locktest.NoError(t, err)
		locktest.NoError(t, h.Unlock(t.Context()))
		got := <-call
		locktest.NoError(t, got.Err)
		_, err = l.Import(t.Context(), text)
		locktest.IsError(t, err, rlock.ErrNotHeld)
		locktest.NoError(t, l.Check(got.Ctx))
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// What cannot be exported or imported says so, before Redis is asked.
func TestImportOfWhatCannotBe(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := newClient(t, rdb)
		l, other := fenced.NewLock(c, "l"), fenced.NewLock(c, "other")
		h, text := export(t, l)
		_, permit := export(t, fenced.NewSemaphore(c, "jobs", 3))
		read, err := fenced.NewRWLock(c, "rw").Read().Acquire(t.Context())
		locktest.NoError(t, err)
		all, err := fenced.AcquireAll(t.Context(), []*fenced.Lock{other})
		locktest.NoError(t, err)
		_, errRead := read.Export()
		_, errAll := all.Export()
		_, errNil := (*fenced.Hold)(nil).Export()
		imports := func(l movable, text string, opts ...rlock.AcquireOption) error {
			_, err := l.Import(t.Context(), text, opts...)
			return err
		}
		_, errPlain := rlock.NewLock(c, "l").Import(t.Context(), text)
		for what, c := range map[string]struct {
			err   error
			words []string
		}{
			"a reader's":        {errRead, []string{"Export", "that reads"}},
			"of AcquireAll":     {errAll, []string{"Export", "AcquireAll"}},
			"a nil one":         {errNil, []string{"nil or a zero value"}},
			"no text":           {imports(l, ""), []string{`Import "l"`, "not one that Export has returned"}},
			"some text":         {imports(l, "fencelock1.xyz"), []string{"not all of it"}},
			"half of it":        {imports(l, text[:len(text)/2]), []string{"not all of it"}},
			"changed":           {imports(l, text[:20]+"A"+text[21:]), []string{"not all of it"}},
			"another lock's":    {imports(other, text), []string{`"lock"`, `of "l"`}},
			"a permit's":        {imports(fenced.NewLock(c, "{jobs}:0"), permit), []string{`"permit"`}},
			"no such slot":      {imports(fenced.NewSemaphore(c, "other", 3), permit), []string{`of "{jobs}:0"`}},
			"a lock's":          {imports(fenced.NewSemaphore(c, "l", 3), text), []string{`"lock"`}},
			"to write":          {imports(fenced.NewRWLock(c, "l").Write(), text), []string{`"lock"`}},
			"to read":           {imports(fenced.NewRWLock(c, "l").Read(), text), []string{"that reads"}},
			"without a token":   {errPlain, []string{"has a token", "package fenced"}},
			"Wait":              {imports(l, text, rlock.Wait(time.Second)), []string{"Wait", "leave the option out"}},
			"Reenter":           {imports(l, text, rlock.Reenter()), []string{"Reenter", "leave the option out"}},
			"a lease too short": {imports(l, text, rlock.Lease(1)), []string{"lease 1ns"}},
		} {
			if c.err == nil {
				t.Errorf("%s: no error", what)
				continue
			}
			locktest.ErrorSays(t, c.err, c.words...)
		}
		locktest.NoError(t, h.Err())
		locktest.NoError(t, imports(l, " "+text+"\n"))
	})
}
