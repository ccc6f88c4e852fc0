package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// onceMore bounds how long a call that does not wait asks Redis: how long it waits for an answer, and how long it repeats a command after an
// error that goes away by itself, such as that of a broken connection.
const onceMore = time.Second

// mostOnceMore bounds the pauses between these repeats.
const mostOnceMore = onceMore / 8

// minExpiry is the shortest expiry of a counter.
const minExpiry = time.Second

// errOvertaken tells that a call may not re-enter after all: another call of its holder has opened or closed a level first.
var errOvertaken = errors.New("overtaken")

// errLate is an answer that came when the lease it tells of could no longer be trusted.
var errLate = errors.New("no answer from Redis before the lease was over")

func (l *Lock) acquire(ctx context.Context, r Request) (context.Context, *holder.Level, error) {
	if err := l.checkRequest(ctx, r); err != nil {
		return nil, nil, err
	}
	who := holder.Of(ctx)
	if who == nil {
		who = holder.New(ctx)
	}
	l.client.underWay.Add(1) // before the look at closed: Close waits for those that it finds
	defer l.client.underWay.Add(-1)
	l.client.presenter.begin()
	if l.client.shutsOut(who) {
		return nil, nil, ErrClosed
	}
	w, _ := l.client.spareWaiters.Get().(*waiter)
	if w == nil {
		w = new(waiter)
	}
	w.Lock, w.request, w.ctx, w.holder, w.bound.ctx, w.began = l, r, ctx, who, ctx, time.Now()
	if w.lease = r.Lease.Truncate(time.Millisecond); w.lease == 0 {
		w.lease = l.client.set.Lease
	}
	if r.Wait > 0 {
		var cancel context.CancelFunc
		w.bound.ctx, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	w.bound.end = w.bound.ctx.Done()
	w.bound.until, _ = w.bound.ctx.Deadline()
	lv, err := w.run()
	if told := w.told; told.brokenOff() {
		if lv != nil {
			_ = l.Unlock(lv.Context(ctx, who))
		}
		told.breakOff()
	}
	w.acquireDone(lv, err)
	*w = waiter{}
	l.client.spareWaiters.Put(w)
	if err != nil {
		return nil, nil, err
	}
	return lv.Context(ctx, who), lv, nil
}

func (l *Lock) checkRequest(ctx context.Context, r Request) error {
	if err := l.checkName(); err != nil {
		return err
	}
	if r.Wait < 0 {
		return fmt.Errorf("wait %v is negative: 0 tries once, Lock waits as long as its context", r.Wait)
	}
	if r.Wait > 0 && r.Wait < minWait {
		return fmt.Errorf("wait %v: use %v or more, or 0 to try once%s", r.Wait, minWait, meant(r.Wait))
	}
	if r.Lease != 0 {
		if err := checkLease(r.Lease); err != nil {
			return err
		}
		if l.client.limits.Longest > 0 && r.Lease > l.client.limits.Longest {
			return fmt.Errorf("lease %v: use %v or less, the longest that the client was made for (WithMaxLease)", r.Lease, l.client.limits.Longest)
		}
		if err := l.client.set.checkConfirmed(r.Lease); err != nil {
			return err
		}
	}
	if l.options.Expiry != 0 && l.options.Expiry < minExpiry {
		return fmt.Errorf("the counter's expiry %v is shorter than %v: take one that no clock will be set back by, such as 24 h", l.options.Expiry, minExpiry)
	}
	if ctx.Err() != nil {
		return holder.ContextError(ctx)
	}
	return nil
}

// run takes the lock, or re-enters it. What it has begun it ends also where a method of the user's context panics.
func (w *waiter) run() (*holder.Level, error) {
	w.lockState = w.client.lockState(w.id.Name)
	defer w.lockState.removeUser()
	w.wakeup = w.client.commands.Wakeup()
	defer w.client.commands.PutWakeup(w.wakeup)
	if own := w.holdOf(w.holder); own != nil {
		if own.ReentryCount(w.ctx) > 0 {
			if lv, err := w.reenter(own); err != errOvertaken {
				return lv, err
			}
		}
		if err := own.Err(); err != nil {
			return nil, err // before anything is sent: the lock may be free, and is not for this holder
		}
		if !w.request.waits() {
			return nil, errSameHolder
		}
	}
	if w.request.waits() {
		return w.waitInQueue()
	}
	return w.tryOnce()
}

// tryOnce asks once, for a call with wait 0.
func (w *waiter) tryOnce() (lv *holder.Level, err error) {
	h := w.lockState.beginTry(w)
	defer func() { w.lockState.endTry(w, lv != nil) }()
	if h != nil && h.Err() == nil && h.Lease.Deadline().Age() < time.Second {
		return nil, ErrNotAcquired // Redis could say nothing else
	}
	var said error
	var pauses command.Backoff
	for {
		lv, refusal, again, err := w.askOnce()
		if err == command.ErrSilence && said != nil {
			err = said
		}
		said = err
		pause := pauses.Next(err, mostOnceMore)
		switch {
		case lv != nil:
			return lv, nil
		case w.ctx.Err() != nil:
			return nil, w.contextEnded()
		case !again || time.Since(w.began)+pause > min(onceMore, w.client.set.Patience):
			if err == nil {
				return nil, notAcquired(refusal)
			}
			return nil, w.client.withDial(err, w.began)
		case !command.Sleep(w.ctx, pause):
			return nil, with(holder.ContextError(w.ctx), err)
		}
	}
}

// askOnce sends one attempt of a call that does not wait. It returns a level where that took the lock, and otherwise why not: an error, or,
// where Redis has refused, Answer.Why. again: another attempt may have the lock.
func (w *waiter) askOnce() (lv *holder.Level, refusal error, again bool, err error) {
	ls, c := w.lockState, &w.own
	f := w.attempt(c, w.wakeup)
	c.send(f)
	rest := time.Until(w.began.Add(onceMore + w.client.set.confirmTimes()))
	for due := time.Now().Add(min(w.lease, rest)); !f.Done() && time.Now().Before(due); {
		w.wakeup.NotifyAt(due)
		select {
		case <-w.wakeup.C():
			continue
		case <-w.ctx.Done():
		case <-w.client.closed:
		}
		break
	}
	a, done, err := w.client.answerTo(w.keys, f)
	switch {
	case !done && isClosed(w.client.closed):
		err = ErrClosed
	case err == nil && !a.Held:
		refusal, again = a.Why, ls.triedInVain(c, a.Own)
	case err == nil && c.late(f.SentAt):
		err = errLate
	case err == nil:
		lv, err = w.begin(c.taken(f))
	}
	if lv == nil && w.client.limits.Several && c.hold.attempts.Uncertain() {
		ls.mu.Lock()
		ls.claimAnew(c, w)
		ls.mu.Unlock()
	}
	return lv, refusal, again || passing(err) && !errors.Is(err, ErrUnconfirmed), err
}

// begin makes a hold of a waiter that has got the lock.
func (w *waiter) begin(o outcome) (*holder.Level, error) {
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err()
	}
	if own := w.holdOf(w.holder); own != nil {
		// It was there when the call began to wait, and is gone from Redis without having been unlocked. A holder does
		// not get a new hold before it has learned of the loss.
		own.lose("the lock was free although it was held", true)
		return nil, ErrLost
	}
	h := o.hold
	lv := h.Begin(w.ctx, w.holder, &w.id, w.request.Lease == 0, o.token)
	if w.client.tellsOfHolds() {
		w.holdNumber = w.client.tracedHolds.begin(h)
	}
	if !w.client.registerHold(h, w.lockState) {
		w.client.tracedHolds.take(h)
		h.End(ErrClosed, "", nil)
		return nil, ErrClosed
	}
	over := w.lockState.registerHold(h, o)
	w.holder.Add(&h.Hold)
	w.client.dog.Add(&h.Lease, o.sentAt, w.lease)
	w.client.presenter.takes(w.lease)
	if w.way = locktrace.FromRedis; o.handedOver {
		w.way = locktrace.FromHandoff
	}
	if over {
		h.lose(forcedOpenText, false) // a repeat of the attempt may have taken it anew: Unlock releases that
	}
	return lv, nil
}

// gaveUp is the error of a call whose wait or context is over.
func (w *waiter) gaveUp() error {
	if w.ctx.Err() != nil {
		return w.contextEnded()
	}
	if own := w.holdOf(w.holder); own != nil && own.Err() == nil {
		return errSameHolder
	}
	return w.lockState.notAcquiredError(w.began)
}

// contextEnded is the error of a call whose context has ended.
func (w *waiter) contextEnded() error {
	return with(holder.ContextError(w.ctx), w.lockState.lastError(w.began))
}
