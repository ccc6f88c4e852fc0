package engine

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// usesLine tells whether clients wait in a line in Redis. They do not where a message reaches more connections than the server counts (a
// cluster without sharded channels), and where the user has no right to the line. There they listen for releases, and all try.
func (c *Client) usesLine() bool {
	if c.lineForbidden() {
		return false
	}
	sharded, known := c.bus.Known()
	return known && (sharded || !c.cluster)
}

// lineForbidden tells whether the client does without the line for a while, as the user lacks a right to it (P30).
func (c *Client) lineForbidden() bool { return c.noLineUntil.Load() > int64(time.Since(c.born)) }

// noLineTime is how long a client without the right to the line does without it.
const noLineTime = time.Minute

// lineRefused notes an answer that says that Redis did something without the line, and logs why, once (P30). renamed: see scripts.Answer.
func (c *Client) lineRefused(keys *scripts.Keys, renamed bool) {
	if first := c.noLineUntil.Swap(int64(time.Since(c.born)+noLineTime)) == 0; first && renamed {
		c.set.Log.Warn("rlock: a hook of the Redis client, or a proxy, changes the names of keys, and of no channel: clients cannot be called by the line in which they wait for a lock. "+
			"Waiters listen and poll instead, which costs more the more they are", "lock", keys.Lock, "line", keys.Line)
	} else if first {
		c.set.Log.Warn("rlock: the Redis user lacks a right to the line in which clients wait for a lock: waiters listen and poll instead, which costs more the more they are. "+
			"It needs TIME, and ZADD, ZCARD, ZRANGE, ZRANK, ZREM and ZSCORE on the line's key, and PUBLISH on the channels that begin like it; ACL LOG on the server says what was refused",
			"lock", keys.Lock, "line", keys.Line)
	}
	c.lineProven.Store(false)
}

// callingFirst is a release that calls the first client in the line. known: see scripts.Op.Calling.
func (c *Client) callingFirst(op scripts.Op, again string, known int) scripts.Op {
	if !c.usesLine() {
		return op
	}
	return op.Calling(again, known)
}

// callingFirst is the hold's release, which calls the first client in the line. again: the ticket with which this one enters, or "".
func (h *hold) callingFirst(op scripts.Op, again string) scripts.Op {
	if h.isShare() {
		return h.lockState.client.callingFirst(op, "", max(h.of.ownListeners(h.lock.releaseKeys), h.lockState.ownListeners(h.lock.releaseKeys)))
	}
	known := h.lockState.ownListeners(h.lock.keys)
	if h.uncontended && again == "" && known == 0 && h.lockState.client.usesLine() {
		return op.CallingNewcomers()
	}
	return h.lockState.client.callingFirst(op, again, known)
}

// A leaveOp takes a ticket of this client out of the line, or goes on with a call that has reached its bound (P29). No call waits for its
// answer.
type leaveOp struct {
	client *Client
	op     scripts.Op
	keys   *scripts.Keys
	stood  bool // Redis has said that the ticket was in the line
	began  time.Time
	pauses command.Backoff // after errors
	again  bool            // it was sent before
}

const (
	// leaveTime is how long a leave that was not done is sent again. A line that nobody uses any more is gone by then.
	leaveTime = 10 * time.Minute
	// lastLeavePause is the longest pause between two of them.
	lastLeavePause = 10 * time.Second
)

// leaveLine takes the ticket out of the line in Redis. With "" it calls the first client there. A leave that gets no answer is sent again: a
// release may call the client for the ticket that stays, and the client hears nothing, as it listens no more, but Redis does not know that
// where its connection has died without a word (P19). So is a leave that is refused, where the ticket was in the line: those behind two such
// tickets hear of no release that calls nobody, such as Redisson's. Other tickets are left once, as failing calls can make thousands of them.
func (c *Client) leaveLine(keys *scripts.Keys, ticket string) { c.newLeave(keys, ticket, false).send() }

func (c *Client) newLeave(keys *scripts.Keys, ticket string, stood bool) *leaveOp {
	sharded, _ := c.bus.Known()
	return &leaveOp{client: c, op: scripts.Leave(keys, ticket, sharded), keys: keys, stood: stood, began: time.Now()}
}

func (l *leaveOp) send() {
	l.client.underWay.Add(1)
	l.client.store.Send(&l.op, l)
}

// Sending implements scripts.Caller.
func (*leaveOp) Sending(scripts.Caller) {}

// Answered implements scripts.Caller.
func (l *leaveOp) Answered(a scripts.Answer, err error) {
	if a.Outside && !l.again { // the repeats are not to keep the client from the lines of other locks
		l.client.lineRefused(l.keys, a.Renamed)
	}
	refused := l.stood && (a.Stays || err != nil && !errors.Is(err, redis.ErrClosed))
	switch {
	case err == nil && a.More:
		l.client.leaveLine(l.keys, "")
	case (refused || scripts.Passing(err)) && time.Since(l.began) < leaveTime:
		time.AfterFunc(l.pauses.Next(err, lastLeavePause), l.sendAgain)
	}
	l.client.underWay.Add(-1)
}

// sendAgain sends a leave that was not done. Close does not wait for it.
func (l *leaveOp) sendAgain() {
	if l.again = true; !isClosed(l.client.closed) {
		l.send()
	}
}

// soon is how long a call may last that does not get to a look of its own: it has those who keep it from a free lock asked at once whether they are alive.
const soon = 2 * line.CalledTimeout

// stood tells whether Redis has said that the client is in the line, or was. With ls.mu held.
func (ls *lockState) stood() bool {
	p := ls.place()
	return p != nil && p.Stood()
}

// lineTurn is the client's part in the line, for an attempt. It enters only while it would hear that it is called. With ls.mu held.
func (ls *lockState) lineTurn() (t scripts.Turn) {
	if p := ls.place(); p != nil {
		t = p.Turn(time.Now(), ls.hearsCalls(), ls.newTicket)
	}
	t.Look = t.Look || !t.Called && !ls.stood() && ls.first.endsWithin(soon)
	t.Sharded, _ = ls.client.bus.Known()
	t.Unproven = t.Ticket != "" && !ls.client.lineProven.Load()
	return t
}

// leavePlace takes the client out of the line, and returns the ticket with which it was there; "" where it was in none. With ls.mu held.
func (ls *lockState) leavePlace() (ticket string) {
	p := ls.place()
	if p == nil {
		return ""
	}
	stood := p.Stood()
	if ticket = p.GiveUp(time.Now()); ticket != "" {
		ls.client.newLeave(ls.contention.keys, ticket, stood).send()
	}
	return ticket
}

// hearsCalls tells whether the client would hear that it is called. With ls.mu held.
func (ls *lockState) hearsCalls() bool {
	return ls.contention != nil && ls.contention.calls != nil && ls.contention.calls.Live()
}

// newTicket returns a ticket for one stay in the line. With ls.mu held.
func (ls *lockState) newTicket() string {
	return ls.client.distance.Ticket(ls.contention.keys.TicketOf(ls.client.newField()))
}

// listenForCalls makes the client listen for calls, and tells whether it would hear one. With ls.mu held.
func (ls *lockState) listenForCalls(keys *scripts.Keys) bool {
	r := ls.contentionFor(keys)
	if r.calls == nil {
		ls.expectNews()
		r.calls = ls.client.bus.Subscribe(keys, keys.Calls(ls.client.id), ls.onLineMessage)
	}
	return r.calls.Live()
}

// onLineMessage is called for each message about the client's place in the line, with message true, and when messages arrive again or no
// longer, with message false: some may have been missed then. It takes no mutex but that of the news: the bus calls it with the bus's mutex
// held, and the bus is called with ls.mu held.
func (ls *lockState) onLineMessage(message bool, text string) {
	ls.news.Load().add(told{place: true, message: message, text: text})
	if ls.firstWakeup.Load() != nil {
		ls.Notify()
		return
	}
	go func() { // it may be a call for a place that the client has left (P19)
		ls.mu.Lock()
		ls.unlock()
	}()
}

// ownListeners is how many of those who hear of a release on the lock's own channel are this client: 1 or 0.
func (ls *lockState) ownListeners(keys *scripts.Keys) int {
	if ls.news.Load() != nil && ls.client.bus.Hears(keys) {
		return 1
	}
	return 0
}

// stopListening ends the subscription to the lock's own channel of a client that is called, if nothing else needs it. With ls.mu held.
func (ls *lockState) stopListening() {
	if ls.subscription != nil && !ls.holdFollowed {
		ls.subscription.Drop()
		ls.subscription = nil
	}
}

// linger keeps the lock state, and the calls that are listened for, for a while after the last one has left. With ls.mu held.
func (ls *lockState) linger(d time.Duration) {
	if isClosed(ls.client.draining) {
		d = 0
	}
	r := ls.contention
	r.lingerUntil = time.Now().Add(d)
	if r.lingerTimer == nil {
		ls.addUser()
		r.lingerTimer = time.AfterFunc(max(d, 1), ls.lingerEnded)
	} else if d == 0 {
		r.lingerTimer.Reset(1)
	}
}

// lingerEnded ends what linger began.
func (ls *lockState) lingerEnded() {
	ls.mu.Lock()
	r := ls.contention
	if r == nil || r.lingerTimer == nil { // it was fired again as it ended
		ls.mu.Unlock()
		return
	}
	if left := time.Until(r.lingerUntil); left > 0 && !isClosed(ls.client.draining) {
		r.lingerTimer.Reset(left)
		ls.mu.Unlock()
		return
	}
	r.lingerTimer = nil
	if ls.first == nil && r.calls != nil {
		r.calls.Drop() // a release counts who listens, and a call that is heard by nobody is lost
		r.calls = nil
	}
	ls.mu.Unlock()
	ls.removeUser()
}

// leftLine notes that an attempt with this ticket has taken the lock, or was refused a right to the line, which ends the stay in the line.
// refused: Redis may not have taken the ticket out. With ls.mu held.
func (ls *lockState) leftLine(ticket string, refused bool) {
	p := ls.place()
	switch {
	case p == nil:
	case refused && p.Stood():
		ls.leavePlace()
	default:
		p.Leave(time.Now(), ticket)
	}
}

// endLinger ends a lingering, as the client is shutting down.
func (ls *lockState) endLinger() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.contention != nil && ls.contention.lingerTimer != nil {
		ls.contention.lingerTimer.Reset(1)
	}
}

// ticketForRelease returns the ticket with which the client enters the line again when it releases the lock, as others wait here; or "".
func (ls *lockState) ticketForRelease() string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.first == nil || !ls.client.lineProven.Load() || !ls.hearsCalls() {
		return ""
	}
	return ls.contention.place.EnterByRelease(time.Now(), ls.newTicket)
}

// enteredByRelease notes that a release with this ticket is over, and the score that the client got by it in the line; 0 for none.
func (ls *lockState) enteredByRelease(ticket string, score int64) {
	ls.mu.Lock()
	defer ls.unlock()
	if p := ls.place(); p != nil && p.EnteredByRelease(ticket, score) {
		ls.client.newLeave(ls.contention.keys, ticket, score != 0).send() // the first may have come too soon (P19)
	}
}

// released notes the answer to a release of h, which was begun at this time. Where there is no line, this client leaves the lock for a
// moment to the others that were told.
func (ls *lockState) released(h *hold, a scripts.Answer, began time.Time) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.client.usesLine() {
		if a.Held && ls.contention != nil { // otherwise the client is in no line
			ls.contention.calledByReleaseOf = h
		}
		return
	}
	told := a.Receivers
	if ls.subscription != nil && ls.subscription.Live() {
		told-- // one of them is this client
	}
	if told > 0 {
		stands := max(2*time.Since(began), minYield)
		ls.contentionFor(h.attempts.Keys).yieldUntil = time.Now().Add(stands)
		ls.linger(stands)
	}
}

// lingerTime is how long a client that waits no more still listens to be called: its callers may come back, and what it has sent may
// arrive late.
const lingerTime = 2 * time.Second

// minYield is how long a client at least leaves the lock to others after its own release, where there is no line.
const minYield = 5 * time.Millisecond

// yieldsFor is how long the client leaves the lock to others, where there is no line. With ls.mu held.
func (ls *lockState) yieldsFor() time.Duration {
	if ls.contention == nil || ls.contention.yieldUntil.IsZero() {
		return 0
	}
	return time.Until(ls.contention.yieldUntil)
}
