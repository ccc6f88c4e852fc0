package room

import (
	"flag"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// passTime goes on to when something is due.
func (w *world) passTime() {
	var next time.Time
	at := func(t time.Time) {
		if t.After(w.now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for i := range w.clients {
		if c := &w.clients[i]; !c.dead {
			at(c.room.Due())
			for _, one := range c.calls {
				at(one.until)
			}
			for _, o := range c.owed {
				if !o.asked {
					at(o.due)
				}
			}
		}
	}
	for _, o := range w.outs {
		if o.waits {
			at(o.due)
		}
	}
	for _, p := range w.taken() {
		at(p.Until)
	}
	if len(w.fair()) > 0 { // what is under way is late by some time, and not always by as much
		at(w.now.Add(3 * youngAttempt / 2))
	}
	if next.IsZero() {
		next = w.now.Add(time.Second)
	}
	for _, p := range w.taken() {
		if w.renewed(p.Field) { // in time, and not before each look at the lock
			w.extend(p.Field, next.Add(lease))
		}
	}
	if !w.free.IsZero() && len(w.fair()) == 0 { // otherwise something is under way
		w.idle += next.Sub(w.now)
		w.longest = max(w.longest, w.idle)
	}
	w.now = next
	w.expire()
	if w.calm && w.longest > w.bound {
		w.fault("somebody waits for the free lock for %v", w.longest)
	}
	w.due()
}

// due has those act whose time has come.
func (w *world) due() {
	for i := range w.clients {
		c := &w.clients[i]
		for j := range c.calls {
			if one := &c.calls[j]; !one.until.IsZero() && !one.until.After(w.now) {
				one.ended = true
			}
		}
		if d := c.room.Due(); !d.IsZero() && !d.After(w.now) {
			w.step(i, Event{What: Tick})
		}
	}
	for i, o := range w.outs {
		if o.waits && !o.due.After(w.now) {
			w.outsiderAsks(i)
		}
	}
}

// renewed tells whether a client that lives renews the lease of the hold.
func (w *world) renewed(field string) bool {
	i := owner(field)
	if i >= 10 {
		return w.outs[i-10].field == field
	}
	h := w.clients[i].hold(field)
	return !w.clients[i].dead && h != nil && !h.sent && !h.over
}

// watchFree notes since when somebody waits for a lock that nobody has, or knows to have.
func (w *world) watchFree() {
	w.expire()
	waits, known := false, 0
	for i := range w.clients {
		c := &w.clients[i]
		waits = waits || !c.dead && len(c.room.asker.queue) > 0 && c.room.asker.state != granted
	}
	for _, p := range w.taken() {
		if !w.calm || w.known(p.Field) {
			known++
		}
	}
	for _, o := range w.outs {
		waits = waits || o.waits && known == 0
	}
	if known >= max(1, w.slots) || !waits {
		w.free, w.idle = time.Time{}, 0
	} else if w.free.IsZero() {
		w.free = w.now
	}
}

// known tells whether the client that has the lock knows of it, or has died, or releases it.
func (w *world) known(field string) bool {
	i := owner(field)
	if i >= 10 {
		return w.outs[i-10].holds && w.outs[i-10].field == field
	}
	c := &w.clients[i]
	has := func(one waitingCall) bool { return one.granted == field }
	released := func(o owed) bool { return o.field == field }
	return c.dead || c.hold(field) != nil || slices.ContainsFunc(c.calls, has) || slices.ContainsFunc(c.owed, released)
}

// finish lets a world go on without any more harm, until nobody wants anything. It looks at what
// must have come of all that was begun.
func (w *world) finish() {
	if !w.calm { // what harm was done may have kept somebody waiting
		w.longest, w.idle = 0, 0
	}
	w.budget = budget{}
	end := w.now.Add(2 * time.Minute)
	for n := 0; w.wrong == ""; n++ {
		next := append(w.fair(), w.slow()...)
		switch {
		case len(next) > 0 && n < 20_000:
			w.make(next[0])
		case w.still():
			w.checkEnd()
			return
		case w.now.After(end) || n >= 20_000:
			w.fault("it does not come to an end: %s", w.state())
		default:
			w.make(choice{what: passes})
		}
	}
}

// still tells whether nobody of those that live wants anything.
func (w *world) still() bool {
	for i := range w.clients {
		c := &w.clients[i]
		if !c.dead && (len(c.calls)+len(c.tries)+len(c.holds)+len(c.owed) > 0 || !c.room.Unused()) {
			return false
		}
	}
	return !slices.ContainsFunc(w.outs, func(o outsider) bool { return o.field != "" })
}

func (w *world) checkEnd() {
	if w.longest > w.bound {
		w.fault("somebody waits for the free lock for %v", w.longest)
	}
	for i := range w.clients {
		c := &w.clients[i]
		if c.dead {
			continue
		}
		for _, a := range c.aims {
			if a.open {
				w.fault("client %d has forgotten its attempts for %s", i, a.field)
			}
		}
		for _, t := range w.line().Stays {
			if owner(t.Ticket) == i && t.Ticket != c.twice {
				w.fault("client %d has left the ticket %s in the line", i, t.Ticket)
			}
		}
		for _, p := range w.taken() { // a hold that was lost by the clock runs out
			if owner(p.Field) == i && c.room.others.lost != p.Field {
				w.fault("client %d has left the lock taken by %s", i, p.Field)
			}
		}
	}
}

func (w *world) state() string {
	text := fmt.Sprintf("taken %v, line %v", w.taken(), w.line().Stays)
	for i := range w.clients {
		c := &w.clients[i]
		n := len(c.room.asker.queue)
		text += fmt.Sprintf("; client %d: %d wait, %s, due %v, holds %+v, owes %+v, unused %t", i, n,
			stateNames[c.room.asker.state], c.room.Due().Sub(w.now), c.holds, c.owed, c.room.Unused())
	}
	return text + fmt.Sprintf("; outsiders %+v", w.outs)
}

// hash is what tells worlds apart.
func (w *world) hash(seed maphash.Seed) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	maphash.WriteComparable(&h, w.now)
	maphash.WriteComparable(&h, w.lock.Second)
	maphash.WriteComparable(&h, w.budget)
	writeAll(&h, w.taken())
	writeAll(&h, w.line().Stays)
	writeAll(&h, w.outs)
	for _, o := range w.ops {
		o.id = 0
		maphash.WriteComparable(&h, o)
	}
	h.WriteByte(1)
	for _, r := range w.replies {
		r.op.id = 0
		maphash.WriteComparable(&h, r)
	}
	for i := range w.clients {
		w.clients[i].hash(&h)
	}
	return h.Sum64()
}

func writeAll[T comparable](h *maphash.Hash, all []T) {
	for i := range all {
		maphash.WriteComparable(h, all[i])
	}
	h.WriteByte(1)
}

func (c *client) hash(h *maphash.Hash) {
	maphash.WriteComparable(h, [7]bool{c.dead, c.broken, c.hears, c.subs[0], c.subs[1], c.proven, c.drains})
	maphash.WriteComparable(h, [4]string{c.away, c.copied, c.twice, c.passed})
	writeAll(h, c.calls)
	writeAll(h, c.tries)
	writeAll(h, c.holds)
	writeAll(h, c.aims)
	writeAll(h, c.owed)
	writeAll(h, c.up)
	writeAll(h, c.down)
	r := c.room
	maphash.WriteComparable(h, r.asker.course)
	maphash.WriteComparable(h, r.own)
	o := r.others
	maphash.WriteComparable(h, o.heard)
	maphash.WriteComparable(h, o.pass)
	maphash.WriteComparable(h, [2]string{o.calledBy, o.lost})
	maphash.WriteComparable(h, [2]uint32{r.ends, uint32(r.attempts)})
	writeAll(h, o.tries)
	maphash.WriteComparable(h, *r.health)
	maphash.WriteComparable(h, [2]time.Time{o.lingers, o.yields})
	writeAll(h, r.asker.queue)
	if o.place != nil {
		maphash.WriteComparable(h, *o.place)
	}
}

// walk makes random choices, and has the world finish.
func walk(seed uint64, g game, logs bool) *world {
	const steps = 150
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := newWorld(g)
	w.logs = logs
	for n := 0; n < steps && w.wrong == ""; n++ {
		fair, slow, foul := w.fair(), w.slow(), w.foul()
		pick := fair
		switch {
		case len(foul) > 0 && rnd.IntN(5) == 0:
			pick = foul
		case len(slow) > 0 && rnd.IntN(3) == 0:
			pick = slow
		case len(fair) == 0 || w.budget.late > 0 && rnd.IntN(20) == 0 && !slices.ContainsFunc(fair, ofTheClient):
			if len(fair) > 0 {
				w.budget.late--
			}
			pick = []choice{{what: passes}}
		}
		w.make(pick[rnd.IntN(len(pick))])
	}
	w.finish()
	return w
}

// ofTheClient tells whether a choice is one that does not wait for the network.
func ofTheClient(ch choice) bool { return ch.what == begins || ch.what == leaves || ch.what == ends }

var (
	walks  = flag.Int("walks", 1000, "how many random walks each of the searches makes")
	within = flag.Duration("for", 0, "for how long the searches make more of them; with -parallel 20 all at once")
	first  = flag.Uint64("seed", 1, "of the first walk")
	logs   = flag.Bool("logs", false, "whether an exhaustive search keeps the way to each state, which takes long")
	limit  = flag.Int("states", 5_000, "how many states an exhaustive search sees at most")
)

const (
	// calmBound is for how long somebody may wait for a free lock, and nothing is under way, where
	// nothing is lost but releases of holds: a yield. Whose release has no answer asks (P35).
	calmBound = 5 * time.Millisecond
	// outsiderBound is the same where others, or calls with wait 0, release the lock without a call:
	// the second client looks so late, if it is told of an earlier call of the first one.
	outsiderBound = 100 * time.Millisecond
	// harmBound is the same after harm.
	harmBound = 11 * time.Second
)

var (
	plain  = Kind{Passes: 3}
	local  = Kind{Passes: 3, LocalPasses: 4}
	permit = Kind{Once: true, Shared: true}
	reads  = Kind{Once: true, Shared: true, Together: true}
	quorum = Kind{Once: true, Tries: 3, LocalPasses: 4}
	harm   = budget{joins: 14, tries: 3, ends: 4, losses: 4, copies: 3, breaks: 3, deaths: 1, late: 10}
)

// What may happen in the searches.
var games = map[string]game{
	"calm":               {kind: plain, budget: budget{joins: 12, ends: 4, keeps: 2}, bound: calmBound},
	"tries":              {kind: plain, budget: budget{joins: 12, ends: 4, tries: 6}, bound: outsiderBound},
	"passes":             {kind: plain, budget: budget{joins: 16, gaveUp: 4}, bound: calmBound},
	"local passes":       {kind: local, budget: budget{joins: 20, ends: 4, keeps: 2}, bound: calmBound},
	"local passes, late": {kind: local, budget: budget{joins: 20, ends: 6, late: 20, tries: 4, drains: 1}, bound: outsiderBound},
	"local passes, harm": {kind: local, outsides: 1, bound: harmBound, budget: budget{joins: 20, ends: 5, losses: 4, copies: 3, breaks: 3, deaths: 1, lost: 2,
		late: 10, gaveUp: 3, tries: 3, outs: 3, keeps: 2, drains: 1}},
	"late":        {kind: plain, budget: budget{joins: 16, ends: 6, late: 20, drains: 1}, bound: calmBound},
	"losses":      {kind: plain, budget: budget{joins: 12, ends: 3, losses: 4, copies: 3, late: 10, gaveUp: 3, tries: 2}, bound: harmBound},
	"releases":    {kind: plain, bound: calmBound, budget: budget{joins: 14, ends: 3, releases: 6}},
	"connections": {kind: plain, budget: budget{joins: 12, ends: 3, breaks: 4, late: 10, keeps: 2}, bound: harmBound},
	"deaths":      {kind: plain, budget: budget{joins: 14, ends: 2, deaths: 2, lost: 2, late: 5}, bound: harmBound},
	"all": {kind: plain, outsides: 1, bound: harmBound, budget: budget{joins: 16, ends: 5, losses: 4, copies: 3, breaks: 3, deaths: 1, lost: 2,
		late: 10, gaveUp: 3, tries: 3, outs: 3, keeps: 2, drains: 1}},
	"no line":         {kind: plain, noLine: true, outsides: 1, budget: budget{joins: 12, ends: 4, outs: 3}, bound: calmBound},
	"outsiders":       {kind: plain, outsides: 2, budget: budget{joins: 12, ends: 3, outs: 6}, bound: outsiderBound},
	"permits":         {kind: permit, slots: 2, budget: budget{joins: 14, ends: 4, tries: 4}, bound: calmBound},
	"permits, harm":   {kind: permit, slots: 2, budget: harm, bound: harmBound},
	"readers":         {kind: reads, slots: 9, outsides: 1, budget: budget{joins: 14, ends: 4, outs: 4}, bound: outsiderBound},
	"readers, harm":   {kind: reads, slots: 9, outsides: 1, budget: harm, bound: harmBound},
	"several servers": {kind: quorum, budget: budget{joins: 14, ends: 4, tries: 4, late: 10, losses: 4, copies: 2}, bound: harmBound},
}

func TestRandom(t *testing.T) {
	until := time.Now().Add(*within)
	for name, g := range games {
		g.players = 3
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longest := time.Duration(0)
			n := uint64(0)
			for ; n < uint64(*walks) || time.Now().Before(until); n++ {
				w := walk(*first+n, g, false)
				longest = max(longest, w.longest)
				if w.wrong != "" {
					w = walk(*first+n, g, true)
					t.Fatalf("seed %d: %s\n%s", *first+n, w.wrong, strings.Join(w.log[max(0, len(w.log)-120):], "\n"))
				}
			}
			t.Logf("%d walks, the longest wait for a free lock: %v", n, longest)
		})
	}
}

// exhaust goes through all worlds that come of one, up to a limit. Of the worlds that are no last
// ones an eighth has to finish.
func exhaust(w *world, limit int, horizon time.Duration) (states int, all bool, wrong *world) {
	seed := maphash.MakeSeed()
	seen := map[uint64]struct{}{w.hash(seed): {}}
	todo := []*world{w}
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		states++
		fair := w.fair()
		next := append(append(fair, w.slow()...), w.foul()...)
		if (len(fair) == 0 || w.budget.late > 0) && w.now.Sub(epoch) < horizon {
			next = append(next, choice{what: passes})
		}
		if len(next) == 0 || states%8 == 0 {
			f := w.clone()
			if f.finish(); f.wrong != "" {
				return states, false, f
			}
		}
		if states == limit {
			return states, false, nil
		}
		for _, ch := range next {
			v := w.clone()
			if ch.what == passes && len(fair) > 0 {
				v.budget.late--
			}
			v.make(ch)
			if v.wrong != "" {
				return states, false, v
			}
			h := v.hash(seed)
			if _, has := seen[h]; !has {
				seen[h] = struct{}{}
				todo = append(todo, v)
			}
		}
	}
	return states, true, nil
}

func TestExhaustive(t *testing.T) {
	for _, p := range []struct {
		name    string
		horizon time.Duration // of the time in which anything but a fair end may happen
		g       game          // of two clients
	}{
		{"two calls", 5 * time.Second, game{budget: budget{joins: 2}, bound: calmBound}},
		{"two calls, one ends", 100 * time.Millisecond, game{budget: budget{joins: 2, ends: 1}, bound: calmBound}},
		{"three calls", 20 * time.Millisecond, game{budget: budget{joins: 3}, bound: calmBound}},
		{"two calls, a loss", 100 * time.Millisecond, game{budget: budget{joins: 2, losses: 1, late: 1}, bound: harmBound}},
		{"two calls, a copy", 0, game{budget: budget{joins: 2, copies: 1}, bound: harmBound}},
		{"two calls, a broken connection", 100 * time.Millisecond, game{budget: budget{joins: 2, breaks: 1}, bound: harmBound}},
		{"two calls, a death", 100 * time.Millisecond, game{budget: budget{joins: 2, deaths: 1}, bound: harmBound}},
		{"three calls, a local pass", 20 * time.Millisecond, game{kind: Kind{LocalPasses: 1}, budget: budget{joins: 3, ends: 1}, bound: calmBound}},
		{"three calls for a permit, a loss", 20 * time.Millisecond, game{kind: permit, slots: 1, budget: budget{joins: 3, losses: 1}, bound: harmBound}},
		{"calls and an outsider", 100 * time.Millisecond, game{outsides: 1, budget: budget{joins: 2, outs: 1}, bound: outsiderBound}},
	} {
		t.Run(p.name, func(t *testing.T) {
			began := time.Now()
			p.g.players, p.g.kind.Passes = 2, 1
			w := newWorld(p.g)
			w.logs = *logs
			states, all, wrong := exhaust(w, *limit, p.horizon)
			if wrong != nil {
				t.Fatalf("after %d states: %s\n%s", states, wrong.wrong, strings.Join(wrong.log, "\n"))
			}
			took := time.Since(began)
			t.Logf("%d states, all: %t, in %v, %d a second", states, all, took.Round(time.Millisecond), int(float64(states)/took.Seconds()))
		})
	}
}
