// Package engine is the clients and locks behind the packages rlock, fenced and quorum: the queue of waiters of one client, its place in
// the line of clients, and handoffs. Redis is reached through a Store and a Bus. Package holder has who holds, and the contexts.
// docs/architecture.md has the words, the states of a hold, and the way of a call through the files; docs/protocol.md has the rules P1 to P55.
//
// # Who owns what
//
// A waiter belongs to the goroutine of its caller, but for the fields that lockState.mu guards. A hold is a holder.Hold, with what Redis and
// the client have of it. A lockState is what the client knows of one lock, and is there while somebody uses it: the queue of waiters, the asker,
// which asks Redis for the first of them, the client's own holds, and its place in the line. A claim is the hold that is to be taken next,
// with the attempts to take it: it is the asker's, and not a waiter's. A semaphore and each side of a read-write lock have a lockState with the queue and the
// place, and each of their holds has one of its own (kind.go). A command under way is one of internal/command, which notifies whoever
// waits for it. What may be taken without anybody knowing is left to internal/releases; releasing is the client as that package uses it.
//
// # States of an asker
//
// The engine is a monitor. An asker is part of a lock state while somebody waits, and has no goroutine. Whoever changes a lock state takes lockState.mu,
// and runs the asker before unlocking (lockState.unlock, see). An answer, a message or the time wakes the first waiter's goroutine, which runs the
// asker. A call with wait 0 has no asker: it sends its attempts itself (askOnce), and verdict says what they have come to, as it does for the asker.
//
//	          a waiter joins                        Redis gives the lock,
//	          the empty queue                       or an error that does not pass
//	resting ───────────────────▶ asking ───────────────────────────────────────▶ decided
//	   ▲                         ▲   │                                            ▲   │
//	   │   called, a release     │   │ refused, or an error                       │   │
//	   │   was told, time to     │   │ that passes                                │   │
//	   │   look, own hold over   │   ▼                                            │   │
//	   │                        watching ── own hold passes the lock on ──▶ receiving │
//	   │                         ▲   │      (also from yielding)                      │
//	   │                         │   │ called, while a client listens                 │
//	   │                  5 ms   │   ▼ that is in no line                             │
//	   │                 asking ◀── yielding                                          │
//	   │                                                                              │
//	   └───── the last waiter leaves ◀──────────── the first waiter leaves ◀──────────┘
//	                                               with its outcome; the next one leads
//
// In four of the states:
//
//   - watching: the client waits for a message, or for its own look at due. While its own hold has the lock, messages wait too.
//   - yielding: the called client leaves the lock to outsiders for 5 ms (P27).
//   - asking: an attempt is under way. Its answer is of no use from due on.
//   - receiving: the own hold passes the lock on by a command. Ends as asking does, or at once where Unlock has waited long enough (P15).
//
// Where the first waiter leaves without an outcome during an attempt, a next waiter that asks for the same lease and tokens waits for that answer. The
// asker takes back an attempt older than 100 ms, or does not wait for its answer, and asks anew with the same claim. A claim that the next waiter does
// not ask for goes to the releaser, and so does each claim at several servers, for permits, and of a read-write lock.
//
// # The order of mutexes
//
// A goroutine that holds a mutex may take those to the right of it, and no others of this package.
//
//	lockState.mu      Client.mu, news.mu, outage.mu, toldOfWait.mu
//	Client.mu         lockState.mu, of a state without users (see below)
//	countChanges.mu, news.mu, outage.mu, toldOfWait.mu, tracedHolds.mu: none
//
// lockState.mu comes before Client.mu where linger counts the timer as a user of the state, and where a hold watches for calls that wait, or is told of one
// (waited.go). Client.mu comes before lockState.mu where the last user of a state goes, and reset empties it. These do not wait for each other: the former
// are called for a user of the state, and reset only where no user is left and the client has forgotten the state. Others may have the mutex of such a state
// (notifyAll, endLinger, InUse, InQueue, Books, waiting, HoldGone, releaseOver, checkHold, followHold), but do not take Client.mu with it.
//
// No mutex is held while one of these is called: Watchdog.Add, Extend, Ask, Remove; hold.lose; a function of the trace, a method of the user's
// log, which package tell calls, or a method of the user's context. The watchdog calls hold.Renewal and hold.Slot with its mutex held: they
// take tracedHolds.mu, and the mutexes of packages tell and holder, one after the other.
//
// # Mutexes of other packages
//
// internal/releases has Releaser.mu and Attempts.mu, internal/tell the mutexes of a log and of an outbox, internal/dials that of the dials. All
// of them may be taken with lockState.mu held, and those of internal/tell with Releaser.mu. internal/command has no mutex.
//
// The Bus is called with lockState.mu held (Subscribe, Live, Drop, Close, Hears, Known), or with Releaser.mu (Known). The Bus of one server
// calls wake with its mutex held, also from Subscribe. So onReleaseMessage and onLineMessage take news.mu alone, and nothing calls the Bus
// with news.mu.
//
// Store.Send and Store.TakeBack are called with lockState.mu held, TakeBack and Limits.Owes also with Releaser.mu. The Store calls Sending and
// Answered with no mutex held that Send, TakeBack or Owes takes. It may answer from Send itself: the answer to what is sent with lockState.mu
// held, an attempt, a handoff or a leave of the line, takes Releaser.mu, Attempts.mu and the mutexes of internal/tell. The
// answer to a release takes lockState.mu too.
package engine
