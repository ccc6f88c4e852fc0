package quorum

// Naive makes every node of the client count, however young: what the rule of the delayed restart is against.
func Naive(c *Client) {
	for _, n := range c.store.nodes {
		n.delay = 0
	}
}

// Ballots is how many fields the client keeps in mind.
func Ballots(c *Client) int {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	return len(c.store.ballots)
}

// Learned tells whether a node that is old enough has told what it keeps, and was marked if that is everything.
func (c *Client) Learned(node int) bool {
	n := c.store.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.learned != "" && n.learned == n.run
}
