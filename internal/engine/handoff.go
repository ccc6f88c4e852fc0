package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// A handoffRun is one client's turn at a lock: from when the client took it to when it lets other clients have it. In between the lock
// passes from each hold to the call that waits longest in the same process, by one command that nobody else is told of:
// cohort locking (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012). It is bounded by count, WithHandoffs, and by time.
type handoffRun struct {
	handoffs int
	began    time.Time
}

const (
	// maxRun bounds a run whose sections take long.
	maxRun = 20 * time.Millisecond
	// runBesideOutsiders bounds the handoffs of a run where other clients are in no line: each of a JVM's threads has one hold in
	// its turn.
	runBesideOutsiders = 1
)

// startHandoff hands the lock to the first waiter when the client's own hold of it is over, and returns the command; nil if other clients are to
// have the lock, or nobody waits here to be told something.
func (ls *lockState) startHandoff(h *hold, wake *command.Wakeup) *command.Command {
	ls.mu.Lock()
	defer ls.unlock()
	w := ls.first
	switch {
	case w == nil || ls.hold != h || ls.state != watching && ls.state != yielding:
		return nil
	case isClosed(w.bound.end) || isClosed(ls.client.draining):
		return nil
	case !ls.run.next(time.Since(ls.run.began), ls.client.set.Handoffs, ls.besideOutsiders()):
		return nil
	}
	c := &ls.claim
	if c.hold == nil {
		*c = w.newClaim()
	}
	pass := scripts.Transfer(w.keys, c.options.Fenced, c.hold.attempts.Field, c.lease, h.attempts.Field)
	f := ls.client.commands.New(c.options.counted(pass), &c.hold.attempts, wake)
	f.AlsoNotify(ls)
	c.hold.passedOn = true
	ls.awaitAnswer(f, receiving)
	ls.client.commands.Send(f)
	return f
}

// cancelHandoff ends a handoff that Redis does not answer: the asker asks by itself.
func (ls *lockState) cancelHandoff(f *command.Command) {
	ls.mu.Lock()
	defer ls.unlock()
	if ls.first != nil && ls.command == f { // otherwise nobody waits any more who asks for the same
		ls.ask()
	}
}

// besideOutsiders tells whether others than the clients in the line have taken the lock a moment ago. With ls.mu held.
func (ls *lockState) besideOutsiders() bool {
	p := ls.place()
	return p != nil && p.BesideOutsiders(time.Now())
}

// next counts one more handoff of the run, after it has lasted for so long; false where the run is over.
func (r *handoffRun) next(age time.Duration, most int, besideOutsiders bool) bool {
	if besideOutsiders {
		most = min(most, runBesideOutsiders)
	}
	if r.handoffs >= most || age > maxRun {
		return false
	}
	r.handoffs++
	return true
}
