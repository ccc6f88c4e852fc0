package quorum

import (
	"math/rand/v2"

	"github.com/fencelock/fencelock/scripts"
)

// release takes the field from the nodes that have it, or may have it.
func (s *store) release(o scripts.Order, done func(scripts.Answer, error)) {
	b, own := s.find(o.Field)
	if b == nil && own {
		done(scripts.Answer{}, nil) // all have confirmed it
		return
	}
	to, tell := s.nodes, true
	var last map[*node]bool // whose answer is the last word
	if b != nil {
		if to, last, tell = b.closing(s.nodes); len(to) == 0 {
			s.drop(o.Field, b)
			done(scripts.Answer{}, nil)
			return
		}
	}
	group := -1
	if b != nil && b.short() {
		group = rand.N(scripts.Groups)
	}
	r := &round{op: func() scripts.Op { return scripts.Withdraw(o.Keys, o.Field, tell, group) }}
	r.heard = func(a *ask) {
		if b != nil && a.state == answered && last[a.node] {
			b.released(a.node)
		}
	}
	r.judge = func(final bool) (bool, func()) {
		removed, forgot, freed, open, unknown, receivers, untold := 0, 0, 0, 0, 0, 0, false
		for a := range r.all {
			switch {
			case a.state == pending && !final:
				open++
			case a.state != answered:
				unknown++
			case a.yes:
				removed++
				receivers, untold = max(receivers, a.report.Receivers), untold || a.report.Receivers < 0
			case b != nil && b.forgotten(a), b == nil && !counts(a):
				forgot++
			case b != nil && b.removed(a):
				freed++
			}
		}
		if open > 0 && removed < s.most {
			return false, nil
		}
		free := len(s.nodes) - open - unknown // have not got it for certain
		if free < s.most {
			err := s.missing(r, func(a *ask) bool { return a.state == answered })
			return true, func() { done(scripts.Answer{Owed: b == nil || b.owed()}, err) }
		}
		// It was held to the end if no majority could be had by others: a node that forgot it has not counted since. Where
		// somebody has freed it on a node, those that do not tell may have been freed too.
		others := len(s.nodes) - removed - open - unknown - forgot
		if freed > 0 {
			others += open + unknown
		}
		// Of two calls that force it open at once one has, if all nodes answer.
		held := others < s.most && (b != nil || removed > 0)
		told := -1 // by the node that waiters listen to, if it has answered; who did not have the lock tells not all of them
		if first := s.first(o.Keys.Channel()); b != nil && b.hadIt() && first != nil && r.asks[first.index] != nil && r.asks[first.index].yes {
			told = r.asks[first.index].report.Receivers
		}
		return true, func() {
			owed := open+unknown > 0
			if b != nil {
				owed = s.drop(o.Field, b)
			}
			if told >= 0 {
				s.released(o.Keys.Channel(), told)
			}
			done(scripts.Answer{Held: held, Receivers: receivers, Untold: untold, Owed: owed}, nil)
		}
	}
	r.start(s.nodes, to, s.within(0))
}
