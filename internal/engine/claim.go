package engine

import (
	"errors"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A claim is the hold that a client is to get, and how it asks for that. The attempts of the hold are those of the claim.
type claim struct {
	hold    *hold // nil for none
	options LockOptions
	lease   time.Duration
	ends    uint32 // lockState.ends, when the last attempt was sent
	ticket  string // with which the last attempt was in the line; "" for none
}

// An outcome is what a waiter waits for: a claim by which Redis has given it the lock, or an error.
type outcome struct {
	hold       *hold // of the claim; nil for none
	sentAt     watchdog.Instant
	token      int64
	handedOver bool // by another hold of this client
	slot       int  // of a permit
	err        error
}

// taken is the outcome of a command that has taken the lock for the claim.
func (c *claim) taken(by *command.Command) outcome {
	return outcome{hold: c.hold, sentAt: by.SentAt, token: by.Answer.Token, slot: by.Answer.Slot}
}

// newClaim is a claim of what the call asks for.
func (w *waiter) newClaim() claim {
	h := &hold{lock: w.Lock, lockState: w.lockState, of: w.lockState, stable: w.options.Stable}
	h.Lease.Owner = h
	h.attempts.Init(w.keys, w.kind.field(w.client, w.keys), w.lease)
	return claim{hold: h, options: w.options, lease: w.lease}
}

// fits tells whether the claim is what the waiter asks for.
func (c *claim) fits(w *waiter) bool {
	return c.hold != nil && w != nil && c.lease == w.lease && c.options == w.options && c.hold.lock.kind == w.kind
}

// errLate is an answer that came when the lease it tells of could no longer be trusted.
var errLate = errors.New("no answer from Redis before the lease was over")

// late tells whether an answer to an attempt that was sent at this time comes when the lease can no longer be trusted.
func (c *claim) late(sent watchdog.Instant) bool {
	return time.Until(watchdog.DeadlineOf(sent, c.lease).Time()) <= 0
}

// claimAnew is for several servers, of which some may have taken what others refused, and for a semaphore or a read-write lock: an attempt without an answer may
// have any slot, or be one of those that read. That is released, and the next attempt has another field: a late copy of the release must not meet it, and a late
// copy of the attempt must not take a second slot for the same hold (P43). The ticket stays that of the last attempt. With ls.mu held.
func (ls *lockState) claimAnew(c *claim, w *waiter) {
	if w.asksAnew() && c.hold.attempts.Uncertain() {
		ls.client.releaser.Release(&c.hold.attempts)
		ticket := c.ticket
		*c = w.newClaim()
		c.ticket = ticket
	}
}

// abandon leaves a hold that nobody gets to the releaser, where its attempts may have taken the lock.
func (c *Client) abandon(h *hold) {
	if h.attempts.GiveUp() {
		c.releaser.Abandon(&h.attempts)
	}
}

// verdict says what an attempt or a handoff has come to, for the calls in the queue and for those that ask without being there. The outcome has the claim's hold
// where the command has taken the lock, an error where no answer counts, and neither where Redis has refused. a is the answer of a command that is over, until
// that is recycled, and nil of one that is not waited for any longer. again: another attempt may take the lock, as the error passes, or as the hold that has it is
// over, and is released. With ls.mu held.
func (ls *lockState) verdict(w *waiter, c *claim, f *command.Command) (o outcome, a *scripts.Answer, again bool) {
	client := ls.client
	if f.Done() {
		a, o.err = &f.Answer, f.Err
		client.heard(client.slotOf(w.keys), f.SentAt.Time(), o.err)
		if a.Outside {
			client.lineRefused(w.keys, a.Renamed)
		}
		if o.err == nil && !a.Held {
			client.distance.Measured(f.SentAt.Age())
		}
	} else if client.commands.TakeBack(f); isClosed(client.closed) {
		o.err = ErrClosed
	} else {
		o.err = command.ErrSilence
	}
	switch {
	case o.err != nil:
		again = passing(o.err)
	case !a.Held:
		again = ls.releaseIfOver(c, a.Own)
	case c.late(f.SentAt):
		o.err, again = errLate, true
	default:
		return c.taken(f), a, false
	}
	ls.claimAnew(c, w)
	return o, a, again
}

// attempt is one acquire for the claim, to be sent next. Operations are large values. Those that this function, and inTurn, keep on the
// stack are gone before the command is sent, so that the stack of a caller that waits stays at 4 KiB.
//
//go:noinline
func (w *waiter) attempt(c *claim, waits command.Notifier) *command.Command {
	op := scripts.Acquire(w.keys, c.options.Fenced, c.hold.attempts.Field, c.lease)
	w.attemptCount++
	return w.client.commands.New(c.options.counted(op), &c.hold.attempts, waits)
}

//go:noinline
func inTurn(f *command.Command, t scripts.Turn) { f.Op = f.Op.InTurn(t) }

// send sends an attempt. Where an earlier one may have taken the lock it is a repeat, and goes by itself.
func (c *claim) send(f *command.Command) {
	if sender := &c.hold.lockState.client.commands; c.hold.attempts.Uncertain() {
		sender.SendAlone(f)
	} else {
		sender.Send(f)
	}
}
