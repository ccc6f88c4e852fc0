package room

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// A choice is one thing that may happen next in a world.
type choice struct {
	what   choiceKind
	client int // from 10 on an outsider
	at     int
}

type choiceKind uint8

const (
	heardReply choiceKind = iota
	executes
	subscribes
	begins
	leaves
	ends
	hears
	unlocks
	passes // of time
	reconnects
	joins
	asksOnce
	wants
	endsCall
	keeps
	drains
	givesUpPass
	losesOp
	losesReply
	silent
	copies
	breaks
	dies
	losesHold
)

var choiceNames = []string{
	"the answer comes", "the server executes", "the server subscribes", "the hold begins", "the call leaves",
	"the hold is over", "the client hears", "unlocks", "time passes", "the connection is back", "a call joins",
	"a call asks once", "an outsider wants the lock", "the call's context ends", "the hold has lasted", "the client shuts down",
	"Unlock waits no longer", "lost on the way", "the answer is lost", "no answer ever", "goes twice",
	"the connection breaks", "dies", "the lease runs out",
}

// fair are the choices that a world has to make at some time, in the order of a fair run.
func (w *world) fair() (all []choice) {
	for i := range w.replies {
		all = append(all, choice{heardReply, w.replies[i].op.client, i})
	}
	for i := range w.ops {
		all = append(all, choice{executes, w.ops[i].client, i})
	}
	for i := range w.clients {
		c := &w.clients[i]
		if c.dead {
			continue
		}
		if len(c.up) > 0 && !c.broken {
			all = append(all, choice{subscribes, i, 0})
		}
		for j, one := range c.calls {
			switch {
			case one.granted != "" && !one.ended:
				all = append(all, choice{begins, i, j})
			case one.leaves():
				all = append(all, choice{leaves, i, j})
			}
		}
		for j, h := range c.holds {
			if h.over {
				all = append(all, choice{ends, i, j})
			}
		}
		if len(c.down) > 0 && !c.broken {
			all = append(all, choice{hears, i, 0})
		}
	}
	for i := range w.outs {
		if w.outs[i].down > 0 {
			all = append(all, choice{hears, 10 + i, 0})
		}
	}
	return all
}

// slow are those that come when nothing of the kind is left.
func (w *world) slow() (all []choice) {
	for i := range w.clients {
		c := &w.clients[i]
		if c.broken && !c.dead {
			all = append(all, choice{reconnects, i, 0})
		}
		for j, h := range c.holds {
			switch {
			case c.dead || h.over || h.sent:
			case !h.unlocking:
				all = append(all, choice{unlocks, i, j})
			case !slices.ContainsFunc(w.ops, func(o op) bool { return o.old == h.field }):
				all = append(all, choice{givesUpPass, i, j}) // there is no answer
			}
		}
	}
	for i, o := range w.outs {
		if o.holds && !o.unlocking {
			all = append(all, choice{unlocks, 10 + i, 0})
		}
	}
	return all
}

// foul are those that the budget has room for.
func (w *world) foul() (all []choice) {
	b := &w.budget
	add := func(left int, c choice) {
		if left > 0 {
			all = append(all, c)
		}
	}
	for i, o := range w.ops {
		if o.copy || o.client >= 10 || o.takes() && w.clients[o.client].copied != "" {
			continue
		}
		add(*b.lossesOf(&o), choice{losesOp, o.client, i})
		add(b.copies, choice{copies, o.client, i})
		if o.takes() && !o.try {
			add(b.losses, choice{silent, o.client, i})
		}
	}
	for i, r := range w.replies {
		if !r.op.copy && r.op.client < 10 && r.err == nil {
			add(*b.lossesOf(&r.op), choice{losesReply, r.op.client, i})
		}
	}
	for i, o := range w.outs {
		if o.field == "" {
			add(b.outs, choice{wants, 10 + i, 0})
		}
	}
	for i := range w.clients {
		if c := &w.clients[i]; !c.dead {
			w.foulOf(i, c, add)
		}
	}
	return all
}

// lossesOf is how often an op like this, or its answer, may still be lost.
func (b *budget) lossesOf(o *op) *int {
	if b.releases > 0 && !o.owed && (o.kind == "release" || o.kind == "quick") {
		return &b.releases
	}
	return &b.losses
}

func (w *world) foulOf(i int, c *client, add func(int, choice)) {
	b := &w.budget
	if !c.drains {
		add(b.joins, choice{joins, i, 0})
		add(b.tries, choice{asksOnce, i, 0})
		add(b.drains, choice{drains, i, 0})
	}
	for j, one := range c.calls {
		if !one.failed && !one.ended {
			add(b.ends, choice{endsCall, i, j})
		}
	}
	for j, h := range c.holds {
		if h.unlocking && !h.sent && !h.over {
			add(b.gaveUp, choice{givesUpPass, i, j})
		}
		if !h.unlocking && !h.share {
			add(b.lost, choice{losesHold, i, j})
		}
		if !h.kept && !h.share && !h.over {
			add(b.keeps, choice{keeps, i, j})
		}
	}
	if !c.broken && (c.asked[Own] || c.asked[Calls]) {
		add(b.breaks, choice{breaks, i, 0})
	}
	add(b.deaths, choice{dies, i, 0})
}

// make makes a choice.
func (w *world) make(ch choice) {
	w.expire()
	if w.logs {
		w.say("%d: %s %s", ch.client, choiceNames[ch.what], w.about(ch))
	}
	switch ch.what {
	case heardReply:
		r := w.replies[ch.at]
		w.replies = slices.Delete(w.replies, ch.at, ch.at+1)
		w.answer(r)
	case executes:
		o := w.ops[ch.at]
		w.ops = slices.Delete(w.ops, ch.at, ch.at+1)
		w.replies = append(w.replies, w.execute(o))
	case passes:
		w.passTime()
	default:
		if ch.client >= 10 {
			w.ofOutsider(ch)
			break
		}
		switch c := &w.clients[ch.client]; ch.what {
		case subscribes, hears:
			w.move(ch, c)
		case begins, leaves, endsCall, joins, asksOnce:
			w.ofCall(ch, c)
		case unlocks, ends, givesUpPass, losesHold, keeps:
			w.ofHold(ch, c)
		default:
			w.harm(ch, c)
		}
	}
	w.sendOwed()
	w.watchFree()
}

func (w *world) ofOutsider(ch choice) {
	o := &w.outs[ch.client-10]
	switch ch.what {
	case wants:
		w.budget.outs--
		w.wants(ch.client - 10)
	case hears:
		w.outsiderIsTold(ch.client - 10)
	case unlocks:
		o.unlocking = true
		w.send(op{client: ch.client, kind: "redisson unlock", field: o.field})
	}
}

// move moves what is on a client's subscription connection.
func (w *world) move(ch choice, c *client) {
	if ch.what == subscribes {
		m := c.up[0]
		c.up = slices.Delete(c.up, 0, 1)
		w.subscribe(ch.client, m.channel, m.listen)
		if m.listen {
			c.down = append(c.down, message{channel: m.channel, live: true})
		}
		return
	}
	m := c.down[0]
	c.down = slices.Delete(c.down, 0, 1)
	switch word, rest, _ := strings.Cut(m.text, " "); {
	case word == "d" && rest == c.away:
		c.away = ""
	}
	switch {
	case !c.asked[m.channel]:
	case m.live:
		c.hears = c.hears || m.channel == Calls
		w.step(ch.client, Event{What: Changed, Channel: m.channel, Live: true})
	case m.channel == Calls:
		w.step(ch.client, Event{What: Message, Text: m.text})
	default:
		w.step(ch.client, Event{What: Told})
	}
}

// ticket is that of the client's place.
func (c *client) ticket() string {
	var its line.Place // a copy
	if c.room.others.place != nil {
		its = *c.room.others.place
	}
	return its.GiveUp(epoch)
}

// joined is the call with this number, which waits from now on. Some end soon, some ask for more.
func (w *world) joined(id uint64) (one waitingCall, call Call) {
	one = waitingCall{id: id, terms: Terms{Lease: lease, Floor: id%4 == 0}}
	call = Call{ID: id, Terms: one.terms, Began: w.now}
	if id%3 == 0 {
		one.until = w.now.Add(Soon - 50*time.Millisecond)
		call.Until = one.until
	}
	return one, call
}

func (w *world) ofCall(ch choice, c *client) {
	i := ch.client
	switch ch.what {
	case joins:
		w.budget.joins--
		c.nextID++
		one, call := w.joined(c.nextID)
		c.calls = append(c.calls, one)
		w.step(i, Event{What: Joined, Call: call})
	case asksOnce:
		w.budget.tries--
		w.try(i, c, waitingCall{})
	case begins:
		one := c.calls[ch.at]
		w.begins(i, c, one, true)
		w.leaves(i, c, ch.at, one.granted)
	case endsCall:
		w.budget.ends--
		c.calls[ch.at].ended = true
	case leaves:
		w.leaves(i, c, ch.at, "")
	}
}

// leaves has a call leave the queue, which has this hold, or none.
func (w *world) leaves(i int, c *client, at int, got string) {
	one := c.calls[at]
	c.calls = slices.Delete(c.calls, at, at+1)
	w.step(i, Event{What: Left, Call: Call{ID: one.id}, Field: got})
	if one.joins && one.granted == "" && !one.failed && !one.ended {
		w.try(i, c, waitingCall{id: one.id, joins: true})
	}
}

// begins notes a hold of the client. more: its call leaves the queue at once.
func (w *world) begins(i int, c *client, one waitingCall, more bool) {
	field := one.granted
	a, entered := c.aim(field), c.room.others.place != nil && c.room.others.place.Entered()
	h := held{field: field, terms: one.terms, tokens: (w.kind.LocalPasses + 1) / 2, share: w.kind.Shared, uncontend: !a.passed && !w.kind.Shared && !entered}
	local := one.local.field != ""
	if local {
		h.tokens, h.uncontend, c.passed = one.local.tokens-1, one.local.uncontend && !entered, ""
	} else if !a.passed {
		c.handed = 0
	}
	a.open, a.taken = false, false
	c.holds = append(c.holds, h)
	if !w.kind.Shared {
		w.step(i, Event{What: Began, Field: field, Got: a.passed || local, At: w.now, More: more})
	}
}

// try has a call ask once, beside the queue.
func (w *world) try(i int, c *client, one waitingCall) {
	one.granted = c.names.Field()
	c.tries = append(c.tries, one)
	c.aims = append(c.aims, aim{field: one.granted, open: true, flying: 1})
	w.step(i, Event{What: Trying, Field: one.granted})
	o := op{client: i, kind: "acquire", field: one.granted, lease: lease, try: true}
	if w.kind.Shared {
		o.kind, o.turn.Look = "wait", !one.joins
	}
	w.send(o)
}

// tried is for the answer to a call that asks beside the queue.
func (w *world) tried(i int, c *client, r reply) {
	at := slices.IndexFunc(c.tries, func(one waitingCall) bool { return one.granted == r.op.field })
	one, a := c.tries[at], r.answer
	c.tries = slices.Delete(c.tries, at, at+1)
	held := r.err == nil && a.Held
	if held {
		w.begins(i, c, one, false)
	} else {
		w.step(i, Event{What: Asked, Field: one.granted, Answer: &a, Err: r.err, At: w.now, Got: one.joins})
	}
	w.step(i, Event{What: Tried, Field: one.granted})
	if held {
		return
	}
	w.ends(c, one.granted, false)
	if one.joins && !c.drains {
		c.nextID++
		again, call := w.joined(c.nextID)
		c.calls = append(c.calls, again)
		w.step(i, Event{What: Joined, Call: call})
	}
}

func (w *world) ofHold(ch choice, c *client) {
	h, i := &c.holds[ch.at], ch.client
	switch ch.what {
	case unlocks:
		if h.unlocking = true; h.share {
			w.releases(i, c, h.field, "")
			return
		}
		w.step(i, Event{What: Unlocking, Field: h.field, Call: Call{Terms: h.terms}, Tokens: h.tokens})
	case keeps:
		w.budget.keeps--
		h.kept = true
		w.step(i, Event{What: Kept, Field: h.field})
	case givesUpPass:
		w.budget.gaveUp = max(0, w.budget.gaveUp-1)
		w.step(i, Event{What: GaveUp, Field: h.field})
	case losesHold:
		w.budget.lost--
		h.unlocking, h.over = true, true
		w.ends(c, h.field, false)
		w.step(i, Event{What: Lost, Field: h.field})
	case ends:
		w.ended(i, c, h.field)
	}
}

func (w *world) ended(i int, c *client, field string) {
	share := c.hold(field).share
	c.holds = slices.DeleteFunc(c.holds, func(h held) bool { return h.field == field })
	if !share {
		w.step(i, Event{What: Ended, Field: field})
	}
}

// harm makes a choice that the budget pays for.
func (w *world) harm(ch choice, c *client) {
	b, i := &w.budget, ch.client
	switch ch.what {
	case losesOp, silent:
		o := w.ops[ch.at]
		*b.lossesOf(&o)--
		w.ops = slices.Delete(w.ops, ch.at, ch.at+1)
		if ch.what == losesOp {
			w.replies = append(w.replies, reply{op: o, err: errBroken})
			break
		}
		a := c.aim(o.field)
		a.flying--
		a.doubt = true
	case losesReply:
		*b.lossesOf(&w.replies[ch.at].op)--
		w.replies[ch.at].answer, w.replies[ch.at].err = scripts.Answer{}, errBroken
	case copies:
		b.copies--
		o := w.ops[ch.at]
		if o.copy = true; o.takes() {
			c.copied, c.twice = o.field, o.turn.Ticket
		}
		w.ops = append(w.ops, o)
	case breaks:
		b.breaks--
		c.hears = false
		if p := c.room.others.place; p != nil && p.InLine() && c.room.asker.underWay == 0 {
			c.away = c.ticket()
		}
		c.broken, c.up, c.down = true, nil, nil
		for _, n := range []Channel{Own, Calls} {
			w.subscribe(i, n, false)
			if c.asked[n] {
				w.step(i, Event{What: Changed, Channel: n})
			}
		}
	case reconnects:
		c.broken, c.up = false, nil
		for _, n := range []Channel{Own, Calls} {
			if c.asked[n] {
				c.up = append(c.up, message{channel: n, listen: true})
			}
		}
	case dies:
		b.deaths--
		c.dead = true
	case drains:
		b.drains--
		c.drains = true
		for j := range c.calls {
			c.calls[j].ended = true
		}
		w.step(i, Event{What: Tick})
	}
}

// about says what a choice is about.
func (w *world) about(ch choice) string {
	switch ch.what {
	case heardReply, losesReply:
		r := w.replies[ch.at]
		return fmt.Sprintf("%s held=%t before=%d %v", r.op.what(), r.answer.Held, r.answer.Before, r.err)
	case executes, losesOp, silent, copies:
		return w.ops[ch.at].what()
	case hears:
		if ch.client < 10 {
			return fmt.Sprintf("%+v", w.clients[ch.client].down[0])
		}
	}
	return ""
}

func (o *op) what() string {
	return fmt.Sprintf("%s %s %s of client %d", o.kind, o.field, o.ticket+o.turn.Ticket, o.client)
}
