package guard

import (
	"context"
	"errors"
	"fmt"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A write within a write of the same resource would wait for itself: it is an error, at any depth, and the outer write goes
// on. A write of another resource is none, nor one of the same name in another Memory.
func TestMemory_Nested(t *testing.T) {
	synctest.Test(t, testMemoryNested) // which finds out at once who waits for itself
}

func testMemoryNested(t *testing.T) {
	m, other := NewMemory(), NewMemory()
	type key struct{}
	locktest.NoError(t, m.Do(t.Context(), "a", 5, func(ctx context.Context) error {
		return m.Do(ctx, "b", 5, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
			defer cancel()
			for _, resource := range []string{"a", "b"} {
				for _, token := range []int64{4, 5, 6} {
					for _, err := range []error{
						m.Check(ctx, resource, token),
						m.Do(ctx, resource, token, func(context.Context) error { t.Error("it ran"); return nil }),
					} {
						locktest.IsError(t, err, ErrNested)
						if !strings.Contains(err.Error(), fmt.Sprintf("%q", resource)) {
							t.Errorf("%v", err)
						}
					}
				}
				locktest.NoError(t, other.Check(ctx, resource, 5))
			}
			return m.Check(ctx, "c", 5)
		})
	}))
	for _, resource := range []string{"a", "b", "c"} {
		isSeen(t, m, resource, 5)
		locktest.NoError(t, m.Check(t.Context(), resource, 5)) // nobody is left at it
	}
}

// A context that is kept beyond its write is no write: its user takes turns with the others.
func TestMemory_AContextThatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		var kept context.Context
		locktest.NoError(t, m.Do(t.Context(), "r", 5, func(ctx context.Context) error { kept = ctx; return nil }))
		locktest.NoError(t, m.Check(kept, "r", 5))
		done := make(chan error, 1)
		locktest.NoError(t, m.Do(t.Context(), "r", 6, func(context.Context) error {
			go func() { done <- m.Check(kept, "r", 7) }()
			synctest.Wait()
			if len(done) > 0 {
				t.Errorf("it did not wait: %v", <-done)
			}
			return nil
		}))
		locktest.NoError(t, <-done)
		isSeen(t, m, "r", 7)
	})
}

// Who waits leaves when its context ends, and says why. The turn goes to the next one, in the order of their arrival.
func TestMemory_AContextThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		lost := errors.New("lost")
		ended, end := context.WithCancelCause(t.Context())
		var order []int64
		write := func(token int64) func(context.Context) error {
			return func(context.Context) error { order = append(order, token); return nil }
		}
		errs := make([]error, 4)
		locktest.NoError(t, m.Do(t.Context(), "r", 1, func(context.Context) error {
			for i, ctx := range []context.Context{t.Context(), ended, t.Context(), ended} {
				go func() { errs[i] = m.Do(ctx, "r", int64(i+2), write(int64(i+2))) }()
				synctest.Wait()
			}
			end(lost)
			synctest.Wait()
			for _, i := range []int{1, 3} {
				locktest.IsError(t, errs[i], context.Canceled)
				locktest.IsError(t, errs[i], lost)
			}
			if n := m.users("r"); n != 3 {
				t.Errorf("%d are at the resource", n)
			}
			return nil
		}))
		synctest.Wait()
		if fmt.Sprint(order) != "[2 4]" || errs[0] != nil || errs[2] != nil {
			t.Errorf("written: %v, %v", order, errs)
		}
		locktest.IsError(t, m.Do(ended, "r", 9, write(9)), lost) // although nobody is there
		locktest.IsError(t, m.Check(ended, "new", 9), lost)
		isSeen(t, m, "r", 4)
		holdsMarks(t, m, 1)
	})
}

// A turn that comes together with the end of the context is passed on.
func TestMemory_ATurnThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory()
		ctx := &silent{Context: t.Context()}
		late, next := error(nil), errors.New("it still waits")
		locktest.NoError(t, m.Do(t.Context(), "r", 1, func(context.Context) error {
			go func() {
				late = m.Do(ctx, "r", 2, func(context.Context) error { t.Error("written after the context's end"); return nil })
			}()
			synctest.Wait()
			go func() { next = m.Check(t.Context(), "r", 1) }()
			synctest.Wait()
			ctx.over.Store(true)
			return nil
		}))
		synctest.Wait()
		locktest.IsError(t, late, context.Canceled)
		locktest.NoError(t, next)
		isSeen(t, m, "r", 1)
	})
}

// silent is a context that ends without closing its channel.
type silent struct {
	context.Context
	over atomic.Bool
}

func (c *silent) Done() <-chan struct{} { return nil }

func (c *silent) Err() error {
	if c.over.Load() {
		return context.Canceled
	}
	return nil
}

// Forget does not wait. While a write runs, and from within it, the mark goes when the write ends, however it ends.
func TestMemory_ForgetDuringAWrite(t *testing.T) {
	for _, result := range []error{nil, ErrAbsent, errors.New("failed")} {
		m := NewMemory()
		locktest.NoError(t, m.Check(t.Context(), "r", 5))
		if err := m.Do(t.Context(), "r", 7, func(context.Context) error {
			m.Forget("r")
			isSeen(t, m, "r", 5)
			return result
		}); err != result {
			t.Error(err)
		}
		isSeen(t, m, "r", 0)
		holdsMarks(t, m, 0)
		locktest.NoError(t, m.Check(t.Context(), "r", 1))
	}
	synctest.Test(t, func(t *testing.T) { // the next one finds none
		m := NewMemory()
		done := make(chan error, 1)
		locktest.NoError(t, m.Do(t.Context(), "r", 7, func(context.Context) error {
			go func() { done <- m.Check(t.Context(), "r", 3) }()
			synctest.Wait()
			m.Forget("r")
			return nil
		}))
		locktest.NoError(t, <-done)
		isSeen(t, m, "r", 3)
	})
}

// Inv4: the token of who found nothing counts, and its mark goes when the room is needed, the oldest first. That of a
// resource which was found once stays.
func TestInv4_MemoryAbsent(t *testing.T) {
	m := NewMemory(WithMaxResources(3))
	absent := func(resource string, token int64) error {
		return m.Do(t.Context(), resource, token, func(context.Context) error { return fmt.Errorf("no such account: %w", ErrAbsent) })
	}
	locktest.NoError(t, m.Check(t.Context(), "there", 5))
	for _, r := range []string{"x", "y"} {
		locktest.IsError(t, absent(r, 5), ErrAbsent)
		locktest.IsError(t, m.Check(t.Context(), r, 4), ErrStale) // an older one does not create it behind a newer one's back
	}
	locktest.IsError(t, absent("there", 6), ErrAbsent)
	for i := range 1000 {
		locktest.IsError(t, absent(fmt.Sprint("none:", i), 1), ErrAbsent)
	}
	holdsMarks(t, m, 3)
	locktest.IsError(t, m.Check(t.Context(), "there", 5), ErrStale)
	isSeen(t, m, "none:998", 1)
	locktest.IsError(t, absent("none:998", 2), ErrAbsent) // used again: 999 is the oldest now
	locktest.NoError(t, m.Check(t.Context(), "new", 1))
	isSeen(t, m, "none:999", 0)
	locktest.NoError(t, m.Check(t.Context(), "none:998", 2)) // created
	locktest.IsError(t, m.Check(t.Context(), "more", 1), ErrFull)
	locktest.IsError(t, absent("there", 7), ErrAbsent)
	locktest.IsError(t, absent("more", 1), ErrFull)
}
