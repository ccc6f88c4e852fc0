package quorum

// Naive makes every node of the client count, however young: what the rule of the delayed restart is against.
func Naive(c *Client) {
	for _, n := range c.store.nodes {
		n.delay = 0
	}
}

// Records is how many fields the client keeps in mind.
func Records(c *Client) int {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return len(c.store.fields)
}

// Learned tells whether a node that is old enough has told what it keeps, and was marked if that is everything.
func (c *Client) Learned(node int) bool {
	n := c.store.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.learned != "" && n.learned == n.run
}

// First is the node that the client asks first for this lock, where others want it.
func (c *Client) First(name string) int {
	return c.store.first("redisson_lock__channel:{" + name + "}").index
}
