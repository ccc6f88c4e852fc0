package engine

import (
	"strings"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// A server that takes over may have the data of some seconds ago: what the one before has confirmed since is gone, releases too. Then
// Redis has a hold of this client that is over (P38).

// beginTry notes a call that asks without being in the queue, and its claim. It returns the client's hold of the lock, or nil.
func (ls *lockState) beginTry(w *waiter) *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w.own = w.newClaim()
	w.own.ends = ls.ends
	if w.next = ls.trying; w.next != nil {
		w.next.prev = w
	}
	ls.trying = w
	return ls.hold
}

// endTry ends what beginTry began. lv: the level that the call has got.
func (ls *lockState) endTry(w *waiter, lv *holder.Level) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w.unlink(&ls.trying)
	if lv == nil || holdOfLevel(lv) != w.own.hold {
		ls.client.abandon(w.own.hold)
	}
}

// setLost notes that the hold is lost by this client's clock. Redis keeps it for a margin longer.
func (ls *lockState) setLost(h *hold) {
	ls.mu.Lock()
	ls.pastHolds().lost = h
	ls.mu.Unlock()
}

// has tells whether a hold of this client, or a call that asks for the lock, has this field of the client's. With ls.mu held.
func (ls *lockState) has(field string) bool {
	is := func(h *hold) bool { return h != nil && h.attempts.Field == field }
	if is(ls.hold) || ls.past != nil && is(ls.past.lost) || ls.asker != nil && is(ls.claim.hold) {
		return true
	}
	for w := ls.trying; w != nil; w = w.next {
		if is(w.own.hold) {
			return true
		}
	}
	return false
}

// releaseIfOver releases the hold of this field, which has kept the claim's last attempt from the lock, if it is one of this client's that was
// over when the attempt was sent, and tells whether it was. The claim's next attempt is sent after that. With ls.mu held.
func (ls *lockState) releaseIfOver(c *claim, field string) bool {
	over := field != "" && ls.client.owns(field) && ls.ends == c.ends && !ls.has(field)
	if over {
		ls.client.releaser.WasOver(c.hold.attempts.Keys, field, ls.client.set.Lease)
	}
	c.ends = ls.ends
	return over
}

// releaseOver releases the hold of this field, which a release has found in place of its own, if it is one of this client's that is over.
func (c *Client) releaseOver(keys *scripts.Keys, field string) {
	if !c.owns(field) {
		return
	}
	c.mu.Lock()
	ls := c.locks[stateKey{name: keys.Lock, side: keys.Side()}]
	c.mu.Unlock()
	if ls != nil { // otherwise there is no call, and no hold
		ls.mu.Lock()
		has := ls.has(field)
		ls.mu.Unlock()
		if has {
			return
		}
	}
	c.releaser.WasOver(keys, field, c.set.Lease)
}

// owns tells whether the field is of a hold of this client, and not one of a semaphore or a read-write lock.
func (c *Client) owns(field string) bool {
	return strings.HasPrefix(field, c.id+":") && !strings.HasPrefix(field, c.id+":-")
}
