package fenced

import (
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// A RWLock is a read-write lock with fencing tokens, on the keys of Redisson's RReadWriteLock: any number of holders read at a time, or one writes. Its
// sides are Locks with all methods of a Lock. It holds no state, and may be used by any number of goroutines.
//
// A hold that writes has a token of its own, larger than all before. Holds that read at the same time share one, which is larger than that of the writer
// before them: they are of one phase. A guard accepts equal tokens and refuses smaller ones. So storage refuses a writer that was paused as soon as
// one of the next readers has shown its token, with a Check or a write, and a reader that was paused as soon as the next writer has. From a reader's first Check that was
// accepted to its last, nobody else's write was accepted. With WithClockFloor a
// restart or a failover of the server ends the phase, and the next reader has a larger token: a writer with a token larger than the phase's may have come
// and gone, of which the server knows nothing. Storage then refuses those who read since before. The user needs the right to INFO for that. A reader that shows no token is kept from writers by time alone. A hold keeps its token: a
// re-entry takes no new one, as with WithStableToken.
//
// Those who wait are served in the order in which their clients came: a client that waits to write is not passed by others that read. Redisson's
// clients are in no line, and pass; they take no tokens.
//
// A read lock within the holder's own read lock or write lock, and a write lock within its own write lock, is a level of the same hold, and waits for nobody. The
// side that took a level unlocks it: Unlock of the other one returns rlock.ErrNotHeld. A
// write lock within the holder's own read lock is rlock.ErrUpgrade at once. A holder's read lock in another process is another holder's: behind a client
// that waits to write it waits too.
//
// It works on one Redis, Sentinel and a cluster, and not with a client of package quorum.
type RWLock struct{ read, write *Lock }

// NewRWLock returns the read-write lock of this name. It asks no one. The name is as that of NewLock; a plain lock of the same name is another object at
// the same key, and each refuses the other's with WRONGTYPE. The options are those of NewLock.
func NewRWLock(client *rlock.Client, name string, opts ...Option) *RWLock {
	read, write := engine.NewReadWrite(engine.ClientOf(client), name, optionsOf(opts))
	return &RWLock{&Lock{read}, &Lock{write}}
}

// Read returns the side that reads. Its ForceUnlock ends all holds that read, and none that writes. Its IsLocked and TTL ask about holds that read;
// its IsHeld and HoldCount are those of the holder's one hold, also where that writes.
func (l *RWLock) Read() *Lock {
	if l == nil {
		return nil
	}
	return l.read
}

// Write returns the side that writes. Its ForceUnlock, IsLocked and TTL are about the hold that writes.
func (l *RWLock) Write() *Lock {
	if l == nil {
		return nil
	}
	return l.write
}

// Name returns the lock's name, as NewRWLock was given it.
func (l *RWLock) Name() string { return l.Read().Name() }
