package room

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/test/linemodel"
	"github.com/fencelock/fencelock/scripts"
)

type reply struct {
	op     op
	answer scripts.Answer
	err    error
}

func (w *world) line() *linemodel.Line {
	if w.slots > 0 {
		return &w.pool.Line
	}
	return &w.lock.Line
}

// apply has the server do an operation at this time.
func (w *world) apply(o linemodel.Op) linemodel.Reply {
	if w.slots > 0 {
		return w.pool.Apply(o, w.now)
	}
	return w.lock.Apply(o, linemodel.Span{Lo: w.now, Hi: w.now})
}

// expire ends the leases that are over.
func (w *world) expire() {
	if w.lock.Field != "" && !w.now.Before(w.lock.Expires.Lo) {
		w.apply(linemodel.Op{Kind: "expire"})
	}
	if slices.ContainsFunc(w.pool.Taken, func(p linemodel.Permit) bool { return !w.now.Before(p.Until) }) {
		w.pool.Taken = slices.DeleteFunc(slices.Clone(w.pool.Taken), func(p linemodel.Permit) bool { return !w.now.Before(p.Until) })
	}
}

// taken is the fields that have the lock, or the slots, and until when.
func (w *world) taken() []linemodel.Permit {
	if w.slots == 0 && w.lock.Field != "" {
		return []linemodel.Permit{{Field: w.lock.Field, Until: w.lock.Expires.Lo}}
	}
	return w.pool.Taken
}

// isFree tells whether somebody may take the lock, or a slot.
func (w *world) isFree() bool { return len(w.taken()) < max(1, w.slots) }

// extend has the hold last until this time.
func (w *world) extend(field string, until time.Time) {
	if w.lock.Field == field {
		w.lock.Expires = linemodel.Span{Lo: until, Hi: until}
	}
	w.pool.Taken = slices.Clone(w.pool.Taken)
	for i := range w.pool.Taken {
		if w.pool.Taken[i].Field == field {
			w.pool.Taken[i].Until = until
		}
	}
}

// owner is the number of the client that has made the name; those from 10 on are outsiders.
func owner(name string) int {
	text, _, _ := strings.Cut(name, ":")
	i, _ := strconv.Atoi(text)
	return i
}

// execute has the server do an operation.
func (w *world) execute(o op) reply {
	kind := o.kind
	if kind == "listen" || kind == "turn away" {
		w.listens(o.client, kind == "listen")
		return reply{op: o}
	}
	said := w.apply(linemodel.Op{Kind: kind, Field: o.field, Lease: o.lease, Old: o.old, Turn: o.turn, Again: o.ticket, Known: o.known})
	for _, text := range w.line().Said {
		w.deliver(text)
	}
	a := scripts.Answer{Held: said.Held || said.Released, Receivers: said.Told, Own: said.Own, Before: said.Before, Score: said.Place, Head: said.Head}
	if said.TTL {
		a.TTL = w.left(&a)
	}
	return reply{op: o, answer: a}
}

// left is what a client is told of the time that is left.
func (w *world) left(a *scripts.Answer) time.Duration {
	all := w.taken()
	switch {
	case w.isFree() && (w.slots == 0 || a.Head != ""):
		return scripts.NoKey
	case w.slots > 0 && (a.Before < 0 || a.Before > 1):
		return 10 * time.Minute
	}
	first := slices.MinFunc(all, func(a, b linemodel.Permit) int { return a.Until.Compare(b.Until) })
	return first.Until.Sub(w.now)
}

// deliver brings to those who listen what a script has told them.
func (w *world) deliver(said string) {
	to, text, _ := strings.Cut(said, " ")
	ch := Calls
	if to == "" {
		ch, text = Own, ""
	}
	for i := range w.clients {
		if c := &w.clients[i]; c.subs[ch] && !c.dead && (ch == Own || to == strconv.Itoa(i)) {
			c.down = append(c.down, message{channel: ch, text: text})
		}
	}
	for i := range w.outs {
		if ch == Own && w.outs[i].subscribed {
			w.outs[i].down++
		}
	}
}

// subscribe has the server note that a client listens, or not any more.
func (w *world) subscribe(i int, ch Channel, listen bool) {
	c, name := &w.clients[i], ""
	if c.subs[ch] == listen {
		return
	}
	if ch == Calls {
		name = strconv.Itoa(i)
	}
	c.subs[ch] = listen
	w.line().Listened[name] += 2*bit(listen) - 1
}

// answer has a client learn what became of an operation.
func (w *world) answer(r reply) {
	o := &r.op
	if o.client >= 10 {
		w.outsiderHears(o.client-10, r)
		return
	}
	i, c := o.client, &w.clients[o.client]
	if o.copy || c.dead {
		return
	}
	if o.takes() {
		x := c.aim(o.field)
		x.flying--
		x.doubt, x.taken = x.doubt || r.err != nil, x.taken || r.answer.Held || r.answer.Owed
	}
	switch {
	case o.try:
		w.tried(i, c, r)
	case o.takes():
		a := r.answer
		c.proven = c.proven || r.err == nil && !a.Held && o.turn.Ticket != "" && a.Before != scripts.NotInLine
		w.step(i, Event{What: Answered, Attempt: o.attempt, Ticket: o.turn.Ticket, Answer: &a, Err: r.err})
	case o.kind == "leave" && r.err != nil:
		w.send(*o)
	case o.kind == "leave":
	case o.owed:
		w.owedAnswered(c, r)
	default:
		w.released(i, c, r)
	}
}

// released is for the answer to the release of a hold.
func (w *world) released(i int, c *client, r reply) {
	o, a, h := &r.op, &r.answer, c.hold(r.op.field)
	w.ends(c, o.field, r.err != nil || !o.afterAll)
	if h.share {
		w.ended(i, c, o.field)
		return
	}
	if a.Own != "" && !c.room.Has(a.Own) {
		w.freesOver(i, c, a.Own)
	}
	w.step(i, Event{What: Released, Field: o.field, Ticket: o.ticket, Got: a.Held, Score: a.Score, Heard: a.Receivers, Err: r.err, At: w.now, More: true})
	w.ended(i, c, o.field)
}

// owedAnswered is for a release that nobody waits for. It is sent again while an attempt is under
// way, or where it has no answer.
func (w *world) owedAnswered(c *client, r reply) {
	at := slices.IndexFunc(c.owed, func(o owed) bool { return o.field == r.op.field })
	switch {
	case at < 0:
	case r.err != nil || !r.op.afterAll || w.underWay(r.op.field):
		c.owed[at].due, c.owed[at].asked = w.now.Add(100*time.Millisecond), false
	default:
		c.owed = slices.Delete(c.owed, at, at+1)
	}
}

func (w *world) underWay(field string) bool {
	return slices.ContainsFunc(w.ops, func(o op) bool { return o.field == field && o.takes() })
}

// sendOwed sends the releases that are due.
func (w *world) sendOwed() {
	kind := "release"
	if w.slots > 0 {
		kind = "vacate"
	} else if w.noLine {
		kind = "unlock"
	}
	for i := range w.clients {
		c := &w.clients[i]
		for j := range c.owed {
			if one := &c.owed[j]; !c.dead && !one.asked && !w.now.Before(one.due) {
				one.asked = true
				w.send(op{client: i, kind: kind, field: one.field, owed: true, afterAll: !w.underWay(one.field)})
			}
		}
	}
}
