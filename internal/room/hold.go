package room

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

const (
	// maxRun bounds a run of passes whose sections take long.
	maxRun = 20 * time.Millisecond
	// besideOutsiders bounds the passes of a run where others are in no line: each of a JVM's
	// threads has one hold in its turn.
	besideOutsiders = 1
	// minYield is how long a client at least leaves the lock to others after its own release,
	// where there is no line.
	minYield = 5 * time.Millisecond
)

// A run is one client's turn at a lock: from when it took the lock to when others may have it.
type run struct {
	passes int32
	began  time.Time
}

// next counts one more pass; false where the run is over.
func (r *run) next(now time.Time, most int32, within time.Duration) bool {
	if r.passes >= most || now.Sub(r.began) > within {
		return false
	}
	r.passes++
	return true
}

// BesideOutsiders tells whether others than the clients in the line have taken the lock a moment
// ago.
func (r *Room) BesideOutsiders(now time.Time) bool {
	return r.others.place != nil && r.others.place.BesideOutsiders(now)
}

// most is how many passes a run may have, of so many.
func (r *Room) most(passes int32) int32 {
	if r.BesideOutsiders(r.now) {
		return min(passes, besideOutsiders)
	}
	return passes
}

// passesLocally tells whether the hold that is unlocked goes on as that of the head of the queue:
// there is a token for it, and it asks for what the hold has. What is left of the lease is a tenth
// less, at most.
func (r *Room) passesLocally(ev *Event) bool {
	head := &r.asker.queue[0]
	if r.kind.LocalPasses == 0 || ev.Tokens == 0 || ev.Call.Terms != head.Terms {
		return false
	}
	return r.own.run.next(r.now, r.most(r.kind.LocalPasses), min(maxRun, head.Terms.Lease/10))
}

// passLocally grants the head of the queue the client's own hold. Redis is not told.
func (r *Room) passLocally(field string) {
	r.own.field, r.own.kept = "", false
	r.asker.passed = field
	if r.others.place != nil {
		r.others.place.Taken(r.now)
	}
	e := effect(Grant)
	e.Field, e.Handed, e.Local = field, true, true
	r.decide(e)
}

// A pass is one for whose answer an Unlock waits.
type pass struct {
	attempt Attempt
	old     string // the hold that is unlocked
}

// ofHold is for what happens to a hold of the client.
func (r *Room) ofHold(ev *Event) {
	switch ev.What {
	case Began:
		r.began(ev)
	case Ended:
		if ev.Ends {
			r.released(ev)
		}
		r.holdEnded(ev.Field)
	case Kept:
		if r.own.field == ev.Field {
			r.own.kept = true
			r.listen(Own)
		}
	case Unlocking:
		r.unlocking(ev)
	case GaveUp:
		r.gaveUpPass(ev.Field)
	case Released:
		r.released(ev)
	}
}

// began notes the client's hold. One that is noted still has been lost, unless it passes the lock.
func (r *Room) began(ev *Event) {
	if len(r.asker.queue) > 0 {
		r.asker.silent = time.Time{}
	}
	if len(r.asker.queue) > 1 || r.health.Known() { // a call may ask for it
		r.said().Got(r.now)
	}
	r.own.kept = false
	r.own.field = ev.Field
	if !ev.Got { // otherwise the run goes on, whoever has answered the pass (P15, P36)
		r.own.run = run{began: ev.At}
	}
}

// holdEnded has the asker look: it did nothing about messages while the hold was there, and none
// comes when a lease runs out. It does not where the hold's release has called the first client in
// the line, and this client is there.
func (r *Room) holdEnded(field string) {
	called := r.others.calledBy == field
	if called {
		r.others.calledBy = ""
	}
	r.ends++
	if r.own.field != field {
		return
	}
	r.own.field, r.own.kept = "", false
	r.unlistenIfUnused()
	free := !called || !r.inLine()
	r.mayBeFree(free)
	if !free {
		r.unlisten()
	}
}

// unlocking passes the lock on to the head of the queue, or has it released for all.
func (r *Room) unlocking(ev *Event) {
	s, field := r.asker.state, ev.Field
	waits := len(r.asker.queue) > 0 && (s == watching || s == yielding)
	if !waits || r.own.field != field || r.others.pass.old != "" || r.facts.HeadEnds || r.facts.Draining {
		r.release(field, false, false)
		return
	}
	if r.passesLocally(ev) {
		r.passLocally(field)
		r.emit(Effect{Do: Passed, Field: field, Local: true})
		return
	}
	if !r.own.run.next(r.now, r.most(r.kind.Passes), maxRun) {
		r.release(field, false, false)
		return
	}
	isNew := r.asker.claim.field == ""
	r.claimFor(&r.asker.queue[0])
	r.await(passing)
	c := &r.asker.claim
	r.contend().pass = pass{r.asker.underWay, field}
	e := effect(Pass)
	e.Attempt, e.Old = r.asker.underWay, field
	e.Field, e.New = c.field, isNew
	r.do(e)
}

// passAnswered ends a pass. Where the lock was not passed on, it is released. One that replicas
// have not confirmed has an error, and the lock was passed on.
func (r *Room) passAnswered(ev *Event) {
	if ev.Answer != nil && ev.Answer.Held {
		r.passOver(Passed, false)
		return
	}
	lost := scripts.Unanswered(ev.Err) && ev.Err != command.ErrNotSent
	r.passOver(Release, lost || ev.Answer != nil && ev.Answer.Copies > 0)
}

func (r *Room) passOver(do Do, doubt bool) {
	old := r.others.pass.old
	r.others.pass = pass{}
	if do == Release {
		r.release(old, doubt, true)
		return
	}
	e := effect(Passed)
	e.Field, e.Waited = old, true
	r.do(e)
}

// gaveUpPass is for a pass that Redis does not answer: the asker asks by itself, and the lock is
// released.
func (r *Room) gaveUpPass(field string) {
	p := r.others.pass
	if p.old != field {
		return
	}
	if r.asker.underWay == p.attempt {
		r.asker.claim.doubt, r.asker.underWay = true, 0
		r.ask()
	}
	r.passOver(Release, true)
}

// release has the lock released for all. Where others wait here the client enters the line by it.
func (r *Room) release(field string, doubt, waited bool) {
	e := effect(Release)
	e.Field, e.Doubt, e.Waited = field, doubt, waited
	enters := r.facts.Line && r.facts.Proven && r.hearsCalls()
	if len(r.asker.queue) > 0 && r.others.place != nil && enters {
		e.Ticket = r.others.place.EnterByRelease(r.now, r.shell.Ticket)
	}
	r.do(e)
}

// released notes what a release has come to.
func (r *Room) released(ev *Event) {
	// the leave may have come first (P19)
	if r.others.place != nil && r.others.place.EnteredByRelease(ev.Ticket, ev.Score) {
		r.emit(Effect{Do: LeaveLine, Ticket: ev.Ticket, Stood: ev.Score != 0})
	}
	if ev.Err != nil || !ev.Got {
		return
	}
	if r.facts.Line {
		if r.others.place != nil { // otherwise the client is in no line
			r.others.calledBy = ev.Field
		}
		return
	}
	if told := ev.Heard - r.ownListeners(); told > 0 {
		r.othersFirst(max(2*r.now.Sub(ev.At), minYield))
	}
}
