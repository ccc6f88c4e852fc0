package engine

import "fmt"

// InLine tells how many calls of the client stand in line for the lock, and whether the first of them waits to be told.
func (c *Client) InLine(name string) (n int, idle bool) {
	c.mu.Lock()
	ls := c.locks[name]
	c.mu.Unlock()
	if ls == nil {
		return 0, false
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for w := ls.first; w != nil; w = w.next {
		n++
	}
	return n, n > 0 && ls.first.isLeader && !ls.first.busy && ls.leaderWakeup.Load() == ls.first.wakeup
}

// Untold is how many releases Redis refused to tell anybody of.
func (c *Client) Untold() int64 { return c.untoldReleases.Load() }

// Books is what is on the client's books, "" for nothing but lock states that linger.
func (c *Client) Books() string {
	c.releaser.mu.Lock()
	releases := len(c.releaser.queue)
	c.releaser.mu.Unlock()
	c.mu.Lock()
	held := c.held
	uses := make(map[*lockState]int)
	for _, ls := range c.locks {
		uses[ls] = int(ls.users)
	}
	c.mu.Unlock()
	for ls, n := range uses {
		ls.mu.Lock()
		if n == 1 && ls.contention != nil && ls.contention.lingerTimer != nil {
			delete(uses, ls)
		}
		ls.mu.Unlock()
	}
	if len(uses)+held+releases == 0 {
		return ""
	}
	return fmt.Sprintf("%d locks, %d holds, %d releases", len(uses), held, releases)
}

// Queues is how many locks the client knows something of.
func (c *Client) Queues() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.locks)
}
