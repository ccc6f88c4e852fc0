package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// waits tells whether the call waits for others.
func (r Request) waits() bool { return r.Forever || r.Wait > 0 }

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
	if isClosed(l.client.draining) && (isClosed(l.client.closed) || !who.HoldsAny(l.client)) {
		return nil, nil, ErrClosed
	}
	w, _ := l.client.spareWaiters.Get().(*waiter)
	if w == nil {
		w = new(waiter)
	}
	w.Lock, w.request, w.ctx, w.holder, w.waitCtx, w.began = l, r, ctx, who, ctx, time.Now()
	w.lease = r.Lease.Truncate(time.Millisecond)
	if w.renewable = r.Lease == 0; w.renewable {
		w.lease = l.client.set.Lease
	}
	if r.Wait > 0 {
		var cancel context.CancelFunc
		w.waitCtx, cancel = context.WithTimeout(ctx, r.Wait)
		defer cancel()
	}
	w.waitEnd = w.waitCtx.Done()
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
	if l.tokens.Expiry != 0 && l.tokens.Expiry < minExpiry {
		return fmt.Errorf("the counter's expiry %v is shorter than %v: take one that no clock will be set back by, such as 24 h", l.tokens.Expiry, minExpiry)
	}
	if ctx.Err() != nil {
		return holder.ContextError(ctx)
	}
	return nil
}

// A waiter is one acquiring call under way. A call with wait 0 is one too: it waits for nothing but the answer of Redis.
type waiter struct {
	*Lock
	request   Request
	lease     time.Duration   // in whole milliseconds
	renewable bool            // by the watchdog: the call asked for no lease of its own
	ctx       context.Context // the caller's
	waitCtx   context.Context // the caller's, and the end of the wait
	waitEnd   <-chan struct{} // closed when waitCtx ends
	holder    *holder.Holder

	began         time.Time
	lockState     *lockState
	newHold       *hold              // the hold that the call is to get; nil while the call waits for others, see shrink
	attempts      *releases.Attempts // to take the lock for it
	field         string             // of these attempts, as long as they are the waiter's own
	endsSeen      uint32             // lockState.ends, when the last attempt was sent
	refusedByOver bool               // the last attempt was refused by a hold of this client that is over, and is released now
	attemptCount  int                // so many attempts, so far
	ticket        string             // with which the last attempt was in the line; "" for none
	contended     bool               // the call has waited for other holders
	told          *toldOfWait        // by which the trace is told of that; nil for none
	way           locktrace.Way
	holdNumber    uint64          // for the trace; 0 without one
	refusal       error           // why the last attempt was in vain; nil: another holder has the lock
	wakeup        *command.Wakeup // notified when a command is over, a field below or lockState.mayBeFree has changed, or the waiter is to look

	queueWait // zero until the waiter is in the queue

	// Guarded by lockState.mu.
	prev, next       *waiter // in the queue of this client's waiters, or in lockState.trying
	isLeader         bool
	busy             bool             // the waiter asks Redis, or has been given the lock: no hold that ends hands the lock to it
	handoff          *command.Command // the command by which a hold of this client hands the lock to the waiter; nil for none
	handoffCancelled bool             // that handoff has no answer from Redis, and the waiter is to ask by itself
}

// run takes the lock, or re-enters it. What it has begun it ends also where a method of the user's context panics.
func (w *waiter) run() (lv *holder.Level, err error) {
	w.lockState = w.client.lockState(w.id.Name)
	defer w.lockState.removeUser()
	w.wakeup = w.client.commands.Wakeup()
	defer w.client.commands.PutWakeup(w.wakeup)
	defer func() {
		if w.attempts != nil && (lv == nil || holdOfLevel(lv).attempts != w.attempts) && w.attempts.GiveUp() {
			w.client.releaser.Abandon(w.attempts)
		}
	}()
	return w.reenterOrWait()
}

func (w *waiter) reenterOrWait() (*holder.Level, error) {
	own := w.holdOf(w.holder)
	if own != nil && own.ReentryCount(w.ctx) > 0 {
		if lv, err := w.reenter(own); err != errOvertaken {
			return lv, err
		}
	}
	w.newHold = new(hold)
	w.attempts = &w.newHold.ownAttempts
	w.field = w.client.newField()
	w.attempts.Init(w.keys, w.field, w.lease)
	if !w.request.waits() {
		return w.tryOnce(own)
	}
	return w.waitInQueue()
}

// shrink drops the new hold of a waiter that is to wait for others: until it has the lock only its attempts are needed, and waiters may be many.
func (w *waiter) shrink() {
	if w.newHold == nil || w.attempts != &w.newHold.ownAttempts || w.attempts.Uncertain() {
		return
	}
	w.newHold, w.attempts = nil, w.attempts.Clone()
}

// tryOnce asks once, for a call with wait 0.
func (w *waiter) tryOnce(own *hold) (*holder.Level, error) {
	if own != nil {
		if err := own.Err(); err != nil {
			return nil, err
		}
		return nil, errSameHolder
	}
	defer w.lockState.endTry(w)
	if h := w.lockState.beginTry(w); h != nil && h.Err() == nil && h.Lease.Deadline().Age() < time.Second {
		return nil, ErrNotAcquired // Redis could say nothing else
	}
	var said error
	var pauses command.Backoff
	for {
		lv, err := w.attempt()
		if err == command.ErrSilence && said != nil {
			err = said
		}
		said = err
		again := passing(err) && !errors.Is(err, ErrUnconfirmed) || err == nil && w.refusedByOver
		pause := pauses.Next(err, mostOnceMore)
		switch {
		case lv != nil:
			return lv, nil
		case w.ctx.Err() != nil:
			return nil, w.contextEnded()
		case !again || time.Since(w.began)+pause > min(onceMore, w.client.set.Patience):
			if err == nil {
				return nil, notAcquired(w.refusal)
			}
			return nil, w.client.withDial(err, w.began)
		case !command.Sleep(w.ctx, pause):
			return nil, with(holder.ContextError(w.ctx), err)
		}
	}
}

// attempt asks Redis once. It returns the level if that took the lock, and neither a level nor an error if the lock was refused.
func (w *waiter) attempt() (*holder.Level, error) {
	f := w.newAttempt()
	w.sendAttempt(f)
	rest := time.Until(w.began.Add(onceMore + w.client.set.confirmTimes()))
	for due := time.Now().Add(min(w.lease, rest)); !f.Done() && time.Now().Before(due); {
		w.wakeup.NotifyAt(due)
		select {
		case <-w.wakeup.C():
			continue
		case <-w.waitEnd:
		case <-w.client.closed:
		}
		break
	}
	return w.settle(f)
}

// sendAttemptInTurn sends one attempt that takes the lock only when no client in the line comes first.
func (w *waiter) sendAttemptInTurn() *command.Command {
	f := w.newAttempt()
	switch {
	case w.client.usesLine():
		turn := w.lockState.lineTurn()
		w.ticket = turn.Ticket
		inTurn(f, turn)
	case w.client.lineForbidden():
		w.ticket = ""
		w.lockState.doWithoutLine(w.keys)
	}
	w.sendAttempt(f)
	return f
}

// newAttempt is one acquire, to be sent by sendAttempt. Operations are large values. Those that this function, and inTurn, keep on the
// stack are gone before the command is sent, so that the stack of a caller that waits stays at 4 KiB.
//
//go:noinline
func (w *waiter) newAttempt() *command.Command {
	return w.client.commands.New(w.tokens.counted(scripts.Acquire(w.keys, w.tokens.Fenced, w.attempts.Field, w.lease)), w.attempts, w.wakeup)
}

//go:noinline
func inTurn(f *command.Command, t scripts.Turn) { f.Op = f.Op.InTurn(t) }

// sendAttempt sends one attempt.
func (w *waiter) sendAttempt(f *command.Command) {
	w.attemptCount++
	w.endsSeen = w.lockState.ends.Load()
	if w.attempts.Uncertain() {
		w.client.commands.SendAlone(f)
	} else {
		w.client.commands.Send(f)
	}
}

// settle returns what became of a command that is over, or that is not waited for any longer, as attempt does.
func (w *waiter) settle(f *command.Command) (*holder.Level, error) {
	lv, err := w.judge(f)
	if lv == nil && w.client.limits.Several && w.attempts.Uncertain() {
		// Some servers may have taken what others refused. That is released, and the next attempt has another field: a
		// late copy of the release must not meet it.
		old := w.attempts
		w.newHold, w.attempts = nil, releases.NewAttempts(w.keys, w.client.newField(), w.lease)
		w.client.releaser.Release(old)
	}
	return lv, err
}

func (w *waiter) judge(f *command.Command) (*holder.Level, error) {
	if !f.Done() {
		w.client.commands.TakeBack(f)
		switch {
		case isClosed(w.client.closed):
			return nil, ErrClosed
		case w.waitCtx.Err() != nil:
			return nil, w.waitCtx.Err()
		}
		return nil, command.ErrSilence
	}
	w.client.heard(w.client.slotOf(w.keys), f.SentAt.Time(), f.Err)
	if f.Answer.Outside {
		w.client.lineRefused(w.keys)
	}
	if (f.Answer.Held || f.Answer.Outside) && !f.Shared() {
		w.lockState.leftLine(w.ticket)
	}
	switch {
	case f.Err != nil:
		return nil, f.Err
	case !f.Answer.Held:
		w.refusal = f.Answer.Why
		w.client.distance.Measured(f.SentAt.Age())
		w.refusedByOver = w.releaseOver(f.Answer.Own)
		return nil, nil
	case time.Until(watchdog.DeadlineOf(f.SentAt, w.lease).Time()) <= 0:
		return nil, errLate
	}
	w.way = locktrace.FromRedis
	if f.Shared() {
		w.way = locktrace.FromHandoff
	}
	return w.begin(f.SentAt, w.lease, f.Answer.Token, !f.Shared())
}

// begin makes a hold of a waiter that has got the lock: by a command that was sent at this time, for this lease, with this token.
// begins: the lock came from another client, so that a run of handoffs begins.
func (w *waiter) begin(sent watchdog.Instant, lease time.Duration, token int64, begins bool) (*holder.Level, error) {
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err()
	}
	if own := w.holdOf(w.holder); own != nil {
		// It was there when the call began to wait, and is gone from Redis without having been unlocked. A holder does
		// not get a new hold before it has learned of the loss.
		own.lose("the lock was free although it was held", true)
		return nil, ErrLost
	}
	if w.newHold == nil {
		w.newHold = new(hold)
	}
	h := w.newHold
	h.client, h.attempts, h.stable = w.client, w.attempts, w.tokens.Stable
	h.Lease.Owner = h
	h.uncontended = begins && !w.lockState.inPlace(func(p *line.Place, _ time.Time) bool { return p.Entered() })
	lv := h.Begin(w.ctx, w.holder, &w.id, w.renewable, token)
	if w.client.tellsOfHolds() {
		w.holdNumber = w.client.tracedHolds.begin(h)
	}
	if !w.client.registerHold(h, w.lockState) {
		w.client.tracedHolds.take(h)
		h.End(ErrClosed, "", nil)
		return nil, ErrClosed
	}
	over := w.lockState.registerHold(h, sent, begins)
	w.holder.Add(&h.Hold)
	w.client.dog.Add(&h.Lease, sent, lease)
	w.client.presenter.takes(lease)
	if over {
		h.lose(forcedOpenText, false) // a repeat of the attempt may have taken it anew: Unlock releases that
	}
	return lv, nil
}

// notAcquired is the error of a call that has not got the lock: why, or ErrNotAcquired where why is nil, as another holder has the lock.
func notAcquired(why error) error {
	if why != nil {
		return why
	}
	return ErrNotAcquired
}

// passing tells that an attempt is worth repeating.
func passing(err error) bool {
	return scripts.Passing(err) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrLost)
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
