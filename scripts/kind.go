package scripts

import (
	"fmt"
	"strings"
)

// A kind is a kind of operation. The parameters of its Lua function are the declaration of what is sent.
type kind struct {
	verb      Verb            // what the op does
	names     []any           // in a batch: without a counter, with one, with one that has a floor, and with one of which several tokens are taken; as many of these as there are
	arguments []func(*Op) any // without the floor's, and the number of tokens
	script    *script         // does one op alone
	lined     bool            // the line is one of the op's keys
	without   *kind           // which does the same without the line; nil for an op that is about the line alone, and for one that does not use the line
	ballot    bool            // the op is for one server of a quorum
	family    family          // what the op is for
}

// A family is the kinds of op that share a batch script.
type family uint8

const (
	locks family = iota
	semaphores
	readWrites
)

// families are the kinds that do the same for what is locked, whatever that is.
var families = [...]struct {
	acquire, inTurn, try   *kind // take the lock; in turn; in turn, by a client that is not in the line
	unlock, calling, leave *kind // release it; and call the first in the line; take a ticket out of the line
	batch                  *script
}{
	locks:      {&acquires, &acquiresInTurn, &tries, &unlocks, &releases, &leaves, &batched},
	semaphores: {&permits, &permitsInTurn, &permitsOutside, &vacatesOutside, &vacates, &permitLeaves, &permitBatch},
	readWrites: {&readWriteAcquires, &readWriteInTurn, &readWriteTries, &readWriteUnlocks, &readWriteReleases, &readWriteLeaves, &readWriteBatch},
}

// family is that of the ops with these keys.
func (k *Keys) family() family {
	switch {
	case k.last != nil:
		return semaphores
	case k.side != NoSide:
		return readWrites
	}
	return locks
}

// of returns the kind, of a family other than that of locks.
func (k kind) of(f family) kind {
	k.family = f
	return k
}

var (
	acquires            = newKind(ToAcquire, "acquire", &acquire)
	acquiresInTurn      = newKind(ToAcquire, "wait", &wait).or(&acquires)
	levels              = newKind(ToLevel, "level", &level)
	unlocks             = newKind(ToUnlock, "unlock", &unlock)
	tries               = newKind(ToAcquire, "try", &tryFree).or(&acquires)
	releases            = newKind(ToUnlock, "release", &release, "named").or(&unlocks)
	unlocksForNewcomers = newKind(ToUnlock, "quick", &release, "again", "known", "named").or(&unlocks)
	leaves              = newKind(ToLeave, "leave", &leave)
	waitings            = newKind(ToCount, "waiting", &lineLen)
	transfers           = newKind(Other, "transfer", &transfer)
	imports             = newKind(Other, "import", &imported)
)

// or returns the kind, whose ops are done by the other one where the line cannot be used.
func (k kind) or(without *kind) kind {
	k.without = without
	return k
}

// newKind returns the kind of this name, whose ops the function of the script does, called without its last parameters, left.
func newKind(verb Verb, name string, sc *script, left ...string) kind {
	k := kind{verb: verb, names: []any{name}, script: sc}
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
		} else if p == "tokens" {
			k.names = append(k.names, name+"+++")
		} else if value := values[p]; value != nil {
			k.arguments = append(k.arguments, value)
		} else {
			panic("scripts: " + name + ".lua has a parameter without a value: " + p)
		}
	}
	return k
}

// values are the arguments of the scripts, by the names of their parameters. The last parameters are for an op with a floor, expiry, and for one that takes several tokens.
var values = map[string]func(*Op) any{
	"lease":   func(op *Op) any { return op.lease.Milliseconds() },
	"field":   func(op *Op) any { return op.field },
	"count":   func(op *Op) any { return op.count },
	"op":      func(op *Op) any { return op.change },
	"old":     func(op *Op) any { return op.old },
	"token":   func(op *Op) any { return op.token },
	"anew":    func(op *Op) any { return map[bool]any{true: 1, false: 0}[op.anew] },
	"first":   func(op *Op) any { return op.offer.First },
	"ahead":   func(op *Op) any { return op.offer.Ahead.Microseconds() },
	"slack":   func(op *Op) any { return op.offer.Slack.Microseconds() },
	"channel": func(op *Op) any { return op.keys.told() },
	"publish": func(op *Op) any { return publish(op.turn.Sharded) },
	"ticket":  func(op *Op) any { return op.turn.Ticket },
	"again":   func(op *Op) any { return op.turn.Ticket },
	"known":   func(op *Op) any { return op.known },
	"look":    func(op *Op) any { return op.turn.Look },
	"stale":   func(op *Op) any { return op.turn.Stale },
	"command": func(op *Op) any { return map[bool]any{true: "PUBLISH", false: ""}[op.request.tell] },
	"unproven": func(op *Op) any {
		if !op.turn.Unproven {
			return ""
		}
		return op.keys.Line
	},
	"gone": func(op *Op) any {
		if op.turn.Gone == "" {
			return ""
		}
		return op.keys.Line + ":" + op.turn.Gone
	},
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
			keys, before, after = keys[:2], "refused = false\n    ", "\n    verdict = verdict and refused and verdict + refused or verdict"
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

func (op *Op) isUnlock() bool  { return op.kind.verb == ToUnlock }
func (op *Op) isLeave() bool   { return op.kind.verb == ToLeave }
func (op *Op) isWaiting() bool { return op.kind.verb == ToCount }

// onlyLine tells whether the op is about the line alone, and does nothing without the line.
func (op *Op) onlyLine() bool { return op.isLeave() || op.isWaiting() }

// isInTurn tells whether the op is an Acquire in turn.
func (op *Op) isInTurn() bool { return op.kind.verb == ToAcquire && op.kind.lined }

// lineRefused tells that the line may be why the op was refused with err: the user has no right to the line (P30), or the slot is
// moving to another node and only some of the keys have moved. It is false for an op that is about the line alone.
func (op *Op) lineRefused(err error) bool {
	return (forbidden(err) || split(err)) && op.kind.lined && !op.onlyLine()
}

// withoutLine returns the op, which was refused with err, as one that does not use the line.
func (op *Op) withoutLine(err error) *Op {
	o := op.another()
	o.kind = op.kind.without
	if forbidden(err) {
		o.outside = Forbidden
	}
	return o
}

// publish returns the command that tells the waiters.
func publish(sharded bool) any {
	if sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}
