package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// A handoffRun is one client's turn at a lock: from when the client took it to when it lets other clients have it. In between the lock
// passes from each hold to the call that waits longest in the same process, by one command that nobody else is told of:
// cohort locking (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012). It is bounded by count, WithHandoffs, and by time.
type handoffRun struct {
	handoffs int
	began    moment
}

const (
	// maxRun bounds a run whose sections take long.
	maxRun = 20 * time.Millisecond
	// runBesideOutsiders bounds the handoffs of a run where other clients are in no line: each of a JVM's threads has one hold in
	// its turn.
	runBesideOutsiders = 1
)

// nextWaiter returns the waiter that the lock is to pass to when a hold ends: the leader, if it waits to be given the lock; else nil.
// With ls.mu held.
func (ls *lockState) nextWaiter() *waiter {
	w := ls.first
	if w == nil || w.busy || isClosed(w.waitEnd) || isClosed(ls.client.draining) {
		return nil
	}
	return w
}

// giveTo wakes the waiter that has been given the lock. With ls.mu held.
func (ls *lockState) giveTo(w *waiter) {
	w.busy = true
	w.wakeup.Notify()
}

// countHandoff counts one more command of the run; false where the run is over. With ls.mu held.
func (ls *lockState) countHandoff() bool {
	return ls.run.next(ls.run.began.age(), ls.client.set.Handoffs, ls.inPlace((*line.Place).BesideOutsiders))
}

// startHandoff passes the lock on by a command, which notifies the wake-up when it is over, and returns the command; nil if other
// clients are to have the lock, or nobody waits here.
func (ls *lockState) startHandoff(h *hold, wake *command.Wakeup) *command.Command {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.nextWaiter()
	if w == nil || ls.hold != h || !ls.countHandoff() {
		return nil
	}
	pass := scripts.Transfer(w.keys, w.tokens.Fenced, w.attempts.Field, w.lease, h.attempts.Field)
	w.handoff = ls.client.commands.New(w.tokens.counted(pass), w.attempts, wake)
	w.handoff.AlsoNotify(w.wakeup)
	ls.giveTo(w)
	ls.client.commands.Send(w.handoff)
	return w.handoff
}

// cancelHandoff ends a handoff that Redis does not answer: the waiter is to ask by itself.
func (ls *lockState) cancelHandoff(f *command.Command) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w := ls.first; w != nil && w.handoff == f { // a waiter that has left took the handoff along
		w.handoffCancelled = true
		w.wakeup.Notify()
	}
}

// A handoffState is what a waiter has been given, at one moment.
type handoffState struct {
	isLeader  bool
	handoff   *command.Command
	cancelled bool
}

func (ls *lockState) handoffTo(w *waiter) handoffState {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return handoffState{isLeader: w.isLeader, handoff: w.handoff, cancelled: w.handoffCancelled}
}

// clearHandoff ends a handoff to the waiter, whatever became of it.
func (ls *lockState) clearHandoff(w *waiter) {
	ls.mu.Lock()
	w.handoff, w.handoffCancelled = nil, false
	ls.mu.Unlock()
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
