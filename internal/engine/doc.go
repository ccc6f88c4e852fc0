// Package engine is the clients and locks behind the packages rlock, fenced and quorum. What a
// client's calls wait for, and what is done about that, package room decides; the engine is its
// shell. Redis is reached through a Store and a Bus. Package holder has who holds, and the
// contexts. docs/architecture.md has the words, the states of a hold, and the way of a call through
// the files; docs/protocol.md has the rules P1 to P58.
//
// # Who owns what
//
// A waiter belongs to the goroutine of its caller, but for the fields that lockState.mu guards. A
// hold is a holder.Hold, with what Redis and the client have of it. A lockState is the shell of a
// room, which is what the client knows of one lock, and is there while somebody uses it: the calls
// in the room's queue, the commands that the room has sent, the client's own hold, and the channels
// that it listens on. A semaphore and each side of a read-write lock have a lockState with the
// queue and the place, and each of their holds has one of its own (kind.go). A command under way is
// one of internal/command, which notifies whoever waits for it. What may be taken without anybody
// knowing is left to internal/releases; releasing is the client as that package uses it.
//
// # Who runs a room
//
// The engine is a monitor, and a room has no goroutine. Whoever changes a lock state takes
// lockState.mu, gives the room the event (step), and does what the room says (Do). Before
// unlocking, see gives the room what has come meanwhile: messages, answers, the time. An answer, a
// message or the time wakes the first waiter's goroutine, which does the same. A command that is
// answered while it is sent only notes that: a step never begins within another one. A call with
// wait 0 stands in no queue: it sends its attempts itself (askOnce), and tells the room what they
// have come to.
//
// # The order of mutexes
//
// A goroutine that holds a mutex may take those to the right of it, and no others of this package.
//
//	lockState.mu      Client.mu, news.mu, outage.mu, toldOfWait.mu
//	Client.mu         lockState.mu, of a state without users (see below)
//	countChanges.mu, news.mu, outage.mu, toldOfWait.mu, tracedHolds.mu: none
//
// lockState.mu comes before Client.mu where a timer that lingers, or an attempt that was taken back,
// is counted as a user of the state, and where a hold watches for calls that wait, or is told of one (waited.go). Client.mu comes
// before lockState.mu where the last user of a state goes, and reset empties it, and where newState
// uses it again. These do not wait for each other: the former are called for a user of the state,
// and reset only where no user is left and the client has forgotten the state. Others may have the
// mutex of such a state (notifyAll, endLinger, InUse, InQueue, Books, waiting, HoldGone,
// releaseOver, checkHold), but do not take Client.mu with it.
//
// No mutex is held while one of these is called: Watchdog.Add, Extend, Ask, Remove; hold.lose; a
// function of the trace, a method of the user's log, which package tell calls, or a method of the
// user's context. The watchdog calls hold.Renewal and hold.Slot with its mutex held: they take
// tracedHolds.mu, and the mutexes of packages tell and holder, one after the other.
//
// # Mutexes of other packages
//
// internal/releases has Releaser.mu and Attempts.mu, internal/tell the mutexes of a log and of an
// outbox, internal/dials that of the dials. All of them may be taken with lockState.mu held, and
// those of internal/tell with Releaser.mu. internal/command has no mutex.
//
// The Bus is called with lockState.mu held (Subscribe, Live, Drop, Close, Hears, Known), or with
// Releaser.mu (Known). The Bus of one server calls wake with its mutex held, also from Subscribe.
// So onReleaseMessage and onLineMessage take news.mu alone, and nothing calls the Bus with news.mu.
//
// Store.Send and Store.TakeBack are called with lockState.mu held, TakeBack and Limits.Owes also
// with Releaser.mu. The Store calls Sending and Answered with no mutex held that Send, TakeBack or
// Owes takes. It may answer from Send itself: the answer to what is sent with lockState.mu held, an
// attempt, a handoff or a leave of the line, takes Releaser.mu, Attempts.mu and the mutexes of
// internal/tell. The answer to a release takes lockState.mu too.
package engine
