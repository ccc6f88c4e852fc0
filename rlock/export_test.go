package rlock

// InQueue tells how many calls of the client are in the queue for the lock, and whether the first of them waits to be told.
func (c *Client) InQueue(name string) (n int, idle bool) { return c.client.InQueue(name) }

// Unpublished is how many releases Redis refused to tell anybody of.
func (c *Client) Unpublished() int64 { return c.client.Unpublished() }

// Books is what is on the client's books, "" for nothing but lock states that linger.
func (c *Client) Books() string { return c.client.Books() }

// LockStates is how many locks the client knows something of.
func (c *Client) LockStates() int { return c.client.LockStates() }
