package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// An outcome is what a waiter waits for: a hold by which Redis has given it the lock, or an error.
type outcome struct {
	hold       *hold // nil for none
	sentAt     watchdog.Instant
	token      int64
	handedOver bool // by another hold of this client
	slot       int  // of a permit
	err        error
}

// takenBy is the outcome of a command that has taken the lock.
func (h *hold) takenBy(f *command.Command) outcome {
	token := f.Answer.Token
	if s := h.series; s != nil {
		s.takenAt = f.SentAt
		token = s.reserve(&f.Answer, s.tokens)
	}
	return outcome{hold: h, sentAt: f.SentAt, token: token, slot: f.Answer.Slot}
}

// newHold is the hold that attempts with this field are for, of what the call asks for.
func (w *waiter) newHold(field string) *hold {
	var h *hold
	if w.client.set.LocalHandoffs > 0 && !w.kind.shared() { // the possession outlives the hold, and is not to keep its contexts
		h = &hold{possession: &possession{series: new(series)}}
	} else {
		both := new(struct {
			hold
			own possession
		})
		h, both.possession = &both.hold, &both.own
	}
	h.init(w)
	h.attempts.Init(w.keys, field, w.lease)
	return h
}

// init makes a hold one of what the call asks for.
func (h *hold) init(w *waiter) {
	h.lock, h.lockState, h.of, h.stable = w.Lock, w.lockState, w.lockState, w.options.Stable
	h.Lease.Owner = h
}

// attempt is one acquire for the hold, to be sent next. Operations are large values. Those that
// this function, pass, counts and inTurn keep on the stack are gone before the command is sent, so
// that the stack of a caller that waits stays at 4 KiB.
//
//go:noinline
func (w *waiter) attempt(h *hold, waits command.Notifier) *command.Command {
	w.attemptCount++
	if w.request.imports != nil {
		return w.importing(h, waits)
	}
	f := w.client.commands.New(scripts.Acquire(w.keys, w.options.Fenced, h.attempts.Field, w.lease), &h.attempts, waits)
	w.counts(h, f)
	return f
}

// importing is one that takes over an exported hold.
//
//go:noinline
func (w *waiter) importing(h *hold, waits command.Notifier) *command.Command {
	from := w.request.imports
	sharded, _ := w.client.bus.Known()
	f := w.client.commands.New(scripts.Import(from.keys, w.options.Fenced, h.attempts.Field, w.lease, from.field, sharded), &h.attempts, waits)
	w.counts(h, f)
	return f
}

// pass is one by which the hold with this field passes the lock on.
//
//go:noinline
func (w *waiter) pass(h *hold, waits command.Notifier, from string) *command.Command {
	f := w.client.commands.New(scripts.Transfer(w.keys, w.options.Fenced, h.attempts.Field, w.lease, from), &h.attempts, waits)
	w.counts(h, f)
	return f
}

// counts has the attempt take tokens as the lock does, also for those who wait with the call: it
// has waited itself, or another one is behind it. All attempts of a hold ask for as many tokens, as
// Redis says the last one to each (P9).
func (w *waiter) counts(h *hold, f *command.Command) {
	n := 1
	if s := h.series; s != nil {
		if s.tokens == 0 {
			s.tokens = w.reserves(w.inQueue && (w.contended || w.next != nil))
		}
		n = s.tokens
	}
	if w.options.Floor || n > 1 {
		w.count(f, n)
	}
}

//go:noinline
func (l *Lock) count(f *command.Command, tokens int) { f.Op = l.counted(f.Op, tokens) }

//go:noinline
func inTurn(f *command.Command, t *scripts.Turn) { f.Op = f.Op.InTurn(*t) }

//go:noinline
func within(f *command.Command, d time.Duration) { f.Op = f.Op.Within(d) }

// send sends an attempt. Where an earlier one may have taken the lock it is a repeat, and goes by
// itself.
func (h *hold) send(f *command.Command) {
	if sender := &h.lockState.client.commands; h.attempts.Uncertain() {
		sender.SendAlone(f)
	} else {
		sender.Send(f)
	}
}

// note notes what the answer to an attempt tells beside who has the lock.
func (c *Client) note(keys *scripts.Keys, f *command.Command) {
	a, err := &f.Answer, f.Err
	if err != command.ErrNotSent { // which says nothing of Redis
		c.heard(c.slotOf(keys), f.SentAt.Time(), err)
	}
	if a.Outside != 0 {
		c.lineRefused(keys, a.Outside)
	}
	if err == nil && !a.Held {
		c.distance.Measured(f.SentAt.Age())
	}
	if a.Own != "" && !c.owns(a.Own) {
		a.Own = ""
	}
}

// late tells whether an answer to an attempt that was sent at this time comes when the lease can no
// longer be trusted.
func late(sent watchdog.Instant, lease time.Duration, now time.Time) bool {
	return !now.Before(watchdog.DeadlineOf(sent, lease).Time())
}

// abandon leaves a hold that nobody gets to the releaser, where its attempts may have taken the
// lock.
func (c *Client) abandon(h *hold) {
	if h.attempts.GiveUp() {
		c.releaser.Abandon(&h.attempts)
	}
}
