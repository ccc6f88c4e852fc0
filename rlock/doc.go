// Package rlock is a reentrant lock on Redis, in Redisson's form.
//
//	client, err := rlock.New(rdb) // on a go-redis client; one for the whole process
//	lock := rlock.NewLock(client, "lock:report")
//	err = lock.Do(ctx, func(ctx context.Context) error {
//		return write(ctx) // ctx ends when the lock is lost
//	}, rlock.Wait(3*time.Second))
//
// # Two ways to take a lock
//
// [Lock.Do] runs a function while it holds the lock. [Lock.Acquire] returns a [Hold], for code that keeps the hold in a variable: behind an
// interface of somebody else, and wherever the hold outlives the call. [Wait], [Lease] and [Lasting] are options of both. The context of Do bounds
// the wait and the hold; that of Acquire bounds the wait alone, and the hold is a new holder's.
//
// [Lock.Lock], [Lock.TryLock] and [Lock.LockLease], with [Lock.Unlock], are the forms of Redisson, for code that comes from there.
//
// # The holder is in the context
//
// Go has no thread ids, so who holds a lock travels in a [context.Context]: the one that Lock returns, and Do
// gives its function. Passing it down is what "the same thread" is in Java, and a nested Lock with it re-enters. A context without a holder is someone new,
// and waits. Goroutines that share a context share its holder; those that lock the same name with the same context
// nevertheless exclude each other, because a call re-enters only when the hold's newest open level is on its own
// context's chain. What the holder has locked already does not exclude them: give a goroutine that must wait for its
// parent a context from [NewHolder].
//
// Re-entry is a matter of one [Client]: another one's locks, of the same name too, wait.
//
// Do, too, takes the lock for the holder of its context, and Acquire with [Reenter].
//
// The context also tells when the lock is lost: it ends before the lease can have run out in Redis. Look at it before
// every step that must not happen without the lock, and let storage check the token (package fenced) for the gap that
// remains between that look and the write.
//
// # What ends a hold
//
// Unlock, in reverse order, as defer does it. The end of the context below all holds: it ends the hold's context at
// once and the lease when it runs out; Unlock releases it earlier; a Hold of Acquire has no context below. The loss of the lease: Redis was not reached in time,
// or the process stood still. ForceUnlock. A hold whose contexts were all dropped without Unlock is not renewed any
// more once the garbage collector has found that out, and is logged as the mistake it is. Go collects in an idle process once in two
// minutes: for so long such a hold may be renewed.
//
// What was derived from a hold's context to end with it (context.WithCancel, context.WithTimeout, context.AfterFunc) is in use, and
// keeps the hold, until it is cancelled or stopped, or its own time is over: its function is to be called and its Done channel to be
// closed when the lock is lost, also where nobody has anything else of it. Cancel what you derive, on the ways of errors too: go vet
// finds those where a cancel function is not called.
//
// # When Redis is away
//
// Calls that may wait ride out what goes away by itself (WithPatience). A command that got no answer may have been
// executed: it is repeated in a form that counts once, and what may have been taken without anybody knowing is released
// again and again until it cannot matter. Renewals are tried until the deadline. No call outlives its context, because
// it is goroutines of the library's own that wait for Redis.
//
// # Many callers
//
// Commands of calls that are made at the same time travel together. The waiters of one lock in one client wait in a queue;
// the first one asks Redis, and when a hold of this client ends the lock passes to it in one round trip, a bounded number
// of times (WithHandoffs), or without asking Redis (WithLocalHandoffs). Then it is released for everybody.
//
// Clients that wait for one lock stand in a line in Redis, each of them once. A release calls the first one, and no other
// client takes the lock before it, but for calls with wait 0 and clients that know of no line, such as Redisson's. So what a
// release costs does not grow with the number of processes that wait. The order of waiters is that of arrival within a
// client, and that of the line between clients. A client that is called and does not come within 100 ms loses its place.
// In a quorum the line is on one of the servers. There is no line in a cluster without sharded channels, with redis.NewFailoverClusterClient, and for a Redis
// user without the right to its key: all who wait hear of each release there, and try.
//
// Exclusion rests on Redis keeping its data and its clock not being stepped; a replica that is promoted may not know of
// the lock. WithReplicas and WithFsync have others confirm it first. Tokens and guards are there for what a lock on Redis
// cannot promise.
package rlock
