package rlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A call is one op under way, for somebody who may stop waiting for it.
type call struct {
	scripts.Op
	trace *trace // of what it may take; nil if it takes nothing
	alone bool
	bell  *bell // of who sent it: rung when it is over
	heir  *bell // of who else waits for it, or nil

	over   atomic.Bool // and what follows is known
	sent   watchdog.Instant
	answer scripts.Answer
	err    error
}

// errNotSent tells that a call was taken back before it left.
var errNotSent = errors.New("no connection to Redis was free in time")

func (c *Client) newCall(op scripts.Op, t *trace, b *bell) *call {
	k, _ := c.spareCalls.Get().(*call)
	if k == nil {
		k = new(call)
	}
	k.Op, k.trace, k.bell = op, t, b
	return k
}

// reuse gives back a call that is over. One that was abandoned is left to the garbage collector: it may still be
// answered; so is one that somebody else waits for.
func (c *Client) reuse(k *call) {
	if k.heir == nil {
		*k = call{}
		c.spareCalls.Put(k)
	}
}

func (k *call) end() {
	b, heir := k.bell, k.heir
	k.over.Store(true) // the last thing that is done to it: it may be used again from now on
	b.ring()
	if heir != nil {
		heir.ring()
	}
}

// send sends the call together with others that are sent at this time.
func (c *Client) send(k *call) {
	if k.trace != nil {
		k.trace.sent()
	}
	c.store.Send(&k.Op, k)
}

// sendAlone sends the call by itself. A repeat of one that got no answer goes so: if it is what keeps Redis from
// answering, it is not to keep its neighbours from their answers too.
func (c *Client) sendAlone(ctx context.Context, k *call) {
	if k.trace != nil {
		k.trace.sent()
	}
	k.alone = true
	go func() {
		k.Sending(nil)
		k.Answered(c.store.Do(ctx, k.Op))
	}()
}

// Sending implements scripts.Caller.
func (k *call) Sending(with scripts.Caller) {
	if with, together := with.(*call); together {
		k.sent = with.sent
		return
	}
	k.sent = watchdog.Now()
}

// Answered implements scripts.Caller.
func (k *call) Answered(a scripts.Answer, err error) {
	k.answer, k.err = a, err
	if k.trace != nil {
		k.trace.came(a, err)
	}
	k.end()
}

// withdraw takes the call back if it has not left yet; it is over then.
func (c *Client) withdraw(k *call) {
	if k.alone || !c.store.Withdraw(&k.Op) {
		return
	}
	k.err = errNotSent
	if k.trace != nil {
		k.trace.unsent()
	}
	k.end()
}

// within waits for its bell until the call is over; false when it is not so soon after began, or before end is closed.
func (k *call) within(b *bell, began time.Time, d time.Duration, end <-chan struct{}) bool {
	for !k.over.Load() {
		b.ringAt(began.Add(d))
		if !b.wait(end) || !k.over.Load() && time.Since(began) >= d {
			return k.over.Load()
		}
	}
	return true
}

// do sends an op that may be repeated: once in company, and where that brings no answer as insist does. It takes no
// longer than bound from when it began, and ends with ctx.
func (c *Client) do(ctx context.Context, began time.Time, bound, each time.Duration, op scripts.Op) (answer scripts.Answer, doubt bool, err error) {
	b := c.bell()
	defer c.hang(b)
	k := c.newCall(op, nil, b)
	c.send(k)
	if !k.within(b, began, each, ctx.Done()) {
		c.withdraw(k)
	}
	switch {
	case !k.over.Load():
		doubt, err = true, context.DeadlineExceeded
	case k.err != nil && (scripts.Passing(k.err) || k.err == errNotSent):
		doubt, err = scripts.Unanswered(k.err) && k.err != errNotSent, k.err
	default:
		answer, err = k.answer, k.err
		c.reuse(k)
		return answer, false, err
	}
	rest, cancel := context.WithTimeout(ctx, bound-time.Since(began))
	defer cancel()
	if !sleep(rest, firstBackoff) {
		return answer, doubt, err
	}
	repeat := op // here, so that an op that is answered is not on the heap
	answer, again, last := insist(rest, each, func(ctx context.Context) (scripts.Answer, error) { return c.store.Do(ctx, repeat) })
	if last == context.DeadlineExceeded {
		last = err // which Redis may have said
	}
	return answer, doubt || again, last
}
