package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// All takes locks in the order of their names, each with the context of the one before, so that the
// loss of any ends the last context. It runs fn with that, and unlocks in reverse order, also where
// fn panics. The tokens are in the order of the locks. The wait of the request is one budget for
// all of them. wrap makes the error of a method of a lock, nil for none of them; fn's error stays
// as it is.
func All(ctx context.Context, locks []*Lock, r Request, wrap func(l *Lock, err error) error, fn func(ctx context.Context, tokens []int64) error) (err error) {
	order, bad := inOrder(locks)
	if bad != nil {
		return wrap(nil, bad)
	}
	began, tokens := time.Now(), make([]int64, len(locks))
	for n, l := range order {
		each := r
		if n > 0 && each.Wait > 0 {
			if each.Wait -= time.Since(began); each.Wait < minWait {
				each.Wait = 0
			}
		}
		held, token, failed := l.Acquire(ctx, each)
		// what is left of the wait was too short for an answer
		if n > 0 && each.Wait > 0 && errors.Is(failed, context.DeadlineExceeded) && ctx.Err() == nil {
			each.Wait = 0
			held, token, failed = l.Acquire(ctx, each)
		}
		if failed != nil {
			return wrap(l, failed)
		}
		defer func() { err = errors.Join(err, wrap(l, l.Unlock(held))) }()
		for i, one := range locks {
			if one.id == l.id {
				tokens[i] = token
			}
		}
		ctx = held
	}
	return fn(ctx, tokens)
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
	}
	return slices.CompactFunc(order, func(a, b *Lock) bool { return a.id == b.id }), nil
}
