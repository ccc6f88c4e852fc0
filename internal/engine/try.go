package engine

import (
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// onceMore bounds how long a call that does not wait asks Redis: how long it waits for an answer,
// and how long it repeats a command after an error that goes away by itself, such as that of a
// broken connection.
const onceMore = time.Second

// mostOnceMore bounds the pauses between these repeats.
const mostOnceMore = onceMore / 8

// tryOnce asks once, for a call with wait 0, and one that imports a hold.
func (w *waiter) tryOnce() (lv *holder.Level, err error) {
	h := w.lockState.beginTry(w)
	defer func() { w.lockState.endTry(w, lv) }()
	patience := min(onceMore, w.client.set.Patience)
	if w.request.imports != nil {
		h, patience = nil, w.client.set.Patience
	}
	if h != nil && h.exported.Load() == nil && h.Err() == nil && h.Lease.Deadline().Age() < time.Second {
		return nil, ErrNotAcquired // Redis could say nothing else
	}
	var said error // what Redis has said last: an error, or why nobody has the lock
	var pauses command.Backoff
	for {
		lv, a, again, err := w.askOnce(false)
		if err == command.ErrSilence && said != nil {
			err = said
		}
		said = err
		unconfirmed := errors.Is(err, ErrUnconfirmed)
		if unconfirmed && w.request.imports != nil { // to give up would release what another process works under
			again, unconfirmed = true, false
		}
		pause := pauses.Next(err, mostOnceMore)
		if err == nil && a != nil && a.Why != nil { // nobody has the lock
			said = a.Why
			again, pause = true, min(max(a.TTL, time.Millisecond), mostOnceMore)
		}
		switch {
		case lv != nil:
			return lv, nil
		case w.ctx.Err() != nil:
			return nil, w.contextEnded()
		case !again || unconfirmed || time.Since(w.began)+pause > patience:
			if err == nil && w.request.imports != nil {
				return nil, errNotThere
			}
			if err == nil {
				return nil, notAcquired(a.Why)
			}
			return nil, w.client.withDial(err, w.began)
		case !command.Sleep(w.ctx, pause):
			return nil, with(holder.ContextError(w.ctx), err)
		}
	}
}

// askOnce sends one attempt of a call that does not wait. It returns a level where that took the
// lock, and otherwise why not: an error, or the answer by which Redis has refused. again: another
// attempt may have the lock.
func (w *waiter) askOnce(joins bool) (lv *holder.Level, a *scripts.Answer, again bool, err error) {
	ls := w.lockState
	f := w.attempt(w.own, w.wakeup)
	if w.request.imports == nil && w.kind.shared() && w.client.usesLine() { // who waits comes first
		sharded, _ := w.client.bus.Known()
		inTurn(f, &scripts.Turn{Sharded: sharded, Look: !w.request.waits() || w.endsWithin(room.Soon)})
	}
	rest := time.Until(w.began.Add(onceMore + w.client.set.confirmTimes()))
	if w.request.imports != nil {
		rest = time.Until(w.began.Add(w.client.set.Patience))
	} else if w.request.waits() {
		rest = w.client.set.silence()
	} else {
		within(f, rest)
	}
	sent := time.Now()
	w.own.send(f)
	for due := time.Now().Add(min(w.lease, rest)); !f.Done() && time.Now().Before(due); {
		w.wakeup.NotifyAt(due)
		select {
		case <-w.wakeup.C():
			continue
		case <-w.bound.end:
		case <-w.client.closed:
		}
		break
	}
	now := ls.lock()
	o, a, again := ls.verdict(now, w, f, sent, joins)
	ls.unlock(now)
	if o.hold == nil {
		return nil, a, again, o.err
	}
	if lv, err = w.begin(o); lv == nil { // Redis has a hold that nobody gets
		now := ls.lock()
		ls.tryAnew(now, w)
		ls.unlock(now)
	}
	return lv, a, passing(err), err
}

// beginTry notes a call that asks without being in the queue, and what it asks for. It returns the
// client's hold of the lock, or nil.
func (ls *lockState) beginTry(w *waiter) *hold {
	now := ls.lock()
	defer ls.unlock(now)
	ls.newTry(now, w)
	return ls.hold
}

// newTry is the call's next hold. With ls.mu held.
func (ls *lockState) newTry(now time.Time, w *waiter) {
	w.own = w.newHold(w.kind.field(w.client, w.keys))
	ls.step(now, &room.Event{What: room.Trying, Field: w.own.attempts.Field})
}

// endTry ends what beginTry began. lv: the level that the call has got.
func (ls *lockState) endTry(w *waiter, lv *holder.Level) {
	now := ls.lock()
	defer ls.unlock(now)
	ls.step(now, &room.Event{What: room.Tried, Field: w.own.attempts.Field})
	if lv == nil || holdOfLevel(lv) != w.own {
		ls.client.abandon(w.own)
	}
}

// tryAnew is for several servers, of which some may have taken what others refused, and for a
// semaphore or a read-write lock: an attempt without an answer may have any slot, or be one of
// those that read. That is released, and the next attempt has another field: a late copy of the
// release must not meet it, and a late copy of the attempt must not take a second slot for the same
// hold (P43). An import names the slot, and is repeated with its field. With ls.mu held.
func (ls *lockState) tryAnew(now time.Time, w *waiter) {
	if w.request.imports == nil && w.asksAnew() && w.own.attempts.Uncertain() {
		ls.client.releaser.Release(&w.own.attempts)
		ls.step(now, &room.Event{What: room.Tried, Field: w.own.attempts.Field})
		ls.newTry(now, w)
	}
}

// verdict says what an attempt of a call has come to that asks without being in the queue. The
// outcome has the hold where the command has taken the lock, an error where no answer counts, and
// neither where Redis has refused. a is the answer of a command that is over, and nil of one that
// is not waited for any longer. again: another attempt may take the lock. sent: when the attempt
// was. joins: the call waits in the queue next. With ls.mu held.
func (ls *lockState) verdict(now time.Time, w *waiter, f *command.Command, sent time.Time, joins bool) (o outcome, a *scripts.Answer, again bool) {
	client := ls.client
	if f.Done() {
		client.note(w.keys, f)
		a, o.err = &f.Answer, f.Err
	} else if client.commands.TakeBack(f); isClosed(client.closed) {
		o.err = ErrClosed
	} else {
		o.err = command.ErrSilence
	}
	switch {
	case o.err != nil:
		again = passing(o.err)
	case a.Held && late(f.SentAt, w.lease, now):
		o.err, again = room.ErrLate, true
	case a.Held:
		o = w.own.takenBy(f)
		if w.request.imports != nil {
			o.slot = w.request.imports.slot
		}
		return o, a, false
	}
	// Where the wait ends a moment after the attempt was sent, it was no silence that has kept the
	// call from the lock.
	says := o.err == nil || again && (o.err != command.ErrSilence || 2*now.Sub(sent) > now.Sub(w.began))
	ls.freed = false
	ls.step(now, &room.Event{What: room.Asked, Field: w.own.attempts.Field, Answer: a, Err: o.err, At: sent, Got: joins && says})
	again = again || ls.freed
	ls.tryAnew(now, w)
	return o, a, again
}
