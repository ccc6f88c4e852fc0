package engine

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
)

// A waiter is one acquiring call under way. A call with wait 0 is one too: it waits for nothing but
// the answer of Redis.
type waiter struct {
	*Lock
	request Request
	lease   time.Duration   // in whole milliseconds
	ctx     context.Context // the caller's
	under   context.Context // what the level's context is derived from
	bound   bound           // of the wait
	holder  *holder.Holder
	// of the caller's context, or holder: during Shutdown it is let in while it has a hold
	caller    *holder.Holder
	began     time.Time
	lockState *lockState
	wakeup    *command.Wakeup // notified when there may be something to see
	inQueue   bool            // of the room
	own       *hold           // that a call is to get which does not wait
	traced
	attemptCount int // so many attempts, so far, of which Limits.Tries bounds the number

	queued
}

// queued is what lockState.mu guards of a waiter, while that is in the queue of the room.
type queued struct {
	number     uint64 // in the queue of the room
	prev, next *waiter
	outcome    outcome
}

// A bound is when a wait ends: with the caller's context, or when its time is over. The methods of
// ctx are the user's, and only the call's own goroutine calls them.
type bound struct {
	ctx   context.Context
	end   <-chan struct{} // closed when ctx ends
	until time.Time       // the deadline of ctx; zero for none
}

// waits tells whether the call waits for others.
func (r Request) waits() bool { return r.Forever || r.Wait > 0 }

// endsWithin tells whether the call is to end within this time.
func (w *waiter) endsWithin(d time.Duration) bool {
	return !w.bound.until.IsZero() && time.Until(w.bound.until) < d
}
