package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// minExpiry is the shortest expiry of a counter.
const minExpiry = time.Second

// errOvertaken tells that a call may not re-enter after all: another call of its holder has opened
// or closed a level first.
var errOvertaken = errors.New("overtaken")

// acquire takes the lock for the holder that the context under carries, or for a new one. ctx
// bounds the wait. What acquire returns is derived from under, which has the values of ctx; nil for
// ctx itself.
func (l *Lock) acquire(ctx, under context.Context, r Request) (context.Context, *holder.Level, error) {
	if err := l.checkRequest(ctx, r); err != nil {
		return nil, nil, err
	}
	caller := holder.Of(ctx)
	who := caller
	if under == nil {
		under = ctx
	} else {
		who = holder.Of(under)
	}
	if who == nil {
		who = holder.New(under)
	}
	if caller == nil {
		caller = who
	}
	l.client.underWay.Add(1) // before the look at closed: Close waits for those that it finds
	defer l.client.underWay.Add(-1)
	l.client.presenter.begin()
	if l.client.shutsOut(caller) {
		return nil, nil, ErrClosed
	}
	// who knows no line would pass those in it, and an import is told as the others listen
	if (l.kind.shared() || r.imports != nil) && l.client.cluster {
		if _, known := l.client.bus.Known(); !known {
			bound, cancel := context.WithTimeout(ctx, l.client.set.Patience/3)
			l.client.bus.Sharded(bound)
			cancel()
		}
	}
	w, _ := l.client.spareWaiters.Get().(*waiter)
	if w == nil {
		w = new(waiter)
	}
	w.Lock, w.request, w.ctx, w.under, w.holder, w.caller, w.bound.ctx, w.began = l, r, ctx, under, who, caller, ctx, time.Now()
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
			_ = l.Unlock(lv.Context(under, who))
		}
		told.breakOff()
	}
	w.acquireDone(lv, err)
	*w = waiter{}
	l.client.spareWaiters.Put(w)
	if err != nil {
		return nil, nil, err
	}
	return lv.Context(under, who), lv, nil
}

func (l *Lock) checkRequest(ctx context.Context, r Request) error {
	if err := l.CheckUse(); err != nil {
		return err
	}
	if r.Wait < 0 {
		return fmt.Errorf("wait %v is negative: 0 tries once, Lock waits as long as its context", r.Wait)
	}
	if r.Wait > 0 && r.Wait < minWait {
		return fmt.Errorf("wait %v: use %v or more, or 0 to try once%s", r.Wait, minWait, meant(r.Wait))
	}
	if r.Lease != 0 {
		if err := l.checkLease(r.Lease); err != nil {
			return err
		}
	}
	if r.Capped {
		if err := checkMaxHold(r.MaxHold); err != nil {
			return err
		}
	}
	if r.Lasts {
		if err := presence.CheckLasting(r.Lasting); err != nil {
			return fmt.Errorf("option Lasting: %w", err)
		}
	}
	return checkContext(ctx)
}

// checkLease refuses a lease that the lock cannot have.
func (l *Lock) checkLease(lease time.Duration) error {
	if err := checkLease(lease); err != nil {
		return err
	}
	if longest := l.client.limits.Longest; longest > 0 && lease > longest {
		return fmt.Errorf("lease %v: use %v or less, the longest that the client was made for (WithMaxLease)", lease, longest)
	}
	return l.client.set.checkConfirmed(lease)
}

// run takes the lock, or re-enters it. What it has begun it ends also where a method of the user's
// context panics.
func (w *waiter) run() (*holder.Level, error) {
	w.lockState = w.Lock.lockState()
	defer w.lockState.removeUser()
	w.wakeup = w.client.commands.Wakeup()
	defer w.client.commands.PutWakeup(w.wakeup)
	if err := w.kind.mayEnter(w.Lock, w.holder); err != nil {
		return nil, err
	}
	if own := w.ownHold(w.holder); own != nil {
		if w.mayReenter(own) {
			if lv, err := w.reenter(own); err != errOvertaken {
				return lv, err
			}
		}
		if err := own.Err(); err != nil {
			// before anything is sent: the lock may be free, and is not for this holder
			return nil, err
		}
		if !w.request.waits() && !own.lock.kind.together() {
			return nil, errSameHolder
		}
	}
	if !w.request.waits() || w.request.imports != nil {
		return w.tryOnce()
	}
	for joins := !w.lockState.hasWaiters(); ; joins = true {
		if joins && w.kind.together() {
			if lv, err := w.readBeside(); lv != nil || err != nil {
				return lv, err
			}
		}
		if lv, err := w.waitInQueue(); err != errAskBeside {
			return lv, err
		}
		w.outcome = outcome{}
	}
}

// begin makes a hold of a waiter that has got the lock.
func (w *waiter) begin(o outcome) (*holder.Level, error) {
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err()
	}
	if own := w.ownHold(w.holder); own != nil {
		if !own.lock.kind.together() {
			// It was there when the call began to wait, and is gone from Redis without having been
			// unlocked. A holder does not get a new hold before it has learned of the loss.
			own.lose("the lock was free although it was held", true)
			return nil, ErrLost
		}
		if lv, err := w.reenter(own); err != errOvertaken {
			return lv, err // another call of the same holder has come first
		}
	}
	h := o.hold
	id := w.kind.take(w, h, o.slot)
	if h.isShare() {
		defer h.lockState.removeUser()
	}
	lv := h.Begin(w.under, w.holder, id, w.request.Lease == 0, o.token)
	if w.client.tellsOfHolds() {
		w.holdNumber = w.client.tracedHolds.begin(h, w.request.Lasting)
	}
	if !w.client.registerHold(h) {
		w.client.tracedHolds.take(h)
		h.End(ErrClosed, "", nil)
		return nil, ErrClosed
	}
	over := h.lockState.registerHold(h, o, w)
	if w.request.imports != nil {
		w.client.importedOwn(w)
	}
	w.holder.Add(&h.Hold)
	w.client.dog.Add(&h.Lease, o.sentAt, w.lease)
	w.client.presenter.takes(w.lease)
	switch w.way = locktrace.FromRedis; {
	case w.request.imports != nil:
		w.way = locktrace.FromImport
	case h.local:
		w.way = locktrace.FromLocal
	case o.handedOver:
		w.way = locktrace.FromHandoff
	}
	if d := w.request.MaxHold; d > 0 {
		h.endAfter(d)
	}
	if over != "" {
		// a repeat of the attempt may have taken it anew: Unlock releases that
		h.lose(over, false)
	}
	return lv, nil
}

// gaveUp is the error of a call whose wait or context is over.
func (w *waiter) gaveUp() error {
	if w.ctx.Err() != nil {
		return w.contextEnded()
	}
	if own := w.ownHold(w.holder); own != nil && own.Err() == nil {
		return errSameHolder
	}
	return w.lockState.notAcquiredError(w.began)
}

// contextEnded is the error of a call whose context has ended.
func (w *waiter) contextEnded() error {
	return with(holder.ContextError(w.ctx), w.lockState.lastError(w.began))
}
