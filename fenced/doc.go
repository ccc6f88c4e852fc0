// Package fenced is the reentrant lock of package rlock, with fencing tokens: every acquire gives a number that grows
// with each acquire, over all clients, in Go and in Java. Storage that remembers the largest number it has seen, and
// refuses a write that carries a smaller one, is safe from a holder that was paused, lost the lock, and does not know.
//
//	lock := fenced.NewLock(client, "account:42") // client, err := rlock.New(rdb)
//	err = lock.Do(ctx, func(ctx context.Context, token int64) error {
//		return write(ctx, token) // ctx ends when the lock is lost
//	}, rlock.Wait(3*time.Second))
//
// [Lock.Do] and [Lock.Acquire] take a lock, with the options of package rlock. [Lock.LockAndGetToken] and its kin are the forms of Redisson. A [Semaphore] gives
// permits, and an [RWLock] has two sides that are Locks. [AcquireAll] and [DoAll] take several.
//
// The idea is in M. Kleppmann, "How to do distributed locking" (2016), and before it in Chubby's sequencers (M. Burrows,
// "The Chubby lock service", OSDI 2006, 2.4); the form on the wire is Redisson's RFencedLock.
package fenced
