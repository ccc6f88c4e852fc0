package scripts

import (
	"context"
	"time"
)

// An Op is one operation on one lock. Do sends it alone, Send in company.
type Op struct {
	kind   *kind
	keys   *Keys
	fenced bool
	floor  any // nil, or the expiry of a counter with a floor, in ms
	args   [5]any
	caller Caller
	line   *line // that Send gave it to
	state  state // guarded by its line's mu; of a flight's copy: changed atomically
}

// kind is what the batch script knows of an operation.
type kind struct {
	name    any
	fenced  any // its name where it has a counter
	floored any // and where that has a floor
	args    int // without the floor's
	script  *script
	batch   *script // that does it in company
}

var (
	acquires  = kind{"acquire", "acquire+", "acquire++", 3, &acquire, &batch}
	levels    = kind{"level", "level+", "level++", 4, &level, &batch}
	unlocks   = kind{"unlock", "", "", 3, &unlock, &batch}
	returns   = kind{"", "unlock+", "", 5, &unlock, &batch}
	transfers = kind{"transfer", "transfer+", "transfer++", 4, &transfer, &batch}
	retains   = kind{"retain", "retain+", "retain++", 5, &retain, &batch}
	reserves  = kind{"", "reserve+", "reserve++", 3, &reserve, &batch}
)

// Answer is what an operation says.
type Answer struct {
	Held      bool          // the hold has the lock; of an unlock: it had it, and it is released
	Token     int64         // the last token that was taken, 0 without a counter
	Released  bool          // of a retain: nobody else listens, so the lock is free
	TTL       time.Duration // where another holder has it: how long that lasts at most, or NoExpiry
	Receivers int           // of an unlock: how many connections were told, as far as the server knows
	Untold    bool          // of an unlock: the server refused to tell anybody
	Why       error         // where no other holder is the reason that it was not taken
	Owed      bool          // of several servers: some may have it still, or take it late; the release is to be sent again
	Report    *Report       // of a server of a quorum
}

// Acquire takes the lock for the hold of this field, or confirms that it has it. With fenced it takes so many tokens.
func Acquire(keys *Keys, fenced bool, field string, lease time.Duration, tokens int) Op {
	return Op{kind: &acquires, keys: keys, fenced: fenced, args: [5]any{lease.Milliseconds(), field, tokens}}
}

// Level sets the count of a hold, as its change number op. A re-entry names its lease, and asks for a token with
// fenced; an inner unlock has lease 0. Held is false where the hold is gone.
func Level(keys *Keys, fenced bool, field string, lease time.Duration, count int, op int64) Op {
	return Op{kind: &levels, keys: keys, fenced: fenced, args: [5]any{lease.Milliseconds(), field, count, op}}
}

// Unlock releases the hold of this field and tells the waiters, by a sharded message if sharded.
func Unlock(keys *Keys, field string, sharded bool) Op {
	return Op{kind: &unlocks, keys: keys, args: [5]any{field, keys.told(), publish(sharded)}}
}

// Return returns the op, an Unlock, with so many tokens that were reserved for the hold, and that nobody has had: the last
// of all that were, and those before it. They are taken again by others, if last is what the counter says.
func (op Op) Return(last, tokens int64) Op {
	op.kind, op.fenced, op.args[3], op.args[4] = &returns, true, last, tokens
	return op
}

// releases tells whether the op is an Unlock.
func (op *Op) releases() bool { return op.kind.script == &unlock }

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
	return Op{kind: &transfers, keys: keys, fenced: fenced, args: [5]any{lease.Milliseconds(), field, tokens, old}}
}

// Retain is Transfer to a hold that nobody has yet, where others listen for the lock's release than the so many that are
// known. Where nobody does, or the server does not say who, it is Unlock: Held is false then and Released is true. Both are
// false where the old hold is gone.
func Retain(keys *Keys, fenced bool, field string, lease time.Duration, old string, known int) Op {
	return Op{kind: &retains, keys: keys, fenced: fenced, args: [5]any{lease.Milliseconds(), field, old, keys.told(), known}}
}

// Reserve takes so many tokens more for the hold of this field, and extends its lease. Held is false where the hold is
// gone. A repeat takes other tokens.
func Reserve(keys *Keys, field string, lease time.Duration, tokens int) Op {
	return Op{kind: &reserves, keys: keys, fenced: true, args: [5]any{lease.Milliseconds(), field, tokens}}
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
	if op.fenced {
		return 2
	}
	return 1
}

func (op *Op) appendKeys(line []any) []any {
	line = append(line, op.keys.Lock)
	if op.fenced {
		line = append(line, op.keys.Token)
	}
	return line
}

// argCount is how many arguments it has.
func (op *Op) argCount() int {
	if op.floor != nil {
		return op.kind.args + 1
	}
	return op.kind.args
}

func (op *Op) appendArgs(line []any) []any {
	line = append(line, op.args[:op.kind.args]...)
	if op.floor != nil {
		line = append(line, op.floor)
	}
	return line
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
	return op.appendArgs(op.appendKeys(op.kind.script.line(op.keyCount(), op.argCount())))
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
