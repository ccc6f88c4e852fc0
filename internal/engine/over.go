package engine

import (
	"strings"

	"github.com/fencelock/fencelock/scripts"
)

// A server that takes over may have the data of some seconds ago: what the one before has confirmed since is gone, releases too. Then
// Redis has a hold of this client that is over (P38).

// beginTry notes a call that asks without being in the queue, and returns the client's hold of the lock, or nil.
func (ls *lockState) beginTry(w *waiter) *hold {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w.next = ls.trying; w.next != nil {
		w.next.prev = w
	}
	ls.trying = w
	return ls.hold
}

// endTry ends what beginTry began.
func (ls *lockState) endTry(w *waiter) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w.unlink(&ls.trying)
}

// setLost notes that the hold is lost by this client's clock. Redis keeps it for a margin longer.
func (ls *lockState) setLost(h *hold) {
	ls.mu.Lock()
	ls.lost = h
	ls.mu.Unlock()
}

// asksFor tells whether the waiter may get the lock by this field. With ls.mu held.
func (w *waiter) asksFor(field string) bool {
	return w != nil && w.field == field
}

// has tells whether a hold of this client, or a call that asks for the lock, has this field of the client's. With ls.mu held.
func (ls *lockState) has(field string) bool {
	if ls.hold != nil && ls.hold.attempts.Field == field || ls.lost != nil && ls.lost.attempts.Field == field || ls.first.asksFor(field) {
		return true // of those in the queue only the first asks
	}
	for w := ls.trying; w != nil; w = w.next {
		if w.asksFor(field) {
			return true
		}
	}
	return false
}

// releaseOver releases the hold of this field, which has kept the waiter from the lock, if it is one of this client's that was over when
// the waiter asked, and tells whether it was.
func (w *waiter) releaseOver(field string) bool {
	c, ls := w.client, w.lockState
	if field == "" || !c.owns(field) {
		return false
	}
	ls.mu.Lock()
	over := ls.ends.Load() == w.endsSeen && !ls.has(field)
	ls.mu.Unlock()
	if over {
		c.releaser.WasOver(w.keys, field, c.set.Lease)
	}
	return over
}

// releaseOver releases the hold of this field, which a release has found in place of its own, if it is one of this client's that is over.
func (c *Client) releaseOver(keys *scripts.Keys, field string) {
	if !c.owns(field) {
		return
	}
	c.mu.Lock()
	ls := c.locks[keys.Lock]
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

// owns tells whether the field is of a hold of this client.
func (c *Client) owns(field string) bool { return strings.HasPrefix(field, c.id+":") }
