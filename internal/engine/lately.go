package engine

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// lately is the locks that a client has released last, as far as there is room. Nobody else can tell whether the hold by which a server
// without the latest data has one of them is over: others would wait for its lease. The client's mu guards it.
type lately struct {
	locks [latelySets][latelyWays]*scripts.Keys // by the lock's hash slot
	next  int                                   // which one of a full set makes room
}

const (
	latelySets = 256
	latelyWays = 4
)

// note puts the lock among them.
func (l *lately) note(keys *scripts.Keys) {
	set := &l.locks[keys.Slot%latelySets]
	for i, have := range set {
		if have == nil || have.Lock == keys.Lock {
			set[i] = keys
			return
		}
	}
	l.next++
	set[l.next%latelyWays] = keys
}

// askAgainAfter is how long after the first sign of another server the client asks for the second time: until then a connection may have
// led to the one before, and a release on it been lost.
const askAgainAfter = 2 * time.Second

// noteServer looks at what came of a command. Where that, or a new connection, may be of another server than the one before, the client asks
// for the locks that it has released lately.
func (c *Client) noteServer(err error) {
	if c.dials.moved(&c.movesSeen) || err != nil && scripts.Stale(err) {
		go c.serverChanged()
	}
}

// serverChanged asks for the locks that the client has released lately, and somewhat later for those that it has released since. The releaser
// repeats a question until it is answered.
func (c *Client) serverChanged() {
	c.askLately()
	if c.asksAgain.CompareAndSwap(false, true) {
		time.AfterFunc(askAgainAfter, func() {
			c.asksAgain.Store(false)
			c.askLately()
		})
	}
}

// askLately asks for each of these locks whether the server has it by a hold of this client's that is over. The question is the release of
// a hold that never was.
func (c *Client) askLately() {
	c.mu.Lock()
	l := c.lately
	c.lately = nil
	c.mu.Unlock()
	if l == nil {
		return
	}
	for _, set := range l.locks {
		for _, keys := range set {
			if keys != nil {
				c.releaser.add(&release{releaser: c.releaser, asks: true, attempts: &attempts{keys: keys, field: c.newField(), lease: c.set.Lease, taken: true}})
			}
		}
	}
}
