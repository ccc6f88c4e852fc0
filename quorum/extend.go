package quorum

import (
	"slices"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// An extension extends the lease of one hold on a majority of the nodes. On nodes that have not got the hold, because they lost it or never
// had it, the extension takes the lock for the hold by repair.
type extension struct {
	*store
	rec   *fieldRecord
	keys  *scripts.Keys
	field string
	lease time.Duration // on the nodes; 0 extends nothing, and asks whether the hold is there
	left  []*node       // the nodes that were not asked, as it is known that they have not got the hold
	asks  round
	done  func(error)
	begun int64 // members.changes when the extension began

	confirmed bool // a majority has confirmed; guarded by asks.mu
}

// extend extends a hold's lease. done gets nil, or ErrGone where the hold is forced open or its record is
// gone, or an error where no majority confirmed. Lease 0 extends nothing: it only asks whether the hold is there.
func (s *store) extend(keys *scripts.Keys, field string, lease time.Duration, done func(error)) {
	s.extendOn(s.nodes, nil, keys, field, lease, done)
}

// extendOn is extend where it is known that the nodes left have not got the hold.
func (s *store) extendOn(asked, left []*node, keys *scripts.Keys, field string, lease time.Duration, done func(error)) {
	rec, _ := s.find(field)
	if rec == nil {
		done(scripts.ErrGone) // every node has confirmed the release, or the hold expired on all of them
		return
	}
	if lease > 0 {
		lease += extraLease
	}
	e := &extension{store: s, rec: rec, keys: keys, field: field, lease: lease, left: left, done: done, begun: s.changes.Load()}
	e.asks = round{op: e.extend, repeat: true, heard: e.heard, judge: e.judge}
	e.asks.start(s.nodes, asked, s.within(lease))
}

// extend makes the question for one node.
func (e *extension) extend(*node) scripts.Op { return scripts.Extend(e.keys, e.field, e.lease) }

// heard notes the outcome of one node. A node without the hold that answers when a majority has confirmed is repaired too.
func (e *extension) heard(a *ask) {
	switch {
	case a.state != answered:
	case a.yes:
		e.rec.extended(a.node, a.report.Run, e.lease)
	case e.confirmed && e.lease > 0:
		go e.repair([]*node{a.node}, nil)
	}
}

// repair takes the lock for the hold on these nodes. done is as repair.done.
func (e *extension) repair(nodes []*node, done func(more int, err error)) {
	r := &repair{store: e.store, rec: e.rec, keys: e.keys, field: e.field, lease: e.lease, earlier: &e.asks, done: done}
	r.start(nodes)
}

// An extended is what the answers to an extension say.
type extended struct {
	open    int     // nodes without an outcome
	there   int     // nodes that have the hold
	count   int     // those of them that count
	without []*node // the nodes that have not got the hold
	removed int     // those of them where somebody has released it
}

// tally counts the answers.
func (e *extension) tally(final bool) extended {
	t := extended{without: slices.Clone(e.left)}
	for a := range e.asks.all {
		switch {
		case a.state == pending && !final:
			t.open++
		case a.state != answered:
		case a.yes:
			t.there++
			if counts(a) {
				t.count++
			}
		default:
			t.without = append(t.without, a.node)
			if a.node.stranded() == nil && e.rec.forcedOff(a) {
				t.removed++
			}
		}
	}
	return t
}

// judge is the judge of the answers. Nodes are repaired also where they are too few for a majority, or do not count yet: they will.
func (e *extension) judge(final bool) (over bool, then func()) {
	t := e.tally(final)
	switch {
	case t.count >= e.majority(), e.lease == 0 && t.there >= e.majority():
		e.confirmed = true
		return true, func() { e.succeeded(t) }
	case e.forcedOpen(t.removed, len(t.without)):
		return true, func() { e.done(scripts.ErrGone) }
	case t.open > 0:
		return false, nil
	case e.lease > 0 && t.removed == 0 && len(t.without) > 0:
		return true, func() { e.repair(t.without, func(more int, err error) { e.repaired(t.count+more, err) }) }
	}
	err := e.majorityError(&e.asks, saidYes)
	return true, func() { e.done(err) }
}

// succeeded ends an extension that a majority has confirmed.
func (e *extension) succeeded(t extended) {
	e.done(nil)
	if e.lease > 0 && len(t.without) > 0 {
		e.repair(t.without, nil)
	}
}

// repaired ends an extension that needed the repair of some nodes. By now so many nodes that count have the hold, unless the members have changed.
func (e *extension) repaired(count int, err error) {
	if count >= e.majority() && e.changes.Load() == e.begun {
		err = nil
	}
	e.done(err)
}

// forcedOpen tells whether a hold has been forced open: somebody has released it on more nodes than a majority can do without, or on one
// node at least while a majority has not got the hold. removed is how many members had the hold in their present run and have it no longer.
// The parameter without is how many nodes have not got the hold, for whatever reason.
func (s *store) forcedOpen(removed, without int) bool {
	_, here := s.sizes()
	return removed > max(here-s.majority(), 0) || removed > 0 && without >= s.majority()
}
