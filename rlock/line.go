package rlock

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// lined tells whether clients wait in a line in Redis. They do not where several servers have the lock, where a message
// reaches more connections than the server counts (a cluster without sharded channels), and where the user has no right to
// the line. There they listen for releases, and all try.
func (c *Client) lined() bool {
	if c.apart || c.outside.Load() > int64(time.Since(c.born)) {
		return false
	}
	sharded, known := c.bus.Known()
	return known && (sharded || !c.cluster)
}

// outsideFor is how long a client without the right to the line does without it.
const outsideFor = time.Minute

// toldOutside notes that Redis has refused the line, and logs it once.
func (c *Client) toldOutside(keys *scripts.Keys) {
	if c.outside.Swap(int64(time.Since(c.born)+outsideFor)) == 0 {
		go c.log.Warn("rlock: the Redis user has no right to the key of the line in which clients wait for a lock: waiters listen and poll instead, which costs more the more they are",
			"lock", keys.Lock, "line", keys.Line)
	}
}

// calling is a release that calls the first client in the line. known: see scripts.Op.Calling.
func (c *Client) calling(op scripts.Op, again string, known int) scripts.Op {
	if !c.lined() {
		return op
	}
	return op.Calling(again, known)
}

// calling is the hold's release, which calls the first client in the line. again: the ticket with which this one enters, or "".
func (h *hold) calling(op scripts.Op, again string) scripts.Op {
	known := h.queue.known(h.trace.keys)
	if h.alone && again == "" && known == 0 && h.client.lined() {
		return op.CallingNewcomers()
	}
	return h.client.calling(op, again, known)
}

// A leaving is a client's way out of the line, or what goes on with a call. Nobody waits for it.
type leaving struct {
	client *Client
	op     scripts.Op
	keys   *scripts.Keys
}

// leaveLine takes the ticket out of the lock's line. With "" it goes on with a call. It is not repeated: a ticket that stays
// is one that its client is called for in vain, and then leaves with.
func (c *Client) leaveLine(keys *scripts.Keys, ticket string) {
	sharded, _ := c.bus.Known()
	c.calls.Add(1)
	l := &leaving{client: c, op: scripts.Leave(keys, ticket, sharded), keys: keys}
	c.store.Send(&l.op, l)
}

// Sending implements scripts.Caller.
func (*leaving) Sending(scripts.Caller) {}

// Answered implements scripts.Caller.
func (l *leaving) Answered(a scripts.Answer, err error) {
	if err == nil && a.More {
		l.client.leaveLine(l.keys, "")
	}
	l.client.calls.Add(-1)
}

// turn is the client's part in the line, for an attempt. It enters only while it would hear that it is called.
func (q *queue) turn(look bool, stale string) scripts.Turn {
	sharded, _ := q.client.bus.Known()
	t := scripts.Turn{Sharded: sharded, Look: look, Stale: stale}
	p := q.place.Load()
	if p == nil {
		return t
	}
	q.mu.Lock()
	live := q.rivals != nil && q.rivals.calls != nil && q.rivals.calls.Live()
	q.mu.Unlock()
	if live {
		t.Ticket, t.Place = p.begin(q.client.field)
	}
	return t
}

// callable makes the client listen for calls, and tells whether it would hear one.
func (q *queue) callable(keys *scripts.Keys) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.ofRivals()
	if r.calls == nil {
		q.wired.Store(true)
		r.keys = keys
		q.place.CompareAndSwap(nil, new(place))
		r.calls = q.client.bus.Subscribe(keys.Calls(q.client.id), q.heardCall)
	}
	return r.calls.Live()
}

// heardCall is called when the client was told something about its place, or might not have been. It takes no lock but the
// place's: the bus calls it, and is called with q.mu held.
func (q *queue) heardCall(message bool, text string) {
	p := q.place.Load()
	if !message {
		p.away()
		q.nudge()
		return
	}
	if ghost := p.hear(text); ghost != "" {
		go q.client.leaveLine(q.rivals.keys, ghost)
		return
	}
	if leader := q.leader.Load(); leader != nil {
		leader.ring()
	}
}

// known is how many of those who hear of a release on the lock's own channel are this client: 1 or 0.
func (q *queue) known(keys *scripts.Keys) int {
	if q.wired.Load() && q.client.bus.Hears(keys.Channel()) {
		return 1
	}
	return 0
}

// deaf ends the subscription to the lock's own channel of a client that is called, if nothing else needs it.
func (q *queue) deaf() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sub != nil && !q.settled {
		q.sub.Drop()
		q.sub = nil
	}
}

// linger keeps the queue, and the calls that are listened for, for a while after the last one has left. With q.mu held.
func (q *queue) linger(d time.Duration) {
	if isClosed(q.client.draining) {
		d = 0
	}
	r := q.ofRivals()
	r.until = time.Now().Add(d)
	if r.lingering == nil {
		q.again()
		r.lingering = time.AfterFunc(max(d, 1), q.lingered)
	} else if d == 0 {
		r.lingering.Reset(1)
	}
}

// lingered ends what linger began.
func (q *queue) lingered() {
	q.mu.Lock()
	r := q.rivals
	if r == nil || r.lingering == nil { // it was fired again as it ended
		q.mu.Unlock()
		return
	}
	if left := time.Until(r.until); left > 0 && !isClosed(q.client.draining) {
		r.lingering.Reset(left)
		q.mu.Unlock()
		return
	}
	r.lingering = nil
	if q.first == nil && r.calls != nil {
		r.calls.Close()
		r.calls = nil
	}
	q.mu.Unlock()
	q.done()
}

// tookPlace notes that an attempt with this ticket has taken the lock, which ends the stay in the line.
func (q *queue) tookPlace(ticket string) {
	if p := q.place.Load(); p != nil {
		p.ends(ticket)
	}
}

// hush ends a lingering, as the client is shutting down.
func (q *queue) hush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rivals != nil && q.rivals.lingering != nil {
		q.rivals.lingering.Reset(1)
	}
}

// enters returns the ticket with which the client enters the line again when it releases the lock, as others wait here; or "".
func (q *queue) enters() string {
	p := q.place.Load()
	if p == nil || !q.awaited() || p.in() {
		return ""
	}
	ticket := q.turn(false, "").Ticket
	if ticket != "" {
		p.releases()
	}
	return ticket
}

// released notes that this client let others have the lock that it had by h, by a command that was begun at this time and that
// entered the line with this ticket, if with any.
func (q *queue) released(h *hold, ticket string, a scripts.Answer, began time.Time) {
	if p := q.place.Load(); p != nil {
		p.returned(ticket, a.Place)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.client.lined() {
		if a.Held {
			q.ofRivals().calledBy = h
		}
		return
	}
	told := a.Receivers
	if q.sub != nil && q.sub.Live() {
		told-- // one of them is this client
	}
	if told > 0 {
		stands := max(2*time.Since(began), minStand)
		q.ofRivals().stands = time.Now().Add(stands)
		q.linger(stands)
	}
}

// minStand is how long a client at least leaves the lock to others after its own release, where there is no line.
const minStand = 5 * time.Millisecond

// standsBack is how long the client leaves the lock to others, where there is no line.
func (q *queue) standsBack() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rivals == nil || q.rivals.stands.IsZero() {
		return 0
	}
	return time.Until(q.rivals.stands)
}
