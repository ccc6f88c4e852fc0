package rlock

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fencelock/fencelock/scripts"
)

// The errors that callers act on. Those that methods return are wrapped in an *Error: compare with errors.Is.
var (
	// ErrNotAcquired: somebody else held the lock for the whole wait. From TryLock, TryDo and their kin.
	ErrNotAcquired = errors.New("not acquired: held by someone else")
	// ErrNotHeld: there is nothing to unlock or to check for this context. From Unlock, Check and Token.
	ErrNotHeld = errors.New("not held")
	// ErrUnconfirmed: the lock was taken, or extended, and fewer replicas or disks have confirmed that in time than
	// WithReplicas or WithFsync asks for; what was taken is released. From acquiring calls, with what Redis said.
	ErrUnconfirmed = scripts.ErrUnconfirmed
	// ErrLost: the lease ran out, or the lock was forced open, before the holder unlocked it; somebody else may have it.
	// The cause of the hold's context, and from every method that meets such a hold; with what Redis said to the last
	// renewal, where that failed.
	ErrLost = errors.New("lock lost")
	// ErrUnlocked: a context was used after the Unlock that ended it. The cause of such a context, and from methods that
	// are given it.
	ErrUnlocked = errors.New("context used after its lock was unlocked (keep the ctx from before Lock)")
	// ErrClosed: the client was closed, or is being shut down. From acquiring calls, and the cause of the contexts of
	// holds that Close found.
	ErrClosed = errors.New("client closed")
)

// Error is what every method of a lock returns when it fails.
type Error struct {
	Op   string // the method
	Lock string // the lock's name
	Err  error  // one of the errors above, or what Redis or the context said
}

func (e *Error) Error() string {
	why := strings.TrimPrefix(e.Err.Error(), fmt.Sprintf("rlock: %q: ", e.Lock)) // said by a context of the same lock
	return fmt.Sprintf("rlock: %s %q: %s", e.Op, e.Lock, why)
}

// Unwrap returns e.Err.
func (e *Error) Unwrap() error { return e.Err }

// ended is why a hold's context is over: its Err and its cause. It is also context.Canceled, as any code that is handed
// a context expects.
type ended struct {
	lock string
	err  error
	how  string
	why  error // what the last renewal of a lost hold said, or nil
}

func (e *ended) Error() string { return fmt.Sprintf("rlock: %q: %v", e.lock, e.bare()) }

func (e *ended) Unwrap() error { return e.bare() }

// bare is the error without the lock's name.
func (e *ended) bare() error {
	switch {
	case e.how == "":
		return e.err
	case e.why == nil:
		return fmt.Errorf("%w: %s", e.err, e.how)
	}
	return fmt.Errorf("%w: %s; last renewal: %w", e.err, e.how, e.why)
}

func (e *ended) Is(target error) bool { return target == context.Canceled }

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
