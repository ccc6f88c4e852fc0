package quorum

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/scripts"
)

// members is which servers are the quorum, by the newest record that any node has told. The package doc says what a client makes of it.
type members struct {
	all   []*node // that this client has
	log   *slog.Logger
	ended func() bool // the client is closed
	first *record     // these nodes as a first generation; nil where their names cannot be in one

	newest  atomic.Pointer[record] // nil as long as no node has told any
	changes atomic.Int64           // counts the records by which other nodes count, or another number is a majority
}

// A record is a node's record of the members, and how it is written.
type record struct {
	quorums.Members
	text string
}

// recordEvery is the least time between two writes of the record to one node.
const recordEvery = 5 * time.Second

// size is of how many nodes a majority is one.
func (m *members) size() int {
	if r := m.newest.Load(); r != nil {
		return r.Size
	}
	return len(m.all)
}

// majority is how many nodes are a majority.
func (m *members) majority() int { return m.size()/2 + 1 }

// sizes returns how many members there are, and how many of these this client has.
func (m *members) sizes() (all, here int) {
	r := m.newest.Load()
	if r == nil {
		return len(m.all), len(m.all)
	}
	for _, n := range m.all {
		if n.stranded() == nil {
			here++
		}
	}
	return max(len(r.Names), here), here
}

// hear notes a record that a node has told.
func (m *members) hear(from *node, text string) {
	told, err := quorums.ParseMembers(text)
	if err != nil {
		m.log.Warn("quorum: a node's record of the members is wrong", "node", from.name, "error", err)
		return
	}
	told.Out = false
	next := &record{told, told.String()}
	for {
		before := m.newest.Load()
		if before != nil && before.Compare(told) >= 0 {
			return
		}
		if before != nil || m.first == nil || next.text != m.first.text {
			m.changes.Add(1) // before anybody counts by the new one
		}
		if m.newest.CompareAndSwap(before, next) {
			m.tell(before, next)
			return
		}
	}
}

// tell says in the log that there is a newer record than the one before, nil for none.
func (m *members) tell(before, now *record) {
	known := make([]string, len(m.all))
	for i, n := range m.all {
		known[i] = n.name
	}
	unknown := slices.DeleteFunc(slices.Clone(now.Names), func(n string) bool { return slices.Contains(known, n) })
	switch {
	case len(unknown) > 0:
		m.log.Warn("quorum: other clients have nodes that this one has not got: give all clients the same", "these", strings.Join(unknown, " "), "members", now.text)
	case len(known) > len(now.Names):
		m.log.Warn("quorum: some nodes of this client are none of the quorum's, and do not count: `fencelock quorum` changes that", "members", now.text)
	case before != nil:
		m.log.Info("quorum: the members have changed", "members", now.text)
	}
}

// isMember tells whether the node is one of the quorum, as far as is known: by its name, or, where clients have other names for the nodes, by the record that
// it had last. With n.mu held.
func (n *node) isMember() bool {
	r := n.members.newest.Load()
	return r == nil || r.Has(n.name) || r.text == n.record
}

// stranded returns the error of a node that is no member; nil for a member.
func (n *node) stranded() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.isMember() {
		return nil
	}
	return noMember(strings.Join(n.members.newest.Load().Names, ", "))
}

// noteRecord notes the record that the node has told; "" for none. It returns true where the node is to get another one. With n.mu held.
func (n *node) noteRecord(text string, now time.Time) (due bool) {
	if text != "" && text != n.record {
		n.record = text
		n.members.hear(n, text)
	}
	newest := n.members.newest.Load()
	if n.unwritten || newest == nil && n.members.first == nil || newest != nil && (text == newest.text || !n.isMember()) || now.Sub(n.recorded) < recordEvery {
		return false
	}
	n.recorded = now
	return true
}

// write writes the newest record on the node, which has this one. Where no node has any, and each has told so, the first generation is written on all: the
// nodes of this client. That is done some time later, as many clients may be about to do so.
func (m *members) write(n *node, before string) {
	if newest := m.newest.Load(); newest != nil {
		m.writeAfter(n, between(0, recordEvery/50), before, newest)
		return
	}
	if !m.allNew() {
		n.mu.Lock()
		n.recorded = time.Time{} // the next answer looks again
		n.mu.Unlock()
		return
	}
	after := between(recordEvery/5, recordEvery)
	if n.hurries {
		after = 0
	}
	for _, n := range m.all {
		n.mu.Lock()
		n.recorded = time.Now()
		n.mu.Unlock()
		m.writeAfter(n, after, "", m.first)
	}
}

// writeAfter writes a record on the node after this time, in place of the one before.
func (m *members) writeAfter(n *node, after time.Duration, before string, r *record) {
	time.AfterFunc(after, func() {
		if m.ended() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), recordEvery)
		defer cancel()
		_, err := n.scripts.SetMembers(ctx, quorums.MembersKey, before, r.text)
		if err == nil || scripts.Passing(err) || m.ended() { // the caller closes its connections then
			return
		}
		n.mu.Lock()
		n.unwritten = true
		n.mu.Unlock()
		m.log.Warn("quorum: a node cannot keep who the members are, by which clients with other nodes would notice it: grant "+quorums.MembersKey, "node", n.name, "error", err)
	})
}

// allNew tells whether each node has answered, and none has told a record.
func (m *members) allNew() bool {
	for _, n := range m.all {
		n.mu.Lock()
		heard := n.run != "" && n.record == ""
		n.mu.Unlock()
		if !heard {
			return false
		}
	}
	return true
}
