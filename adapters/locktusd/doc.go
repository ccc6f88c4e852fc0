// Package locktusd locks the uploads of several tusd servers that share a storage.
//
//	client, err := rlock.New(rdb) // or quorum.New, on several servers
//	locker, err := locktusd.New(client)
//	composer := handler.NewStoreComposer()
//	store.UseIn(composer)
//	locker.UseIn(composer)
//
// A request that comes for an upload which another request has locked, on this server or another one, makes that other request end, and takes over. A
// client whose connection broke goes on with its upload in this way, while the first server still waits for data.
//
// # What to know
//
// tusd bounds the wait by Config.AcquireLockTimeout, 20 s by default. A request that is to release its lock does so when its store has written
// what it has received: choose a timeout that is longer than the store takes for that.
//
// tusd's interface has no token, and its stores check none. A server that stood still for longer than its lease, 30 s by default, may write once more
// before it hears that its lock is lost, beside the next holder. Set rlock.WithLease to more than the pauses that you expect; a server that dies
// leaves its uploads locked for as long.
//
// A server whose Redis user has no right to the line of waiters is not heard of (rlock.Hold.Waited): the holder is not asked, and the server's
// request waits until the timeout.
package locktusd
