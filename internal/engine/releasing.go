package engine

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/scripts"
)

// A releasing is a Client as its releases.Releaser uses it.
type releasing struct{ *Client }

func (c releasing) Send(op *scripts.Op, caller scripts.Caller) { c.store.Send(op, caller) }

func (c releasing) TakeBack(op *scripts.Op) bool { return c.store.TakeBack(op) }

func (c releasing) Sharded() bool {
	ctx, cancel := context.WithTimeout(context.Background(), c.set.UnlockTimeout)
	defer cancel()
	return c.bus.Sharded(ctx)
}

func (c releasing) Unlock(keys *scripts.Keys, field string, sharded bool) scripts.Op {
	return c.callingFirst(scripts.Unlock(keys, field, sharded), "", 0)
}

func (c releasing) Answered(keys *scripts.Keys, a scripts.Answer, err error) {
	c.releaseAnswered(a, keys)
	c.heard(c.slotOf(keys), time.Now(), err)
}

func (c releasing) Owes(field string) (owed, awaited bool) {
	if c.limits.Owes == nil {
		return true, true
	}
	return c.limits.Owes(field)
}

func (c releasing) Delayed(a *releases.Attempts) {
	if t := c.set.Trace; t != nil && t.ReleaseDelayed != nil {
		e := locktrace.ReleaseDelayed{Client: c.id, Lock: a.Keys.Lock, Field: a.Field}
		c.tell(func() { t.ReleaseDelayed(e) })
	}
}

func (c releasing) Ended(a *releases.Attempts, took time.Duration, confirmed bool) {
	if t := c.set.Trace; t != nil && t.ReleaseEnded != nil {
		e := locktrace.ReleaseEnded{Client: c.id, Lock: a.Keys.Lock, Field: a.Field, Took: took, Confirmed: confirmed}
		c.tell(func() { t.ReleaseEnded(e) })
	}
}
