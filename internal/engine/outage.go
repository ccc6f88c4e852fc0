package engine

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/tell"
	"github.com/fencelock/fencelock/scripts"
)

// An outage is a time in which Redis answers nothing, or only with errors that pass. The log says
// when it begins, that it goes on, and when it is over. In a cluster it is one of the node that has
// slot; other nodes may answer meanwhile.
type outage struct {
	on atomic.Bool
	// when the latest command was sent that was answered, since client.born; by it an error is
	// known to be a late one
	answered atomic.Int64

	mu     sync.Mutex
	slot   uint16
	since  time.Time // when the first command was sent that failed
	failed time.Time // when the latest one failed
	next   time.Time // when the log is to say again that it goes on
	pause  time.Duration
}

const (
	// shortOutage is how long an outage lasts before it is worth a line: a connection that broke is
	// none.
	shortOutage = time.Second
	// The first pause between two lines of an outage, which doubles, and the longest.
	firstOutagePause, lastOutagePause = tell.Every, 10 * time.Minute
	// forgetOutage is how long after its latest error an outage is over, whoever is answered:
	// nobody asks the node any more.
	forgetOutage = time.Minute
)

// heard notes what became of a command for this slot that was sent at this time.
func (c *Client) heard(slot uint16, sent time.Time, err error) {
	c.noteServer(err)
	if err == nil {
		c.answered(slot, sent)
		return
	}
	var reply redis.Error
	switch {
	case isClosed(c.closed):
	case errors.Is(err, scripts.ErrGone) || errors.Is(err, ErrUnconfirmed):
		c.answered(slot, sent)
	case scripts.Passing(err):
		c.unanswered(slot, sent, err)
	case errors.As(err, &reply):
		c.answered(slot, sent)
	}
}

func (c *Client) answered(slot uint16, sent time.Time) {
	o := &c.outage
	if at := int64(sent.Sub(c.born)); at > o.answered.Load() {
		o.answered.Store(at)
	}
	if !o.on.Load() {
		return
	}
	o.mu.Lock()
	now := time.Now()
	last := now
	if now.Sub(o.failed) >= forgetOutage {
		last = o.failed // Redis may have been back since then
	} else if c.cluster && slot != o.slot {
		o.mu.Unlock()
		return
	}
	told := o.on.Load() && !o.next.IsZero()
	away := last.Sub(o.since)
	o.on.Store(false)
	o.mu.Unlock()
	if told {
		c.set.Log.Info("rlock: Redis answers again", "away", away.Round(time.Millisecond))
	}
}

func (c *Client) unanswered(slot uint16, sent time.Time, err error) {
	o := &c.outage
	o.mu.Lock()
	now := time.Now()
	if !o.on.Load() {
		o.slot, o.since, o.next, o.pause = slot, sent, time.Time{}, firstOutagePause
		if heard := c.born.Add(time.Duration(o.answered.Load())); heard.After(sent) {
			o.since = heard
		}
		o.on.Store(true)
	}
	o.failed = now
	away := now.Sub(o.since)
	tell := away >= shortOutage && !now.Before(o.next)
	if tell {
		o.next = now.Add(o.pause)
		o.pause = min(2*o.pause, lastOutagePause)
	}
	o.mu.Unlock()
	if tell {
		c.set.Log.Warn("rlock: Redis does not answer: calls wait for it within their bounds", "away", away.Round(time.Millisecond), "error", err)
	}
}

// slotOf is the slot of the keys in a cluster; 0 elsewhere.
func (c *Client) slotOf(keys *scripts.Keys) uint16 {
	if c.cluster {
		return keys.Slot
	}
	return 0
}
