package guard

import (
	"errors"
	"fmt"
)

// ErrStale tells that a write was refused because a newer holder has written before it. The error that carries it is a
// [*StaleError]. Do not try again with the same token: the lock was lost, and what was read under it may have changed.
var ErrStale = errors.New("stale fencing token")

// ErrToken tells that a token is no token: they begin at 1, so that 0 or less is a variable that was never set.
var ErrToken = errors.New("a fencing token is 1 or more")

// StaleError is an [ErrStale] with its figures.
type StaleError struct {
	Resource string // what was to be written
	Token    int64  // of the write that was refused
	Seen     int64  // the larger one that was accepted before
}

// Error implements error.
func (e *StaleError) Error() string {
	return fmt.Sprintf("guard: %s of %q: %d was shown, and %d has been seen", ErrStale, e.Resource, e.Token, e.Seen)
}

// Unwrap makes errors.Is find [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }

// Check returns an error with [ErrToken] if the token is 0 or less, and another one if the resource has no name. All
// guards call it before they ask their storage.
func Check(resource string, token int64) error {
	if resource == "" {
		return errors.New("guard: no resource: name the resource that is written, by the name of its lock as a rule")
	}
	if token > 0 {
		return nil
	}
	return fmt.Errorf("guard: %q: %w, not %d: pass the one that the lock gave", resource, ErrToken, token)
}
