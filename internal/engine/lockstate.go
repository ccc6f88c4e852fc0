package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// A lockState is what a client knows of one lock: its own hold of it, if it has one, and the queue of its waiters, in order of arrival, for the
// first of which it asks Redis. A lockState exists while somebody uses it.
type lockState struct {
	client *Client
	key    stateKey
	users  int32 // how many calls, holds and timers use the state; guarded by client.mu

	checking atomic.Bool          // Redis is to be asked soon whether this client's own hold is still there
	news     atomic.Pointer[news] // nil before there has been a subscription

	mu sync.Mutex
	queue
	*asker // nil while nobody waits
	ownHolds
	run          handoffRun
	subscription Subscription // to the lock's own channel; nil for none
	contact      *contact     // nil before Redis has said anything to a waiter
	contention   *contention  // nil before another client wanted the lock
}

// A stateKey tells the states of locks apart. Both sides of a read-write lock have its name.
type stateKey struct {
	name string
	side scripts.Side
}

// stateKey is the key of the lock's state.
func (l *Lock) stateKey() stateKey { return stateKey{name: l.id.Name, side: l.keys.Side()} }

// ownHolds is what a lockState keeps of its client's own holds.
type ownHolds struct {
	hold         *hold      // the client's own, as far as it knows
	holdFollowed bool       // the hold has lasted for a while: messages on the channel may be about it
	ends         uint32     // of the client's holds, so far
	past         *pastHolds // nil for none
}

// pastHolds are holds of the client that are over, and may still be there in Redis.
type pastHolds struct {
	lost   *hold        // the latest that was lost without a word of Redis, and is not to be released by others
	forced []forcedHold // that ForceUnlock has ended, and that a late answer may still tell of
}

// pastHolds returns ls.past, made if need be. With ls.mu held.
func (ls *lockState) pastHolds() *pastHolds {
	if ls.past == nil {
		ls.past = new(pastHolds)
	}
	return ls.past
}

// contention is what a lockState keeps while other clients want the lock too. The lockState's mu guards it.
type contention struct {
	keys              *scripts.Keys // of the lock
	place             line.Place    // of this client in the line
	calls             Subscription  // on which the client is called when it is its turn; nil before it had to wait for another one
	lingerTimer       *time.Timer   // uses the lock state after the last call has left, until lingerUntil; nil for none
	lingerUntil       time.Time     // when the timer ends its use
	calledByReleaseOf *hold         // whose release has called the first client in the line
	yieldUntil        time.Time     // until when others come first, where there is no line
}

// contentionFor returns ls.contention, made for the lock with these keys if need be. With ls.mu held.
func (ls *lockState) contentionFor(keys *scripts.Keys) *contention {
	if ls.contention == nil {
		ls.contention = &contention{keys: keys}
	}
	return ls.contention
}

// place is the client's place in the line; nil before it had to wait for another client. With ls.mu held.
func (ls *lockState) place() *line.Place {
	if ls.contention == nil {
		return nil
	}
	return &ls.contention.place
}

// lockState returns the state with this key, and counts one user of the state more. The user calls removeUser in the end.
func (c *Client) lockState(key stateKey) *lockState {
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.locks[key]
	if ls == nil {
		ls = c.newState(key)
		c.locks[key] = ls
	}
	ls.users++
	return ls
}

// newState returns a state without users. With c.mu held.
func (c *Client) newState(key stateKey) (ls *lockState) {
	if n := len(c.spareStates); n > 0 {
		ls, c.spareStates = c.spareStates[n-1], c.spareStates[:n-1]
	} else {
		ls = &lockState{client: c}
	}
	ls.key = key
	return ls
}

// ownState returns a state for one share alone, and counts a user.
func (c *Client) ownState() *lockState {
	c.mu.Lock()
	defer c.mu.Unlock()
	ls := c.newState(stateKey{})
	ls.users = 1
	return ls
}

// stateOfHold returns the state of the client's hold with this field, a new one where there is no
// such hold, and counts a user.
func (c *Client) stateOfHold(field string) *lockState {
	c.mu.Lock()
	for h := c.firstHold; h != nil; h = h.next {
		if h.attempts.Field == field {
			defer c.mu.Unlock()
			h.lockState.users++
			return h.lockState
		}
	}
	c.mu.Unlock()
	return c.ownState()
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
		delete(c.locks, ls.key)
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
	if ls.news.Load() != nil {
		return false
	}
	ls.contact, ls.run, ls.past, ls.contention = nil, handoffRun{}, nil, nil
	return true
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
	ls.subscribe(h.lock.keys)
}

// unfollowHold ends what followHold began. With ls.mu held.
func (ls *lockState) unfollowHold() {
	if ls.holdFollowed {
		ls.holdFollowed = false
		ls.client.followedHolds.Add(-1)
	}
}

// listen subscribes to the lock's channel, and tells whether messages arrive. With ls.mu held.
func (ls *lockState) listen(keys *scripts.Keys) (live bool) {
	ls.subscribe(keys)
	return ls.subscription.Live()
}

// subscribe makes sure of the subscription. With ls.mu held.
func (ls *lockState) subscribe(keys *scripts.Keys) {
	if ls.subscription == nil {
		ls.expectNews()
		ls.subscription = ls.client.bus.Subscribe(keys, keys.Channel(), ls.onReleaseMessage)
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
// with message false. The first waiter looks then. In any case Redis is asked, askAfter later, whether this client's own hold is still
// there, because the hold may have been forced open: a message is a reason to ask, never a verdict. onReleaseMessage takes no mutex but that
// of the news: the bus calls it with the bus's mutex held, and the bus is called with ls.mu held.
func (ls *lockState) onReleaseMessage(message bool, _ string) {
	if ls.firstWakeup.Load() != nil { // otherwise whoever waits next asks anyway
		ls.news.Load().add(told{message: message})
		ls.Notify()
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

// currentHold returns the client's own hold of the lock, or nil.
func (ls *lockState) currentHold() *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.hold
}

// registerHold notes that h is the client's hold of the lock, by this outcome of a waiter. A hold that is noted still has been lost, unless its
// last level is closed. over: this client has released h meanwhile, by ForceUnlock.
func (ls *lockState) registerHold(h *hold, o outcome) (over bool) {
	ls.mu.Lock()
	ls.gotLock()
	old := ls.hold
	if old != nil {
		old.waited.end()
	}
	ls.unfollowHold()
	ls.hold = h
	if !h.passedOn { // otherwise the run goes on, and others may be in the line (P36)
		ls.run = handoffRun{began: o.sentAt.Time()}
		h.uncontended = !h.isShare() && (ls.contention == nil || !ls.contention.place.Entered())
	}
	over = ls.wasForced(h.attempts.Field, o.sentAt)
	ls.mu.Unlock()
	if old != nil {
		old.lose("another holder has the lock", false)
	}
	return over
}

// unregisterHold notes that h is no longer the client's hold of the lock. The asker looks then: it did nothing about messages that came
// while h was there, and none comes when a lease runs out. It does not look where the release of h has called the first client in the line,
// and this client is in the line.
func (ls *lockState) unregisterHold(h *hold) {
	ls.mu.Lock()
	defer ls.unlock()
	r := ls.contention
	called := r != nil && r.calledByReleaseOf == h
	if called {
		r.calledByReleaseOf = nil
	}
	ls.ends++
	if ls.hold != h {
		return
	}
	ls.hold = nil
	h.waited.end()
	ls.unfollowHold()
	ls.unsubscribeIfUnused()
	free := !called || !ls.inLine()
	ls.mayBeFree(free)
	if !free {
		ls.stopListening() // it listened as it had the lock, and is to be no outsider to the others
	}
}
