package engine

import (
	"context"
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A Held is a level of a hold in the hand of its user. rlock.Hold and fenced.Hold are the two forms
// that users have, and say what the methods do. A nil one, and a zero value, hold nothing
// (unmade.go).
type Held struct {
	lock  *Lock
	level *holder.Level
	// of the level; it does not end with the context of the call that took the lock
	ctx context.Context
}

// Hold takes the lock for a new holder or, with r.Reenter, for that of ctx. ctx bounds the wait
// alone.
func (l *Lock) Hold(ctx context.Context, r Request) (Held, error) {
	if ctx == nil {
		return Held{}, errNoContext
	}
	under := context.WithoutCancel(ctx)
	if who := holder.Of(ctx); who == nil || !r.Reenter {
		if err := l.waitsForItself(ctx, who); err != nil {
			return Held{}, err
		}
		under = holder.NewHolder(under)
	}
	return l.hold(ctx, under, r)
}

// HoldWithin takes the lock for the holder of ctx, which bounds the hold too.
func (l *Lock) HoldWithin(ctx context.Context, r Request) (Held, error) { return l.hold(ctx, ctx, r) }

// hold is acquire, for a hold in the hand of its user.
func (l *Lock) hold(ctx, under context.Context, r Request) (Held, error) {
	held, lv, err := l.acquire(ctx, under, r)
	if err != nil {
		return Held{}, err
	}
	if l.kind.shared() {
		l = holdOfLevel(lv).lock
	}
	return Held{l, lv, held}, nil
}

// waitsForItself is why a call for a new holder, with the context of this one, would wait for a
// hold of its own; nil if it would not.
func (l *Lock) waitsForItself(ctx context.Context, who *holder.Holder) error {
	if who == nil || l.checkMade() != nil || ctx.Err() != nil {
		return nil // the acquire sees to these
	}
	own := l.ownHold(who)
	if own == nil {
		return l.kind.mayEnter(l, who)
	}
	if err := own.Err(); err != nil {
		return err
	}
	return ErrOwnHold
}

// ErrOwnHold is the error of a call that would wait for the hold whose context it was given.
var ErrOwnHold = errors.New("ctx is that of a hold of this lock: Acquire takes the lock for a new holder, and would wait for that hold without end; pass rlock.Reenter() to re-enter it, or rlock.NewHolder(ctx) to wait until it is unlocked")

// Lock returns the lock.
func (h *Held) Lock() *Lock {
	if !h.isMade() {
		return nil
	}
	return h.lock
}

// Context returns the context of the hold.
func (h *Held) Context() context.Context {
	if !h.isMade() {
		return unmadeContext{}
	}
	return h.ctx
}

// Token returns the latest token of the hold.
func (h *Held) Token() int64 {
	if !h.isMade() {
		return 0
	}
	return h.level.Hold.Token()
}

// Remaining returns for how long the lease can be trusted; 0 once the hold is over.
func (h *Held) Remaining() time.Duration {
	if !h.isMade() || h.level.Err() != nil {
		return 0
	}
	return holdOfLevel(h.level).left(time.Now())
}

// Unlock closes the level, and releases the lock with the last one.
func (h *Held) Unlock(ctx context.Context) error {
	if !h.isMade() {
		return errUnmade
	}
	if ctx == nil {
		return errNoContext
	}
	return unlock(ctx, h.level)
}

// Extend makes the lease last this long from now, if it would end before that.
func (h *Held) Extend(ctx context.Context, lease time.Duration) error {
	if !h.isMade() {
		return errUnmade
	}
	l := h.lock
	if err := l.checkLease(lease); err != nil {
		return err
	}
	if err := h.level.Err(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	lease = lease.Truncate(time.Millisecond)
	in := holdOfLevel(h.level)
	patience := max(min(l.client.set.Patience, h.Remaining()), time.Millisecond)
	return in.extend(ctx, h.ctx, h.level, lease, patience)
}

// extend makes the lease of the hold last this long from now, if it would end before that. held is
// the context of this level.
func (h *hold) extend(ctx, held context.Context, lv *holder.Level, lease, patience time.Duration) error {
	c, began := h.lockState.client, time.Now()
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(held, cancel)() // with Unlock, Close, and the loss of the lock
	h.attempts.Extend(lease)                // whether an answer comes or not
	type extended struct {
		sent watchdog.Instant
		gone error // what Redis said of a hold that it has not got
	}
	answer, _, err := command.Repeat(bound, patience/3, func(ctx context.Context) (extended, error) {
		sent, renewal := watchdog.Now(), []scripts.Renewal{{Keys: h.lock.keys, Field: h.attempts.Field, Lease: lease}}
		if c.store.Renew(ctx, renewal); errors.Is(renewal[0].Err, scripts.ErrGone) {
			return extended{gone: renewal[0].Err}, nil
		}
		return extended{sent: sent}, renewal[0].Err
	})
	switch {
	case err != nil:
	case answer.gone != nil:
		if answer.gone != scripts.ErrGone {
			h.renewalFailed(answer.gone)
		}
		h.lose(foundGone("an extension", nil), true)
	default:
		c.dog.Extend(&h.Lease, answer.sent, lease)
		c.presenter.takes(lease)
	}
	switch over := lv.Err(); {
	case over != nil:
		return over
	case err != nil && ctx.Err() != nil:
		return holder.ContextError(ctx)
	}
	return c.withDial(err, began)
}
