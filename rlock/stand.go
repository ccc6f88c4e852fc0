package rlock

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A stay is a call's time in line.
type stay struct {
	*acquisition
	call    *call     // under way
	offer   bool      // it is the one that passes the lock on to this call, not its own
	due     time.Time // when to look, at the call or at the lock; zero if never
	leading bool
	spared  bool          // the client is shutting down, and this call may go on
	try     bool          // ask Redis next
	asks    bool          // the queue knows already
	quiet   int           // looks in a row that nothing but the time asked for
	backoff time.Duration // after the next error
	cut     bool          // it stands back for less long than it is others' turn
	blocker *hold         // the client's own hold that was there at the last look,
	since   time.Time     // and at every look since then
}

// stand waits in line, and as the first in it tries.
func (a *acquisition) stand() (*level, error) {
	s := stay{acquisition: a, backoff: firstBackoff}
	first, asks := a.queue.join(a)
	s.asks = asks
	lv, err := s.wait(first)
	if s.call != nil && !s.offer {
		s.client.withdraw(s.call)
	}
	if promised := a.queue.leave(a); promised {
		s.decline(lv)
	}
	return lv, err
}

func (s *stay) wait(first bool) (*level, error) {
	if first {
		if err := s.lead(); err != nil {
			return nil, err
		}
	} else {
		s.lookAfter(s.client.poll)
	}
	for {
		if isClosed(s.client.draining) && !s.goesOn() {
			return nil, ErrClosed
		}
		var changed <-chan struct{}
		var own *hold
		if s.call == nil {
			// A hold of the same holder, taken through another context: the call may become a nested one.
			if own = s.who.find(s.client, s.name); own != nil {
				changed = own.watch()
				if err := own.state(); err != nil {
					return nil, err
				}
				if own.admits(s.ctx) {
					if lv, err := s.reenter(own); err != errOvertaken {
						return lv, err
					}
					continue
				}
			}
			s.send()
		}
		if !s.sleeps(changed) {
			return nil, s.gaveUp()
		}
		if lv, err := s.look(own); lv != nil || err != nil {
			return lv, err
		}
	}
}

// goesOn tells whether a call stays in line although the client is shutting down.
func (s *stay) goesOn() bool {
	if isClosed(s.client.closed) {
		return false
	}
	s.spared = s.spared || s.queue.promised(s.acquisition) || s.who.holdsAny(s.client)
	return s.spared
}

// sleeps waits until there may be something to see; false when the wait is over.
func (s *stay) sleeps(changed <-chan struct{}) bool {
	if s.call != nil && s.call.over.Load() {
		return true
	}
	if !s.due.IsZero() {
		s.bell.ringAt(s.due)
	}
	switch {
	case changed == nil:
		return s.bell.wait(s.end)
	}
	select {
	case <-s.bell.rung:
	case <-changed:
	case <-s.end:
		return false
	}
	return true
}

// look sees to all that has changed: one ring may stand for several things.
func (s *stay) look(own *hold) (*level, error) {
	if k := s.call; k != nil && (k.over.Load() || s.isDue()) {
		over := k.over.Load()
		lv, err := s.over()
		if over {
			s.client.reuse(k)
		}
		if lv != nil || err != nil {
			return lv, err
		}
	}
	if lv, err := s.told(); lv != nil || err != nil {
		return lv, err
	}
	if s.call != nil || !s.isDue() {
		return nil, nil
	}
	s.due = time.Time{}
	switch {
	case s.leading && s.queue.standing.Load():
		if more := s.queue.stoodBack(); more > 0 && !s.cut {
			s.standBack(more)
		} else {
			s.try = true
		}
	case s.leading:
		s.try = true
		s.quiet++
	}
	switch {
	case own != nil:
		own.warnOnce("rlock: held by this holder through another context; a nested call needs the ctx that Lock returned")
	case s.leading:
		s.suspect()
	}
	return nil, nil
}

// suspect logs that one hold of the call's own client has kept the lock for a whole lease while the call waited: a port's
// nested call that was given the context from before Lock waits like this for ever.
func (s *stay) suspect() {
	h := s.queue.held()
	if h != s.blocker {
		s.blocker, s.since = h, time.Now()
	}
	if h != nil && time.Since(s.since) >= h.trace.length() {
		h.warnOnce("rlock: a call waits for a hold of its own client, for as long as a lease by now; if this is meant as a nested call, pass the context that Lock returned")
	}
}

// lookAfter makes it look after d, whatever happens.
func (s *stay) lookAfter(d time.Duration) {
	s.due = time.Now().Add(d)
}

func (s *stay) isDue() bool { return !s.due.IsZero() && !time.Now().Before(s.due) }

// lead is what a call does that has become the first in line.
func (s *stay) lead() error {
	s.leading = true
	if s.asks {
		s.try = true
		return nil
	}
	if err := s.queue.exhausted(s.began, s.client.patience); err != nil {
		return err
	}
	// The one before may have just taken the lock: then its end, or a message, is soon enough.
	if s.queue.ours() {
		s.queue.listen(s.keys.Channel())
		s.sleep(s.client.poll)
		return nil
	}
	s.takeTurn(true)
	return nil
}

// sleep waits to be told, or for the next look.
func (s *stay) sleep(d time.Duration) {
	s.queue.standing.Store(false)
	s.lookAfter(d)
	s.queue.idle(s.acquisition)
}

// takeTurn tries, at once or when the clients before this one have had their turns. fresh: nothing was heard just now.
func (s *stay) takeTurn(fresh bool) {
	if back := s.queue.standBack(fresh); back > 0 {
		s.standBack(back)
	} else {
		s.try = true
	}
}

// standBack waits for others' turns, but no longer than half of what is left of the call's own wait.
func (s *stay) standBack(d time.Duration) {
	s.cut = false
	if deadline, ok := s.bound.Deadline(); ok {
		if half := time.Until(deadline) / 2; half < d {
			d, s.cut = half, true
		}
	}
	s.sleep(d)
	s.queue.standing.Store(true)
}

// send sends the next attempt, if it is time.
func (s *stay) send() {
	if !s.try {
		return
	}
	s.try = false
	s.queue.standing.Store(false)
	if s.asks || s.queue.busy(s.acquisition) {
		s.asks = false
		s.call = s.ask()
		s.lookAfter(s.lease) // after it no answer is of use
	}
}

// told is what a call does that was told something.
func (s *stay) told() (*level, error) {
	p := s.queue.promiseTo(s.acquisition)
	switch {
	case p.retained.hold != nil:
		return s.retake(p.retained)
	case p.granted != nil:
		lv, err := s.accept(p.granted)
		s.queue.kept(s.acquisition)
		if lv == nil && s.bound.Err() != nil {
			err = s.gaveUp()
		}
		return lv, err
	case p.revoked:
		s.queue.kept(s.acquisition)
		s.leading = p.leads
		s.call, s.offer, s.try = nil, false, true
	case p.offered != nil && s.call == nil:
		s.leading = p.leads
		s.call, s.offer = p.offered, true
		s.lookAfter(s.lease) // after it no answer is of use
	case s.call != nil: // its answer comes first
	case !s.leading && p.leads:
		return nil, s.lead()
	case s.leading && s.queue.look.Swap(false) && !s.queue.ours():
		s.quiet = 0
		s.takeTurn(false)
	}
	return nil, nil
}

// accept makes a hold of what the call was granted.
func (s *stay) accept(b *block) (*level, error) {
	token := b.next
	b.next++
	if s.trace.givenUp() {
		s.client.releaser.release(s.trace) // an attempt of its own, from before, has got no answer
	}
	s.trace = b.trace
	lv, _, err := s.hold(b.sent, s.lease, token, b, false)
	return lv, err
}

// over is what a call does whose command is over, or has taken too long.
func (s *stay) over() (*level, error) {
	k, offer := s.call, s.offer
	s.call, s.offer = nil, false
	lv, ttl, err := s.outcome(k)
	if offer {
		s.queue.kept(s.acquisition)
	}
	pause := s.client.poll
	switch {
	case lv != nil:
		return lv, nil
	case s.bound.Err() != nil:
		return nil, s.gaveUp()
	case offer && k.over.Load() && (err == nil || k.err != nil && !scripts.Unanswered(k.err)):
		// The hold before was lost, or Redis refused to pass the lock on: it is released, and that is told.
	case err == nil:
		s.queue.answered(s.why)
		s.backoff = firstBackoff
		if s.client.tries > 0 && s.tries >= s.client.tries {
			return nil, notAcquired(s.why)
		}
		if s.queue.listen(s.keys.Channel()) && ttl != scripts.NoExpiry {
			pause = min(pause<<min(s.quiet, 4), 10*pause)
		}
		if ttl >= 0 && ttl < pause {
			pause = ttl + time.Millisecond
		}
	case !passing(err):
		return nil, err
	default:
		s.queue.failed(err)
		if err := s.queue.exhausted(s.began, s.client.patience); err != nil {
			return nil, err
		}
		pause = s.backoff
		s.backoff = min(2*s.backoff, lastBackoff)
	}
	s.sleep(pause)
	return nil, nil
}

// decline sees to what the call was promised and does not take, as it goes without the lock, or with a level of its own.
func (s *stay) decline(lv *level) {
	t := s.trace
	if s.granted != nil {
		t = s.granted.trace
	}
	if t.open() && (lv == nil || lv.hold.trace != t) {
		s.client.releaser.abandon(t)
	}
}
