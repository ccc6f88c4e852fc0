package lockui

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fencelock/fencelock/observe/inspect"
)

// A state is how urgent a lock is: the first ones come first.
type state string

const (
	stuck  state = "stuck"  // somebody has waited for long, or waits for a hold that is old or will not end
	waited state = "waited" // somebody waits
	maybe  state = "maybe"  // a client listens: one that waits, or the holder itself, if that is one of this library without presence
	heldBy state = "held"   // nobody is known to wait, but to stand by for a hold that is meant to last
	free   state = "free"
	other  state = "other" // no lock

	unsure state = "unknown" // too few servers of a quorum say who has it
)

var urgency = map[state]int{stuck: 0, waited: 1, maybe: 2, heldBy: 3, free: 4, other: 5, unsure: 1}

// order puts those claims first that are likely to be stuck, before any lock is asked about.
func (h *handler) order(s *survey) []*claim {
	for _, k := range s.claims {
		k.age = max(k.held, k.waited)
		if k.held == 0 { // nobody leads, perhaps
			k.passing, k.overdue = true, k.age
		}
		switch {
		case k.waiting && k.overdue >= h.longHold, s.circled[k.name]:
			k.rank = 0
		case k.listeners > 1: // a holder listens too, and is one
			k.rank = 1
		case k.waiting && k.passing:
			k.rank = 2
		case k.listeners > 0:
			k.rank = 3
		default:
			k.rank = 4
		}
	}
	return slices.SortedFunc(maps.Values(s.claims), func(a, b *claim) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(b.age, a.age), strings.Compare(a.name, b.name))
	})
}

// judge says how urgent the lock is, and why.
func (h *handler) judge(s *survey, l *shownLock) {
	holder := l.Holder
	waits := l.Waiting > 0 || l.Listeners > 1 || l.Listeners == 1 && holder == nil // a holder has one connection
	switch {
	case l.Unknown != "":
		l.State, l.Why = unsure, l.Unknown
		if waits {
			l.State = stuck
		}
		return
	case l.Other != "":
		l.State = other
		return
	case !waits && holder == nil:
		l.State = free
		return
	case !waits && l.Listeners == 1 && holder.By == nil:
		l.State = maybe
	case !waits, l.seen.Lasts() && l.standby:
		l.State = heldBy
	default:
		l.State = waited
	}
	switch {
	case waits && l.NeverEnds:
		l.State, l.Why = stuck, "it has no lease: it stays until its holder, or somebody else, frees it"
	case waits && holder != nil && holder.By.Quiet():
		l.State, l.Why = stuck, "its holder's client was last heard of "+holder.By.Silent.String()+" ago"
	case waits && s.circled[l.Name]:
		l.State, l.Why = stuck, "its holder waits in a circle of clients"
	case waits && l.seen.Lasts():
	case waits && holder != nil && holder.For >= milliseconds(h.longHold):
		l.State, l.Why = stuck, "held for "+holder.For.String()+" while others wait"
	case waits && l.LongestWait >= milliseconds(h.longHold) && holder == nil:
		l.State, l.Why = stuck, "free, and yet somebody has waited for "+l.LongestWait.String()
	case waits && l.overdue >= milliseconds(h.longHold):
		l.State, l.Why = stuck, "somebody has waited for "+l.overdue.String()
	}
}

// newLock is the lock as it is shown.
func (h *handler) newLock(s *survey, f *found) *shownLock {
	if f.semaphore != nil {
		return h.newSemaphore(s, f)
	}
	l := &shownLock{
		Name: f.Name, Token: f.Token, TTL: milliseconds(max(f.TTL, 0)), NeverEnds: f.TTL == inspect.NoExpiry,
		Waiting: f.Waiting, Listeners: f.listeners, Other: f.Other, Mode: f.Mode, Reading: f.Reading, Semaphore: f.Semaphore,
		Bar: int(100 * min(h.lease, max(f.TTL, 0)) / h.lease), lease: h.lease, seen: f.Lock,
		standby: f.listeners <= f.Waiting+1, // with the holder's own
	}
	if f.Holder != nil {
		l.Holder = newHolder(s, f.Holder)
	}
	for i := range f.Readers {
		l.Readers = append(l.Readers, shownReader{*newHolder(s, &f.Readers[i]), milliseconds(max(f.Readers[i].TTL, 0))})
	}
	l.addLine(s, f.Line)
	l.shownQuorum = newQuorum(s, f.Lock)
	h.judge(s, l)
	return l
}

// addLine adds who waits.
func (l *shownLock) addLine(s *survey, line []inspect.Waiter) {
	for _, w := range line {
		shown := shownWaiter{Client: w.Client, Mode: w.Mode, Calls: w.Calls, By: newProcess(w.By), Lasting: w.Lasting}
		if w.For > 0 && w.By != nil {
			shown.For = milliseconds(w.For + s.since(w.By))
		}
		l.Line = append(l.Line, shown)
		l.Calls += w.Calls
		l.LongestWait = max(l.LongestWait, shown.For)
		if w.Lasting == "" {
			l.standby, l.overdue = false, max(l.overdue, shown.For)
		}
	}
	l.More = max(l.Waiting-len(l.Line), 0)
}

func newHolder(s *survey, h *inspect.Holder) *shownHolder {
	shown := &shownHolder{Field: h.Field, Client: h.Client, Count: h.Count, Token: h.Token, By: newProcess(h.By), Lasting: h.Lasting}
	if by := h.By; by != nil {
		if h.For > 0 {
			shown.For = milliseconds(h.For + s.since(by))
		}
		shown.Young = shown.For == 0 && by.MoreHolds == 0 && !by.Cut && !by.Quiet()
	}
	return shown
}
