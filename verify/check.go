package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A violation is something that must not be.
type violation struct {
	Rule string `json:"rule"` // an invariant of docs/protocol.md, or a rule of it
	Lock string `json:"lock"`
	Text string `json:"text"`
}

func (v violation) String() string { return fmt.Sprintf("%s: lock %q: %s", v.Rule, v.Lock, v.Text) }

// The rules, by the design's numbers, and those of the line.
const (
	ruleExclusive = "invariant 1: one live context at a time"
	ruleForced    = "invariant 1, P10: a hold whose key is gone ends within a lease"
	ruleTokens    = "invariant 2: tokens grow in real time"
	ruleGuard     = "invariant 4: no stale write is accepted"
	ruleCount     = "invariant 5: a command counts once"
	ruleBound     = "invariants 6, 7: a call ends with its wait"
	ruleWake      = "invariant 8: a release wakes a waiter"
	ruleLeft      = "invariant 9: nothing is left"
	ruleCalled    = "P24, P32: a free lock that clients wait for is taken soon"
	ruleTurns     = "P21, P25, P27, P32: everybody who waits gets the lock"
	ruleCost      = "P26, P32: what a handoff costs"
	rulePermits   = "P43: no more permits than there are"
	ruleReaders   = "P49: nobody reads while somebody writes"
	ruleLock      = "linearizable: the lock"
	ruleRegister  = "linearizable: the guarded register"
)

// byLock returns the ops of each lock, in the order of their calls.
func byLock(ops []op) map[string][]op {
	locks := make(map[string][]op)
	for _, o := range ops {
		locks[o.Lock] = append(locks[o.Lock], o)
	}
	for _, of := range locks {
		slices.SortStableFunc(of, func(a, b op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return locks
}

// oneAlive requires that no two holds of a lock were alive at once for longer than allowed.
func oneAlive(rule string, ops []op, allowed time.Duration) []violation {
	var found []violation
	var longest op // of those before, the one that was alive for the longest time
	for _, o := range ops {
		if o.Kind != alive {
			continue
		}
		if overlap := min(longest.Return, o.Return) - o.Call; longest.ID != 0 && overlap >= int64(allowed) && o.Return >= o.Call {
			found = append(found, violation{rule, o.Lock, fmt.Sprintf("alive at once for %v: %v and %v", time.Duration(overlap), longest, o)})
		}
		if o.Return > longest.Return {
			longest = o
		}
	}
	return found
}

// order requires that an op that was done after another one had returned has a larger token (strictly), or no smaller one.
func order(rule string, ops []op, strictly bool, kinds ...string) []violation {
	var all []op
	for _, o := range ops {
		if o.Outcome == done && slices.Contains(kinds, o.Kind) {
			all = append(all, o)
		}
	}
	returned := slices.Clone(all)
	slices.SortFunc(returned, func(a, b op) int { return cmp.Compare(a.Return, b.Return) })
	var found []violation
	var largest op
	for _, o := range all { // by their calls
		for len(returned) > 0 && returned[0].Return < o.Call {
			if returned[0].Token > largest.Token {
				largest = returned[0]
			}
			returned = returned[1:]
		}
		if o.Token < largest.Token || strictly && o.Token == largest.Token {
			found = append(found, violation{rule, o.Lock, fmt.Sprintf("%v after %v", o, largest)})
		}
	}
	return found
}

// shared returns the tokens under which two holds used what is behind the guard at the same time.
func shared(ops []op) map[int64]bool {
	tokens := make(map[int64]bool)
	type use struct{ token, hold, from, to int64 }
	var uses []use
	for _, o := range ops {
		if o.Kind != read && o.Kind != write || o.Outcome == refused || o.Outcome == failed {
			continue
		}
		to := o.Return
		if o.Outcome != done {
			to = forever
		}
		i := slices.IndexFunc(uses, func(u use) bool { return u.token == o.Token && u.hold == o.Hold })
		if i < 0 {
			uses = append(uses, use{o.Token, o.Hold, o.Call, to})
			continue
		}
		uses[i].to = max(uses[i].to, to)
	}
	for i, u := range uses {
		for _, other := range uses[:i] {
			if u.token == other.token && u.from < other.to && other.from < u.to {
				tokens[u.token] = true
			}
		}
	}
	return tokens
}

// counted requires that Redis's count of a hold was the client's.
func counted(ops []op) []violation {
	var found []violation
	for _, o := range ops {
		if o.Kind == count && o.Outcome == done && o.Value != o.Want {
			found = append(found, violation{ruleCount, o.Lock, fmt.Sprintf("Redis has count %d, and %d levels are open: %v", o.Value, o.Want, o)})
		}
	}
	return found
}

// bounded requires that no call took longer than its wait and the grace. Processes that were stopped are given that time.
func bounded(ops []op, stopped func(client int, from, to int64) time.Duration, grace time.Duration) []violation {
	var found []violation
	for _, o := range ops {
		limit := grace
		switch o.Kind {
		case acquire:
			limit += time.Duration(o.Value)
		case unlock:
			limit += unlockTimeout
		default:
			continue
		}
		if o.Outcome == open {
			continue
		}
		if took := o.took() - stopped(o.Client, o.Call, o.Return); took > limit {
			found = append(found, violation{ruleBound, o.Lock, fmt.Sprintf("it took %v, and should have %v at most: %v", took, limit, o)})
		}
	}
	return found
}

// woken requires that, in the time between from and to, no lock is free for longer than the bound while somebody wants it.
// What is owed, a hold whose acquire or unlock got no answer, is released so much later at most. It returns also for how
// long it was free each time while somebody waited who had begun to before: whoever got it then, for one who comes by and
// finds it free is not one who was woken. killed: when a process was, by its number.
func woken(ops []op, from, to int64, bound, owed time.Duration, killed map[int]int64) (found []violation, gaps []time.Duration) {
	over := func(o op) int64 { // when its client was at the latest
		if at, is := killed[o.Client/10]; is {
			return at
		}
		return forever
	}
	type span struct {
		from, to int64
		taken    bool // for certain
	}
	held := make(map[int64]span)
	for _, o := range ops {
		switch {
		case o.Kind == acquire && o.Outcome == done:
			held[o.ID] = span{o.Return, min(forever, over(o)+int64(owed)), true} // until it is known otherwise
		case o.Kind == acquire && o.Outcome != refused && o.Outcome != failed:
			last := max(o.Return, o.Call)
			if o.Outcome == open && over(o) < forever {
				last = over(o)
			}
			held[o.ID] = span{o.Call, last + int64(owed), false}
		}
	}
	for _, o := range ops {
		h := held[o.Hold]
		switch {
		case o.Kind == alive:
			h.to = min(h.to, o.Return+o.Value)
		case o.Kind == unlock && o.Outcome == done:
			h.to = o.Return
		case o.Kind == unlock && o.Outcome == unknown:
			h.to = min(h.to, o.Return+int64(owed))
		default:
			continue
		}
		held[o.Hold] = h
	}
	spans := make([]span, 0, len(held))
	for _, s := range held {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	free := from
	look := func(until int64, taken bool) {
		gap := time.Duration(until - free)
		waited, stood := time.Duration(0), false
		for _, o := range ops {
			if o.Kind == acquire && o.Value > 0 {
				back := o.Return
				if o.Outcome == open {
					back = over(o)
				}
				stood = stood || o.Call < free && back >= until
				waited += time.Duration(max(0, min(back, until)-max(o.Call, free)))
			}
		}
		if stood && taken && gap > 0 {
			gaps = append(gaps, gap)
		}
		if gap > bound && waited > bound/2 {
			found = append(found, violation{ruleWake, ops[0].Lock, fmt.Sprintf("free for %v, from %.3f ms on, and waited for", gap, float64(free)/1e6)})
		}
	}
	for _, s := range spans {
		if s.from > free && s.from <= to {
			look(s.from, s.taken)
		}
		free = max(free, s.to)
	}
	if free < to {
		look(to, false)
	}
	return found, gaps
}
