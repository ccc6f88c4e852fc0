// Package lockcertmagic has the locks of certmagic, so that of several processes, such as Caddy servers, one obtains or renews a certificate.
//
//	client, err := rlock.New(rdb) // or quorum.New, on several servers
//	locker, err := lockcertmagic.New(client)
//	certmagic.Default.Storage = locker.Storage(storage) // storage keeps the certificates, for all processes
//
// [Locker.Storage] puts the locks in place of those of any storage. A storage of your own can have the four methods of a [Locker] instead.
//
// # What to know
//
// certmagic's interface names a lock by a string, and nothing else. An Unlock that comes late, because its goroutine lost the lock meanwhile, looks
// like the Unlock of the next holder in the same process. A Locker counts: each successful Lock and TryLock is owed one Unlock, and an Unlock is
// first taken for that of a hold that was lost. So a late Unlock never releases the lock of the next holder. If the next holder is done first, its
// lock stays taken until the late Unlock has come.
//
// An Unlock of a lock that was lost returns no error: there is nothing to release, and certmagic would log that it is unable to, and try once more
// in certmagic.CleanUpOwnLocks. The client's log (rlock.WithLogger) and trace (rlock.WithTrace) tell of the loss.
//
// Holds are renewed until Unlock. certmagic asks for a longer lease before each attempt to obtain a certificate: up to 6 hours and more, and at last
// 30 days. A process that dies would leave the lock taken for as long: see [WithMaxLease].
//
// certmagic shows no token to its storage, and is made so that two processes which do the same work do no harm but to rate limits.
//
// At the end of a process call certmagic.CleanUpOwnLocks before the client is closed.
package lockcertmagic
