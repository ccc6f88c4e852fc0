package holder

import (
	"context"
	"errors"
	"fmt"
)

// The errors of holds that callers act on; package rlock shows them, and says what they mean.
var (
	ErrNotHeld        = errors.New("not held")
	ErrLost           = errors.New("lock lost")
	ErrMaxHold        = errors.New("it was held for longer than MaxHold allows")
	ErrImported error = imported{}
	ErrUnlocked       = errors.New("context used after its lock was unlocked (keep the ctx from before Lock)")
)

type imported struct{}

func (imported) Error() string { return "the hold was exported, and somebody has imported it" }

func (imported) Is(target error) bool { return target == ErrUnlocked }

// EndError is why a hold's context is over: its Err and its cause. It is also context.Canceled, as any code that is handed
// a context expects.
type EndError struct {
	Lock    string // the lock's name
	Err     error
	How     string // how the hold was lost, or ""
	Renewal error  // what the last renewal of a lost hold said, or nil
}

func (e *EndError) Error() string { return fmt.Sprintf("rlock: %q: %v", e.Lock, e.withoutLock()) }

func (e *EndError) Unwrap() error { return e.withoutLock() }

// isLoss tells whether the holder had not unlocked the hold.
func (e *EndError) isLoss() bool { return e.Err == ErrLost || e.Err == ErrImported }

// withoutLock is the error without the lock's name.
func (e *EndError) withoutLock() error {
	switch {
	case e.How == "":
		return e.Err
	case e.How == ErrMaxHold.Error():
		return fmt.Errorf("%w: %w", e.Err, ErrMaxHold)
	case e.Renewal == nil:
		return fmt.Errorf("%w: %s", e.Err, e.How)
	}
	return fmt.Errorf("%w: %s; last renewal: %w", e.Err, e.How, e.Renewal)
}

func (e *EndError) Is(target error) bool { return target == context.Canceled }

// ContextError is why ctx is over, as an error that is both its Err and its cause.
func ContextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		if cause != nil {
			return cause
		}
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
