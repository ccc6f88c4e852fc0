package engine

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// lately is the locks that a client has released last, as far as there is room. Nobody else can
// tell whether the hold by which a server without the latest data has one of them is over: others
// would wait for its lease. The client's mu guards it.
type lately struct {
	locks [latelySets][latelyWays]latelyReleased // by the lock's hash slot
	next  int                                    // which one of a full set makes room
}

// A latelyReleased is a lock that was released; the zero value is none.
type latelyReleased struct {
	keys  *scripts.Keys
	asked moment // when the client first asked for the lock since; 0: not yet
}

const (
	latelySets = 256
	latelyWays = 4
)

// note puts the lock among them.
func (l *lately) note(keys *scripts.Keys) {
	set := &l.locks[keys.Slot%latelySets]
	for i, have := range set {
		if have.keys == nil || have.keys.Lock == keys.Lock {
			set[i] = latelyReleased{keys: keys}
			return
		}
	}
	l.next++
	set[l.next%latelyWays] = latelyReleased{keys: keys}
}

// ask returns the locks that are to be asked for, and forgets those that were asked for long enough
// ago.
func (l *lately) ask() (all []*scripts.Keys) {
	for i := range l.locks {
		for j := range l.locks[i] {
			one := &l.locks[i][j]
			switch {
			case one.keys == nil:
				continue
			case one.asked == 0:
				one.asked = momentOf(time.Now())
			case one.asked.age() > askedFor:
				*one = latelyReleased{}
				continue
			}
			all = append(all, one.keys)
		}
	}
	return all
}

// askAgainAfter is how long after the first sign of another server the client asks for the second
// time: until then a connection may have led to the one before, and a release on it been lost.
const askAgainAfter = 2 * time.Second

// askedFor is how long after the first question a sign of another server makes the client ask for a
// lock again: the server that has answered may be replaced in its turn, by one that knows less.
const askedFor = 10 * time.Second

// noteServer looks at what came of a command. Where that, or a new connection, may be of another
// server than the one before, the client asks for the locks that it has released lately.
func (c *Client) noteServer(err error) {
	if c.dials.Moved(&c.movesSeen) || err != nil && scripts.Stale(err) {
		go c.serverChanged()
	}
}

// serverChanged asks for the locks that the client has released lately, and somewhat later again,
// also for those that it has released since. Further signs until then have no question of their
// own. The releaser repeats a question until it is answered.
func (c *Client) serverChanged() {
	if !c.asksAgain.CompareAndSwap(false, true) {
		return
	}
	c.askLately()
	time.AfterFunc(askAgainAfter, func() {
		c.asksAgain.Store(false)
		c.askLately()
	})
}

// askLately asks for each of these locks whether the server has it by a hold of this client's that
// is over. The question is the release of a hold that never was.
func (c *Client) askLately() {
	c.mu.Lock()
	var all []*scripts.Keys
	if c.lately != nil {
		all = c.lately.ask()
	}
	if len(all) == 0 {
		c.lately = nil
	}
	c.mu.Unlock()
	for _, keys := range all {
		c.releaser.Ask(keys, c.newField(), c.set.Lease)
	}
}

// A moment is a time in nanoseconds since epoch, which takes less memory than a time.Time; 0 for
// none.
type moment int64

// epoch is what moments are counted from.
var epoch = time.Now()

func momentOf(t time.Time) moment { return moment(t.Sub(epoch)) }

// age is how long ago the moment was.
func (m moment) age() time.Duration { return time.Since(epoch) - time.Duration(m) }
