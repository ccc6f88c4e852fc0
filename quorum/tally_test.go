package quorum

import (
	"errors"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/scripts"
)

// P8: of several nodes that say they have not got a hold which they had, somebody else has released it, and Unlock says that the lock was
// lost. A node that answers a copy of the release says the same where the release itself came first, without an answer: that is no loss.
func TestP8_TheAnswerToACopyOfAReleaseIsNoLoss(t *testing.T) {
	for name, c := range map[string]struct {
		copies scripts.Answer
		held   bool
	}{
		"an answer to a copy":    {scripts.Answer{Copies: 1}, true},
		"an answer to the first": {scripts.Answer{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &store{members: &members{all: make([]*node, 3)}, fields: map[string]*fieldRecord{}}
			rec := &fieldRecord{nodes: make([]nodeRecord, 3)}
			var got scripts.Answer
			r := &release{store: s, rec: rec, done: func(a scripts.Answer, err error) { got = a; locktest.NoError(t, err) }}
			for i := range 3 {
				n := &node{index: i, members: s.members}
				s.nodes = append(s.nodes, n)
				rec.nodes[i].run = "run" // it had the hold
				answer := c.copies
				answer.Report = &scripts.Report{Run: "run", Gone: true}
				r.asks.asks = append(r.asks.asks, &ask{node: n, state: answered, answer: answer, report: answer.Report})
			}
			over, then := r.judge(true)
			locktest.Equal(t, "the release is over", over, true)
			then()
			locktest.Equal(t, "the hold lasted to its release", got.Held, c.held)
		})
	}
}

// An answer that comes when a release is over does not change its error, which is under way to the caller.
func TestInv12_ALateAnswerBesideAFailedRelease(t *testing.T) {
	s := &store{members: &members{all: make([]*node, 3)}, fields: map[string]*fieldRecord{}}
	rec := &fieldRecord{nodes: make([]nodeRecord, 3)}
	var got error
	r := &release{store: s, rec: rec, done: func(_ scripts.Answer, err error) { got = err }}
	for i := range 3 {
		n := &node{index: i, members: s.members}
		s.nodes = append(s.nodes, n)
		rec.nodes[i].run = "run"
		r.asks.asks = append(r.asks.asks, &ask{node: n, state: silent, err: errSilent})
	}
	over, then := r.judge(true)
	locktest.Equal(t, "the release is over", over, true)
	for _, a := range r.asks.asks {
		a.report = &scripts.Report{Run: "run", Gone: true}
		a.state = answered
	}
	then()
	var few *MajorityError
	if !errors.As(got, &few) || len(few.Failed) != 3 {
		t.Errorf("the error is %v, and not that of three silent nodes", got)
	}
}
