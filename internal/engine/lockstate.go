package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A lockState is what a client knows of one lock: its own hold of it, if it has one, and the queue of its waiters, in order of arrival.
// The first waiter is the leader, the only one that asks Redis. A lockState exists while somebody uses it.
type lockState struct {
	client *Client
	name   string
	users  int32 // how many calls, holds and timers use the state; guarded by client.mu

	checking       atomic.Bool                    // Redis is to be asked soon whether this client's own hold is still there
	mayBeFree      atomic.Bool                    // a message was heard: the leader is to look
	ends           atomic.Uint32                  // of this client's holds, so far
	everSubscribed atomic.Bool                    // there has been a subscription
	leaderWakeup   atomic.Pointer[command.Wakeup] // of the leader, once it waits to be told
	place          atomic.Pointer[place]          // in the line in Redis; nil before this client had to wait for another one

	mu           sync.Mutex
	holdFollowed bool         // the hold has lasted for a while: messages on the channel may be about it
	first, last  *waiter      // the queue
	subscription Subscription // to the lock's own channel; nil for none
	hold         *hold        // this client's own, as far as it knows
	askedSince   moment       // since when an attempt of the leader is under way; 0 if none is
	contact      *contact     // nil before Redis has said anything to a waiter
	run          handoffRun
	forced       []forcedHold // holds that ForceUnlock has ended, and that a late answer may still tell of
	trying       *waiter      // calls that ask without being in the queue, linked by prev and next
	lost         *hold        // the latest that was lost without a word of Redis, and is not to be released by others
	contention   *contention  // nil before another client wanted the lock
}

// contention is what a lockState keeps while other clients want the lock too. The lockState's mu guards it.
type contention struct {
	calls             Subscription  // on which the client is called when it is its turn; nil before it had to wait for another one
	keys              *scripts.Keys // of the lock; set with calls
	lingerTimer       *time.Timer   // uses the lock state after the last call has left, until lingerUntil; nil for none
	lingerUntil       time.Time     // when the timer ends its use
	calledByReleaseOf *hold         // whose release has called the first client in the line
	yieldUntil        time.Time     // until when others come first, where there is no line
}

// contentionLocked returns ls.contention, made if need be. With ls.mu held.
func (ls *lockState) contentionLocked() *contention {
	if ls.contention == nil {
		ls.contention = new(contention)
	}
	return ls.contention
}

// lockState returns the state of the lock with this name, and counts one user of the state more. The user calls removeUser in the end.
func (c *Client) lockState(name string) *lockState {
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.locks[name]
	if ls == nil {
		if n := len(c.spareStates); n > 0 {
			ls, c.spareStates = c.spareStates[n-1], c.spareStates[:n-1]
		} else {
			ls = &lockState{client: c}
		}
		ls.name = name
		c.locks[name] = ls
	}
	ls.users++
	return ls
}

// addUser counts one user more of the state, which has one already.
func (ls *lockState) addUser() {
	ls.client.mu.Lock()
	ls.users++
	ls.client.mu.Unlock()
}

// removeUser counts one user less of the state. The client forgets the state with its last user.
func (ls *lockState) removeUser() {
	ls.client.mu.Lock()
	defer ls.client.mu.Unlock()
	ls.client.removeUserLocked(ls)
}

// removeUserLocked is lockState.removeUser with c.mu held.
func (c *Client) removeUserLocked(ls *lockState) {
	if ls.users--; ls.users == 0 {
		delete(c.locks, ls.name)
		if len(c.spareStates) < maxSpare && ls.reset() {
			c.spareStates = append(c.spareStates, ls)
		}
		c.idleIfUnused()
	}
}

// maxSpare bounds the states that are kept to be used again.
const maxSpare = 256

// reset makes an unused state as if it were new; false where a message or a timer may still be about the lock that it was
// for.
func (ls *lockState) reset() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.everSubscribed.Load() {
		return false
	}
	ls.mayBeFree.Store(false)
	ls.place.Store(nil)
	ls.contact, ls.run, ls.forced, ls.lost, ls.contention = nil, handoffRun{}, nil, nil, nil
	return true
}

// join puts the waiter at the end of the queue of this client's waiters. leads: the waiter is the first in the queue. It is busy then, so
// that no hold hands the lock to it. asks: the waiter, which leads, is to ask Redis at once, because the client has no hold of the lock
// and no waiter has heard anything from Redis; join has noted that it asks.
func (ls *lockState) join(w *waiter) (leads, asks bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.first == nil {
		ls.first, ls.last = w, w
		w.isLeader = true
		if asks = ls.hold == nil && ls.contact == nil; asks {
			ls.startsAskingLocked(w, w.began)
		}
		w.busy = true
		return true, asks
	}
	w.shrink()
	w.prev, ls.last.next = ls.last, w
	ls.last = w
	return false, false
}

// leave takes the waiter out of the queue of this client's waiters. If the waiter led, the next one leads from now on, and is woken to look:
// the waiter that goes may have been told that the lock is free. ticket: with which the client is to leave the line in Redis, because no
// waiter is left; "" where it is not to leave.
func (ls *lockState) leave(w *waiter) (ticket string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w == ls.last {
		ls.last = w.prev
	}
	w.unlink(&ls.first)
	if w.isLeader {
		ls.leaderWakeup.Store(nil)
		switch next := ls.first; {
		case next == nil:
			ls.askedSince = 0
		default:
			next.isLeader = true
			ls.leaderWakeup.Store(next.wakeup)
			next.wakeup.Notify()
		}
	}
	ls.unsubscribeIfUnused()
	if ls.first == nil && ls.contention != nil && ls.contention.calls != nil {
		ls.inPlace(func(p *line.Place, now time.Time) bool {
			ticket = p.GiveUp(now)
			return true
		})
		ls.linger(lingerTime)
	}
	return ticket
}

// unlink takes the waiter out of the list that it is in, which begins with *first. With ls.mu held.
func (w *waiter) unlink(first **waiter) {
	if w.next != nil {
		w.next.prev = w.prev
	}
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		*first = w.next
	}
}

// notifyAll makes all waiters look.
func (ls *lockState) notifyAll() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for w := ls.first; w != nil; w = w.next {
		w.wakeup.Notify()
	}
}

// notifyLeader makes the leader look at the lock.
func (ls *lockState) notifyLeader() {
	ls.mayBeFree.Store(true)
	if leader := ls.leaderWakeup.Load(); leader != nil {
		leader.Notify()
	}
}

// hasWaiters tells whether somebody waits here.
func (ls *lockState) hasWaiters() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.first != nil
}

// startsAsking notes that the waiter asks Redis; false if it has been given the lock instead.
func (ls *lockState) startsAsking(w *waiter) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w.handoff != nil {
		return false
	}
	ls.startsAskingLocked(w, time.Now())
	return true
}

// startsAskingLocked is startsAsking of a waiter that has been given nothing, at this time. With ls.mu held.
func (ls *lockState) startsAskingLocked(w *waiter, at time.Time) {
	w.busy = true
	ls.mayBeFree.Store(false)
	if ls.askedSince == 0 {
		ls.askedSince = momentOf(at)
	}
}

// waitsToBeTold notes that the leader waits to be told something, or to be given the lock.
func (ls *lockState) waitsToBeTold(w *waiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w.busy = w.handoff != nil; !w.busy {
		w.shrink()
	}
	ls.leaderWakeup.Store(w.wakeup)
	if ls.mayBeFree.Load() || ls.inPlace(func(p *line.Place, _ time.Time) bool { return p.Pending() }) {
		w.wakeup.Notify()
	}
}

// unsubscribeIfUnused ends the subscription if nobody is there for whom it is. With ls.mu held.
func (ls *lockState) unsubscribeIfUnused() {
	if ls.subscription != nil && ls.first == nil && !ls.holdFollowed {
		if ls.client.usesLine() {
			ls.subscription.Drop() // those in the line would take this client for an outsider
		} else {
			ls.subscription.Close()
		}
		ls.subscription = nil
	}
}

// followHold subscribes for a hold that has lasted for a while, to learn soon that it was forced open.
func (ls *lockState) followHold(h *hold) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.hold != h {
		return
	}
	if ls.client.followedHolds.Add(1) > maxFollowed {
		ls.client.followedHolds.Add(-1)
		return
	}
	ls.holdFollowed = true
	ls.subscribe(h.attempts.Keys.Channel())
}

// unfollowHold ends what followHold began. With ls.mu held.
func (ls *lockState) unfollowHold() {
	if ls.holdFollowed {
		ls.holdFollowed = false
		ls.client.followedHolds.Add(-1)
	}
}

// listen subscribes to the lock's channel, and tells whether messages arrive.
func (ls *lockState) listen(channel string) (live bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.subscribe(channel)
	return ls.subscription.Live()
}

// subscribe makes sure of the subscription. With ls.mu held.
func (ls *lockState) subscribe(channel string) {
	if ls.subscription == nil {
		ls.everSubscribed.Store(true)
		ls.subscription = ls.client.bus.Subscribe(channel, ls.onReleaseMessage)
	}
}

// maxFollowed bounds the holds for which a client is subscribed (followHold): after a reconnect Redis is asked about each of them. The client
// notices beyond this bound that a hold was forced open when it renews the lease, and for a hold with a lease of its own with the
// next command.
const maxFollowed = 1000

// askAfter is the time from a message to the question whether the client's own hold is still there. Most messages are about the hold
// before it. One question answers all messages of this time, and there is none where the hold is over by then.
const askAfter = 100 * time.Millisecond

// onReleaseMessage is called for each message on the lock's own channel, with message true, and when messages arrive again or no longer,
// with message false. The leader looks then, but not for a message that the client leaves to others in the line (line.Place.Behind). In any
// case Redis is asked, askAfter later, whether this client's own hold is still there, because the hold may have been forced open: a message
// is a reason to ask, never a verdict. onReleaseMessage takes no mutex but the place's: the bus calls it with the bus's mutex held, and
// the bus is called with ls.mu held.
func (ls *lockState) onReleaseMessage(message bool, _ string) {
	if !message || !ls.inPlace((*line.Place).Behind) {
		ls.notifyLeader()
	}
	if ls.checking.CompareAndSwap(false, true) {
		time.AfterFunc(askAfter, ls.checkHold)
	}
}

func (ls *lockState) checkHold() {
	ls.checking.Store(false)
	if h := ls.currentHold(); h != nil {
		ls.client.dog.Ask(&h.Lease)
	}
}

// isHeld tells whether this client holds the lock, as far as it knows.
func (ls *lockState) isHeld() bool { return ls.currentHold() != nil }

// currentHold returns the client's own hold of the lock, or nil.
func (ls *lockState) currentHold() *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.hold
}

// registerHold notes that h is the client's hold of the lock. sent is when the command was sent that took the lock. begins: no hold of this
// client has handed the lock to h, so that a run of handoffs begins. A hold that is noted still has been lost, unless its last level is
// closed. over: this client has released h meanwhile, by ForceUnlock.
func (ls *lockState) registerHold(h *hold, sent watchdog.Instant, begins bool) (over bool) {
	ls.mu.Lock()
	ls.redisAnsweredLocked()
	old := ls.hold
	ls.unfollowHold()
	ls.hold = h
	if begins {
		ls.run = handoffRun{began: momentOf(sent.Time())}
	}
	over = ls.wasForced(h.attempts.Field, sent)
	ls.mu.Unlock()
	if old != nil {
		old.lose("another holder has the lock", false)
	}
	return over
}

// unregisterHold notes that h is no longer the client's hold of the lock. The leader looks then: it did nothing about messages that came
// while h was there, and none comes when a lease runs out. The leader does not look where the release of h has called the first client in
// the line, and this client is in the line.
func (ls *lockState) unregisterHold(h *hold) {
	ls.mu.Lock()
	there := ls.hold == h
	called := ls.contention != nil && ls.contention.calledByReleaseOf == h
	if called {
		ls.contention.calledByReleaseOf = nil
	}
	ls.ends.Add(1)
	if there {
		ls.hold = nil
		ls.unfollowHold()
		ls.unsubscribeIfUnused()
	}
	ls.mu.Unlock()
	switch {
	case !there:
	case called && ls.inLine():
		ls.mayBeFree.Store(false)
		ls.stopListening() // it listened as it had the lock, and is to be no outsider to the others
		if leader := ls.leaderWakeup.Load(); leader != nil {
			leader.Notify() // for a call that was heard meanwhile
		}
	default:
		ls.notifyLeader()
	}
}
