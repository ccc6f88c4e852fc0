package main

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// A twin is a history in which all is well, and one step that breaks one rule.
type twin struct {
	name  string
	plan  func(*plan)
	right []event
	step  step
	rule  string
}

// A step changes a history.
type step func([]event) []event

// judged judges the history of two clients, A and B, and of a third, R, that may be Redisson's.
func judged(change func(*plan), history []event) []violation {
	p := plan{Servers: 1, Locks: 2, Clients: make([]clientPlan, 3)}
	if change != nil {
		change(&p)
	}
	found, _ := judge(p, begun(history))
	return found
}

// begun is the history, in order, after the start of the clients.
func begun(history []event) []event {
	all := []event{{Kind: started, Client: "c0.1", Text: "A"}, {Kind: started, Client: "c1.1", Text: "B"}, {Kind: started, Client: "c2.1", Text: "R"}}
	all = append(all, history...)
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	return all
}

// try requires that nothing is wrong with the right histories, and one thing with their twins.
func try(t *testing.T, twins []twin) {
	t.Helper()
	for _, w := range twins {
		t.Run(w.name, func(t *testing.T) {
			if found := judged(w.plan, w.right); len(found) > 0 {
				t.Errorf("nothing is wrong, and the judge says: %v", found)
			}
			plan := w.plan
			if w.step == nil { // the step is one of the plan
				plan, w.step = nil, func(h []event) []event { return h }
			}
			found := judged(plan, w.step(slices.Clone(w.right)))
			if len(found) != 1 || found[0].Rule != w.rule {
				t.Errorf("%s; the judge says: %v", w.rule, found)
			}
		})
	}
}

// A caller makes one call.
type caller struct {
	client, lock string
	call         int
}

var (
	a = caller{"c0.1", "L0", 1}
	b = caller{"c1.1", "L0", 2}
	r = caller{"c2.1", "L0", 3}
)

func (c caller) does(at float64, kind string) event {
	return event{At: seconds(at), Kind: kind, Client: c.client, Lock: c.lock, Call: c.call}
}

// as is another call of the caller's client.
func (c caller) as(call int) caller { c.call = call; return c }

// of is the caller's call of another lock.
func (c caller) of(lock string) caller { c.lock = lock; return c }

func (c caller) asks(at, wait float64) event {
	return with(c.does(at, asks), func(e *event) { e.For = seconds(wait) })
}
func (c caller) got(at float64, n int64) event {
	return with(c.does(at, got), func(e *event) { e.Token = n })
}
func (c caller) nests(at float64, n int64) event {
	return with(c.does(at, nested), func(e *event) { e.Token = n })
}
func (c caller) refused(at float64) event { return c.does(at, refused) }
func (c caller) ended(at float64, why string) event {
	return with(c.does(at, ended), func(e *event) { e.Text = why })
}
func (c caller) unlocks(at float64) event  { return c.does(at, unlocks) }
func (c caller) unlocked(at float64) event { return c.does(at, unlocked) }
func (c caller) counts(at float64, n int) event {
	return with(c.does(at, counted), func(e *event) { e.Count, e.Levels = n, 2 })
}
func (c caller) closes(at float64, how string) event {
	return event{At: seconds(at), Kind: closes, Client: c.client, Text: how}
}
func (c caller) closed(at float64) event {
	return event{At: seconds(at), Kind: closed, Client: c.client}
}
func (c caller) dies(at float64) event { return event{At: seconds(at), Kind: died, Client: c.client} }

// leased has the lock for an explicit lease.
func (c caller) leased(at float64, n int64, lease float64) event {
	return with(c.got(at, n), func(e *event) { e.For = seconds(lease) })
}

// holds is a whole hold, which begins a moment after it was asked for, and is unlocked in no time.
func (c caller) holds(from, to float64, n int64) []event {
	return []event{c.asks(from, 1), c.got(from+0.001, n), c.unlocks(to), c.unlocked(to)}
}

// redisHas is what the servers have of a lock.
func redisHas(at float64, field string) event {
	return event{At: seconds(at), Kind: has, Lock: "L0", Text: field}
}

// broken is a fault that is over at a time, and all is well so long after that.
func broken(from, to, settles float64) []event {
	return []event{{At: seconds(from), Kind: begins}, {At: seconds(to), Kind: ends, For: seconds(settles)}}
}

// brokenOf is broken, for the links of the client with this place.
func brokenOf(place string, from, to, settles float64) []event {
	h := broken(from, to, settles)
	for i := range h {
		h[i].Client = place
	}
	return h
}

// gone is data that is lost: of a lock, or of all where that is "".
func gone(at float64, lock string) event { return event{At: seconds(at), Kind: lost, Lock: lock} }

func restarted(e *event) { e.Text = restarts + "all data of a server" }

func clockSet(at float64) event { return event{At: seconds(at), Kind: lost, Text: "time: 5s"} }

func leaves(at float64, lock, what string) event {
	return event{At: seconds(at), Kind: left, Lock: lock, Text: what}
}

// until lets time go on.
func until(at float64) event { return event{At: seconds(at), Kind: calm} }

func noMore(at float64) event { return event{At: seconds(at), Kind: stops} }

// moment is more than no time.
const moment = 0.001

func seconds(s float64) time.Duration { return time.Duration(s*1000+0.5) * time.Millisecond }

func with(e event, change func(*event)) event { change(&e); return e }

// history is all of these, in the order of their times.
func history(parts ...any) (all []event) {
	for _, p := range parts {
		switch p := p.(type) {
		case event:
			all = append(all, p)
		case []event:
			all = append(all, p...)
		}
	}
	return all
}

// changed changes the events of a kind; of one call, or of all where that is 0.
func changed(kind string, call int, change func(*event)) step {
	return func(h []event) []event {
		for i := range h {
			if h[i].Kind == kind && (call == 0 || h[i].Call == call) {
				change(&h[i])
			}
		}
		return h
	}
}

func later(kind string, call int) step {
	return changed(kind, call, func(e *event) { e.At += seconds(moment) })
}

func token(call int, n int64) step { return changed(got, call, func(e *event) { e.Token = n }) }

func says(kind, text string) step { return changed(kind, 0, func(e *event) { e.Text = text }) }

func without(kind string) step {
	return func(h []event) []event {
		return slices.DeleteFunc(h, func(e event) bool { return e.Kind == kind })
	}
}

func more(e event) step { return func(h []event) []event { return append(h, e) } }

func inL1(e *event) { e.Lock = "L1" }

func withFloor(p *plan)      { p.Floor = true }
func withStable(p *plan)     { p.Stable = true }
func withQuorum(p *plan)     { p.Servers = 5 }
func farAway(p *plan)        { p.Distance = 15 * time.Millisecond }
func withShortLease(p *plan) { p.Clients[0].Lease = seconds(6) }
func withRedisson(p *plan)   { p.Clients[2].Redisson = true }
