package rlock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A queue is what a client knows of one lock: its own hold of it, if it has one, and its waiters, in order of arrival.
// The first one is the leader, the only one that talks to Redis. It exists while somebody uses it.
type queue struct {
	client *Client
	name   string
	uses   int32 // guarded by client.mu

	asking atomic.Bool           // whether our own hold is still there, soon
	look   atomic.Bool           // the leader is to look
	wired  atomic.Bool           // there was ever a subscription
	leader atomic.Pointer[bell]  // of the one to be told of it, once it waits
	place  atomic.Pointer[place] // in the line; nil before the client had to wait for another one

	mu          sync.Mutex
	settled     bool              // the hold has lasted for a while: messages may be about it
	blocks      int32             // of the waiters, how many take tokens of a block
	first, last *acquisition      // the waiters
	sub         seam.Subscription // while somebody waits, or the hold is settled, or the queue lingers
	hold        *hold             // this client's own, as far as it knows
	asked       moment            // since when an attempt of the leader is under way; 0 if none is
	news        *news             // of Redis, for those who wait; nil before there are any
	series      series
	forced      []forced // holds that may still be answered, and are over
	rivals      *rivals  // nil before there were any
}

// rivals is what a queue keeps as other clients want the lock, too. The queue's mu guards it.
type rivals struct {
	calls     seam.Subscription // on which the client is called when it is its turn; nil before it had to wait for another one
	keys      *scripts.Keys     // of the lock; set with calls
	lingering *time.Timer       // keeps the queue although nobody uses it; nil if nothing does
	until     time.Time         // so long
	calledBy  *hold             // whose release has called the first client in the line
	stands    time.Time         // until when others come first, where there is no line
}

// ofRivals makes sure of the queue's rivals. With q.mu held.
func (q *queue) ofRivals() *rivals {
	if q.rivals == nil {
		q.rivals = new(rivals)
	}
	return q.rivals
}

// use returns the queue of the lock with this name, to be given back by done.
func (c *Client) use(name string) *queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[name]
	if q == nil {
		if n := len(c.spare); n > 0 {
			q, c.spare = c.spare[n-1], c.spare[:n-1]
		} else {
			q = &queue{client: c}
		}
		q.name = name
		c.queues[name] = q
	}
	q.uses++
	return q
}

// again is a further use of a queue that is in use.
func (q *queue) again() {
	q.client.mu.Lock()
	q.uses++
	q.client.mu.Unlock()
}

func (q *queue) done() {
	q.client.mu.Lock()
	defer q.client.mu.Unlock()
	q.client.unuse(q)
}

// unuse is done with c.mu held.
func (c *Client) unuse(q *queue) {
	if q.uses--; q.uses == 0 {
		delete(c.queues, q.name)
		if len(c.spare) < maxSpare && q.clear() {
			c.spare = append(c.spare, q)
		}
		c.rest()
	}
}

// maxSpare bounds the queues that are kept to be used again.
const maxSpare = 256

// clear makes an unused queue as if it were new; false where a message or a timer may still be about the lock that it was
// for, or the call whose hold was lost at once is still in line.
func (q *queue) clear() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.wired.Load() || q.first != nil {
		return false
	}
	q.look.Store(false)
	q.news, q.series, q.forced, q.rivals = nil, series{}, nil, nil
	return true
}

// join puts a call at the end of the line, and tells whether it is the first. It is busy then, and asks Redis at once if
// the client knows nothing of the lock.
func (q *queue) join(a *acquisition) (leads, asks bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.blocks {
		q.blocks++
	}
	if q.first == nil {
		q.first, q.last = a, a
		a.leads = true
		if asks = q.hold == nil && q.news == nil; asks {
			q.asks(a)
		}
		a.busy = true
		return true, asks
	}
	a.lighten()
	a.prev, q.last.next = q.last, a
	q.last = a
	return false, false
}

// leave takes a call out of the line; the next one leads if it did, and looks for itself: this one may have been told
// that the lock is free. What was promised to the call, and not taken, is returned; and the ticket with which the client is
// to leave the line in Redis, as nobody waits here any more, or "".
func (q *queue) leave(a *acquisition) (promised bool, ticket string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.blocks {
		q.blocks--
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		q.last = a.prev
	}
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		q.first = a.next
	}
	if a.leads {
		q.leader.Store(nil)
		switch next := q.first; {
		case next == nil:
			q.asked = 0
		default:
			next.leads = true
			q.leader.Store(next.bell)
			next.bell.ring()
		}
	}
	q.quiet()
	if q.first == nil && q.rivals != nil && q.rivals.calls != nil {
		ticket = q.place.Load().give()
		q.linger(lineLingers)
	}
	return a.offered != nil || a.granted != nil, ticket
}

// ring makes everyone in line look.
func (q *queue) ring() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for a := q.first; a != nil; a = a.next {
		a.bell.ring()
	}
}

// nudge makes the leader look at the lock.
func (q *queue) nudge() {
	q.look.Store(true)
	if leader := q.leader.Load(); leader != nil {
		leader.ring()
	}
}

// awaited tells whether somebody waits here.
func (q *queue) awaited() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.first != nil
}

// busy notes that the call asks Redis; false if it has been promised the lock instead.
func (q *queue) busy(a *acquisition) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.offered != nil || a.granted != nil {
		return false
	}
	q.asks(a)
	return true
}

// asks is busy of a call that has been promised nothing. With q.mu held.
func (q *queue) asks(a *acquisition) {
	a.busy = true
	q.look.Store(false)
	if at := a.began; q.asked == 0 {
		if a.tokens > 0 { // it is not its first attempt
			at = time.Now()
		}
		q.asked = momentOf(at)
	}
	q.reserve(a)
}

// idle notes that the call, a leader, waits to be told, or offered the lock.
func (q *queue) idle(a *acquisition) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a.busy = a.offered != nil || a.granted != nil; !a.busy {
		a.lighten()
	}
	q.leader.Store(a.bell)
	if q.look.Load() || q.place.Load().pending() {
		a.bell.ring()
	}
}

// promised tells whether the lock is on its way to the call.
func (q *queue) promised(a *acquisition) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return a.offered != nil || a.granted != nil
}

// quiet ends the subscription if nobody is there for whom it is. With q.mu held.
func (q *queue) quiet() {
	if q.sub != nil && q.first == nil && !q.settled {
		if q.client.lined() {
			q.sub.Drop() // those in the line would take this client for a stranger
		} else {
			q.sub.Close()
		}
		q.sub = nil
	}
}

// follow subscribes for a hold that has lasted for a while, to learn soon that it was forced open.
func (q *queue) follow(h *hold) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hold != h {
		return
	}
	if q.client.followed.Add(1) > maxFollowed {
		q.client.followed.Add(-1)
		return
	}
	q.settled = true
	q.subscribe(h.trace.keys.Channel())
}

// unfollow is the end of that. With q.mu held.
func (q *queue) unfollow() {
	if q.settled {
		q.settled = false
		q.client.followed.Add(-1)
	}
}

// listen subscribes to the lock's channel, and tells whether messages arrive.
func (q *queue) listen(channel string) (live bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.subscribe(channel)
	return q.sub.Live()
}

// subscribe makes sure of the subscription. With q.mu held.
func (q *queue) subscribe(channel string) {
	if q.sub == nil {
		q.wired.Store(true)
		q.sub = q.client.bus.Subscribe(channel, q.heard)
	}
}

// maxFollowed bounds the channels that a client is subscribed to for holds that nobody waits for: each is asked about
// after a reconnect. Beyond it a hold that is forced open is found out by its renewal, and one with a lease of its own not
// before its next command.
const maxFollowed = 1000

// askAfter is how long a message is left to be about the hold that was there before: most are.
const askAfter = 100 * time.Millisecond

// heard is called when the channel may have news: the leader looks, unless others are before this client in the line. A hold
// of our own may be meant, which was forced open: a message is a reason to ask, never a verdict. It takes no lock but the
// place's: the bus calls it, and is called with q.mu held.
func (q *queue) heard(message bool, _ string) {
	if !message || !q.place.Load().behind() {
		q.nudge()
	}
	if q.asking.CompareAndSwap(false, true) {
		time.AfterFunc(askAfter, q.ask)
	}
}

func (q *queue) ask() {
	q.asking.Store(false)
	if h := q.held(); h != nil {
		q.client.dog.Ask(&h.lease)
	}
}

// ours tells whether the lock is this client's, as far as it knows.
func (q *queue) ours() bool { return q.held() != nil }

// held returns the client's own hold of the lock, or nil.
func (q *queue) held() *hold {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hold
}

// took registers the client's hold, which it has by a command that was sent at this time; begins: from others. If there
// was one, it has been lost. over: the client itself has released the hold meanwhile, by ForceUnlock.
func (q *queue) took(h *hold, sent watchdog.Instant, begins bool) (over bool) {
	q.mu.Lock()
	q.heardOf()
	old := q.hold
	q.unfollow()
	q.hold = h
	if begins {
		q.series = series{began: momentOf(sent.Time())}
	}
	over = q.wasForced(h.trace.field, sent)
	q.mu.Unlock()
	if old != nil {
		old.lose("another holder has the lock", false)
	}
	return over
}

// left forgets the client's hold. The leader is to look then, unless the release has called the first client in the line,
// and this client is in it: a message that came before meant nothing to it, and for a lease that ran out there is none.
func (q *queue) left(h *hold) {
	q.mu.Lock()
	there := q.hold == h
	called := q.rivals != nil && q.rivals.calledBy == h
	if called {
		q.rivals.calledBy = nil
	}
	if there {
		q.hold = nil
		q.unfollow()
		q.quiet()
	}
	q.mu.Unlock()
	switch {
	case !there:
	case called && q.place.Load().in():
		q.look.Store(false)
		q.deaf() // it listened as it had the lock, and is to be no stranger to the others
		if leader := q.leader.Load(); leader != nil {
			leader.ring() // for a call that was heard meanwhile
		}
	default:
		q.nudge()
	}
}
