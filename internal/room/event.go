package room

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// What has happened.
type What uint8

const (
	Tick      What = iota // the time has come that Due says, or nothing
	Joined                // Call waits from now on
	Left                  // Call waits no longer. Field: of the hold that it has; "" for none. Begins: as Began
	Answered              // Attempt is over, with Answer or Err. Ticket: with which it was in the line; "" for none
	Message               // Text was heard on the channel of the client's calls
	Told                  // a release was heard on the lock's own channel
	Changed               // Channel is Live, or is not, from now on
	Began                 // the client has a hold with Field, by a command sent at At. Got: a pass was to make it
	Ended                 // the hold with Field is over. Ends: as Released
	Kept                  // the hold with Field has lasted: its end by force is to be heard of
	Unlocking             // the hold with Field is to be unlocked: Passed or Release follows. Call.Terms and Tokens: for a local pass
	GaveUp                // Unlock waits no longer for the pass of Field: Release follows
	Released              // that release is over; it was begun at At. Got: it has freed the hold
	Trying                // a call asks with Field beside the queue: it does not wait, or may read at once
	Tried                 // that call asks no longer
	Asked                 // an attempt of that call, sent at At, has Answer or Err. Got: it tells who waits
	Lost                  // the hold with Field is lost by the clock: Redis may have it for a while
)

// An Event is what has happened, and what the client knows at that time.
type Event struct {
	What    What
	More    bool // another event follows at once: what comes of this one is seen to then
	Facts   Facts
	Call    Call // of Left the ID alone
	Got     bool
	Begins  bool
	Ends    bool
	Tokens  int32 // so many are reserved for those to whom the hold is passed on locally
	Attempt Attempt
	Answer  *scripts.Answer
	Late    bool // the answer grants the lock for less time than can be trusted
	Err     error
	Field   string
	Ticket  string // with which the client was to enter the line, by the attempt or the release,
	Score   int64  // and its score there; 0 where the release entered none
	Heard   int    // so many connections were told of the release
	At      time.Time
	Text    string
	Channel Channel
	Live    bool
}

// Facts are what a client knows of its server.
type Facts struct {
	Line      bool // clients wait in a line
	Forbidden bool // there is one, which this client may not use
	Sharded   bool // messages are sharded
	Proven    bool // this client has been in this line by its channel as it is: it may do all that takes, and is counted
	Draining  bool // the client is shutting down
	Hears     bool // this client would hear its call: its channel is live at this moment
	Listens   bool // the server counts this client among those who listen on the lock's own channel
	HeadEnds  bool // the context of the head of the queue has ended: that call leaves
}

// A Call is an acquiring call that waits.
type Call struct {
	ID    uint64 // larger than those before it
	Terms Terms
	Began time.Time
	Until time.Time // when it ends at the latest; zero for never

	attempts int32 // so far
	waits    bool  // for others: Waits was said
	beside   bool  // it leaves the queue, to ask beside the others
}

// Terms are on what a claim asks for the lock. Calls with the same terms share a claim.
type Terms struct {
	Lease, Expiry         time.Duration
	Permits               int32
	Fenced, Stable, Floor bool
}

// An Attempt is the number of one, in its room. 0 is none.
type Attempt uint32

// A Channel is one on which a room may listen.
type Channel uint8

const (
	Own   Channel = iota // the lock's own, where releases are told
	Calls                // of this client in the line
)

// Do says what is to be done.
type Do uint8

const (
	Send      Do = iota // Attempt for the claim of Field. New: it is the first. InTurn: with Turn
	Pass                // the same, of which Old passes the lock on to Field
	TakeBack            // Attempt, if it has not left: it is waited for no longer
	Grant               // Call has the lock, by Attempt for Field. Handed: it was passed on. Local: without an attempt
	Fail                // Call ends with Err. Dial: joined with why there is no connection since At
	AskBeside           // all calls leave the queue, and ask beside each other
	Abandon             // nobody gets what Field may have taken. Doubt: it is released at once
	FreeOver            // Redis has Field, of a hold of this client that is over
	Passed              // the unlock of Field is over. Waited: it has waited for a pass. Local: Field goes on, for the next call
	Release             // Field, by a command that enters Ticket. Doubt: it may have been passed on. Waited: as above
	LeaveLine           // with Ticket
	Listen              // on Channel; Changed follows when it is live
	Unlisten            // to Channel. Drop: at once, as others count who listens
	Waits               // Call waits for others: the trace is told, once
	Wanted              // the hold with Field has somebody waiting for it
	Suspect             // Field has the lock since At while a call waits, which may be nested in it
)

// An Effect is one thing that is to be done.
type Effect struct {
	Do      Do
	Call    uint64
	Attempt Attempt
	Field   string
	Old     string
	New     bool
	InTurn  bool
	Turn    scripts.Turn
	Handed  bool
	Local   bool
	Err     error
	Dial    bool
	At      time.Time
	Ticket  string
	Stood   bool // Redis has said that the ticket was in the line
	Doubt   bool
	Waited  bool
	Channel Channel
	Drop    bool
}
