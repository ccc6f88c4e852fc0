// Package engine is the clients and locks behind the packages rlock, fenced and quorum: the queue of waiters of one client, its place in
// the line of clients, and handoffs. Redis is reached through a Store and a Bus. Package holder has who holds, and the contexts.
// docs/architecture.md has the words, the states of a waiter and of a hold, and the way of a call through the files; docs/protocol.md has
// the rules P1 to P38.
//
// # Who owns what
//
// A waiter belongs to the goroutine of its caller, but for the fields that lockState.mu guards. A hold is a holder.Hold, with what Redis and
// the client have of it. A lockState has the queue and the client's hold of one lock, and is there while somebody uses it. A place is the
// client's part in the line for one lock. A command under way is one of internal/command, which wakes whoever waits for it. What may be taken
// without anybody knowing is left to internal/releases; releasing is the client as that package uses it.
//
// # The order of mutexes
//
// A goroutine that holds a mutex may take those to the right of it, and no others of this package.
//
//	lockState.mu      Client.mu, place.mu, dials.mu
//	Client.mu         lockState.mu, of a state without users (see below)
//	messages.mu       outbox.mu
//	countChanges.mu, dials.mu, outage.mu, outbox.mu, place.mu, toldOfWait.mu, tracedHolds.mu: none
//	hooked, the mutex of the list of dials: none
//
// lockState.mu comes before Client.mu where linger counts the timer as a user of the state. Client.mu comes before lockState.mu where the
// last user of a state goes, and reset empties it. These two do not wait for each other: linger is called for a user of the state, and
// reset only where no user is left and the client has forgotten the state. Others may have the mutex of such a state (notifyAll, endLinger,
// InUse, InQueue, Books, waiting, HoldGone, releaseOver, checkHold, followHold), but do not take Client.mu with it.
//
// No mutex is held while one of these is called: Watchdog.Add, Extend, Ask, Remove; hold.lose; a function of the trace, or a method of the
// user's log, which the outbox calls. The watchdog calls hold.Renewal and hold.Slot with its mutex held: they take tracedHolds.mu,
// messages.mu and the mutexes of package holder, one after the other.
//
// # Mutexes of other packages
//
// internal/releases has Releaser.mu and Attempts.mu. Attempts.mu is taken with lockState.mu held; outbox.mu and messages.mu are taken with
// Releaser.mu held. internal/command has no mutex.
//
// The Bus is called with lockState.mu held (Subscribe, Live, Drop, Close, Known), or with Releaser.mu (Known). The Bus of one server calls
// wake with its mutex held, also from Subscribe. So onReleaseMessage and onLineMessage take place.mu alone, and nothing calls the Bus with
// place.mu.
//
// Store.Send is called with lockState.mu held for a handoff alone. A store of several servers, which may answer from Send itself, has no
// handoffs. Store.TakeBack and Limits.Owes are called with Releaser.mu held. The Store calls Sending and Answered with no mutex held that
// Send, TakeBack or Owes takes: Answered takes Client.mu, lockState.mu, Releaser.mu, Attempts.mu, outage.mu and messages.mu, and may call Send.
package engine
