package scripts

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// An Op is one operation on one lock. Do sends it alone, Send in a batch with others.
type Op struct {
	kind    *kind
	keys    *Keys
	fenced  bool // the op has a counter
	floored bool // and the counter has a floor
	outside bool // the op was to use the line, and the user has no right to the line
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

	count  int    // of Level: the new count
	change int64  // of Level: the number of the change
	old    string // of Transfer: the field of the hold that gives the lock up
	token  int64  // of Raise: the one that is proposed

	turn  Turn // of an Acquire in turn; of Leave and of an Unlock: Ticket and Sharded
	known int  // of an Unlock that calls: how many of those who listen are the client itself
	tell  bool // of Withdraw: the waiters are told
	group int  // of Withdraw: which of them
}

// A kind is a kind of operation. The parameters of its Lua function are the declaration of what is sent.
type kind struct {
	names     []any           // in a batch: without a counter, with one, and with one that has a floor; as many of these as there are
	arguments []func(*Op) any // without the floor's
	script    *script         // does one op alone
	lined     bool            // the line is one of the op's keys
	ballot    bool            // the op is for one server of a quorum
}

var (
	acquires            = newKind("acquire", &acquire)
	acquiresInTurn      = newKind("wait", &wait)
	levels              = newKind("level", &level)
	unlocks             = newKind("unlock", &unlock)
	tries               = newKind("try", &tryFree)
	releases            = newKind("release", &release)
	unlocksForNewcomers = newKind("quick", &release, "again", "known")
	leaves              = newKind("leave", &leave)
	transfers           = newKind("transfer", &transfer)
)

// newKind returns the kind of this name, whose ops the function of the script does, called without its last parameters, left.
func newKind(name string, sc *script, left ...string) kind {
	k := kind{names: []any{name}, script: sc}
	parameters := sc.parameters[1 : len(sc.parameters)-len(left)] // the first one is the lock
	if k.lined = parameters[0] == "line"; k.lined {
		parameters = parameters[1:]
	}
	if parameters[0] == "counter" {
		k.names = append(k.names, name+"+")
	}
	for _, p := range parameters[1:] {
		if p == "expiry" {
			k.names = append(k.names, name+"++")
		} else if value := values[p]; value != nil {
			k.arguments = append(k.arguments, value)
		} else {
			panic("scripts: " + name + ".lua has a parameter without a value: " + p)
		}
	}
	return k
}

// values are the arguments of the scripts, by the names of their parameters. The last parameter, expiry, is for an op with a floor.
var values = map[string]func(*Op) any{
	"lease":    func(op *Op) any { return op.lease.Milliseconds() },
	"field":    func(op *Op) any { return op.field },
	"count":    func(op *Op) any { return op.count },
	"op":       func(op *Op) any { return op.change },
	"old":      func(op *Op) any { return op.old },
	"token":    func(op *Op) any { return op.token },
	"channel":  func(op *Op) any { return op.keys.told() },
	"publish":  func(op *Op) any { return publish(op.turn.Sharded) },
	"ticket":   func(op *Op) any { return op.turn.Ticket },
	"again":    func(op *Op) any { return op.turn.Ticket },
	"known":    func(op *Op) any { return op.known },
	"look":     func(op *Op) any { return op.turn.Look },
	"stale":    func(op *Op) any { return op.turn.Stale },
	"unproven": func(op *Op) any { return op.turn.Unproven },
	"command":  func(op *Op) any { return map[bool]any{true: "PUBLISH", false: ""}[op.request.tell] },
	"group":    func(op *Op) any { return op.group },
	"place": func(op *Op) any {
		if op.turn.Score == 0 {
			return ""
		}
		return op.turn.Score
	},
}

// branches is the part of a batch script that does the op whose name is in its variable name. It takes the op's keys and arguments,
// from KEYS[k] and ARGV[a + 1] on.
func branches(kinds ...*kind) string {
	var text strings.Builder
	for _, kind := range kinds {
		keys, before, after := []string{"KEYS[k]", "KEYS[k + 1]", "KEYS[k + 2]"}[:1], "", ""
		if kind.lined {
			keys, before, after = keys[:2], "refused = false\n    ", "\n    verdict = verdict and refused and verdict + 10 or verdict"
		}
		for i, name := range kind.names {
			keys, counter, args := keys, ", nil", len(kind.arguments)
			if i > 0 {
				keys, counter, args = keys[:len(keys)+1], "", args+i-1
			}
			fmt.Fprintf(&text, "if name == '%s' then\n    %sverdict, value = %s(%s%s, unpack(ARGV, a + 1, a + %d))%s\n    k, a = k + %d, a + %d\n  else",
				name, before, kind.script.function, strings.Join(keys, ", "), counter, args, after, len(keys), args+1)
		}
	}
	return text.String() + "\n    return redis.error_reply('ERR no operation ' .. name)\n  end"
}

// An Answer is what an operation says.
type Answer struct {
	Held      bool          // the hold has the lock; of an Unlock: the hold had the lock, and is released
	Token     int64         // the last token that was taken, 0 without a counter
	TTL       time.Duration // where another holder has the lock: how long at most, or NoExpiry; NoKey where it is another client's turn
	Receivers int           // of an Unlock: how many connections were told, as far as the server knows
	Untold    bool          // of an Unlock: the server refused to tell anybody
	Why       error         // why the lock was not taken, where no other holder is the reason
	Own       string        // of an op that another hold kept from taking, or from finding, the lock: that one's field, where it is of the same client
	Owed      bool          // of several servers: a release is owed, because some may have the hold still, or take it late
	Report    *Report       // of a server of a quorum
	Copies    time.Duration // for how long other copies of the op, which have no answer, may be executed still; 0: there are none

	Before  int    // of an Acquire in turn that did not take the lock: how many clients are before this one, at most 2, or NotInLine
	Score   int64  // of the same, and of an Unlock that entered the line again: that of the client in the line; 0 for none
	Head    string // of the same Acquire, where the lock is free: the ticket of the first client in the line
	More    bool   // of an Unlock, and of Leave: there may be more clients to call, by Leave with no ticket
	Outside bool   // the user lacks a right to the line: the op was done without the line (P30)
}

// NotInLine is Answer.Before of a client that is not in the line.
const NotInLine = -1

// Acquire takes the lock for the hold of this field, or confirms that the hold has the lock. With fenced it takes a token.
// Held is false where another holder has the lock.
func Acquire(keys *Keys, fenced bool, field string, lease time.Duration) Op {
	return Op{kind: &acquires, keys: keys, fenced: fenced, request: request{lease: lease, field: field}}
}

// A Turn is a client's part in the line of those that wait for a lock.
type Turn struct {
	Ticket   string // of the client's stay in the line, <client>:<number>; "": the client does not enter
	Score    int64  // that of the place which the client had before and has lost; 0: it enters at the end
	Look     bool   // the client has heard nothing for a while: the first client is called if the lock is free
	Stale    string // the first ticket, where this client has known for a while that it is called: it is taken out; "" for none
	Sharded  bool   // clients are called by sharded messages
	Unproven bool   // the client has not been in a line so far: it enters if the user may do all that the line takes
}

// InTurn returns the op, an Acquire, as one that takes the lock only if no other client is before this one in the line. If
// it does not take the lock, the client enters the line with its ticket.
func (op Op) InTurn(t Turn) Op {
	op.kind, op.turn = &acquiresInTurn, t
	if t == (Turn{Sharded: t.Sharded}) {
		op.kind = &tries
	}
	return op
}

// Leave takes the ticket out of the line, and calls the first client in the line if the lock is free, or tells those who listen on
// the lock's channel where nobody is in the line. With no ticket Leave only calls.
func Leave(keys *Keys, ticket string, sharded bool) Op {
	return Op{kind: &leaves, keys: keys, request: request{turn: Turn{Ticket: ticket, Sharded: sharded}}}
}

// Level sets the count of the hold of this field. change is the number of this change (P2). A re-entry has a lease,
// and takes a token with fenced. An inner unlock has lease 0. Held is false where the hold is gone.
func Level(keys *Keys, fenced bool, field string, lease time.Duration, count int, change int64) Op {
	return Op{kind: &levels, keys: keys, fenced: fenced, request: request{lease: lease, field: field, count: count, change: change}}
}

// Unlock releases the hold of this field, and tells those who listen on the lock's channel, by a sharded message if sharded.
// Held is false where the hold is gone.
func Unlock(keys *Keys, field string, sharded bool) Op {
	return Op{kind: &unlocks, keys: keys, request: request{field: field, turn: Turn{Sharded: sharded}}}
}

// Calling returns the op, an Unlock, as one that calls the first client in the line. Where again is not "", the client that
// releases enters the line with that ticket first. known is how many of the connections that hear of the release are that
// client's own, 1 or 0: the client that is called is told how many others there are. known is [NotTheHolder] for an Unlock of
// another client's hold.
func (op Op) Calling(again string, known int) Op {
	op.kind, op.turn.Ticket, op.known = &releases, again, known
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

// isUnlock tells whether the op is an Unlock.
func (op *Op) isUnlock() bool { return op.kind.script == &unlock || op.kind.script == &release }

// isInTurn tells whether the op is an Acquire in turn.
func (op *Op) isInTurn() bool { return op.kind == &acquiresInTurn || op.kind == &tries }

// lineRefused tells that the line may be why the op was refused with err: the user has no right to the line (P30), or the slot is
// moving to another node and only some of the keys have moved. It is false for a Leave, which does nothing without the line.
func (op *Op) lineRefused(err error) bool {
	return (forbidden(err) || split(err)) && op.kind.lined && op.kind != &leaves
}

// withoutLine returns the op, which was refused with err, as one that does not use the line.
func (op *Op) withoutLine(err error) *Op {
	o := op.another()
	o.kind = &unlocks
	if op.isInTurn() {
		o.kind = &acquires
	}
	o.outside = forbidden(err)
	return o
}

// publish returns the command that tells the waiters.
func publish(sharded bool) any {
	if sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Transfer passes the lock on from the hold of the field old to the hold of this field. With fenced it takes a token for
// the new hold. Held is false where the old hold is gone.
func Transfer(keys *Keys, fenced bool, field string, lease time.Duration, old string) Op {
	return Op{kind: &transfers, keys: keys, fenced: fenced, request: request{lease: lease, field: field, old: old}}
}

// WithFloor returns the op as one whose token is at least the server's time in microseconds, from a counter
// that expires so long after it was used last, or never with expiry 0. An op without a token stays as it is.
func (op Op) WithFloor(expiry time.Duration) Op {
	if op.fenced {
		op.floored, op.expiry = true, expiry
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

// argCount is how many arguments the op has.
func (op *Op) argCount() int {
	if op.floored {
		return len(op.kind.arguments) + 1
	}
	return len(op.kind.arguments)
}

func (op *Op) appendArgs(args []any) []any {
	for _, value := range op.kind.arguments {
		args = append(args, value(op))
	}
	if op.floored {
		args = append(args, op.expiry.Milliseconds())
	}
	return args
}

// name is what the batch script calls the op.
func (op *Op) name() any {
	switch {
	case op.floored:
		return op.kind.names[2]
	case op.fenced:
		return op.kind.names[1]
	}
	return op.kind.names[0]
}

// alone is the command that does nothing but this op.
func (op *Op) alone() []any {
	return op.appendArgs(op.appendKeys(op.kind.script.args(op.keyCount(), op.argCount())))
}

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
	reply, err := s.send(ctx, op.kind.script, op.alone())
	if op.lineRefused(err) {
		op = op.withoutLine(err)
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
