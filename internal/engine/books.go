package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// InQueue tells how many calls of the client are in the queue for the lock, of a read-write lock in
// those of both sides, and whether the first of them waits to be told.
func (c *Client) InQueue(name string) (n int, idle bool) {
	idle = true
	for _, side := range []scripts.Side{scripts.NoSide, scripts.Reads, scripts.Writes} {
		c.mu.Lock()
		ls := c.locks[stateKey{name: name, side: side}]
		c.mu.Unlock()
		if ls == nil {
			continue
		}
		ls.mu.Lock()
		for w := ls.first; w != nil; w = w.next {
			n++
		}
		idle = idle && (ls.first == nil || ls.room.Watching())
		ls.mu.Unlock()
	}
	return n, n > 0 && idle
}

// Unpublished returns how many releases Redis refused to publish.
func (c *Client) Unpublished() int64 { return c.unpublished.Load() }

// Books says how many locks, holds and releases the client has, "" where it has none.
func (c *Client) Books() string {
	locks, holds, releases := c.onBooks()
	if locks+holds+releases == 0 {
		return ""
	}
	return fmt.Sprintf("%d locks, %d holds, %d releases", locks, holds, releases)
}

// OnBooks is how many locks, holds and releases the lock's client has, of all its locks.
func (l *Lock) OnBooks() (locks, holds, releases int) { return l.client.onBooks() }

// onBooks counts locks, holds and releases. A lock state that only lingers does not count.
func (c *Client) onBooks() (locks, holds, releases int) {
	releases = c.releaser.Len()
	c.mu.Lock()
	holds = c.held
	uses := make(map[*lockState]int)
	for _, ls := range c.locks {
		uses[ls] = int(ls.users)
	}
	c.mu.Unlock()
	for ls, n := range uses {
		ls.mu.Lock()
		if n == 1 && ls.lingers != nil {
			delete(uses, ls)
		}
		ls.mu.Unlock()
	}
	return len(uses), holds, releases
}

// LockStates is how many locks the client knows something of.
func (c *Client) LockStates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.locks)
}

// InUse returns the names of the locks that the client holds, and of those that calls of it wait
// for.
func (c *Client) InUse() (held, waiting []string) {
	c.mu.Lock()
	for h := c.firstHold; h != nil; h = h.next {
		held = append(held, h.lock.keys.Lock)
	}
	states := maps.Clone(c.locks)
	c.mu.Unlock()
	for key, ls := range states {
		ls.mu.Lock()
		if ls.first != nil {
			waiting = append(waiting, key.name)
		}
		ls.mu.Unlock()
	}
	slices.Sort(held)
	slices.Sort(waiting)
	return held, waiting
}

// HoldGone tells the client that Redis has its hold of this lock no longer, as a renewal would;
// expired: because the lease ran out. field: of the hold that is meant, "" for any.
func (c *Client) HoldGone(name, field string, expired bool) {
	how := goneText
	if expired {
		how = "the lease ran out"
	}
	var gone []*hold
	c.mu.Lock()
	for h := c.firstHold; h != nil; h = h.next {
		if h.lock.keys.Lock == name && (field == "" || h.attempts.Field == field) {
			gone = append(gone, h)
		}
	}
	c.mu.Unlock()
	for _, h := range gone {
		h.lose(how, true)
	}
}

// EndError is why the context of a hold has ended that was lost.
func EndError(lock string) error { return &holder.EndError{Lock: lock, Err: ErrLost, How: goneText} }
