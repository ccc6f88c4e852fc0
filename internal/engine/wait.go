package engine

import (
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// queueWait is what a waiter knows while it is in the queue of its client's waiters. Only its own goroutine uses it.
type queueWait struct {
	state    waitState
	command  *command.Command // the attempt or the handoff that is under way; nil for none
	sentAt   time.Time        // when the waiter began to wait for its answer
	due      time.Time        // when the waiter looks by itself, at the command or at the lock; zero for never
	firstAsk bool             // join has noted already that the waiter asks Redis, for its first attempt
	pauses   command.Backoff  // after errors
	blocker  *hold            // the client's own hold that suspectNestedCall saw last,
	since    time.Time        // and when it saw that hold first
}

// waitInQueue puts the waiter into the queue of this client's waiters, waits until it has the lock or the wait is over, and takes the waiter
// out of the queue, whatever ends the wait: a method of the user's context may panic.
func (w *waiter) waitInQueue() (lv *holder.Level, err error) {
	w.pauses = command.Backoff{}
	first, asks := w.lockState.join(w)
	defer func() { w.leaveQueue(lv) }()
	return w.untilDone(first, asks)
}

// leaveQueue takes the waiter, which has got this level or none, out of the queue.
func (w *waiter) leaveQueue(lv *holder.Level) {
	if w.state == asking {
		w.client.commands.TakeBack(w.command)
	}
	if lv == nil && w.state != queued && w.state != watching {
		w.lockState.inPlace(func(p *line.Place, _ time.Time) bool {
			p.CallerLeft()
			return true
		})
	}
	if ticket := w.lockState.leave(w); ticket != "" {
		w.client.leaveLine(w.keys, ticket)
		if w.state == asking {
			w.command.AfterFunc(w.client.newLeave(w.keys, ticket).send)
		}
	}
}

// untilDone waits until the waiter has the lock or the wait is over. As the first of the queue the waiter tries to take the lock. first
// and asks are what join has returned.
func (w *waiter) untilDone(first, asks bool) (*holder.Level, error) {
	w.firstAsk = asks
	if first {
		if err := w.lead(); err != nil {
			return nil, err
		}
	} else {
		w.waitStarted()
		w.lookAfter(w.client.set.Poll)
	}
	for {
		if w.told.brokenOff() {
			return nil, errBrokenOff
		}
		if isClosed(w.client.draining) && !w.goesOn() {
			return nil, ErrClosed
		}
		var changed <-chan struct{}
		var own *hold
		if !w.state.commandUnderWay() {
			// A hold of the same holder, taken through another context: the call may become a nested one.
			if own = w.holdOf(w.holder); own != nil {
				changed = own.Changed()
				if err := own.Err(); err != nil {
					return nil, err
				}
				if own.ReentryCount(w.ctx) > 0 {
					if lv, err := w.reenter(own); err != errOvertaken {
						return lv, err
					}
					continue
				}
			}
			w.sendIfReady()
		}
		if !w.sleepUntilWoken(changed) {
			return nil, w.gaveUp()
		}
		if lv, err := w.look(own); lv != nil || err != nil {
			return lv, err
		}
	}
}

// goesOn tells whether a waiter stays in the queue although the client is shutting down: its call is nested in a hold, which Shutdown waits
// for.
func (w *waiter) goesOn() bool {
	return !isClosed(w.client.closed) && w.holder.HoldsAny(w.client)
}

// sleepUntilWoken waits until there may be something to see; false when the wait is over.
func (w *waiter) sleepUntilWoken(changed <-chan struct{}) bool {
	if w.command != nil && w.command.Done() {
		return true
	}
	if !w.due.IsZero() {
		w.wakeup.NotifyAt(w.due)
	}
	if changed == nil {
		return w.wakeup.Wait(w.waitEnd)
	}
	select {
	case <-w.wakeup.C():
	case <-changed:
	case <-w.waitEnd:
		return false
	}
	return true
}

// look sees to all that has changed: one wake-up may stand for several things.
func (w *waiter) look(own *hold) (*holder.Level, error) {
	if f := w.command; f != nil && (f.Done() || w.isDue()) {
		done := f.Done()
		lv, err := w.judgeCommand()
		if done {
			w.client.commands.Recycle(f)
		}
		if lv != nil || err != nil {
			return lv, err
		}
	}
	if lv, err := w.lookAtLock(); lv != nil || err != nil {
		return lv, err
	}
	if w.state.commandUnderWay() || !w.isDue() {
		return nil, nil
	}
	w.due = time.Time{}
	leads := w.state != queued
	if w.state == watching || w.state == yielding {
		w.lockState.inPlace(func(p *line.Place, _ time.Time) bool {
			p.Due(w.state == yielding)
			return true
		})
		w.on(mayAsk)
	}
	switch {
	case own != nil:
		own.warnOnce("rlock: held by this holder through another context; a nested call needs the ctx that Lock returned")
	case leads:
		w.suspectNestedCall()
	}
	return nil, nil
}

// suspectNestedCall logs, once for a hold, that one hold of the call's own client has had the lock for a whole lease while the call waited.
// A nested call that was given the context from before Lock waits like this for ever, as happens in code that was ported from Java.
func (w *waiter) suspectNestedCall() {
	h := w.lockState.currentHold()
	if h != w.blocker {
		w.blocker, w.since = h, time.Now()
	}
	if h != nil && time.Since(w.since) >= h.attempts.LongestLease() {
		h.warnOnce("rlock: a call waits for a hold of its own client, for as long as a lease by now; if this is meant as a nested call, pass the context that Lock returned")
	}
}

// lookAfter makes the waiter look by itself after d. A later call replaces the time.
func (w *waiter) lookAfter(d time.Duration) {
	w.due = time.Now().Add(d)
}

// awaitAnswer makes the waiter look for an answer to a command that is sent now, when the patience is over with which it waits for one.
func (w *waiter) awaitAnswer() {
	w.sentAt = time.Now()
	w.lookAfter(w.answerTime())
	if end := w.lockState.patienceEnds(w.began, w.client.set.silence()); !end.IsZero() && end.Before(w.due) {
		w.due = end
	}
}

// answerTime is how long the waiter waits for the answer to one command: after its lease no answer is of use.
func (w *waiter) answerTime() time.Duration { return min(w.lease, w.client.set.silence()) }

func (w *waiter) isDue() bool { return !w.due.IsZero() && !time.Now().Before(w.due) }

// lead is what a waiter does that has become the first of its client.
func (w *waiter) lead() error {
	w.on(leads)
	if w.firstAsk {
		w.on(mayAsk)
		return nil
	}
	if err := w.lockState.patienceOver(w.began, w.client.set.Patience); err != nil {
		return w.client.withDial(err, w.began)
	}
	w.lockState.inPlace(func(p *line.Place, _ time.Time) bool {
		p.Told() // its looks are not those of the one before
		return true
	})
	// The one before may have just taken the lock: then its end, or a message, is soon enough.
	if w.lockState.isHeld() {
		w.waitStarted()
		w.lockState.listen(w.keys.Channel())
		w.watchFor(w.client.set.Poll)
		return nil
	}
	if w.lockState.inLine() {
		w.watchFor(w.lockState.untilLook()) // to be called; the waiter before may have had to look soon
		return nil
	}
	w.takeTurn()
	return nil
}

// watchFor makes the waiter wait to be told something, and look by itself after d. It sets the state and the time, and does not block.
func (w *waiter) watchFor(d time.Duration) {
	w.on(waitsOn)
	w.lookAfter(d)
	w.lockState.setLookAt(w.due)
	w.lockState.waitsToBeTold(w)
}

// takeTurn makes the waiter ask Redis next. Where there is no line, and this client has just released the lock to others, the waiter first
// waits until they had the time to try.
func (w *waiter) takeTurn() {
	w.lockState.inPlace(func(p *line.Place, _ time.Time) bool {
		p.Told()
		return true
	})
	if d := w.lockState.yieldsFor(); d > 0 && w.state != ready {
		w.watchFor(d)
	} else {
		w.on(mayAsk)
	}
}

// sendIfReady sends the next attempt, if it is time.
func (w *waiter) sendIfReady() {
	if w.state != ready {
		return
	}
	if !w.firstAsk && !w.lockState.startsAsking(w) {
		w.on(lockGiven)
		return
	}
	w.firstAsk = false
	w.command = w.sendAttemptInTurn()
	w.on(attemptSent)
	w.awaitAnswer()
}

// lookAtLock sees to what the waiter was given or told, by the hold before it or by the line in Redis.
func (w *waiter) lookAtLock() (*holder.Level, error) {
	h := w.lockState.handoffTo(w)
	switch {
	case h.cancelled:
		w.lockState.clearHandoff(w)
		w.command = nil
		w.on(mayAsk)
	case h.handoff != nil && w.command == nil:
		w.command = h.handoff
		w.on(handoffBegun)
		w.awaitAnswer()
	case w.command != nil: // its answer comes first
	case w.state == queued && h.isLeader:
		return nil, w.lead()
	case w.state != queued && !w.lockState.isHeld():
		w.heed()
		if w.lockState.mayBeFree.Swap(false) && w.state != yielding {
			w.takeTurn()
		}
	}
	return nil, nil
}

// heed does what was heard about the client's place in the line.
func (w *waiter) heed() {
	if !w.lockState.inPlace(func(p *line.Place, _ time.Time) bool { return p.Pending() }) {
		return
	}
	own, does, after := w.lockState.ownListeners(w.keys), line.Nothing, time.Duration(0)
	w.lockState.inPlace(func(p *line.Place, now time.Time) bool {
		does, after = p.Heed(now, own)
		return true
	})
	switch does {
	case line.Ask:
		w.on(mayAsk)
	case line.Yield:
		w.watchFor(after)
		w.on(yields)
	case line.Watch:
		w.watchFor(after)
	}
}

// judgeCommand sees to an attempt or a handoff that has its answer, or has taken too long.
func (w *waiter) judgeCommand() (*holder.Level, error) {
	f, handedOver := w.command, w.state == receiving
	sent := w.sentAt
	w.command = nil
	w.on(commandOver)
	lv, err := w.settle(f)
	if handedOver {
		w.lockState.clearHandoff(w)
	}
	pause := w.client.set.Poll
	switch {
	case lv != nil:
		w.lockState.inPlace(func(p *line.Place, now time.Time) bool {
			p.Taken(now)
			return true
		})
		return lv, nil
	case w.waitCtx.Err() != nil:
		return nil, w.gaveUp()
	case handedOver && f.Done() && (err == nil || f.Err != nil && !scripts.Unanswered(f.Err)):
		// The hold before was lost, or Redis refused to pass the lock on: it is released, and that is told.
	case err == nil:
		w.lockState.redisAnswered(w.refusal)
		w.pauses = command.Backoff{}
		if n := w.client.limits.Tries; n > 0 && w.attemptCount >= n {
			return nil, notAcquired(w.refusal)
		}
		w.wasRefused(f.Answer)
		return nil, nil
	case !passing(err):
		return nil, err
	default:
		if errors.Is(err, ErrUnconfirmed) { // Redis has answered
			sent = time.Now()
		}
		w.lockState.redisFailed(sent, err)
		w.lockState.mayWaitInLine()
		if err := w.lockState.patienceOver(w.began, w.client.set.Patience); err != nil {
			return nil, w.client.withDial(err, sent)
		}
		pause = w.pauses.Next(err, command.LastBackoff)
	}
	w.watchFor(pause)
	return nil, nil
}
