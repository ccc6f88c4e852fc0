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

// Books is what is on the client's books, "" for nothing but queues that linger.
func (c *Client) Books() string {
	c.releaser.mu.Lock()
	releases := len(c.releaser.open)
	c.releaser.mu.Unlock()
	c.mu.Lock()
	held := c.held
	uses := make(map[*queue]int)
	for _, q := range c.queues {
		uses[q] = int(q.uses)
	}
	c.mu.Unlock()
	for q, n := range uses {
		q.mu.Lock()
		if n == 1 && q.rivals != nil && q.rivals.lingering != nil {
			delete(uses, q)
		}
		q.mu.Unlock()
	}
	if len(uses)+held+releases == 0 {
		return ""
	}
	return fmt.Sprintf("%d queues, %d holds, %d releases", len(uses), held, releases)
}

// Queues is how many locks the client knows something of.
func (c *Client) Queues() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queues)
}
