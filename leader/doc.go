// Package leader lets one of several processes lead: run the scheduler, own the partition, talk to the device. The others wait, and one of
// them takes over when the leader steps down, ends or dies.
//
//	election, err := leader.New(fenced.NewLock(client, "scheduler", fenced.WithClockFloor()))
//	...
//	err = election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
//		return schedule(ctx, term.Token()) // until ctx ends
//	})
//
// A term is a hold of the lock, renewed for as long as it lasts: a leader may lead for weeks. Its hold has rlock.Lasting("leads"), so that it and those
// who stand by do not count as stuck. A leader that dies is replaced when its lease is
// over, 30 s later with the defaults (rlock.WithLease). While Redis is away nobody can take over, and the leader leads on until its lease
// is over.
//
// A leader may be paused without knowing it (a garbage collection, a frozen VM), and go on when another one leads. Its context has ended
// then, but between a look at the context and a write lies a gap. What closes the gap is storage that checks the token of the term
// (package guard, and the example). Without that there may be two leaders for a moment, as with etcd's Election and with Kubernetes' leases.
//
// Make the lock with fenced.WithClockFloor where storage checks tokens. Otherwise, after a Redis that restarts empty, the next leader has token 1,
// and storage refuses its writes until somebody sets the counter. On guard.ErrStale lead stops, and returns the error: somebody newer leads, and
// Run campaigns again; or the counter was lost, and Run returns the error. docs/guards.md says how to set a counter that was lost.
//
// Who and Watch tell other processes who leads, so that they send their requests there.
//
// The waiting processes are in the line of the lock: the one that has waited longest leads next. It works on all that a fenced.Lock works on:
// one Redis, Sentinel, a cluster, and a quorum of servers (quorum.New).
package leader
