package line

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

const (
	// yieldTime is how long a client that was called leaves the lock to outsiders, which are in no
	// line: a JVM needs about a millisecond to wake up and ask.
	yieldTime = 5 * time.Millisecond
	// maxUnusedYields is how many times in a row a client yields for nothing: a JVM on a busy
	// machine misses some. After more of them the client does not yield for a while, up to
	// maxNoYield.
	maxUnusedYields = 3
	maxNoYield      = time.Second
)

// A yieldPolicy decides whether a client that was called leaves the lock for a moment to outsiders,
// which are in no line. With the zero value the client does. After several yields in a row that no
// outsider used the client does not yield for a while: a connection that listens on the lock's
// channel counts as an outsider, also if it does not want the lock.
type yieldPolicy struct {
	unused int       // so many times in a row the client has yielded, and no outsider has taken the lock
	after  time.Time // the client does not yield before this time
}

// allows tells whether the client may yield at this time.
func (y *yieldPolicy) allows(now time.Time) bool { return !now.Before(y.after) }

// ended notes whether an outsider has used a yield.
func (y *yieldPolicy) ended(now time.Time, used bool) {
	if used {
		y.unused = 0
		return
	}
	if y.unused++; y.unused > maxUnusedYields {
		y.after = now.Add(min(10*yieldTime<<min(y.unused-maxUnusedYields, 10), maxNoYield))
	}
}

// A lookPolicy is what decides when a client in the line looks at the lock by itself (P32).
type lookPolicy struct {
	poll      time.Duration // of WithPollInterval
	quiet     int           // so many looks in a row that nothing but the time asked for
	listens   bool          // on the lock's own channel
	firstFor  time.Duration // how long the client has been the first in the line,
	secondFor time.Duration // and how long the second
	lastStay  time.Duration // how long the client was in the line the last time
}

// next returns how long the client waits to be told something before it looks by itself. ttl is
// what is left of the lease, before how many clients are before this one in the line. The doubled
// poll below is poll, doubled with each quiet look, up to 10 polls.
//
//   - A lease without an expiry: one poll.
//   - The first client, which does not listen yet: until it has been the first for FirstListensAfter, when it begins to listen.
//   - The first client, which listens: until the lease ends, and no longer than the doubled poll.
//   - The second client, which does not listen yet: until CalledTimeout after the end of the lease, and no longer than until it has been
//     the second for secondListensAfter.
//   - The second client, which listens: until CalledTimeout after the end of the lease, and no longer than 10 polls.
//   - All other clients: twice their last stay in the line or the doubled poll, whichever is longer, up to 10 polls.
func (l lookPolicy) next(ttl time.Duration, before int) time.Duration {
	most := 10 * l.poll
	switch {
	case ttl == scripts.NoExpiry:
		return l.poll
	case before == 0 && !l.listens:
		return max(FirstListensAfter-l.firstFor, 0)
	case before == 0:
		return min(ttl+time.Millisecond, l.poll<<min(l.quiet, 4), most)
	case before == 1 && !l.listens:
		return min(ttl+CalledTimeout, max(secondListensAfter-l.secondFor, 0))
	case before == 1:
		return min(ttl+CalledTimeout, most)
	}
	return min(max(2*l.lastStay, l.poll<<min(l.quiet, 4)), most)
}
