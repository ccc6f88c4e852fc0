package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// An inflight is one command under way, for somebody who may stop waiting for it.
type inflight struct {
	scripts.Op
	attempts   *attempts // of the hold that the command may take; nil if it takes nothing
	alone      bool
	wakeup     *wakeup                 // of whoever sent the command: notified when it is over
	alsoNotify *wakeup                 // of whoever else waits for the command, or nil
	leave      atomic.Pointer[leaveOp] // sent when the command is over; nil for none, leftAlready from then on

	done   atomic.Bool // the fields below are final
	sentAt watchdog.Instant
	answer scripts.Answer
	err    error
}

// errNotSent tells that a command was taken back before it left.
var errNotSent = errors.New("no connection to Redis was free in time")

func (c *Client) newInflight(op scripts.Op, a *attempts, wake *wakeup) *inflight {
	f, _ := c.spareInflight.Get().(*inflight)
	if f == nil {
		f = new(inflight)
	}
	f.Op, f.attempts, f.wakeup = op, a, wake
	return f
}

// recycle gives back a command that is over. One that was abandoned is left to the garbage collector: it may still be
// answered; so is one that somebody else waits for.
func (c *Client) recycle(f *inflight) {
	if f.alsoNotify == nil {
		*f = inflight{}
		c.spareInflight.Put(f)
	}
}

func (f *inflight) finish() {
	wake, also, leave := f.wakeup, f.alsoNotify, f.leave.Swap(leftAlready)
	f.done.Store(true) // the last thing that is done to it: it may be used again from now on
	wake.notify()
	if also != nil {
		also.notify()
	}
	if leave != nil && leave != leftAlready {
		leave.send()
	}
}

// leaveAfter makes the client leave the line when the command is over, because the command may still enter the line until then.
func (f *inflight) leaveAfter(l *leaveOp) {
	if !f.leave.CompareAndSwap(nil, l) {
		l.send()
	}
}

// leftAlready stands for the leave of a command that is over.
var leftAlready = new(leaveOp)

// send sends the command together with others that are sent at this time.
func (c *Client) send(f *inflight) {
	if f.attempts != nil {
		f.attempts.sent()
	}
	c.store.Send(&f.Op, f)
}

// sendAlone sends the command by itself. A repeat of one that got no answer goes so: if it is what keeps Redis from
// answering, it is not to keep its neighbours from their answers too.
func (c *Client) sendAlone(ctx context.Context, f *inflight) {
	if f.attempts != nil {
		f.attempts.sent()
	}
	f.alone = true
	go func() {
		f.Sending(nil)
		f.Answered(c.store.Do(ctx, f.Op))
	}()
}

// Sending implements scripts.Caller.
func (f *inflight) Sending(with scripts.Caller) {
	if with, together := with.(*inflight); together {
		f.sentAt = with.sentAt
		return
	}
	f.sentAt = watchdog.Now()
}

// Answered implements scripts.Caller.
func (f *inflight) Answered(a scripts.Answer, err error) {
	f.answer, f.err = a, err
	if f.attempts != nil {
		f.attempts.answered(a, err)
	}
	f.finish()
}

// takeBack takes the command back if it has not left yet; it is over then.
func (c *Client) takeBack(f *inflight) {
	if f.alone || !c.store.TakeBack(&f.Op) {
		return
	}
	f.err = errNotSent
	if f.attempts != nil {
		f.attempts.takenBack()
	}
	f.finish()
}

// waitFor waits, by this wake-up, until the command is over. It returns false when the command is not over at the time d after began, or
// when end is closed before that.
func (f *inflight) waitFor(wake *wakeup, began time.Time, d time.Duration, end <-chan struct{}) bool {
	for !f.done.Load() {
		wake.notifyAt(began.Add(d))
		if !wake.wait(end) || !f.done.Load() && time.Since(began) >= d {
			return f.done.Load()
		}
	}
	return true
}

// sendAndRetry sends an op that may be repeated: first in a batch with others, and, where no answer has come at the time each after began,
// by itself with retry. It takes no longer than bound since began, and ends with ctx. maybeExecuted: an earlier attempt got no answer, so
// Redis may have executed it.
func (c *Client) sendAndRetry(ctx context.Context, began time.Time, bound, each time.Duration, op scripts.Op) (answer scripts.Answer, maybeExecuted bool, err error) {
	wake := c.wakeup()
	defer c.putWakeup(wake)
	f := c.newInflight(op, nil, wake)
	c.send(f)
	if !f.waitFor(wake, began, each, ctx.Done()) {
		c.takeBack(f)
	}
	if f.done.Load() {
		c.noteServer(f.err)
	}
	hung := false
	switch {
	case !f.done.Load():
		hung, maybeExecuted, err = true, true, errSilence
	case scripts.Passing(f.err): // errNotSent too
		maybeExecuted, err = scripts.Unanswered(f.err) && f.err != errNotSent, f.err
	default:
		answer, err = f.answer, f.err
		c.recycle(f)
		return answer, false, err
	}
	rest, cancel := context.WithTimeout(ctx, bound-time.Since(began))
	defer cancel()
	answered := make(chan scripts.Answer, 1)
	if hung { // or it is only slow
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			if f.waitFor(wake, time.Now(), bound, rest.Done()) && f.err == nil {
				select {
				case answered <- f.answer:
				default:
				}
			}
		}()
		defer func() { <-looked }() // before the wake-up is somebody else's
		defer cancel()
	}
	pause := time.NewTimer(new(backoff).next(err, lastBackoff))
	defer pause.Stop()
	select {
	case answer = <-answered:
		return answer, false, nil
	case <-rest.Done():
		return answer, maybeExecuted, err
	case <-pause.C:
		if rest.Err() != nil {
			return answer, maybeExecuted, err
		}
	}
	repeat := op // here, so that an op that is answered is not on the heap
	answer, again, last := retryBeside(rest, each, answered, func(ctx context.Context) (scripts.Answer, error) { return c.store.Do(ctx, repeat) })
	if last == errSilence {
		last = err // which Redis may have said
	}
	return answer, maybeExecuted || again, last
}
