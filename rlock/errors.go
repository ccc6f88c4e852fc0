package rlock

import (
	"fmt"
	"strings"

	"github.com/fencelock/fencelock/internal/engine"
)

// The errors that callers act on. Those that methods return are wrapped in an *Error: compare with errors.Is.
var (
	// ErrNotAcquired: somebody else held the lock for the whole wait, or another call of the same holder, as the error says.
	// From TryLock and TryLockAndGetToken, and from Acquire and Do with Wait; of a quorum with quorum.WithTries also from the other
	// acquiring calls.
	ErrNotAcquired = engine.ErrNotAcquired
	// ErrNotHeld: there is nothing to unlock or to check for this context. From Unlock, Check, Remaining and, of a fenced
	// lock, Token.
	ErrNotHeld = engine.ErrNotHeld
	// ErrUnconfirmed: the lock was taken, or extended, and fewer replicas or disks have confirmed that in time than
	// WithReplicas or WithFsync asks for; what was taken is released. From acquiring calls, with what Redis said.
	ErrUnconfirmed = engine.ErrUnconfirmed
	// ErrLost: the lease ran out, the lock was forced open, or something else took its key, before the holder unlocked it; somebody else may have
	// it. The cause of the hold's context, and from every method that is given that context or meets such a hold; with what
	// Redis said to the last renewal, where that failed, or of the key.
	ErrLost = engine.ErrLost
	// ErrMaxHold: the hold was held for longer than MaxHold allows, and the client has released it. It is ErrLost too, and comes where that does.
	ErrMaxHold = engine.ErrMaxHold
	// ErrUnlocked: a context was used after the Unlock that ended it. The cause of such a context. From the methods that are
	// given it: acquiring calls, Check, Remaining, Token of a fenced lock, IsLocked, TTL and ForceUnlock, and from
	// IsHeld and HoldCount while an outer level is open. Unlock returns ErrNotHeld for such a context.
	ErrUnlocked = engine.ErrUnlocked
	// ErrImported: the hold was exported (Hold.Export), and somebody has imported it. It is ErrUnlocked too. The cause of the hold's context, and from
	// every method that is given that context or meets such a hold, Unlock too.
	ErrImported = engine.ErrImported
	// ErrClosed: the client was closed, or is being shut down. From acquiring calls. It is the cause of the contexts of
	// holds that Close found, and comes from the methods that are given such a context, but for Unlock, which still
	// releases: Check, Remaining, Token of a fenced lock, and the calls that ask Redis. From Shutdown, when Close is called
	// meanwhile and holds are open.
	ErrClosed = engine.ErrClosed
	// ErrUpgrade: the holder has the read side of an RWLock, and would wait for itself to write. From acquiring calls of the write side, at once.
	ErrUpgrade = engine.ErrUpgrade
)

// Error is what every method of a lock returns when it fails. What the function given to Do has returned stays as
// it is: Do joins it, unwrapped, with the Error of the Unlock.
type Error struct {
	Op   string // the method
	Lock string // the lock's name; "" for an error of DoAll or AcquireAll that is of no one lock
	Err  error  // one of the errors above, or what Redis or the context said
}

// Error returns the method, the lock's name in quotes, if there is one, and what is wrong.
func (e *Error) Error() string {
	if e.Lock == "" { // of several locks, or without a name
		return fmt.Sprintf("rlock: %s: %s", e.Op, e.Err)
	}
	why := strings.TrimPrefix(e.Err.Error(), fmt.Sprintf("rlock: %q: ", e.Lock)) // said by a context of the same lock
	return fmt.Sprintf("rlock: %s %q: %s", e.Op, e.Lock, why)
}

// Unwrap returns e.Err, so that errors.Is and errors.As find the errors of this package, of the context and of Redis in it.
func (e *Error) Unwrap() error { return e.Err }
