package quorum

import (
	"slices"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A fieldRecord is what this client knows of one field, which belongs to one attempt to take a lock and to the hold that the
// attempt became: which nodes have the field, or may have it. The release of the hold goes to these nodes, and is owed as long as
// there are any (P3).
type fieldRecord struct {
	mu     sync.Mutex
	silent bool         // the attempt failed, and another one would fail too: its release calls nobody
	failed bool         // the attempt has ended without the lock
	closed bool         // the field is being released: no node is asked for its vote any more
	until  time.Time    // when the lease of the field is over on every node
	nodes  []nodeRecord // by node
	spread *time.Timer  // takes the lock on further nodes when the hold has lasted for a while; nil for none
}

// spreadAfter is how long a hold lives on those nodes alone that were asked for their votes.
const spreadAfter = 10 * time.Millisecond

// A nodeRecord is what a fieldRecord knows of one node.
type nodeRecord struct {
	votesInFlight int           // votes asked for that have no outcome
	has           bool          // the node has the field, by its latest answer
	early         bool          // the node has answered a release while a vote was under way, which it may have been asked before
	behind        bool          // the node has executed a vote behind a release, which therefore did not find the field
	unheard       bool          // a vote ended without an answer, and the node has answered no release that was sent after that
	lateLease     time.Duration // of that vote
	lateUntil     time.Time     // until then that vote may still give the node the field; and as long as the node is unheard
	run           string        // the node's run id when it last said that it has the field,
	keeps         time.Time     // and until when the node certainly keeps the field after that, if nobody releases it
}

// isOwed tells whether the node is owed a release at the time now: it has the field, or may get the field late. until is fieldRecord.until.
func (m *nodeRecord) isOwed(now, until time.Time) bool {
	return m.votesInFlight > 0 || m.has && now.Before(until) || m.unheard || now.Before(m.lateUntil)
}

// voting notes that these nodes are about to be asked for their votes, for a lease of this length on the nodes. It returns false,
// and notes nothing, where the field is being released: then no node may be asked.
func (rec *fieldRecord) voting(nodes []*node, lease time.Duration) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if rec.closed {
		return false
	}
	rec.lasts(lease)
	for _, n := range nodes {
		rec.nodes[n.index].votesInFlight++
	}
	return true
}

// voted notes the outcome of a vote that voting has noted. again: the node has taken the lock behind the release.
func (rec *fieldRecord) voted(a *ask, lease time.Duration) (again bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	m := &rec.nodes[a.node.index]
	m.votesInFlight--
	switch {
	case a.state == answered && a.yes:
		m.keptFor(lease, a.report.Run)
		rec.lasts(lease)
		again, m.early = m.early, false
		m.behind = m.behind || again
	case a.state == failed && scripts.Unanswered(a.err):
		m.unheard, m.lateLease, m.lateUntil = true, lease, time.Now().Add(lease)
	}
	return again
}

// heardEarly notes that a node has answered a release that was sent while a vote was under way. again: the vote has been answered since, and the
// release had not found the field.
func (rec *fieldRecord) heardEarly(n *node, found bool) (again bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	m := &rec.nodes[n.index]
	m.early, again = m.votesInFlight > 0, m.has && !found
	m.behind = m.behind || again
	return again
}

// extended notes that a node has confirmed the field with this lease.
func (rec *fieldRecord) extended(n *node, run string, lease time.Duration) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.lasts(lease) // also where a release is under way: it may fail, and the hold go on
	if rec.closed {
		return
	}
	m := &rec.nodes[n.index]
	m.keptFor(lease, run)
}

// keptFor notes that the node has the field in this run, for a lease from when it answered, which may be somewhat earlier than now. A longer lease that it
// had stays.
func (m *nodeRecord) keptFor(lease time.Duration, run string) {
	m.has, m.run = true, run
	if until := time.Now().Add(lease - lease/8); until.After(m.keeps) {
		m.keeps = until
	}
}

// lasts notes that a node may have the field for this long from now. With rec.mu held.
func (rec *fieldRecord) lasts(lease time.Duration) {
	if until := time.Now().Add(lease); until.After(rec.until) {
		rec.until = until
	}
}

// removed tells, of a node that has answered that it has not got the field, whether it had the field in this same run: then
// somebody has released the field there, or its lease is over.
func (rec *fieldRecord) removed(a *ask) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	m := &rec.nodes[a.node.index]
	return a.report.Run != "" && m.run == a.report.Run && !m.behind
}

// forcedOff tells of such a node whether somebody has released the field there: its lease cannot be over.
func (rec *fieldRecord) forcedOff(a *ask) bool {
	if !rec.removed(a) {
		return false
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return time.Now().Before(rec.nodes[a.node.index].keeps)
}

// restarted tells whether the node has restarted since it had the field.
func (rec *fieldRecord) restarted(a *ask) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	run := rec.nodes[a.node.index].run
	return run != "" && run != a.report.Run
}

// owed tells whether a release is owed: some node has the field, or may get it late.
func (rec *fieldRecord) owed() bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.owedLocked()
}

// owedLocked is owed with rec.mu held.
func (rec *fieldRecord) owedLocked() bool {
	now := time.Now()
	for i := range rec.nodes {
		if rec.nodes[i].isOwed(now, rec.until) {
			return true
		}
	}
	return false
}

// awaited tells whether Close waits for a node to release the field: for one that answers, as far as is known, and for any while fewer than a
// majority do. A node that has answered a release since it may have got the field is not waited for, nor is the end of the lease on one that
// does not answer.
func (rec *fieldRecord) awaited(nodes []*node, majority int) bool {
	away := make([]bool, len(nodes))
	for _, n := range nodes {
		if away[n.index] = n.isAway(); !away[n.index] {
			majority--
		}
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	now := time.Now()
	for i, m := range rec.nodes {
		has := m.votesInFlight > 0 || m.has && now.Before(rec.until)
		switch {
		case !away[i] && (has || m.unheard), majority > 0 && (has || m.unheard && now.Before(m.lateUntil)):
			return true
		}
	}
	return false
}

// waits tells whether a node has not answered a release yet, since it may have got the field.
func (rec *fieldRecord) waits() bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	now := time.Now()
	return slices.ContainsFunc(rec.nodes, func(m nodeRecord) bool { return m.unheard || m.has && now.Before(rec.until) })
}

// win notes that the attempt has become a hold, which has the lock. spread is called when the hold has lasted for a while, if
// it is for longer than that.
func (rec *fieldRecord) win(spread func(), longer bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if longer && !rec.closed {
		rec.spread = time.AfterFunc(spreadAfter, spread)
	}
}

// silence notes that the attempt failed, and that an attempt of whoever its release would call would fail too.
func (rec *fieldRecord) silence() {
	rec.mu.Lock()
	rec.silent = true
	rec.mu.Unlock()
}

// fail notes that the attempt has ended without the lock.
func (rec *fieldRecord) fail() {
	rec.mu.Lock()
	rec.failed = true
	rec.mu.Unlock()
}

// isSilent tells whether the release of the field calls nobody.
func (rec *fieldRecord) isSilent() bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.silent
}

// isGivenUp tells whether the field is being released, or is of an attempt that has failed.
func (rec *fieldRecord) isGivenUp() bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.closed || rec.silent || rec.failed
}

// closing begins a release. It returns the nodes that the release goes to, and those of them with no vote under way, whose answer
// to the release is final. calls: the release calls who waits, on the home of the lock, which it goes to in any case, if to any.
func (rec *fieldRecord) closing(nodes []*node, home *node, calls bool) (to []*node, final map[*node]bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.closed = true
	if rec.spread != nil {
		rec.spread.Stop()
	}
	now := time.Now()
	final = make(map[*node]bool)
	for _, n := range nodes {
		if m := &rec.nodes[n.index]; m.isOwed(now, rec.until) {
			to = append(to, n)
			final[n] = m.votesInFlight == 0
		}
	}
	if len(to) > 0 && calls && !rec.silent && home != nil && !slices.Contains(to, home) {
		to = append(to, home)
	}
	return to, final
}

// heard notes that the node has answered a release that was sent when no vote was under way: it stands still no longer with a vote in a
// socket. released: it has confirmed that it has not got the field.
func (rec *fieldRecord) heard(n *node, released bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	m := &rec.nodes[n.index]
	m.has = m.has && !released
	if m.unheard {
		m.unheard, m.lateUntil = false, time.Now().Add(m.lateLease)
	}
}

// expired tells whether the lease of the field is over on every node, and no vote can still give a node the field. crowded: a vote is not to
// count for longer than its lease, although its node was not heard of.
func (rec *fieldRecord) expired(now time.Time, crowded bool) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for i := range rec.nodes {
		if m := &rec.nodes[i]; m.votesInFlight > 0 || m.unheard && !crowded || now.Before(m.lateUntil) {
			return false
		}
	}
	return now.After(rec.until)
}
