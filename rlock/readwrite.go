package rlock

import "github.com/fencelock/fencelock/internal/engine"

// A RWLock is a read-write lock without tokens, on the keys of Redisson's RReadWriteLock: any number of holders read at a time, or one writes. Its sides
// are Locks with all methods of a Lock. It holds no state, and may be used by any number of goroutines. Where storage is to refuse the writes of
// a holder that was paused, use fenced.RWLock, whose doc says more.
type RWLock struct{ read, write *Lock }

// NewRWLock returns the read-write lock of this name. It asks no one. The name is as that of NewLock; a plain lock of the same name is another object at
// the same key, and each refuses the other's with WRONGTYPE.
func NewRWLock(client *Client, name string) *RWLock {
	read, write := engine.NewReadWrite(client.engine(), name, engine.LockOptions{})
	return &RWLock{&Lock{read}, &Lock{write}}
}

// Read returns the side that reads. ForceUnlock of it ends all holds that read.
func (l *RWLock) Read() *Lock {
	if l == nil {
		return nil
	}
	return l.read
}

// Write returns the side that writes.
func (l *RWLock) Write() *Lock {
	if l == nil {
		return nil
	}
	return l.write
}

// Name returns the lock's name, as NewRWLock was given it.
func (l *RWLock) Name() string { return l.Read().Name() }
