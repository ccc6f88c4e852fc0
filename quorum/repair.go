package quorum

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A repair asks nodes for their votes, so that a hold which they have not got is on them too. The votes are votes as those of an acquire:
// what a repair takes is released with the hold.
type repair struct {
	*store
	rec     *fieldRecord
	keys    *scripts.Keys
	field   string
	lease   time.Duration // on the nodes
	earlier *round        // which found that the nodes have not got the hold
	asks    round
	// done is called, unless it is nil, with the number of nodes that count and said yes, and with an error for the case that these
	// are too few; with ErrGone where the hold is being released.
	done func(more int, err error)
}

// start asks these nodes.
func (r *repair) start(nodes []*node) {
	if !r.rec.voting(nodes, r.lease) {
		r.over(0, scripts.ErrGone)
		return
	}
	r.asks = round{op: r.vote, heard: r.heard, judge: r.judge}
	r.asks.start(r.nodes, nodes, r.within(r.lease))
}

// vote makes the question for one node.
func (r *repair) vote(*node) scripts.Op { return scripts.Vote(r.keys, r.field, r.lease) }

// heard notes the outcome of one node.
func (r *repair) heard(a *ask) {
	if r.rec.voted(a, r.lease) {
		r.releaseAgain(a.node, r.rec, r.keys, r.field)
	}
}

// judge is the judge of the votes. It waits for all.
func (r *repair) judge(final bool) (over bool, then func()) {
	more := 0
	for a := range r.asks.all {
		switch {
		case a.state == pending && !final:
			return false, nil
		case saidYes(a):
			more++
		}
	}
	err := r.majorityError(&r.asks, saidYes)
	return true, func() { r.over(more, r.withEarlierRound(err, r.earlier, &r.asks, saidYes)) }
}

// over calls done.
func (r *repair) over(more int, err error) {
	if r.done != nil {
		r.done(more, err)
	}
}

// saidYes tells whether the node counts and has said yes.
func saidYes(a *ask) bool { return a.yes && counts(a) }
