package engine

import (
	"context"
	"time"
)

// isMade tells whether an acquire has returned the hold.
func (h *Held) isMade() bool { return h != nil && h.level != nil }

// errUnmade is the error of a hold that no acquire has returned, and of its context.
var errUnmade error = unmade{}

type unmade struct{}

func (unmade) Error() string {
	return "not held: the hold is nil or a zero value: use what Acquire has returned without an error"
}

// Is makes it ErrNotHeld, and context.Canceled, as any code that is handed a context expects.
func (unmade) Is(target error) bool { return target == ErrNotHeld || target == context.Canceled }

// An unmadeContext is the context of a hold that no acquire has returned. It has ended.
type unmadeContext struct{}

var longAgo = func() <-chan struct{} {
	ended := make(chan struct{})
	close(ended)
	return ended
}()

func (unmadeContext) Done() <-chan struct{}       { return longAgo }
func (unmadeContext) Err() error                  { return errUnmade }
func (unmadeContext) Value(any) any               { return nil }
func (unmadeContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (unmadeContext) String() string              { return "rlock hold that nobody has" }
