package rlock

import "fmt"

// InLine tells how many calls of the client stand in line for the lock, and whether the first of them waits to be told.
func (c *Client) InLine(name string) (n int, idle bool) {
	c.mu.Lock()
	q := c.queues[name]
	c.mu.Unlock()
	if q == nil {
		return 0, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for a := q.first; a != nil; a = a.next {
		n++
	}
	return n, n > 0 && q.first.leads && !q.first.busy && q.leader.Load() == q.first.bell
}

// Untold is how many releases Redis refused to tell anybody of.
func (c *Client) Untold() int64 { return c.untold.Load() }

// Books is what is on the client's books, "" for nothing.
func (c *Client) Books() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaser.mu.Lock()
	defer c.releaser.mu.Unlock()
	if len(c.queues)+c.held+len(c.releaser.open) == 0 {
		return ""
	}
	return fmt.Sprintf("%d queues, %d holds, %d releases", len(c.queues), c.held, len(c.releaser.open))
}

// Oversleep keeps what guards the lock that the client has retained from running, until it wakes up.
func (c *Client) Oversleep(name string) (wakeUp func()) {
	c.mu.Lock()
	q := c.queues[name]
	c.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	guard := q.turns.back.guard
	guard.Stop()
	return func() { guard.Reset(0) }
}
