package quorum

import (
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

func storeOf(c *rlock.Client) *store { return engine.ClientOf(c).Store().(*store) }

// Naive makes every node of the client count, however young: what the rule of the delayed restart is against.
func Naive(c *rlock.Client) {
	for _, n := range storeOf(c).nodes {
		n.delay = 0
	}
}

// Records is how many fields the client keeps in mind.
func Records(c *rlock.Client) int {
	storeOf(c).mu.Lock()
	defer storeOf(c).mu.Unlock()
	return len(storeOf(c).fields)
}

// Learned tells whether a node that is old enough has told what it keeps, and was marked if that is everything.
func Learned(c *rlock.Client, node int) bool {
	n := storeOf(c).nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.learned != "" && n.learned == n.run
}

// Hurry makes the client find out at once what its nodes keep, as one of sixteen clients does.
func Hurry(c *rlock.Client) {
	for _, n := range storeOf(c).nodes {
		n.mu.Lock()
		n.hurries = true
		n.mu.Unlock()
	}
}

// First is the node that the client asks first for this lock, where others want it.
func First(c *rlock.Client, name string) int {
	return storeOf(c).homeOrFirst(scripts.KeysOf(name)).index
}

// Order is the nodes in the order in which the client asks them for this lock.
func Order(c *rlock.Client, name string) (nodes []int) {
	order, _, _ := storeOf(c).sortedFor("redisson_lock__channel:{" + name + "}")
	for _, n := range order {
		nodes = append(nodes, n.index)
	}
	return nodes
}

// Begin notes that the client is about to ask for a field with this lease.
func Begin(c *rlock.Client, field string, lease time.Duration) { storeOf(c).field(field, lease) }

// Knows tells whether the client has something in mind of a field.
func Knows(c *rlock.Client, field string) bool {
	rec, _ := storeOf(c).find(field)
	return rec != nil
}

// OverdueTimeout tells whether the timer of a round, which fires before the time of an ask is over, ends the round.
func OverdueTimeout() (ends bool) {
	r := &round{open: 1, each: time.Hour, until: time.Now().Add(time.Hour)}
	r.asks, r.timer = []*ask{{node: &node{}, sent: time.Now()}}, time.NewTimer(time.Hour)
	r.judge = func(final bool) (bool, func()) {
		ends = final
		return true, nil
	}
	r.timeout()
	return ends
}
