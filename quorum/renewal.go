package quorum

import (
	"context"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// maxSingly bounds the holds of a renewal that are extended, or repaired, each by itself at the same time.
const maxSingly = 64

// A renewal extends the leases of many holds, by one command to each node. What is not so simple, as that nodes have lost a hold, it leaves to the
// extension of that hold.
type renewal struct {
	*store
	holds  []scripts.Renewal
	longer []scripts.Renewal // holds with their leases on the nodes; nobody changes it
	recs   []*fieldRecord    // of the holds; nil where a hold's record is gone

	begun int64 // members.changes when the renewal began

	mu      sync.Mutex
	asks    []*ask // by the node's index; each is about all holds, and its report is that of the last of them
	open    int    // asks without an outcome
	answers int    // nodes that have answered
	tallies []renewed
	left    int           // holds that too few nodes have confirmed
	over    bool          // the tallies are read, and do not change any more
	decided chan struct{} // closed then
	timer   *time.Timer   // ends the wait for the nodes that are slower than a majority; nil before that
}

// A renewed is what the answers of the nodes say of one hold.
type renewed struct {
	there   int     // nodes that have the hold
	count   int     // those of them that count
	without []*node // nodes that have not got the hold
}

// Renew implements engine.Store. A node may take as long to answer as the renewal is of use, where the others are no majority, and otherwise no
// longer than any operation.
func (s *store) Renew(ctx context.Context, holds []scripts.Renewal) {
	if len(holds) == 0 {
		return
	}
	r := s.newRenewal(holds)
	deadline, bounded := ctx.Deadline()
	if !bounded {
		deadline = time.Now().Add(onceMore)
	}
	r.send(context.WithDeadline(context.WithoutCancel(ctx), deadline)) // nodes that are slower than a majority are renewed too
	enough := time.NewTimer(time.Until(deadline) * 3 / 4)              // the rest is for the extensions
	defer enough.Stop()
	select {
	case <-r.decided:
	case <-enough.C:
		r.mu.Lock()
		r.decide()
		r.mu.Unlock()
	}
	r.conclude()
}

// onceMore is how long a renewal may take that has no other bound.
const onceMore = time.Second

// newRenewal returns the renewal of these holds.
func (s *store) newRenewal(holds []scripts.Renewal) *renewal {
	r := &renewal{
		store: s, begun: s.changes.Load(), holds: holds, longer: make([]scripts.Renewal, len(holds)), recs: make([]*fieldRecord, len(holds)),
		asks: make([]*ask, len(s.nodes)), tallies: make([]renewed, len(holds)), left: len(holds), decided: make(chan struct{}),
	}
	s.mu.Lock()
	for i, h := range holds {
		r.recs[i] = s.fields[h.Field]
	}
	s.mu.Unlock()
	for i, h := range holds {
		if h.Lease > 0 {
			h.Lease += extraLease
		}
		r.longer[i] = scripts.Renewal{Keys: h.Keys, Field: h.Field, Lease: h.Lease}
	}
	return r
}

// send asks all nodes. cancel is called when each has its outcome.
func (r *renewal) send(ctx context.Context, cancel context.CancelFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all sync.WaitGroup
	for i, n := range r.nodes {
		a := &ask{node: n, sent: time.Now()}
		r.asks[i] = a
		if !n.mayAsk() {
			a.state, a.err = unsent, errSilent
			continue
		}
		r.open++
		all.Go(func() { r.heard(ctx, a, n.scripts.Renewed(ctx, r.longer)) })
	}
	go func() {
		all.Wait()
		cancel()
	}()
	if r.open == 0 {
		r.decide()
	}
}

// heard notes what a node has answered, also when the renewal is over. The end of ctx says nothing of the node.
func (r *renewal) heard(ctx context.Context, a *ask, holds []scripts.Renewal) {
	n := a.node
	var report *scripts.Report
	var err error
	counts := make([]bool, len(holds)) // the node's answer, of the command for each hold
	for i, h := range holds {
		switch {
		case h.Report == nil:
			err = h.Err
		case h.Report == report:
			counts[i] = counts[i-1]
		default:
			report = h.Report
			counts[i] = n.counts(report)
		}
	}
	if report != nil {
		err = nil
	}
	if err == nil || ctx.Err() == nil {
		n.noteOutcome(report, err, time.Since(a.sent), true) // what many holds take says nothing of how far away the node is
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if a.state == silent {
		n.late()
	} else {
		r.open--
	}
	a.state, a.report, a.err = answered, report, err
	if report == nil {
		a.state = failed
	}
	for i, h := range holds {
		r.note(i, n, h, counts[i])
	}
	if r.over {
		r.repairLate(n, holds)
		return
	}
	if report != nil {
		r.answers++
	}
	switch {
	case r.left == 0 || r.open == 0:
		r.decide()
	case r.answers >= r.majority():
		r.waitForRest()
	}
}

// repairLate repairs the holds that a node has not got which answers when a majority has confirmed them. With r.mu held.
func (r *renewal) repairLate(n *node, holds []scripts.Renewal) {
	var late []int
	for i, h := range holds {
		if h.Err == scripts.ErrGone && r.confirmed(i) {
			late = append(late, i)
		}
	}
	asked := r.asked()
	go r.repair(late, asked, func(int) []*node { return []*node{n} })
}

// asked returns a round with the outcomes so far, which does not change any more. With r.mu held.
func (r *renewal) asked() *round {
	asked := &round{asks: make([]*ask, len(r.asks))}
	for i, a := range r.asks {
		asked.asks[i] = &ask{node: a.node, state: a.state, report: a.report, err: a.err}
	}
	return asked
}

// repair takes the lock for these holds, but those that were only asked about, on the nodes that have not got them.
func (r *renewal) repair(holds []int, asked *round, without func(i int) []*node) {
	if r.isClosed() {
		return
	}
	each(holds, func(i int, done func()) {
		if r.recs[i] == nil || r.longer[i].Lease == 0 {
			done()
			return
		}
		fix := &repair{store: r.store, rec: r.recs[i], keys: r.longer[i].Keys, field: r.longer[i].Field, lease: r.longer[i].Lease, earlier: asked}
		fix.done = func(int, error) { done() }
		fix.start(without(i))
	})
}

// note notes what a node says of one hold. With r.mu held.
func (r *renewal) note(i int, n *node, h scripts.Renewal, counts bool) {
	there := h.Report != nil && h.Err == nil
	if there && h.Lease > 0 && r.recs[i] != nil {
		r.recs[i].extended(n, h.Report.Run, h.Lease)
	}
	t := &r.tallies[i]
	switch {
	case r.over:
	case there:
		before := r.confirmed(i)
		t.there++
		if counts {
			t.count++
		}
		if !before && r.confirmed(i) {
			r.left--
		}
	case h.Err == scripts.ErrGone:
		t.without = append(t.without, n)
	}
}

// confirmed tells whether a majority has confirmed the hold; of other nodes where the members have changed meanwhile. With r.mu held, or when the renewal is
// over.
func (r *renewal) confirmed(i int) bool {
	t := &r.tallies[i]
	if r.changes.Load() != r.begun {
		return false
	}
	return t.count >= r.majority() || r.holds[i].Lease == 0 && t.there >= r.majority()
}

// waitForRest bounds the time of the nodes that have not answered yet. With r.mu held.
func (r *renewal) waitForRest() {
	if r.timer == nil {
		r.timer = time.AfterFunc(r.within(r.longer[0].Lease).each, r.timeout)
	}
}

// timeout ends the time of the nodes that have not answered yet.
func (r *renewal) timeout() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.asks {
		if a.state == pending {
			a.state, a.err = silent, errSilent
			r.open--
			a.node.missed()
		}
	}
	r.decide()
}

// decide ends the renewal with the answers that there are. With r.mu held.
func (r *renewal) decide() {
	if r.over {
		return
	}
	r.over = true
	if r.open > 0 {
		r.waitForRest()
	}
	close(r.decided)
}

// conclude sets the outcome of each hold, and sees to those that the answers of the nodes do not decide.
func (r *renewal) conclude() {
	r.mu.Lock()
	asked := r.asked()
	enough := r.answers >= r.majority()
	r.mu.Unlock()
	var singly, repairs []int
	for i := range r.holds {
		switch h := &r.holds[i]; {
		case r.recs[i] == nil:
			h.Err = scripts.ErrGone // every node has confirmed the release, or the hold expired on all of them
		case !r.confirmed(i) && enough:
			singly = append(singly, i)
		case !r.confirmed(i):
			h.Err = r.majorityError(asked, func(a *ask) bool { return a.state == answered })
		default:
			h.Err = nil
			if len(r.tallies[i].without) > 0 {
				repairs = append(repairs, i)
			}
		}
	}
	each(singly, func(i int, done func()) {
		r.extend(r.holds[i].Keys, r.holds[i].Field, r.holds[i].Lease, func(err error) {
			r.holds[i].Err = err
			done()
		})
	})
	go r.repair(repairs, asked, func(i int) []*node { return r.tallies[i].without })
}

// each calls begin for each of these numbers, and returns when as many times done was called. There are maxSingly under way at most.
func each(of []int, begin func(i int, done func())) {
	if len(of) == 0 {
		return
	}
	var all sync.WaitGroup
	under := make(chan struct{}, maxSingly)
	for _, i := range of {
		all.Add(1)
		under <- struct{}{}
		begin(i, func() {
			<-under
			all.Done()
		})
	}
	all.Wait()
}
