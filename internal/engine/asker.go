package engine

import (
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// An asker asks Redis for one lock, for the first in the queue of this client's waiters, whichever that is. lockState.mu guards it. The package's
// documentation has its states, and who runs it.
type asker struct {
	state   askerState
	command *command.Command // the attempt or the handoff that is under way; nil for none
	sentAt  time.Time        // when the wait for its answer began
	silent  time.Time        // since when attempts, one after the other, have had no answer; zero for none
	due     time.Time        // when the asker looks by itself, at the command or at the lock; zero for never
	claim   claim            // of what the first waiter asks for
	freed   bool             // the lock may be free: a release was heard, or the client's own hold is over
	pauses  command.Backoff  // after errors
	blocker *hold            // the client's own hold that suspectNestedCall saw last,
	since   time.Time        // and when it saw that hold first
}

// newAsker returns an asker that has begun nothing.
func (c *Client) newAsker() *asker {
	a, _ := c.spareAskers.Get().(*asker)
	if a == nil {
		a = new(asker)
	}
	return a
}

// An askerState is what an asker does at one moment.
type askerState uint8

const (
	resting   askerState = iota // nothing is begun for the first waiter
	watching                    // it waits to be told something, or until it is to look
	yielding                    // called, and it leaves the lock for a moment to clients that are in no line
	asking                      // an attempt is under way
	receiving                   // the client's own hold passes the lock on by a command
	decided                     // the first waiter has its outcome, and leaves the queue
)

// Notify has the asker see to something that has changed, by the goroutine of the first waiter. It takes no mutex.
func (ls *lockState) Notify() {
	if wakeup := ls.firstWakeup.Load(); wakeup != nil {
		wakeup.Notify()
	}
}

// unlock lets the asker see to all that has changed, and gives ls.mu back.
func (ls *lockState) unlock() {
	ls.see()
	ls.unlockSeen()
}

// unlockSeen is unlock where nothing has changed since the asker has seen to all.
func (ls *lockState) unlockSeen() {
	if w := ls.first; w != nil && !ls.due.IsZero() {
		w.wakeup.NotifyAt(ls.due)
	}
	ls.mu.Unlock()
}

// see does all that is to be done now. With ls.mu held.
func (ls *lockState) see() {
	for {
		ls.hearNews()
		if ls.first == nil || ls.state == decided {
			return
		}
		switch f := ls.command; {
		case f != nil && (f.Done() || ls.isDue()):
			ls.judge(f)
		case f != nil:
			return
		case ls.hold == nil && ls.heed():
		case ls.isDue():
			ls.suspectNestedCall()
			if p := ls.place(); p != nil {
				p.Due(ls.state == yielding)
			}
			ls.ask()
		default:
			return
		}
	}
}

// mayBeFree notes for the first waiter whether the lock may be free, by what was heard last. Who waits next asks anyway. With ls.mu held.
func (ls *lockState) mayBeFree(may bool) {
	if ls.asker != nil {
		ls.freed = may
	}
}

// isDue tells whether it is time for the asker to look by itself. With ls.mu held.
func (ls *lockState) isDue() bool { return !ls.due.IsZero() && !time.Now().Before(ls.due) }

// watchFor makes the asker wait to be told something, and look by itself after d. With ls.mu held.
func (ls *lockState) watchFor(d time.Duration) { ls.state, ls.due = watching, time.Now().Add(d) }

// decide ends the wait of the first waiter. With ls.mu held.
func (ls *lockState) decide(o outcome) {
	ls.state, ls.due = decided, time.Time{}
	ls.first.outcome = o
	ls.first.wakeup.Notify()
}

// lead is for a waiter that has become the first of the queue. What the asker does already goes on, for that waiter. With ls.mu held.
func (ls *lockState) lead() {
	w := ls.first
	if p := ls.place(); p != nil {
		p.Told() // its looks are not those of the one before
	}
	err := ls.patienceOver(w.began, ls.client.set.Patience)
	switch {
	case ls.command != nil:
	case err != nil:
		ls.decide(outcome{err: ls.client.withDial(err, w.began)})
	case ls.hold != nil: // its end, or a message, is soon enough
		w.waitStarted()
		ls.subscribe(w.keys)
		ls.watchFor(ls.client.set.Poll)
	case ls.state == resting || !ls.inLine():
		ls.takeTurn()
	}
}

// inLine tells whether the client is in the line, as far as Redis has said. With ls.mu held.
func (ls *lockState) inLine() bool {
	p := ls.place()
	return p != nil && p.InLine()
}

// takeTurn makes the asker ask Redis. Where there is no line, and this client has just released the lock to others, it first waits until they
// had the time to try. With ls.mu held.
func (ls *lockState) takeTurn() {
	if p := ls.place(); p != nil {
		p.Told()
	}
	if d := ls.yieldsFor(); d > 0 {
		ls.watchFor(d)
	} else {
		ls.ask()
	}
}

// ask sends an attempt, which takes the lock only when no client in the line comes first. Where the first waiter's wait is over it sends nothing:
// that waiter leaves. With ls.mu held.
func (ls *lockState) ask() {
	w, c := ls.first, &ls.claim
	if isClosed(w.bound.end) {
		ls.watchFor(ls.client.set.Poll)
		ls.state = resting // what this attempt was for, such as a release, is still to be seen to: the next waiter asks
		return
	}
	if c.hold == nil {
		*c = w.newClaim()
	}
	f := w.attempt(c, ls)
	c.ends, c.ticket = ls.ends, ""
	switch {
	case ls.client.usesLine():
		turn := ls.lineTurn()
		c.ticket = turn.Ticket
		inTurn(f, turn)
	case ls.client.lineForbidden():
		ls.leavePlace() // it listens for releases from now on, and does not come when it is called
	}
	ls.freed = false
	ls.awaitAnswer(f, asking)
	if ls.silent.IsZero() {
		ls.silent = ls.sentAt
	}
	c.send(f)
}

// awaitAnswer makes the asker wait for the answer to a command that is sent now, for as long as the answer is of use, and as the first waiter's
// patience lasts. With ls.mu held.
func (ls *lockState) awaitAnswer(f *command.Command, state askerState) {
	w, silence := ls.first, ls.client.set.silence()
	ls.command, ls.state, ls.sentAt = f, state, time.Now()
	ls.due = ls.sentAt.Add(min(w.lease, silence))
	if end := ls.patienceEnds(w.began, silence); !end.IsZero() && end.Before(ls.due) {
		ls.due = end
	}
}

// judge sees to an attempt or a handoff that has its answer, or has taken too long. With ls.mu held.
func (ls *lockState) judge(f *command.Command) {
	w, c, handedOver := ls.first, &ls.claim, ls.state == receiving
	ls.command = nil
	ls.watchFor(ls.client.set.Poll)
	o, a, again := ls.verdict(w, c, f)
	if a != nil && (a.Held || a.Outside) && !handedOver {
		ls.leftLine(c.ticket, a.Outside)
	}
	switch {
	case o.hold != nil:
		ls.silent = time.Time{}
		o.handedOver = handedOver
		ls.decide(o)
		if p := ls.place(); p != nil {
			p.Taken(time.Now())
		}
	case handedOver && a != nil && !scripts.Unanswered(o.err):
		// The hold before was lost, or Redis refused to pass the lock on: it is released, and that is told.
	case o.err == nil:
		ls.redisAnswered(a.Why)
		ls.pauses = command.Backoff{}
		if n := ls.client.limits.Tries; n > 0 && w.attemptCount >= n {
			ls.decide(outcome{err: notAcquired(a.Why)})
		} else {
			ls.refused(a)
		}
	case !again:
		ls.decide(o)
	default:
		ls.failed(o.err)
	}
	if a != nil && !handedOver {
		ls.client.commands.Recycle(f)
	}
}

// failed is for an error in place of an answer, which passes. With ls.mu held.
func (ls *lockState) failed(err error) {
	sent := ls.sentAt
	if errors.Is(err, ErrUnconfirmed) { // Redis has answered
		sent = time.Now()
	}
	ls.redisFailed(sent, err)
	ls.contentionFor(ls.first.keys) // from now on it is known why the client asks
	if over := ls.patienceOver(ls.first.began, ls.client.set.Patience); over != nil {
		ls.decide(outcome{err: ls.client.withDial(over, sent)})
	} else {
		ls.watchFor(ls.pauses.Next(err, command.LastBackoff))
	}
}

// refused decides how the asker goes on whose attempt has not got the lock: it enters the line, or waits to be told, or looks again after a
// while. With ls.mu held.
func (ls *lockState) refused(a *scripts.Answer) {
	w, poll := ls.first, ls.client.set.Poll
	p := &ls.contentionFor(w.keys).place
	w.waitStarted()
	ls.tellShares()
	if ls.claim.ticket != "" && a.Before != scripts.NotInLine {
		ls.client.lineProven.Store(true)
		after, listening := p.Refused(time.Now(), a, poll, w.endsSoon())
		switch listening {
		case line.Listens:
			ls.subscribe(w.keys) // and tries when that is confirmed
		case line.Ignores:
			ls.stopListening()
		}
		ls.watchFor(after)
		return
	}
	if ls.claim.ticket != "" {
		p.ChannelLost() // of several servers one may have taken the ticket out of the line, as the lock was free there
	}
	enters := ls.client.usesLine() && ls.claim.ticket == ""
	if enters && ls.listenForCalls(w.keys) {
		ls.ask() // enters the line
		return
	}
	enters = enters && !p.Quiet()
	listens := !enters && ls.listen(w.keys)
	ls.watchFor(p.RefusedOutside(time.Now(), a, poll, enters, listens))
}

// heed does what was heard, while this client has not got the lock; false where that is nothing. With ls.mu held.
func (ls *lockState) heed() bool {
	if p := ls.place(); p != nil && p.Pending() {
		switch does, after := p.Heed(time.Now(), ls.ownListeners(ls.contention.keys)); does {
		case line.Ask:
			ls.ask()
		case line.Yield:
			ls.watchFor(after)
			ls.state = yielding
		case line.Watch:
			ls.watchFor(after)
		}
		return true
	}
	if !ls.freed || ls.state == yielding {
		return false
	}
	ls.freed = false
	ls.takeTurn()
	return true
}

// suspectNestedCall logs, once for a hold, that one hold of the client's own has had the lock for a whole lease while calls of the client
// waited. A nested call that was given the context from before Lock waits like this for ever, as happens in code that was ported from Java.
// With ls.mu held.
func (ls *lockState) suspectNestedCall() {
	h := ls.hold
	if h != ls.blocker {
		ls.blocker, ls.since = h, time.Now()
	}
	if h != nil && time.Since(ls.since) >= h.attempts.LongestLease() {
		h.warnOnce("rlock: a call waits for a hold of its own client, for as long as a lease by now; if this is meant as a nested call, pass the context that Lock returned")
	}
}
