package scripts

import (
	"context"
	"crypto/sha1"
	"encoding/binary"
	"strconv"
	"time"
)

// An Op is one operation on one lock. Do sends it alone, Send in a batch with others.
type Op struct {
	kind    *kind
	keys    *Keys
	fenced  bool    // the op has a counter
	floored bool    // and the counter has a floor
	outside Refusal // why the op, which was to use the line, was done without it; 0 where it was not
	request
	caller  Caller
	batcher *batcher // the one that Send gave the op to
	state   state    // guarded by its batcher's mu; of a batch's copy: changed atomically
	of      *Op      // the op that this one stands for, whose state counts; nil for itself
	beside  bool     // it is sent beside that one, which may be answered still
}

// A request is what an op is to do. The kind of the op says which of these are arguments of its script: see values.
type request struct {
	field  string        // of the hold
	lease  time.Duration // sent in whole milliseconds
	expiry time.Duration // of the counter
	tokens int           // how many are taken; 0 for one

	count  int    // of Level: the new count
	change int64  // of Level: the number of the change
	old    string // of Transfer and Import: the field of the hold that gives the lock up
	token  int64  // of Raise: the one that is proposed; of Vote: offer.Token; of Withdraw: the latest that is known

	anew  bool     // of Raise
	offer Proposal // of Vote

	turn  Turn // of an Acquire in turn, and of Vote; of Leave, of an Unlock and of Withdraw: Ticket and Sharded
	known int  // of an Unlock that calls, and of Withdraw: how many of those who listen are the client itself
	tell  bool // of Withdraw: those who listen are told

	within time.Duration // see Within
}

// Acquire takes the lock for the hold of this field, or confirms that the hold has the lock. With fenced it takes a token.
// Held is false where another holder has the lock. With the keys of a semaphore it takes any slot, Answer.Slot. For a semaphore or a read-write lock it is sent
// once (P43).
func Acquire(keys *Keys, fenced bool, field string, lease time.Duration) Op {
	return Op{kind: families[keys.family()].acquire, keys: keys, fenced: fenced, request: request{lease: lease, field: field}}
}

// A Turn is a client's part in the line of those that wait for a lock.
type Turn struct {
	Ticket   string // of the client's stay in the line, <client>:<number>; "": the client does not enter
	Score    int64  // that of the place which the client had before and has lost; 0: it enters at the end
	Look     bool   // the client has heard nothing for a while, or does not wait: those before it are asked for a sign of life if the lock is free
	Stale    string // the first ticket, where this client has known for a while that it is called: it is taken out; "" for none
	Sharded  bool   // clients are called by sharded messages
	Unproven bool   // the client has not been in a line so far: it enters if the user may do all that the line takes

	Called  bool   // the client was called, as far as it knows
	Quiet   bool   // in a quorum: the client looks, and has heard nothing since it looked before
	Gone    string // in a quorum: the field that the call has named, of a hold that its holder has given up; "" for none
	Counter int64  // in a quorum: the latest token that the call has told, 0 for none
}

// Within returns the op, an Acquire, as one whose caller waits so long for the answer. Several servers answer in that time, whatever they have heard by then.
func (op Op) Within(d time.Duration) Op {
	op.within = d
	return op
}

// InTurn returns the op, an Acquire, as one that takes the lock only if no other client is before this one in the line. If
// it does not take the lock, the client enters the line with its ticket.
func (op Op) InTurn(t Turn) Op {
	of := &families[op.kind.family]
	op.kind, op.turn = of.inTurn, t
	if t.outside() {
		op.kind = of.try
	}
	return op
}

// outside tells whether the client is not in the line, and has nothing to say of it.
func (t Turn) outside() bool { return t == (Turn{Sharded: t.Sharded, Look: t.Look}) }

// Leave takes the ticket out of the line, and calls the first client in the line if the lock is free, or tells those who listen on
// the lock's channel where nobody is in the line. With no ticket Leave only calls.
func Leave(keys *Keys, ticket string, sharded bool) Op {
	return Op{kind: families[keys.family()].leave, keys: keys, request: request{turn: Turn{Ticket: ticket, Sharded: sharded}}}
}

// Waiting asks how many clients wait in the line: Answer.Before. It changes nothing. A user without the right to the line gets 0.
func Waiting(keys *Keys) Op { return Op{kind: &waitings, keys: keys} }

// Level sets the count of the hold of this field. change is the number of this change (P2). A re-entry has a lease,
// and takes a token with fenced. An inner unlock has lease 0. Held is false where the hold is gone.
func Level(keys *Keys, fenced bool, field string, lease time.Duration, count int, change int64) Op {
	return Op{kind: &levels, keys: keys, fenced: fenced, request: request{lease: lease, field: field, count: count, change: change}}
}

// Unlock releases the hold of this field, and tells those who listen on the lock's channel, by a sharded message if sharded.
// Held is false where the hold is gone. With the keys of a semaphore it releases whatever slots the hold has.
func Unlock(keys *Keys, field string, sharded bool) Op {
	return Op{kind: families[keys.family()].unlock, keys: keys, request: request{field: field, turn: Turn{Sharded: sharded}}}
}

// Calling returns the op, an Unlock, as one that calls the first client in the line. Where again is not "", the client that
// releases enters the line with that ticket first. known is how many of the connections that hear of the release are that
// client's own, 1 or 0: the client that is called is told how many others there are. known is [NotTheHolder] for an Unlock of
// another client's hold.
func (op Op) Calling(again string, known int) Op {
	op.kind, op.turn.Ticket, op.known = families[op.kind.family].calling, again, known
	return op
}

// NotTheHolder says that somebody else than the holder releases a hold, by force: the holder, which listens on the lock's channel, is
// told of it in any case.
const NotTheHolder = -1

// CallingNewcomers returns the op, an Unlock, as one that calls the first client in the line if any has entered since the
// hold took the lock (P36). It is for a hold that took the lock while nobody was in the line. Most releases are of such a
// hold, and find nobody in the line.
func (op Op) CallingNewcomers() Op {
	op.kind = &unlocksForNewcomers
	return op
}

// Transfer passes the lock on from the hold of the field old to the hold of this field. With fenced it takes a token for
// the new hold. Held is false where the old hold is gone.
func Transfer(keys *Keys, fenced bool, field string, lease time.Duration, old string) Op {
	return Op{kind: &transfers, keys: keys, fenced: fenced, request: request{lease: lease, field: field, old: old}}
}

// Import is Transfer to a hold of another client than the old one, which is told by a message, sharded if sharded: ImportMessage.
func Import(keys *Keys, fenced bool, field string, lease time.Duration, old string, sharded bool) Op {
	op := Transfer(keys, fenced, field, lease, old)
	op.kind, op.turn.Sharded = &imports, sharded
	return op
}

// ImportMessage is what is told on the lock's channel when the hold of this field is imported.
func ImportMessage(field string) string {
	sum := sha1.Sum([]byte(field))
	var first [8]byte
	copy(first[2:], sum[:6])
	return strconv.FormatUint(binary.BigEndian.Uint64(first[:])+2, 10)
}

// WithFloor returns the op as one whose token is at least the server's time in microseconds, from a counter
// that expires so long after it was used last, or never with expiry 0. An op without a token stays as it is.
func (op Op) WithFloor(expiry time.Duration) Op {
	if op.fenced {
		op.floored, op.expiry = true, expiry
	}
	return op
}

// TakingTokens returns the op, which takes the lock, passes it on or re-enters it, as one that takes n tokens in a row, of which
// Answer.Token is the last: its holds may use the others too, in order, as long as it has the lock. An op without a token, and one
// for a semaphore or a read-write lock, stays as it is.
func (op Op) TakingTokens(n int) Op {
	op.tokens = n
	return op
}

// several tells whether the op takes more than one token.
func (op *Op) several() bool { return op.tokens > 1 && op.fenced && len(op.kind.names) > 3 }

// Do sends the op alone, and blocks until there is an answer or an error. The end of the context stops neither a read
// nor a command that was sent. The error is go-redis's own, maybe with a sentence added, or ErrUnconfirmed.
func (s *Scripts) Do(ctx context.Context, op Op) (Answer, error) {
	type outcome struct {
		answer Answer
		err    error
	}
	bs, once := s.batchers, func(ctx context.Context, op Op) (Answer, error) { return s.do(ctx, &op) }
	if s.confirm != nil && op.promises() {
		bs, once = s.confirmed, s.doConfirmed
	}
	o, copies := hedged(ctx, s, op.keys.Lock, bs.slow, func(ctx context.Context) (o outcome) {
		o.answer, o.err = once(ctx, op)
		return o
	}, func(o outcome) bool { return final(o.err) })
	if copies {
		o.answer.Copies = bs.bound
	}
	return o.answer, o.err
}

func (s *Scripts) do(ctx context.Context, op *Op) (Answer, error) {
	reply, err := s.send(ctx, op.kind.script, op.alone)
	if op.lineRefused(err) {
		op = op.withoutLine(err)
		reply, err = s.send(ctx, op.kind.script, op.alone)
	}
	return op.parse(reply, err)
}
