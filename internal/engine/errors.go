package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/scripts"
)

// The errors that callers act on; package rlock shows them, and says what they mean.
var (
	ErrNotAcquired = errors.New("not acquired: held by someone else")
	ErrNotHeld     = errors.New("not held")
	ErrUnconfirmed = scripts.ErrUnconfirmed
	ErrLost        = errors.New("lock lost")
	ErrUnlocked    = errors.New("context used after its lock was unlocked (keep the ctx from before Lock)")
	ErrClosed      = errors.New("client closed")
)

// errSameHolder is ErrNotAcquired of a call whose own holder has the lock, by another call.
var errSameHolder error = sameHolder{}

type sameHolder struct{}

func (sameHolder) Error() string { return "not acquired: held by another call of the same holder" }

func (sameHolder) Is(target error) bool { return target == ErrNotAcquired }

// endError is why a hold's context is over: its Err and its cause. It is also context.Canceled, as any code that is handed
// a context expects.
type endError struct {
	lock       string
	err        error
	detail     string
	renewalErr error // what the last renewal of a lost hold said, or nil
}

func (e *endError) Error() string { return fmt.Sprintf("rlock: %q: %v", e.lock, e.withoutLock()) }

func (e *endError) Unwrap() error { return e.withoutLock() }

// withoutLock is the error without the lock's name.
func (e *endError) withoutLock() error {
	switch {
	case e.detail == "":
		return e.err
	case e.renewalErr == nil:
		return fmt.Errorf("%w: %s", e.err, e.detail)
	}
	return fmt.Errorf("%w: %s; last renewal: %w", e.err, e.detail, e.renewalErr)
}

func (e *endError) Is(target error) bool { return target == context.Canceled }

// contextError is why ctx is over, as an error that is both its Err and its cause.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		if cause != nil {
			return cause
		}
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
