package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// Do implements room.Shell. With ls.mu held.
func (ls *lockState) Do(e *room.Effect) {
	switch e.Do {
	case room.Send:
		ls.sendAttempt(e)
	case room.Pass:
		ls.sendPass(e)
	case room.TakeBack:
		ls.takeBack(e.Attempt)
	case room.Grant:
		ls.grant(e)
	case room.Fail:
		ls.fail(e)
	case room.AskBeside:
		ls.askBeside()
	case room.Abandon:
		ls.abandon(e)
	case room.FreeOver:
		ls.freed = true
		ls.client.releaser.WasOver(ls.keys, e.Field, ls.client.set.Lease)
	case room.Passed, room.Release:
		ls.exits(e)
	case room.LeaveLine:
		ls.client.newLeave(ls.keys, e.Ticket, e.Stood).send()
	case room.Listen:
		ls.subscribe(e.Channel)
	case room.Unlisten:
		ls.unsubscribe(e.Channel, e.Drop)
	case room.Waits:
		ls.waits(e.Call)
	case room.Wanted:
		ls.hold.waited.tell()
	case room.Suspect:
		ls.suspect(e.At)
	}
}

// claimFor makes the hold that attempts with this field are for.
func (ls *lockState) claimFor(e *room.Effect) *hold {
	if e.New {
		ls.claimed = ls.first.newHold(e.Field)
	}
	return ls.claimed
}

// sendAttempt sends an attempt.
func (ls *lockState) sendAttempt(e *room.Effect) {
	h := ls.claimFor(e)
	f := ls.first.attempt(h, ls)
	if e.InTurn {
		inTurn(f, &e.Turn)
	}
	ls.latest = attempt{number: e.Attempt, command: f, ticket: e.Turn.Ticket, changes: ls.counted.seen}
	h.send(f)
}

// sendPass sends a command by which an own hold passes the lock on.
func (ls *lockState) sendPass(e *room.Effect) {
	h, u := ls.claimFor(e), &unlocking{wakeup: ls.client.commands.Wakeup()}
	f := ls.first.pass(h, u.wakeup, e.Old)
	f.AlsoNotify(ls)
	h.passedOn = true
	ls.latest = attempt{number: e.Attempt, command: f}
	u.attempt, ls.pass = ls.latest, u
	ls.client.commands.Send(f)
}

// takeBack ends the wait for an attempt, whose answer counts for its hold and its place in the line
// alone from then on, but for a pass.
func (ls *lockState) takeBack(number room.Attempt) {
	one, c := ls.latest, ls.client
	f := one.command
	if one.number != number || f == nil {
		return
	}
	c.commands.TakeBack(f)
	if ls.pass == nil || ls.pass.number != number {
		ls.latest.number = 0 // its answer counts for its hold alone
	}
	if one.ticket != "" && !(f.Done() && f.Err == command.ErrNotSent) {
		ls.addUser()
		f.AfterFunc(func() { // which may be called with ls.mu held
			c.underWay.Add(1)
			go ls.overtaken(one)
		})
	}
}

// overtaken gives the room the answer to an attempt in the line that was taken back.
func (ls *lockState) overtaken(one attempt) {
	defer ls.client.underWay.Add(-1)
	f := one.command
	ls.happened(room.Event{What: room.Answered, Attempt: one.number, Ticket: one.ticket, Answer: &f.Answer, Err: f.Err})
	ls.removeUser()
}

// answered gives the room the answer to an attempt.
func (ls *lockState) answered(now time.Time, one attempt) {
	f, c := one.command, ls.client
	answer, err := &f.Answer, f.Err
	c.note(ls.keys, f)
	if err == nil && one.ticket != "" && !answer.Held && answer.Before != scripts.NotInLine {
		c.lineProven.Store(true)
		ls.counted.proven = one.changes
	}
	if err == nil && !answer.Held {
		ls.tellShares()
	}
	pass := ls.pass
	if pass != nil && pass.command == f && scripts.Denied(err) && c.handoffDenied.CompareAndSwap(false, true) {
		c.set.Log.Warn("rlock: Redis refuses to pass a lock on within the process, for want of a right: each release goes to all who wait", "error", err)
	}
	isLate := err == nil && answer.Held && ls.claimed != nil && late(f.SentAt, ls.claimed.attempts.LongestLease(), now)
	ls.step(now, &room.Event{What: room.Answered, Attempt: one.number, Answer: answer, Late: isLate, Err: err})
	if pass != nil && pass.command == f {
		ls.pass = nil
	}
	if ls.latest.command == f {
		ls.latest = attempt{}
	}
	if one.number != 0 && err != command.ErrNotSent {
		c.commands.Recycle(f)
	}
}

// grant gives the head of the queue the lock.
func (ls *lockState) grant(e *room.Effect) {
	w := ls.first
	if e.Local {
		w.outcome = w.takeOver(ls.hold)
		ls.passed = w.outcome.hold
	} else {
		w.outcome = ls.claimed.takenBy(ls.latest.command)
		w.outcome.handedOver = e.Handed
	}
	w.wakeup.Notify()
}

// fail ends the wait of the head of the queue.
func (ls *lockState) fail(e *room.Effect) {
	w := ls.first
	w.outcome.err = e.Err
	if e.Dial {
		w.outcome.err = ls.client.withDial(e.Err, e.At)
	}
	w.wakeup.Notify()
}

// abandon leaves a hold that nobody gets to the releaser, where its attempts may have taken the
// lock.
func (ls *lockState) abandon(e *room.Effect) {
	h := ls.claimed
	if p := ls.passed; p != nil && p.attempts.Field == e.Field {
		ls.passed = nil
		ls.client.abandon(p)
		return
	}
	if ls.claimed = nil; e.Doubt && h.attempts.Uncertain() {
		ls.client.releaser.Release(&h.attempts)
	} else {
		ls.client.abandon(h)
	}
}

// subscribe listens on a channel of the lock.
func (ls *lockState) subscribe(ch room.Channel) {
	if ls.channels == nil {
		ls.channels = new([2]Subscription)
	}
	if ls.channels[ch] == nil {
		ls.expectNews()
		name, hear := ls.keys.Channel(), ls.onReleaseMessage
		if ch == room.Calls {
			name, hear = ls.keys.Calls(ls.client.id), ls.onLineMessage
		}
		ls.channels[ch] = ls.client.bus.Subscribe(ls.keys, name, hear)
	}
}

func (ls *lockState) unsubscribe(ch room.Channel, drop bool) {
	s := ls.channels[ch]
	if ls.channels[ch] = nil; s == nil {
		return
	}
	if drop {
		s.Drop() // those in the line would take this client for an outsider
	} else {
		s.Close()
	}
}

// suspect logs, once for a hold, that it has had the lock for a whole lease while calls of its
// client waited. A nested call that was given the context from before Lock waits like this for
// ever, as happens in code that was ported from Java.
func (ls *lockState) suspect(since time.Time) {
	if h := ls.hold; h != nil && time.Since(since) >= h.attempts.LongestLease() {
		h.warnOnce("rlock: a call waits for a hold of its own client, for as long as a lease by now; if this is meant as a nested call, pass the context that Lock returned")
	}
}
