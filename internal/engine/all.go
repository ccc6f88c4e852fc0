package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
)

// All is holds of several locks of one holder, which were taken one after the other. The context of
// each ends with that of the one before: the last one ends when any is lost.
type All struct {
	Holds []Held // in the order in which they were taken
	Of    []int  // for each lock that was asked for the place of its hold
}

// TakeAll takes locks in the order of their names. within: for the holder of ctx, which bounds the
// holds too, as DoAll does; otherwise as Hold does, and ctx bounds the wait. The wait of the request
// is one budget for all. On an error nothing is held, nor after a panic of the user's code. wrap
// makes the error of a method of a lock, nil for none of them.
func TakeAll(ctx context.Context, locks []*Lock, r Request, within bool, wrap func(l *Lock, err error) error) (taken *All, err error) {
	order, bad := inOrder(locks)
	if bad != nil {
		return nil, wrap(nil, bad)
	}
	if !within && !r.Reenter && ctx != nil { // Hold sees to the first one alone
		for _, l := range order {
			if err := l.waitsForItself(ctx, holder.Of(ctx)); err != nil {
				return nil, wrap(l, err)
			}
		}
	}
	all := &All{Of: make([]int, len(locks))}
	defer func() {
		if taken == nil {
			err = errors.Join(err, all.Unlock(wrap))
		}
	}()
	began, before := time.Now(), ctx
	for n, l := range order {
		each := r
		if n > 0 && each.Wait > 0 {
			if each.Wait -= time.Since(began); each.Wait < minWait {
				each.Wait = 0
			}
		}
		h, err := l.takeNext(ctx, before, each, n == 0, within)
		// what is left of the wait was too short for an answer
		if n > 0 && each.Wait > 0 && errors.Is(err, context.DeadlineExceeded) && before.Err() == nil && ctx.Err() == nil {
			each.Wait = 0
			h, err = l.takeNext(ctx, before, each, false, within)
		}
		if err != nil {
			return nil, wrap(l, err)
		}
		all.Holds, before = append(all.Holds, h), h.ctx
		for i, one := range locks {
			if one.id == l.id {
				all.Of[i] = n
			}
		}
	}
	return all, nil
}

// takeNext takes the lock after those of which the context before is that of the last one.
func (l *Lock) takeNext(ctx, before context.Context, r Request, first, within bool) (Held, error) {
	switch {
	case within:
		return l.HoldWithin(before, r)
	case first:
		return l.Hold(ctx, r)
	}
	bound, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(before, func() { end(context.Cause(before)) })()
	return l.hold(bound, before, r)
}

// Context returns the context of the last hold; ctx where there is none.
func (a *All) Context(ctx context.Context) context.Context {
	if len(a.Holds) == 0 {
		return ctx
	}
	return a.Holds[len(a.Holds)-1].ctx
}

// Unlock unlocks the holds in reverse order.
func (a *All) Unlock(wrap func(l *Lock, err error) error) (err error) {
	for _, h := range slices.Backward(a.Holds) {
		if failed := h.Unlock(h.ctx); failed != nil {
			err = errors.Join(err, wrap(h.lock, failed))
		}
	}
	return err
}

// DoAll runs fn with the locks held, and with their tokens in the order of the locks. It unlocks
// also where fn panics. fn's error stays as it is.
func DoAll(ctx context.Context, locks []*Lock, r Request, wrap func(l *Lock, err error) error, fn func(ctx context.Context, tokens []int64) error) error {
	all, err := TakeAll(ctx, locks, r, true, wrap)
	if err != nil {
		return err
	}
	tokens := make([]int64, len(locks))
	for i, n := range all.Of {
		tokens[i] = all.Holds[n].level.Token
	}
	return Do(func() error { return fn(all.Context(ctx), tokens) }, func() error { return all.Unlock(wrap) })
}

// Together calls do for all holds at the same time, and returns what it has said, in their order.
func Together[H any](holds []H, do func(H) error) error {
	said := make([]error, len(holds))
	var all sync.WaitGroup
	for i, h := range holds {
		all.Go(func() { said[i] = do(h) })
	}
	all.Wait()
	return errors.Join(said...)
}

// WaitedAny returns what returns the channel, always the same, that is closed when somebody waits for
// one of the holds, unless the last of them is over before.
func WaitedAny[H interface {
	Done() <-chan struct{}
	Waited() <-chan struct{}
}](holds []H) func() <-chan struct{} {
	return sync.OnceValue(func() <-chan struct{} {
		told, once, over := make(chan struct{}), new(sync.Once), holds[len(holds)-1].Done()
		for _, h := range holds {
			waited := h.Waited()
			go func() {
				select {
				case <-waited:
					once.Do(func() { close(told) })
				case <-told:
				case <-over:
				}
			}()
		}
		return told
	})
}

// inOrder returns the locks by name, each once.
func inOrder(locks []*Lock) ([]*Lock, error) {
	for i, l := range locks {
		if err := l.checkMade(); err != nil {
			return nil, fmt.Errorf("lock %d: %w", i, err)
		}
	}
	order := slices.SortedFunc(slices.Values(locks), func(a, b *Lock) int { return strings.Compare(a.id.Name, b.id.Name) })
	for i, l := range order[min(1, len(order)):] {
		before := order[i]
		if before.id.Name != l.id.Name {
			continue
		}
		if err := l.checkBeside(before); err != nil {
			return nil, err
		}
		if before.id != l.id || before.options != l.options {
			return nil, fmt.Errorf("two locks are called %q, and have different clients or options: the second would wait for the first, or re-enter it in another way", l.id.Name)
		}
		if l.keys.Permits() > 0 {
			return nil, fmt.Errorf("two permits of the semaphore %q: two callers that have one each would wait for each other; take one", l.id.Name)
		}
	}
	return slices.CompactFunc(order, func(a, b *Lock) bool { return a.id == b.id }), nil
}
