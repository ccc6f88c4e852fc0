package rlock

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/pubsub"
)

// A queue is what a client knows of one lock: its own hold of it, if it has one, and its waiters, in order of arrival.
// The first one is the leader, the only one that talks to Redis. It exists while somebody uses it.
type queue struct {
	client *Client
	name   string
	uses   int // guarded by client.mu

	wake   chan struct{} // the leader is to look
	asking atomic.Bool   // whether our own hold is still there, soon

	mu      sync.Mutex
	waiters list.List            // of *waiter, in order of arrival
	sub     *pubsub.Subscription // while somebody waits, or the hold is settled
	hold    *hold                // this client's own, as far as it knows
	settled bool                 // the hold has lasted for a while: messages may be about it
	asked   time.Time            // since when an attempt of the leader is under way; zero if none is
	heardOf time.Time            // when Redis last said who has it
	trouble error                // what Redis last said instead
	since   time.Time            // and since when it has been like that
	failure time.Time            // the last time that it did
}

// A waiter is a call that waits for the lock.
type waiter struct {
	lead  chan struct{} // closed when it is the first
	place *list.Element
}

// use returns the queue of the lock with this name, to be given back by done.
func (c *Client) use(name string) *queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[name]
	if q == nil {
		q = &queue{client: c, name: name, wake: make(chan struct{}, 1)}
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
	if q.uses--; q.uses == 0 {
		delete(q.client.queues, q.name)
	}
}

// join puts a call at the end of the line.
func (q *queue) join() *waiter {
	w := &waiter{lead: make(chan struct{})}
	q.mu.Lock()
	defer q.mu.Unlock()
	w.place = q.waiters.PushBack(w)
	if q.waiters.Len() == 1 {
		close(w.lead)
	}
	return w
}

// leave takes a call out of the line; the next one leads if it did. A leader that did not take the lock may have been
// told that it is free: the next one is to look.
func (q *queue) leave(w *waiter, took bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	led := q.waiters.Front() == w.place
	q.waiters.Remove(w.place)
	next := q.waiters.Front()
	switch {
	case next == nil:
		q.asked = time.Time{}
		q.quiet()
	case led:
		close(next.Value.(*waiter).lead)
		if !took {
			q.nudge()
		}
	}
}

// quiet ends the subscription if nobody is there for whom it is. With q.mu held.
func (q *queue) quiet() {
	if q.sub != nil && q.waiters.Len() == 0 && !q.settled {
		q.sub.Close()
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
	q.subscribe(h.keys.Channel)
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
		q.sub = q.client.bus.Subscribe(channel, q.heard)
	}
}

// maxFollowed bounds the channels that a client is subscribed to for holds that nobody waits for: each is asked about
// after a reconnect. Beyond it a hold that is forced open is found out by its renewal.
const maxFollowed = 1000

// askAfter is how long a message is left to be about the hold that was there before: most are.
const askAfter = 100 * time.Millisecond

// heard is called when the channel may have news: the leader looks. A hold of our own may be meant, which was forced
// open: a message is a reason to ask, never a verdict.
func (q *queue) heard() {
	q.nudge()
	if q.asking.CompareAndSwap(false, true) {
		time.AfterFunc(askAfter, q.ask)
	}
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) ask() {
	q.asking.Store(false)
	if h := q.held(); h != nil {
		q.client.dog.Ask(&h.lease)
	}
}

// held returns the client's own hold of the lock, or nil.
func (q *queue) held() *hold {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hold
}

// took registers the client's hold. If there was one, it has been lost.
func (q *queue) took(h *hold) {
	q.mu.Lock()
	old := q.hold
	q.unfollow()
	q.hold = h
	q.mu.Unlock()
	if old != nil {
		old.lose("another holder has the lock", false)
	}
}

// left forgets the client's hold, and has the leader look if no message will tell it to: none comes for a lease that
// ran out.
func (q *queue) left(h *hold, silently bool) {
	q.mu.Lock()
	if q.hold == h {
		q.hold = nil
		q.unfollow()
		q.quiet()
	}
	deaf := silently || q.sub == nil || !q.sub.Live()
	q.mu.Unlock()
	if deaf {
		q.nudge()
	}
}

// asks notes that the leader asks Redis.
func (q *queue) asks() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.asked.IsZero() {
		q.asked = time.Now()
	}
}

// answered notes that Redis said who has the lock.
func (q *queue) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked, q.heardOf, q.trouble = time.Time{}, time.Now(), nil
}

// failed notes an error in place of an answer.
func (q *queue) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trouble == nil {
		q.since = time.Now()
	}
	q.asked, q.trouble, q.failure = time.Time{}, err, time.Now()
}

// exhausted returns what Redis said in place of an answer, if a call that began at this time has heard nothing else for
// as long as its patience.
func (q *queue) exhausted(began time.Time, patience time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.trouble == nil || time.Since(q.since) < patience || time.Since(began) < patience {
		return nil
	}
	return q.trouble
}

// verdict is why a call that began at this time has waited in vain: somebody else held the lock, as far as Redis told,
// or it did not tell.
func (q *queue) verdict(began time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.hold != nil && !q.hold.lease.Passed():
		return ErrNotAcquired // held by this very client
	case q.trouble != nil && !q.failure.Before(began):
		return fmt.Errorf("no answer within the wait: %w", q.trouble)
	// An attempt that has been under way for most of the wait is one that Redis does not answer.
	case !q.asked.IsZero() && q.heardOf.Before(began) && time.Since(q.asked) > time.Since(began)/2:
		return fmt.Errorf("no answer from Redis within the wait: %w", context.DeadlineExceeded)
	}
	return ErrNotAcquired
}
