package rlock

import "time"

// Turns are how clients that want the same lock take it one after the other, without a queue in Redis. A client that
// released it while others listened, as the count of receivers of its message tells, stands back until it has heard as
// many releases: then each of them has had its turn, a Redisson client too, which knows nothing of this and tries as soon
// as it hears a release. So a release is answered by one try, of the client that has waited longest, where otherwise all
// try and all but one in vain.
//
// A listener need not want the lock. Therefore nobody stands back for longer than a step for each turn that is still to
// come, from the last release on; and who then finds the lock free does not count on so many, for a while. A step is a bit
// more than this client's own series took, since others' take about as long: a try before one ends is in vain, and wakes
// everybody in it.
type turns struct {
	others    int           // that listened at this client's last release
	absent    int           // of these, the ones that did not use their turns
	counted   time.Time     // since when they are counted
	step      time.Duration // how long a turn is waited for
	lingering bool          // the queue is kept although nobody uses it: messages are counted
	until     time.Time     // and so long
	back      retainer
}

const (
	minStep   = 5 * time.Millisecond  // a JVM needs about one to wake up and ask
	maxBack   = 30 * time.Millisecond // of standing back; a series takes maxSeries, and what its last section does
	absentFor = time.Second           // and then they are expected again
	maxTurns  = 8                     // of others that are waited for: most listeners of a crowd only listen
)

// released notes that this client let others have the lock: so many were told of it, after this many messages had been
// heard, by a command that was begun at this time.
func (q *queue) released(told int, before int64, began time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if told > 0 && q.sub != nil && q.sub.Live() {
		told, before = told-1, before+1 // one of them is this client
	}
	if told == 0 {
		if q.turns != nil {
			q.turns.others, q.turns.absent = 0, 0
			q.due.Store(0)
		}
		return
	}
	if q.turns == nil {
		q.turns = new(turns)
	}
	t := q.turns
	now := time.Now()
	if told != t.others || now.Sub(t.counted) > absentFor {
		t.others, t.absent, t.counted = told, 0, now
	}
	t.back.trip = (3*t.back.trip + now.Sub(began)) / 4
	series := min(began.Sub(q.series.began)*5/4, maxBack)
	t.step, t.until = max(2*now.Sub(began), series, minStep), now.Add(maxBack)
	q.due.Store(before + int64(min(t.others-t.absent, maxTurns)))
	if !t.lingering {
		t.lingering = true
		q.again()
		time.AfterFunc(maxBack, q.linger)
	}
}

// counting tells whether messages are counted although nobody waits: the lock was released for others a moment ago, or
// will be. With q.mu held.
func (q *queue) counting() bool {
	return q.turns != nil && (q.turns.lingering || q.turns.others > 0 && (q.hold != nil || q.turns.back.next.hold != nil))
}

// linger ends what released began.
func (q *queue) linger() {
	q.mu.Lock()
	if left := time.Until(q.turns.until); left > 0 {
		q.mu.Unlock()
		time.AfterFunc(left, q.linger)
		return
	}
	q.turns.lingering = false
	q.quiet()
	q.mu.Unlock()
	q.done()
}

// missing is how many others' turns come before this client's. With q.mu held.
func (q *queue) missing() int {
	if q.sub == nil || !q.sub.Live() {
		return 0
	}
	return int(max(q.due.Load()-q.messages.Load(), 0))
}

// standBack is how long the client leaves the lock to others; 0 if it is its turn. Where nothing was heard just now,
// nobody is waited for whose turn would have come long ago.
func (q *queue) standBack(fresh bool) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns == nil || q.due.Load() == 0 || fresh && time.Now().After(q.turns.until) {
		return 0
	}
	return min(time.Duration(q.missing())*q.turns.step, maxBack)
}

// stoodBack is how much longer the client leaves the lock to others, now that it has done so for as long as it had meant
// to: others may have released it meanwhile.
func (q *queue) stoodBack() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns == nil {
		return 0
	}
	quiet := time.Since(q.client.born) - time.Duration(q.latest.Load())
	return min(time.Duration(q.missing())*q.turns.step, maxBack) - quiet
}

// free notes that the client has found the lock free before it was its turn: as many as were to come did not want it.
// With q.mu held.
func (q *queue) free() {
	if q.turns == nil {
		return
	}
	q.turns.absent = min(q.turns.absent+q.missing(), q.turns.others)
}
