package scripts

import (
	"context"
	"time"
)

// An Op is one operation on one lock. Do sends it alone, Send in a batch with others.
type Op struct {
	kind    *kind
	keys    *Keys
	fenced  bool
	floor   any // nil, or the expiry of a counter with a floor, in ms
	args    [8]any
	outside bool // it was to have a line, and the user has no right to that
	caller  Caller
	batcher *batcher // that Send gave it to
	state   state    // guarded by its batcher's mu; of a batch's copy: changed atomically
}

// kind is what the batch script knows of an operation.
type kind struct {
	name    any
	fenced  any // its name where it has a counter
	floored any // and where that has a floor
	args    int // without the floor's
	script  *script
	batched *script // that does it together with others
	lined   bool    // it has a line
}

var (
	acquires  = kind{"acquire", "acquire+", "acquire++", 3, &acquire, &batched, false}
	waits     = kind{"wait", "wait+", "wait++", 8, &wait, &batched, true}
	levels    = kind{"level", "level+", "level++", 4, &level, &batched, false}
	unlocks   = kind{"unlock", "", "", 3, &unlock, &batched, false}
	returns   = kind{"", "unlock+", "", 5, &unlock, &batched, false}
	tries     = kind{"try", "try+", "try++", 4, &tryFree, &batched, true}
	releases  = kind{"release", "release+", "", 7, &release, &batched, true}
	quicks    = kind{"quick", "", "", 3, &release, &batched, true}
	leaves    = kind{"leave", "", "", 2, &leave, &batched, true}
	transfers = kind{"transfer", "transfer+", "transfer++", 4, &transfer, &batched, false}
	reserves  = kind{"", "reserve+", "reserve++", 3, &reserve, &batched, false}
)

// Answer is what an operation says.
type Answer struct {
	Held      bool          // the hold has the lock; of an unlock: it had it, and it is released
	Token     int64         // the last token that was taken, 0 without a counter
	TTL       time.Duration // where another holder has it: how long that lasts at most, or NoExpiry; NoKey where it is another client's turn
	Receivers int           // of an unlock: how many connections were told, as far as the server knows
	Untold    bool          // of an unlock: the server refused to tell anybody
	Why       error         // where no other holder is the reason that it was not taken
	Owed      bool          // of several servers: some may have it still, or take it late; the release is to be sent again
	Report    *Report       // of a server of a quorum

	Before  int    // of an acquire in turn that did not take the lock: so many clients are before this one, 2 for more, or NotInLine
	Place   int64  // of the same, and of a release that entered the line again: the place there; 0 for none
	Head    string // the ticket of the first client in the line, where the lock is free
	More    bool   // of a release, and of Leave: there may be more clients to call, by Leave with no ticket
	Outside bool   // the user has no right to the line: the op was done without it
}

// NotInLine is Answer.Before of a client that is not in the line.
const NotInLine = -1

// Acquire takes the lock for the hold of this field, or confirms that it has it. With fenced it takes so many tokens.
func Acquire(keys *Keys, fenced bool, field string, lease time.Duration, tokens int) Op {
	return Op{kind: &acquires, keys: keys, fenced: fenced, args: [8]any{lease.Milliseconds(), field, tokens}}
}

// A Turn is a client's part in the line of those that wait for a lock.
type Turn struct {
	Ticket  string // of its stay in the line, <client>:<number>; "": it does not enter
	Place   int64  // the place that it had in a line that was lost; 0: the end
	Look    bool   // nothing was heard for a while: the first client is called if the lock is free
	Stale   string // the ticket that was called, as this client has known for a while; "" for none
	Sharded bool   // the clients are called by sharded messages
}

// InTurn returns the op, an Acquire, that takes the lock only if no other client is before this one in the line.
func (op Op) InTurn(t Turn) Op {
	op.args[3] = publish(t.Sharded)
	if t == (Turn{Sharded: t.Sharded}) {
		op.kind = &tries
		return op
	}
	place, look := any(""), 0
	if t.Place != 0 {
		place = t.Place
	}
	if t.Look {
		look = 1
	}
	op.kind = &waits
	op.args[4], op.args[5], op.args[6], op.args[7] = t.Ticket, place, look, t.Stale
	return op
}

// Leave takes the ticket out of the line, and calls the first client there if the lock is free. With no ticket it only calls.
func Leave(keys *Keys, ticket string, sharded bool) Op {
	return Op{kind: &leaves, keys: keys, args: [8]any{ticket, publish(sharded)}}
}

// Level sets the count of a hold, as its change number op. A re-entry names its lease, and asks for a token with
// fenced; an inner unlock has lease 0. Held is false where the hold is gone.
func Level(keys *Keys, fenced bool, field string, lease time.Duration, count int, op int64) Op {
	return Op{kind: &levels, keys: keys, fenced: fenced, args: [8]any{lease.Milliseconds(), field, count, op}}
}

// Unlock releases the hold of this field and tells the waiters, by a sharded message if sharded.
func Unlock(keys *Keys, field string, sharded bool) Op {
	return Op{kind: &unlocks, keys: keys, args: [8]any{field, keys.told(), publish(sharded)}}
}

// Return returns the op, an Unlock, with so many tokens that were reserved for the hold, and that nobody has had: the last
// of all that were, and those before it. They are taken again by others, if last is what the counter says.
func (op Op) Return(last, tokens int64) Op {
	op.fenced, op.args[3], op.args[4] = true, last, tokens
	if op.kind == &unlocks {
		op.kind = &returns
	}
	return op
}

// Calling returns the op, an Unlock, that calls the first client in the line, and enters it again with this ticket, or not
// with "". So many of those who listen for the release are the client itself: the one that is called is told of the others.
func (op Op) Calling(again string, known int) Op {
	op.kind = &releases
	op.args[3], op.args[4], op.args[5], op.args[6] = "", 0, again, known
	return op
}

// CallingNewcomers returns the op, an Unlock, that calls the first client in the line if any has entered since the hold took
// the lock. It is for a hold that took it while nobody was in the line: most releases are of such a hold, and have nothing
// to look for there.
func (op Op) CallingNewcomers() Op {
	op.kind = &quicks
	return op
}

// releases tells whether the op is an Unlock.
func (op *Op) releases() bool { return op.kind.script == &unlock || op.kind.script == &release }

// waits tells whether the op is an Acquire in turn.
func (op *Op) waits() bool { return op.kind == &waits || op.kind == &tries }

// withoutLine makes the op one that has no line, if that may be why it was refused, and tells whether it did: the user has no
// right to the line, or its slot is on its way to another node, where only some of the keys may be. Leave has nothing else.
func (op *Op) withoutLine(err error) bool {
	if !forbidden(err) && !split(err) {
		return false
	}
	switch op.kind {
	case &tries, &waits:
		op.kind = &acquires
	case &releases, &quicks:
		op.kind = &unlocks
		if op.fenced {
			op.kind = &returns
		}
	default:
		return false
	}
	op.outside = forbidden(err)
	return true
}

// publish is the command that tells the waiters.
func publish(sharded bool) any {
	if sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Transfer passes the lock on from the hold of the field old to the one of this field, which gets so many tokens with
// fenced. Held is false where the old hold is gone.
func Transfer(keys *Keys, fenced bool, field string, lease time.Duration, tokens int, old string) Op {
	return Op{kind: &transfers, keys: keys, fenced: fenced, args: [8]any{lease.Milliseconds(), field, tokens, old}}
}

// Reserve takes so many tokens more for the hold of this field, and extends its lease. Held is false where the hold is
// gone. A repeat takes other tokens.
func Reserve(keys *Keys, field string, lease time.Duration, tokens int) Op {
	return Op{kind: &reserves, keys: keys, fenced: true, args: [8]any{lease.Milliseconds(), field, tokens}}
}

// WithFloor returns the op with tokens that are at least the server's time in microseconds, from a counter that expires
// so long after it was used last, or never for 0. It changes nothing of an op without tokens.
func (op Op) WithFloor(expiry time.Duration) Op {
	if op.fenced {
		op.floor = expiry.Milliseconds()
	}
	return op
}

// keyCount is how many keys the op names.
func (op *Op) keyCount() int {
	n := 1
	if op.kind.lined {
		n++
	}
	if op.fenced {
		n++
	}
	return n
}

func (op *Op) appendKeys(args []any) []any {
	args = append(args, op.keys.Lock)
	if op.kind.lined {
		args = append(args, op.keys.Line)
	}
	if op.fenced {
		args = append(args, op.keys.Token)
	}
	return args
}

// argCount is how many arguments it has.
func (op *Op) argCount() int {
	if op.floor != nil {
		return op.kind.args + 1
	}
	return op.kind.args
}

func (op *Op) appendArgs(args []any) []any {
	args = append(args, op.args[:op.kind.args]...)
	if op.floor != nil {
		args = append(args, op.floor)
	}
	return args
}

// name is what the batch script calls the op.
func (op *Op) name() any {
	switch {
	case op.floor != nil:
		return op.kind.floored
	case op.fenced:
		return op.kind.fenced
	}
	return op.kind.name
}

// alone is the command that does nothing but this op.
func (op *Op) alone() []any {
	return op.appendArgs(op.appendKeys(op.kind.script.args(op.keyCount(), op.argCount())))
}

// Do sends the op alone, and blocks until go-redis has an answer or an error: the context ends neither a read nor a
// command that was sent.
func (s *Scripts) Do(ctx context.Context, op Op) (Answer, error) {
	if s.confirm != nil && op.promises() {
		return s.doConfirmed(ctx, op)
	}
	return s.do(ctx, &op)
}

func (s *Scripts) do(ctx context.Context, op *Op) (Answer, error) {
	reply, err := s.send(ctx, op.kind.script, op.alone())
	if op.withoutLine(err) {
		reply, err = s.send(ctx, op.kind.script, op.alone())
	}
	return op.parse(reply, err)
}

// parse reads the reply to an op that went alone.
func (op *Op) parse(reply any, err error) (Answer, error) {
	if err != nil {
		return Answer{}, explain(op.keys, err)
	}
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return Answer{}, unexpected(reply)
	}
	return op.parsePair(pair[0], pair[1])
}
