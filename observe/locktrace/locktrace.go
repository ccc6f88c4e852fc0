// Package locktrace has the functions by which a client tells what happens to its locks, as net/http/httptrace has them for
// requests: how long calls waited, how holds ended, how close renewals came to the end of a lease, what is sent again in the
// background. Metrics, spans and a line in a log for each lost lock are made of them.
//
//	client, err := rlock.New(rdb, rlock.WithTrace(&locktrace.Trace{
//		HoldDone: func(e locktrace.HoldDone) {
//			if e.End != locktrace.Unlocked {
//				log.Printf("%s, token %d, ended after %v: %v: %v", e.Lock, e.Token, e.Held, e.End, e.Err)
//			}
//		},
//	}))
//
// The package imports nothing of the project, and no Redis.
package locktrace

import (
	"context"
	"time"
)

// Trace is what a client of rlock.WithTrace calls, and a guard with an option of this name. A function that is nil is not called, and
// costs nothing.
//
// The client calls the functions without any lock of its own held, and no renewal, waiter or
// subscription waits for them. AcquireDone, and HoldDone of an Unlock or a ForceUnlock, are called
// by the goroutine of that call, before it returns: that call waits for them, and keeps the lock
// meanwhile that it has got. A panic of theirs is one of that call, which has released what it has
// got. WaitStarted has a goroutine of its own beside the wait. Where it panics, or ends its
// goroutine, before the call has ended, the call leaves the queue and ends in the same way; where
// it takes longer than the call, AcquireDone follows on its goroutine. All other events are told
// one after the other, in order, by one goroutine of the client. While one of these does not return
// 4,096 wait; more are left out, and the log says so. Close waits for them for a second at most.
//
// Several functions may be called at the same time. They may call locks, but not Close or Shutdown, which wait for calls.
//
// AcquireDone of a hold and HoldDone may come in either order where the hold is lost at once.
type Trace struct {
	// WaitStarted is called when an acquiring call begins to wait for other holders: Redis has refused it, or other calls of its
	// client are before it. AcquireDone of the same call follows, with Contended set.
	WaitStarted func(WaitStarted)
	// AcquireDone is called when an acquiring call ends, with the lock or without it. A call that was refused for its arguments,
	// or because the client is closed, asked nobody, and is not told of.
	AcquireDone func(AcquireDone)
	// HoldDone is called once for each hold, when that ends: by the last Unlock of a holder, or because the lock was lost.
	HoldDone func(HoldDone)
	// RenewalDone is called for each round trip of the watchdog, which renews many leases at a time.
	RenewalDone func(RenewalDone)
	// SubscriptionChanged is called when a connection on which the client listens is up, or is down. While it is down the client's
	// waiters poll. A connection that is closed because nobody waits any more is not told of, and neither is one that is not made
	// again after it was down, because nobody waits by then, or because the cluster's slots have moved to another node.
	SubscriptionChanged func(SubscriptionChanged)
	// ReleaseDelayed is called when Redis, or a majority of a quorum, has not confirmed the release of a hold, or of an acquire that nobody waits for any
	// more: when Unlock has given up, otherwise after a second. ReleaseEnded follows. After a connection was lost one hold may have two such releases.
	ReleaseDelayed func(ReleaseDelayed)
	// ReleaseEnded is called when a release that was told as delayed is confirmed, or is given up.
	ReleaseEnded func(ReleaseEnded)
	// WriteRefused is called by a guard (guard.WithTrace, redisguard.WithTrace and so on) that has refused a write because
	// a newer token was shown: a holder that had lost its lock went on writing.
	WriteRefused func(WriteRefused)
}

// Call says which call of which client an event is about.
type Call struct {
	Context context.Context // the caller's: what a span begins under
	Client  string          // the client's id, which is what the holder's field in Redis begins with
	Lock    string          // the lock's name
	Began   time.Time       // when the call began
	MayWait bool            // the call waits for other holders, if there are any: it has no wait of 0
	Lasting string          // the word of rlock.Lasting; "" without it
}

// WaitStarted is an acquiring call that begins to wait for other holders.
type WaitStarted struct{ Call }

// AcquireDone is an acquiring call that has ended.
type AcquireDone struct {
	Call
	Took      time.Duration // since Began
	Contended bool          // the call has waited for other holders; false too for one with wait 0, which waits for nobody
	Attempts  int           // so many attempts to take the lock this call has sent; a handoff and a re-entry are none
	By        Way           // how the lock came; NotAcquired on an error
	Hold      uint64        // numbers the holds of this process, in HoldDone too; 0 on an error
	Field     string        // the holder's field in Redis, <client>:<number>; "" on an error
	Token     int64         // the fencing token of this acquire; 0 for a lock without tokens
	Slot      string        // of a permit: the lock of its slot, such as "{jobs}:3", where Lock is "{jobs}:*"; "" otherwise
	Err       error         // as the caller gets it, but for the name of the method and the lock
}

// Way is how a call got the lock.
type Way int

// The ways to get a lock.
const (
	NotAcquired Way = iota
	FromRedis       // by an attempt that Redis granted
	FromHandoff     // from the hold before it in the same client, by one command
	Reentry         // the holder had it already
	FromLocal       // from the hold before it in the same client, which Redis was not told of: a local handoff
	FromImport      // from a hold that was exported, of this client or another one
)

var ways = [...]string{"not acquired", "redis", "handoff", "reentry", "local", "import"}

// String returns the way in a word, as a label of a metric has it.
func (w Way) String() string { return name(ways[:], int(w)) }

// HoldDone is a hold that has ended.
type HoldDone struct {
	Client string
	Lock   string
	Hold   uint64        // as in AcquireDone
	Field  string        // as in AcquireDone
	Token  int64         // the hold's last; 0 for a lock without tokens
	Slot   string        // as in AcquireDone
	Began  time.Time     // when the acquire that began the hold ended
	Held   time.Duration // until the lock was unlocked, or was known to be lost
	End    End
	Err    error // why the lock was lost, or why Redis has not confirmed its release so far; nil otherwise

	// ContextErr is why the context that the hold was taken with had ended before the hold; nil if it had not, and for a hold of Acquire,
	// which does not end with its context.
	ContextErr error

	Lasting string // of the call with which the hold began, as in Call
}

// End is how a hold ended.
type End int

// The ends of a hold.
const (
	Unlocked End = iota // by its holder; Redis may not have confirmed it yet: see HoldDone.Err
	Lost                // its lease ran out, or Redis had it no longer: its key was deleted, forced open by another client, or lost by a failover; or MaxHold ended it
	Forced              // ForceUnlock of this client released it
	Dropped             // its holder is garbage, and nobody can unlock it any more; its lease, the watchdog's, ran out
	Closed              // its client was closed while it was held
	Imported            // somebody has imported it
)

var ends = [...]string{"unlocked", "lost", "forced", "dropped", "closed", "imported"}

// String returns the end in a word, as a label of a metric has it.
func (e End) String() string { return name(ends[:], int(e)) }

// RenewalDone is one round trip of the watchdog.
type RenewalDone struct {
	Client   string
	Locks    int           // so many leases were to be renewed
	Gone     int           // so many holds Redis had no longer, also of those that are only asked about: they are lost
	Failed   int           // so many renewals were not confirmed: they are tried again until the leases are over
	Took     time.Duration // from sending to the answer, or to giving up
	Margin   time.Duration // what was left, when the answer came, of the lease that had the least left: 0 or less is too late
	Lease    time.Duration // the whole length of that lease
	LastLock string        // the last of the locks that failed, "" for none
	Err      error         // of LastLock
}

// SubscriptionChanged is a connection on which a client listens for releases, or does not any more.
type SubscriptionChanged struct {
	Client string
	Node   string // the node's address, of a cluster with sharded channels or a quorum; "" of one server
	Up     bool   // messages arrive
}

// ReleaseDelayed is a release in the background that is late.
type ReleaseDelayed struct {
	Client string
	Lock   string
	Field  string // of the holder in Redis, or of the one that there would be
}

// ReleaseEnded is a release in the background that is over.
type ReleaseEnded struct {
	Client    string
	Lock      string
	Field     string
	Took      time.Duration // since it was left to the background
	Confirmed bool          // Redis has confirmed it; otherwise the lease is over, or the client was closed before
}

// WriteRefused is a write with a token that is older than one that was accepted before.
type WriteRefused struct {
	Context  context.Context // the caller's
	Guard    string          // "memory", "redis", "sql" or "s3"
	Resource string          // what was to be written
	Token    int64           // of the write
	Seen     int64           // the larger one
}

// Refused calls WriteRefused, if there is a trace that has it. It is for guards.
func (t *Trace) Refused(e WriteRefused) {
	if t != nil && t.WriteRefused != nil {
		t.WriteRefused(e)
	}
}

// name is the word for the value, of these.
func name(of []string, value int) string {
	if value < 0 || value >= len(of) {
		return "unknown"
	}
	return of[value]
}
