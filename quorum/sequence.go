package quorum

import (
	"cmp"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/scripts"
)

// sortedFor returns the nodes in the order in which attempts for the lock ask them: the same for all clients, but that nodes which do not
// answer this client, do not count, or are much farther away than most come last. The choice is a matter of speed, not of safety. home is the
// first one, which has the line of those who wait, or for a while a node that the owner has, where the owner has another home; nil where fewer nodes than a majority answer and count. Who has not answered after the time hedge is slow.
func (s *store) sortedFor(lock string) (order []*node, home *node, hedge time.Duration) {
	start := s.startOf(lock)
	far, hedge := s.far()
	order = make([]*node, 0, len(s.nodes))
	var last []*node
	for i := range s.sorted {
		n := s.sorted[(start+i)%len(s.sorted)]
		if trip, there := n.near(); there && trip <= far {
			order = append(order, n)
			continue
		}
		last = append(last, n)
	}
	if owned := s.homeOfOwner(lock); owned != nil {
		if i := slices.Index(order, owned); i > 0 {
			order = slices.Insert(slices.Delete(order, i, i+1), 0, owned)
		}
	}
	if far > 0 && len(order) > 0 {
		home = order[0]
	}
	return append(order, last...), home, hedge
}

// home returns the home of the lock with this channel; nil where fewer nodes than a majority answer and count.
func (s *store) home(lock string) *node {
	_, home, _ := s.sortedFor(lock)
	return home
}

// homeOrFirst returns the home of the lock, or, where there is none now, the node at which the order of the lock begins.
func (s *store) homeOrFirst(keys *scripts.Keys) *node {
	if home := s.home(keys.Channel()); home != nil {
		return home
	}
	return s.sorted[s.startOf(keys.Channel())]
}

// startOf returns the place of the node at which the order of a lock begins.
func (s *store) startOf(lock string) int {
	return quorums.Start(lock, len(s.sorted))
}

// far returns the time to an answer from which on a node is much farther away than most, and the time after which one that has not answered is slow;
// 0 where fewer nodes than a majority answer and count. A node that this client has not heard of is taken for one that does, and is near.
func (s *store) far() (far, slow time.Duration) {
	trips := make([]time.Duration, 0, len(s.sorted))
	strangers, majority := 0, s.majority() // another one may be heard of meanwhile
	for _, n := range s.sorted {
		if n.stranger() {
			strangers++
		} else if trip, there := n.near(); there {
			trips = append(trips, trip)
		}
	}
	if len(trips)+strangers < majority {
		return 0, 0
	}
	far = forever
	if len(trips) >= majority {
		slices.Sort(trips)
		far = 4*trips[majority-1] + 5*time.Millisecond
	}
	if slow = far; strangers > 0 {
		slow = firstTimes * s.timeout
	}
	return far, slow
}

// probe asks those of the nodes of which nothing was asked for a while, so that this client knows how they are, and knows their clocks.
// Nobody waits for their answers. A client that has not heard of all nodes yet does so some time later, as many may begin at the same moment.
func (s *store) probe(nodes []*node, keys *scripts.Keys, later bool) {
	if later {
		if s.probing.CompareAndSwap(false, true) {
			time.AfterFunc(between(probeStrangers, 5*probeStrangers), func() {
				s.probing.Store(false)
				if !s.isClosed() {
					s.probe(slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return !n.stranger() }), keys, false)
				}
			})
		}
		return
	}
	var due []*node
	for _, n := range nodes {
		if n.probeDue() {
			due = append(due, n)
		}
	}
	if len(due) == 0 {
		return
	}
	r := &round{op: func(*node) scripts.Op { return scripts.Look(keys, "") }}
	r.heard = func(a *ask) {
		if a.state == answered {
			a.node.counts(a.report) // which finds out whether the node keeps its data
		}
	}
	r.judge = func(bool) (bool, func()) { return true, nil }
	r.start(s.nodes, due, s.within(0))
}

// probeStrangers is the least time from a client's first attempt until it asks the nodes that it has not heard of how they are.
const probeStrangers = 200 * time.Millisecond

// byName returns the nodes in an order that is the same for all clients that have the same names for them.
func byName(nodes []*node) []*node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b *node) int { return cmp.Compare(a.name, b.name) })
}
