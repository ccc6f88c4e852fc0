package room

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/test/linemodel"
)

// A world is some clients, each with one room, others that stand in no line, and a server with one
// lock, or the slots of a semaphore, and their line. What the server does is package linemodel's.
type world struct {
	game
	now     time.Time
	lock    linemodel.Model
	pool    linemodel.Pool
	clients []client
	outs    []outsider
	ops     []op          // under way to the server, in any order
	replies []reply       // under way back, in any order
	longest time.Duration // for how long somebody waited for the free lock, and nothing was under way
	idle    time.Duration // for how long somebody waits so by now
	free    time.Time     // since when somebody waits for the free lock; zero for not
	calm    bool          // the budget has room for no harm but releases that are lost
	wrong   string
	nextOp  int
	log     []string // of what has happened, if logs
	logs    bool
}

// A game is what is played in a world.
type game struct {
	kind     Kind
	players  int // clients
	outsides int
	slots    int  // of a semaphore; 0 for a lock
	noLine   bool // clients do not wait in a line
	budget   budget
	bound    time.Duration // for how long somebody may wait for the free lock, and nothing is under way
}

// A budget is how much may still happen.
type budget struct {
	joins, tries, outs, ends, keeps, drains            int
	releases                                           int // of holds, that are lost, or whose answers are
	losses, copies, breaks, deaths, late, gaveUp, lost int
}

type op struct {
	id, client int
	kind       string // as linemodel has it
	attempt    Attempt
	field, old string
	ticket     string
	turn       linemodel.Turn
	lease      time.Duration
	known      int
	owed       bool // of a release: nobody waits for it
	copy       bool // its answer is heard by nobody
	afterAll   bool // of a release: all attempts of the hold had ended when it was sent
	try        bool // it is of a call beside the queue
}

// takes tells whether the op may take the lock for one of the clients with a room.
func (o *op) takes() bool { return o.kind == "wait" || o.kind == "acquire" || o.kind == "transfer" }

// A message is one on a client's subscription connection, which keeps the order.
type message struct {
	channel Channel
	text    string // "" of the own channel
	live    bool   // it is the confirmation of a subscription
	listen  bool   // to the server: listen, or not
}

// A waitingCall is an application's call.
type waitingCall struct {
	id      uint64
	terms   Terms
	until   time.Time
	granted string // field
	local   held   // that was passed on to the call; zero for none
	failed  bool
	ended   bool // its context has
	joins   bool // it is to leave the queue, and ask beside it
}

// A held is an application's hold.
type held struct {
	field     string
	terms     Terms
	tokens    int32 // that are left for local passes
	share     bool  // it is no hold to the room
	uncontend bool
	unlocking bool
	over      bool // to be ended
	sent      bool // its release was sent
	kept      bool
}

// An aim is a field for which attempts were sent.
type aim struct {
	field  string
	flying int
	doubt  bool // one had no answer
	taken  bool // one has taken the lock, for no hold so far
	passed bool // one was a pass
	open   bool // it has come to nothing yet
}

type owed struct {
	field string
	due   time.Time
	asked bool
}

type client struct {
	names
	set    Settings
	room   *Room
	dead   bool
	calls  []waitingCall // in order of arrival
	tries  []waitingCall // that ask beside the queue; granted: their field. joins: they join it then
	holds  []held
	aims   []aim
	owed   []owed
	subs   [2]bool   // as the server has it
	asked  [2]bool   // as the client has it
	broken bool      // the connection of the subscriptions
	up     []message // to the server
	down   []message // from the server
	handed int       // passes in a row
	nextID uint64
	hears  bool // its calls, as far as it knows
	proven bool
	drains bool
	copied string // the field of an attempt that was sent twice,
	twice  string // and its ticket: the late copy enters the line, and nobody hears of it (P19)
	away   string // its ticket when its connection broke; "" once it has asked again
	passed string // a hold that was passed on locally, and is nobody's; "" for none
}

type names struct {
	client, n int
	out       []Effect // of the latest step
}

func (n *names) Do(e *Effect) { n.out = append(n.out, *e) }

// step has the room take the event, and returns what is to be done.
func (n *names) step(r *Room, now time.Time, ev *Event) []Effect {
	n.out = nil
	r.Step(now, ev)
	return n.out
}

func (n *names) Field() string  { n.n++; return fmt.Sprint(n.client, ":", n.n) }
func (n *names) Ticket() string { return n.Field() }

var epoch = time.Unix(1_700_000_000, 0).UTC()

const lease = 3 * time.Second

func newWorld(g game) *world {
	w := &world{game: g, now: epoch, outs: make([]outsider, g.outsides)}
	b := g.budget
	w.calm = b.losses+b.copies+b.breaks+b.deaths+b.lost == 0
	w.pool.Slots = g.slots
	w.line().Listened = map[string]int{}
	for i := range g.players {
		c := client{names: names{client: i}}
		c.set = Settings{Poll: time.Second, Patience: 10 * time.Second, Silence: 10 * time.Second}
		c.room = new(Room)
		c.room.Reset(&c.set, g.kind, nil)
		w.clients = append(w.clients, c)
	}
	w.rewire()
	return w
}

// rewire has each room use its client's settings and names.
func (w *world) rewire() {
	for i := range w.clients {
		c := &w.clients[i]
		c.room.set, c.room.shell = &c.set, &c.names
	}
}

func (w *world) clone() *world {
	v := *w
	line := v.line()
	line.Stays, line.Listened, line.Said = slices.Clone(line.Stays), maps.Clone(line.Listened), nil
	v.outs, v.ops, v.replies, v.log = slices.Clone(w.outs), slices.Clone(w.ops), slices.Clone(w.replies), slices.Clone(w.log)
	v.clients = slices.Clone(w.clients)
	for i := range v.clients {
		c := &v.clients[i]
		c.calls, c.tries, c.holds = slices.Clone(c.calls), slices.Clone(c.tries), slices.Clone(c.holds)
		c.aims, c.owed = slices.Clone(c.aims), slices.Clone(c.owed)
		c.up, c.down = slices.Clone(c.up), slices.Clone(c.down)
		r := *c.room
		if r.asker != nobody {
			a := *r.asker
			a.queue = slices.Clone(a.queue)
			r.asker = &a
		}
		if r.health != nothing {
			h := *r.health
			r.health = &h
		}
		if r.others != alone {
			o := *r.others
			o.tries = slices.Clone(o.tries)
			if o.place != nil {
				p := *o.place
				o.place = &p
			}
			r.others = &o
		}
		c.room = &r
	}
	v.rewire()
	return &v
}

func (w *world) say(format string, args ...any) {
	if w.logs {
		w.log = append(w.log, fmt.Sprintf("%8.3fs ", w.now.Sub(epoch).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (w *world) fault(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

// step gives an event to a client's room, and does what comes of it.
func (w *world) step(i int, ev Event) {
	c := &w.clients[i]
	if c.dead {
		return
	}
	ev.Facts = Facts{Line: !w.noLine, Proven: c.proven, Draining: c.drains, Hears: c.hears, Listens: c.subs[Own]}
	ev.Facts.HeadEnds = len(c.calls) > 0 && c.calls[0].ended
	out := c.names.step(c.room, w.now, &ev)
	if w.logs {
		w.say("  client %d: %s -> %s; %s", i, describe(&ev), describeAll(out), stateNames[c.room.asker.state])
	}
	for _, e := range out {
		w.effect(i, c, e)
	}
	if !ev.More {
		w.checkRoom(i)
	}
}

func (w *world) effect(i int, c *client, e Effect) {
	switch e.Do {
	case Send:
		o := op{client: i, kind: "acquire", attempt: e.Attempt, field: e.Field, lease: lease}
		if t := e.Turn; e.InTurn {
			if c.away != "" && t.Ticket == c.away && t.Score == 0 {
				w.fault("client %d was away, and enters the line at the end", i)
			}
			c.away = ""
			o.kind, o.turn = "wait", linemodel.Turn{Ticket: t.Ticket, Score: t.Score, Look: t.Look, Stale: t.Stale}
		}
		w.aims(i, c, &e, &o)
	case Pass:
		if c.handed++; c.handed > int(w.kind.Passes) {
			w.fault("client %d passes the lock on %d times in a row", i, c.handed)
		}
		w.aims(i, c, &e, &op{client: i, kind: "transfer", attempt: e.Attempt, field: e.Field, old: e.Old, lease: lease})
	case Grant:
		w.granted(i, c, e)
	case Fail:
		c.call(e.Call).failed = true
	case AskBeside:
		for j := range c.calls {
			c.calls[j].joins = true
		}
	case Abandon:
		w.ends(c, e.Field, e.Field == c.passed)
	case FreeOver:
		w.freesOver(i, c, e.Field)
	case Passed:
		if e.Local {
			c.passed = e.Field
			c.holds = slices.DeleteFunc(c.holds, func(h held) bool { return h.field == e.Field })
			break
		}
		c.hold(e.Field).over = true
		w.ends(c, e.Field, false)
	case Release:
		w.releases(i, c, e.Field, e.Ticket)
	case LeaveLine:
		w.send(op{client: i, kind: "leave", ticket: e.Ticket})
	case Listen, Unlisten:
		c.asked[e.Channel] = e.Do == Listen
		c.hears = c.hears && (e.Do == Listen || e.Channel != Calls)
		c.up = append(c.up, message{channel: e.Channel, listen: e.Do == Listen})
	}
}

// aims notes the field that an attempt is for, and sends it.
func (w *world) aims(i int, c *client, e *Effect, o *op) {
	a := c.aim(e.Field)
	switch {
	case e.New && a == nil:
		c.aims = append(c.aims, aim{field: e.Field, open: true})
		a = &c.aims[len(c.aims)-1]
	case e.New || a == nil || !a.open:
		w.fault("client %d: the claim of %s is made twice, or used when it is over", i, e.Field)
		return
	case w.kind.Once && (a.doubt || a.flying > 0):
		w.fault("client %d: %s is used again, and an attempt has no answer", i, e.Field)
	}
	a.flying++
	a.passed = a.passed || e.Do == Pass
	w.send(*o)
}

func (w *world) granted(i int, c *client, e Effect) {
	one := c.call(e.Call)
	switch {
	case one != &c.calls[0]:
		w.fault("client %d: call %d is granted the lock before call %d", i, e.Call, c.calls[0].id)
	case one.granted != "":
		w.fault("client %d: call %d is granted the lock twice", i, e.Call)
	}
	one.granted = e.Field
	if e.Local {
		h := c.hold(e.Field)
		if c.handed++; h == nil || h.sent || h.tokens == 0 || h.terms != one.terms || c.handed > int(max(w.kind.LocalPasses, w.kind.Passes)) {
			w.fault("client %d passes %s on locally to call %d, which has %+v: %+v, %d in a row", i, e.Field, e.Call, one.terms, h, c.handed)
			return
		}
		one.local = *h
	}
}

// releases sends the release of a hold.
func (w *world) releases(i int, c *client, field, ticket string) {
	h := c.hold(field)
	if h == nil || h.sent {
		w.fault("client %d: %s is released twice, or is no hold", i, field)
		return
	}
	h.sent = true
	o := op{client: i, kind: "release", field: field, ticket: ticket, known: bit(c.subs[Own]), afterAll: c.aim(field).flying == 0}
	if w.noLine {
		o.kind = "unlock"
	} else if h.uncontend && ticket == "" && o.known == 0 {
		o.kind = "quick"
	}
	w.send(o)
}

// ends is for a field that is over. It is released where an attempt may have taken the lock for it.
// doubt: it may have the lock still.
func (w *world) ends(c *client, field string, doubt bool) {
	a := c.aim(field)
	a.open = false
	if doubt || a.doubt || a.taken || a.flying > 0 || field == c.copied {
		c.owes(field, w.now)
	}
}

// freesOver is for a hold of the client that is over, and that Redis has.
func (w *world) freesOver(i int, c *client, field string) {
	if h := c.hold(field); h != nil && !h.unlocking || c.room.own.field == field {
		w.fault("client %d takes its hold %s for one that is over", i, field)
	}
	c.owes(field, w.now)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *world) send(o op) {
	w.nextOp++
	o.id = w.nextOp
	w.ops = append(w.ops, o)
}

func (c *client) call(id uint64) *waitingCall {
	at := slices.IndexFunc(c.calls, func(one waitingCall) bool { return one.id == id })
	return &c.calls[at]
}

func (c *client) hold(field string) *held {
	for i := range c.holds {
		if c.holds[i].field == field {
			return &c.holds[i]
		}
	}
	return nil
}

func (c *client) aim(field string) *aim {
	for i := range c.aims {
		if c.aims[i].field == field {
			return &c.aims[i]
		}
	}
	return nil
}

// owes has the releaser release a hold.
func (c *client) owes(field string, due time.Time) {
	if !slices.ContainsFunc(c.owed, func(o owed) bool { return o.field == field }) {
		c.owed = append(c.owed, owed{field: field, due: due})
	}
}

// checkRoom looks at what must hold after each step.
func (w *world) checkRoom(i int) {
	c, r := &w.clients[i], w.clients[i].room
	leaves := slices.ContainsFunc(c.calls, waitingCall.leaves)
	switch {
	case len(r.asker.queue) > 0 && r.asker.state != granted && r.asker.due.IsZero():
		w.fault("client %d sleeps without end", i)
	case len(r.asker.queue) > 0 && r.asker.state == resting && r.asker.underWay == 0 && !leaves:
		w.fault("client %d rests while somebody waits", i)
	case len(r.asker.queue) == 0 && r.asker.claim.field != "":
		w.fault("client %d has a claim that nobody wants", i)
	case r.asker.underWay != 0 && r.asker.state != asking && r.asker.state != passing:
		w.fault("client %d waits for an answer in state %s", i, stateNames[r.asker.state])
	}
}

// leaves tells whether a call is about to leave.
func (one waitingCall) leaves() bool {
	return one.failed || one.ended || one.joins || one.granted != ""
}

var errBroken = io.EOF

var stateNames = []string{"resting", "watching", "yielding", "asking", "passing", "granted"}

func describeAll(out []Effect) string {
	var all []string
	for i := range out {
		all = append(all, describeEffect(&out[i]))
	}
	return strings.Join(all, ", ")
}
