package quorum

import (
	"math/rand/v2"

	"github.com/fencelock/fencelock/scripts"
)

// release removes the field from the nodes that have it or may have it, and a field of another client, as for a ForceUnlock, from
// all nodes. done gets Held if the hold had a majority to the end, and Owed if the release is to be sent
// again (P3): some node may still have the field, or take it late.
func (s *store) release(o scripts.Order, done func(scripts.Answer, error)) {
	rec, own := s.find(o.Field)
	if rec == nil && own {
		done(scripts.Answer{}, nil) // no release is owed
		return
	}
	to, tell := s.nodes, true
	var last map[*node]bool // the nodes with no vote under way: their field does not come back after this release
	if rec != nil {
		if to, last, tell = rec.closing(s.nodes); len(to) == 0 {
			s.drop(o.Field, rec)
			done(scripts.Answer{}, nil)
			return
		}
	}
	group := -1
	if rec != nil && rec.short() {
		group = rand.N(scripts.Groups)
	}
	r := &round{op: func() scripts.Op { return scripts.Withdraw(o.Keys, o.Field, tell, group) }}
	r.heard = func(a *ask) {
		if rec != nil && last[a.node] && (a.state == answered || a.state == failed && !scripts.Passing(a.err)) {
			rec.heard(a.node, a.state == answered)
		}
	}
	r.judge = func(final bool) (bool, func()) {
		released, restarted, removed, open, unknown, receivers, untold := 0, 0, 0, 0, 0, 0, false
		for a := range r.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.state != answered:
				unknown++
			case a.yes:
				released++
				receivers, untold = max(receivers, a.report.Receivers), untold || a.report.Receivers < 0
			case rec != nil && rec.restarted(a), rec == nil && !counts(a):
				restarted++
			case rec != nil && rec.removed(a):
				removed++
			}
		}
		if open > 0 && released < s.majority {
			return false, nil
		}
		free := len(s.nodes) - open - unknown // the nodes that certainly have not got the field now
		if free < s.majority {
			err := s.majorityError(r, func(a *ask) bool { return a.state == answered })
			for i, n := range s.nodes { // some were not asked, as they have not got the field, and may be away all the same
				if why := n.lastTrouble(); r.asks[i] == nil && why != nil {
					err.Failed = append(err.Failed, &NodeError{Node: n.name, Err: why, unasked: true})
				}
			}
			return true, func() { done(scripts.Answer{Owed: rec == nil || rec.owed()}, err) }
		}
		// The hold lasted to the end if others could not have had a majority. A node that has restarted does not count
		// for them. Where somebody else has released the field on one node, the nodes without an answer may have lost it too.
		others := len(s.nodes) - released - open - unknown - restarted
		if removed > 0 {
			others += open + unknown
		}
		// Of two calls that force a lock open at the same moment, one gets Held, if all nodes answer.
		held := others < s.majority && (rec != nil || released > 0)
		// told is how many clients the first node told. It is -1 where that node has not released the field now, or where the
		// hold never had the lock: then not all waiters are told.
		told := -1
		if first := s.first(o.Keys.Channel()); rec != nil && rec.hadIt() && first != nil && r.asks[first.index] != nil && r.asks[first.index].yes {
			told = r.asks[first.index].report.Receivers
		}
		return true, func() {
			owed := open+unknown > 0
			if rec != nil {
				owed = s.drop(o.Field, rec)
			}
			if told >= 0 {
				s.released(o.Keys.Channel(), told)
			}
			done(scripts.Answer{Held: held, Receivers: receivers, Untold: untold, Owed: owed}, nil)
		}
	}
	r.start(s.nodes, to, s.within(0))
}
