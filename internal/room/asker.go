package room

import (
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// ErrLate is an answer that came when the lease it tells of could no longer be trusted.
var ErrLate = errors.New("no answer from Redis before the lease was over")

// Soon is how long a call may last that does not get to a look of its own: it has those who keep it
// from a free lock asked at once whether they are alive.
const Soon = 2 * line.CalledTimeout

// ErrNotAcquired is the outcome of a call that others kept from the lock.
var ErrNotAcquired = errors.New("not acquired: held by someone else")

// watch has the asker wait for a message, and look by itself after d.
func (r *Room) watch(d time.Duration) { r.asker.state, r.asker.due = watching, r.now.Add(d) }

// takeTurn asks, or first waits where others come first for a moment.
func (r *Room) takeTurn() {
	if r.others.place != nil {
		r.others.place.Told()
	}
	if d := r.others.yields.Sub(r.now); !r.others.yields.IsZero() && d > 0 {
		r.watch(d)
		return
	}
	r.ask()
}

// ask sends an attempt, which takes the lock only where no client in the line comes first. For a
// head that ends it sends nothing, and rests: what the attempt was for is still to be seen to, by
// the next head.
func (r *Room) ask() {
	if r.facts.HeadEnds {
		r.watch(r.set.Poll)
		r.asker.state = resting
		return
	}
	head, c := &r.asker.queue[0], &r.asker.claim
	e := effect(Send)
	e.New = c.field == ""
	r.claimFor(head)
	head.attempts++
	c.ends, c.ticket = r.ends, ""
	switch {
	case r.facts.Line:
		e.InTurn, e.Turn = true, r.turn()
		c.ticket = e.Turn.Ticket
	case r.facts.Forbidden:
		r.leavePlace() // it does not come when it is called: it listens for releases from now on
	}
	r.asker.freed = false
	r.await(asking)
	if r.asker.silent.IsZero() {
		r.asker.silent = r.now
	}
	e.Attempt, e.Field = r.asker.underWay, c.field
	r.do(e)
}

func (r *Room) claimFor(c *Call) {
	if r.asker.claim.field == "" {
		r.asker.claim = claim{field: r.shell.Field(), terms: c.Terms, ticket: r.asker.claim.ticket}
	}
}

// turn is the client's part in the line. It enters only while it would hear its call (P20).
func (r *Room) turn() (t scripts.Turn) {
	if r.others.place != nil {
		t = r.others.place.Turn(r.now, r.hearsCalls(), r.shell.Ticket)
	}
	stood := r.others.place != nil && r.others.place.Stood()
	t.Look = t.Look || !t.Called && !stood && r.endsWithin(&r.asker.queue[0], Soon)
	t.Sharded = r.facts.Sharded
	t.Unproven = t.Ticket != "" && !r.facts.Proven
	return t
}

// await waits for the answer to what is sent now, while it is of use and the patience lasts.
func (r *Room) await(s state) {
	a, lease := r.asker, r.asker.queue[0].Terms.Lease
	r.attempts++
	a.underWay, a.state, a.sent = r.attempts, s, r.now
	a.overtakes = false
	a.due = r.now.Add(min(lease, r.set.Silence))
	end := r.health.PatienceEnds(r.asker.queue[0].Began, r.set.Silence)
	if !end.IsZero() && end.Before(a.due) {
		a.due = end
	}
}

// answered is for an attempt that is over. Those that nobody waits for were abandoned.
func (r *Room) answered(ev *Event) {
	if ev.Attempt != 0 && ev.Attempt == r.others.pass.attempt {
		r.passAnswered(ev)
	}
	if ev.Attempt != 0 && ev.Attempt == r.asker.underWay {
		r.judge(ev)
	} else if ev.Ticket != "" {
		r.overtaken(ev)
	}
}

// overtaken is for an attempt in the line that was taken back. Redis may have executed what was
// sent later before it: a leave, or an attempt with the same ticket (P19).
func (r *Room) overtaken(ev *Event) {
	held, p := ev.Err == nil && ev.Answer.Held, r.others.place
	switch {
	case p == nil || !p.Has(ev.Ticket):
		r.emit(Effect{Do: LeaveLine, Ticket: ev.Ticket, Stood: ev.Answer.Score != 0})
	case held: // by which the ticket has left the line
		p.ChannelLost()
		r.mayBeFree(true)
	case r.asker.underWay != 0:
		r.asker.overtakes = true
	}
}

// silence is for an attempt that has no answer for as long as it is waited for.
func (r *Room) silence() {
	r.takeBack(r.asker.underWay)
	r.judge(&Event{Err: command.ErrSilence})
}

// judge goes on with the answer to the attempt that was under way.
func (r *Room) judge(ev *Event) {
	handed, c := r.asker.state == passing, &r.asker.claim
	answer, err := ev.Answer, ev.Err
	r.asker.underWay = 0
	r.watch(r.set.Poll)
	if answer != nil && (answer.Held || answer.Outside != 0) && !handed {
		r.leftLine(c.ticket, answer.Outside != 0)
	}
	if ev.Late && err == nil && answer.Held {
		err = ErrLate
	}
	if err == nil && answer.Held {
		r.grant(ev, handed)
		return
	}
	if err == nil && r.isOver(c.ends, answer.Own) {
		r.freeOver(answer.Own)
	}
	c.ends = r.ends
	r.claimAnew(answer, err)
	switch {
	case handed && answer != nil && !scripts.Unanswered(err):
		// The hold before was lost, or Redis refused to pass the lock on: it is released.
	case err == nil:
		r.said().Answered(r.now, answer.Why)
		r.asker.silent, r.asker.pauses = time.Time{}, command.Backoff{}
		r.refused(answer)
	case err == ErrLate || scripts.Passing(err):
		r.failed(err)
	default:
		r.decide(fails(err))
	}
}

// claimAnew ends a claim that another part of what is asked for may be taken by (Kind.Once).
func (r *Room) claimAnew(a *scripts.Answer, err error) {
	c := &r.asker.claim
	if a == nil || a.Held || err == ErrLate || scripts.Unanswered(err) || a.Copies > 0 || a.Owed {
		c.doubt = true
	}
	if r.kind.Once && c.doubt && c.field != "" {
		r.abandon(c.field, true)
		*c = claim{ticket: c.ticket, ends: c.ends}
	}
}

// grant gives the head of the queue the lock.
func (r *Room) grant(ev *Event, handed bool) {
	r.asker.silent = time.Time{}
	c := &r.asker.claim
	e := effect(Grant)
	e.Attempt, e.Field, e.Handed = ev.Attempt, c.field, handed
	r.decide(e)
	if r.others.place != nil {
		r.others.place.Taken(r.now)
	}
}

// decide ends the wait of the head of the queue, which leaves.
func (r *Room) decide(e *Effect) {
	r.asker.state, r.asker.due = granted, time.Time{}
	e.Call = r.asker.queue[0].ID
	r.do(e)
}

// fail is decide with an error that came in place of an answer.
func (r *Room) fail(err error, since time.Time) {
	e := fails(err)
	e.Dial, e.At = true, since
	r.decide(e)
}

// failed is for an error in place of an answer, which passes.
func (r *Room) failed(err error) {
	sent := r.asker.sent
	if errors.Is(err, scripts.ErrUnconfirmed) { // Redis has answered
		sent = r.now
	}
	r.said().Failed(r.now, sent, err)
	r.asker.silent = time.Time{}
	r.makePlace() // from now on it is known why the client asks
	began := r.asker.queue[0].Began
	if over := r.health.PatienceOver(r.now, began, r.set.Patience); over != nil {
		r.fail(over, sent)
		return
	}
	rest := r.health.PatienceEnds(began, r.set.Patience).Sub(r.now)
	r.watch(min(rest, r.asker.pauses.Next(err, command.LastBackoff)))
}

// refused has the asker enter the line, or wait to be told, or look again after a while.
func (r *Room) refused(a *scripts.Answer) {
	head, ticket := &r.asker.queue[0], r.asker.claim.ticket
	if n := r.kind.Tries; n > 0 && head.attempts >= n {
		err := a.Why
		if err == nil {
			err = ErrNotAcquired
		}
		r.decide(fails(err))
		return
	}
	r.waits(head)
	p := r.makePlace()
	if ticket != "" && a.Before != scripts.NotInLine {
		after, listening := p.Refused(r.now, a, r.set.Poll, r.endsWithin(head, 2*line.FirstListensAfter))
		switch listening {
		case line.Listens:
			r.listen(Own) // and asks when that is confirmed
		case line.Ignores:
			r.unlisten()
		}
		r.watch(after)
		return
	}
	if ticket != "" {
		p.ChannelLost() // of several servers one may have taken the ticket out of the line
	}
	enters := r.facts.Line && ticket == ""
	if enters && r.listen(Calls) {
		r.ask() // enters the line
		return
	}
	enters = enters && !p.Quiet()
	listens := !enters && r.listen(Own)
	r.watch(p.RefusedOutside(r.now, a, r.set.Poll, enters, listens))
}

// endsWithin tells whether the call ends within this time.
func (r *Room) endsWithin(c *Call, d time.Duration) bool {
	return !c.Until.IsZero() && c.Until.Sub(r.now) < d
}

// heed does what was heard; false where that is nothing.
func (r *Room) heed() bool {
	if p := r.others.place; p != nil && p.Pending() {
		switch does, after := p.Heed(r.now, r.ownListeners()); does {
		case line.Ask:
			r.ask()
		case line.Yield:
			r.watch(after)
			r.asker.state = yielding
		case line.Watch:
			r.watch(after)
		}
		return true
	}
	if !r.asker.freed || r.asker.state == yielding {
		return false
	}
	r.asker.freed = false
	r.takeTurn()
	return true
}

// look asks because the time has come. Where the patience is over, the head's call ends: an attempt would have no time for its answer.
func (r *Room) look() {
	if over := r.health.PatienceOver(r.now, r.asker.queue[0].Began, r.set.Patience); over != nil {
		r.fail(over, r.asker.sent)
		return
	}
	r.suspect()
	if r.others.place != nil {
		r.others.place.Due(r.asker.state == yielding)
	}
	r.ask()
}

// suspect says that a hold of the client's own has had the lock while calls of the client wait.
func (r *Room) suspect() {
	if r.own.field != r.asker.blocker {
		r.asker.blocker, r.asker.since = r.own.field, r.now
	}
	if r.own.field != "" {
		r.emit(Effect{Do: Suspect, Field: r.own.field, At: r.asker.since})
	}
}
