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
	trace  *trace // of what it may take; nil if it takes nothing
	alone  bool
	shared bool // several wait for it

	done   chan struct{} // gives a value when it is over; closed instead for a shared one
	over   atomic.Bool   // and what follows is known
	sent   watchdog.Instant
	answer scripts.Answer
	err    error
}

// errNotSent tells that a call was taken back before it left.
var errNotSent = errors.New("no connection to Redis was free in time")

func (c *Client) newCall(op scripts.Op, t *trace) *call {
	k, _ := c.calls.Get().(*call)
	if k == nil {
		k = &call{done: make(chan struct{}, 1)}
	}
	k.Op, k.trace = op, t
	return k
}

// newSharedCall returns a call that several wait for.
func newSharedCall(op scripts.Op, t *trace) *call {
	return &call{Op: op, trace: t, shared: true, done: make(chan struct{})}
}

// reuse gives back a call whose end was received. One that was abandoned is left to the garbage collector: it may still
// be answered.
func (c *Client) reuse(k *call) {
	if !k.shared {
		*k = call{done: k.done}
		c.calls.Put(k)
	}
}

func (k *call) end() {
	k.over.Store(true)
	if k.shared {
		close(k.done)
	} else {
		k.done <- struct{}{}
	}
}

// send sends the call together with others that are sent at this time.
func (c *Client) send(k *call) {
	if k.trace != nil {
		k.trace.sent()
	}
	c.scripts.Send(&k.Op, k)
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
		k.Answered(c.scripts.Do(ctx, k.Op))
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
	if k.alone || !c.scripts.Withdraw(&k.Op) {
		return
	}
	k.err = errNotSent
	if k.trace != nil {
		k.trace.unsent()
	}
	k.end()
}

// within waits until the call is over; false when it is not in time, or before end is closed.
func (c *Client) within(k *call, d time.Duration, end <-chan struct{}) bool {
	t := c.startTimer(d)
	defer c.stopTimer(t)
	select {
	case <-k.done:
		return true
	case <-end:
	case <-t.C:
	}
	return false
}

// do sends an op that may be repeated: once in company, and where that brings no answer as insist does. It takes no
// longer than bound, and ends with ctx.
func (c *Client) do(ctx context.Context, bound, each time.Duration, op scripts.Op) (answer scripts.Answer, doubt bool, err error) {
	began := time.Now()
	k := c.newCall(op, nil)
	c.send(k)
	received := c.within(k, each, ctx.Done())
	if !received {
		c.withdraw(k)
	}
	switch {
	case !k.over.Load():
		doubt, err = true, context.DeadlineExceeded
	case k.err != nil && (scripts.Passing(k.err) || k.err == errNotSent):
		doubt, err = scripts.Unanswered(k.err) && k.err != errNotSent, k.err
	default:
		answer, err = k.answer, k.err
		if received {
			c.reuse(k)
		}
		return answer, false, err
	}
	rest, cancel := context.WithTimeout(ctx, bound-time.Since(began))
	defer cancel()
	if !sleep(rest, firstBackoff) {
		return answer, doubt, err
	}
	answer, again, err := insist(rest, each, func(ctx context.Context) (scripts.Answer, error) { return c.scripts.Do(ctx, op) })
	return answer, doubt || again, err
}
