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
	looks   bool          // and that is for nothing having been heard
	pauses  bool          // the lock is left to strangers until due
	paused  bool          // it was, before the attempt under way
	called  bool          // that is for having been called
	out     string        // and takes out the client with this ticket, which is late; "" for none
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
	if lv == nil && (s.call != nil || s.try || s.pauses) {
		a.queue.place.Load().pass()
	}
	promised, ticket := a.queue.leave(a)
	if promised {
		s.decline(lv)
	}
	if ticket != "" {
		a.client.leaveLine(a.keys, ticket)
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
	case s.leading && s.pauses:
		s.try = true
	case s.leading:
		s.try, s.looks = true, true
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
	if p := s.queue.place.Load(); p.in() {
		s.sleep(max(p.left(), 0)) // to be called; the call before may have had to look soon
		return nil
	}
	s.takeTurn()
	return nil
}

// sleep waits to be told, or for the next look.
func (s *stay) sleep(d time.Duration) {
	s.pauses = false
	s.lookAfter(d)
	s.queue.place.Load().sleeps(s.due)
	s.queue.idle(s.acquisition)
}

// takeTurn tries, at once or when others had the time to try.
func (s *stay) takeTurn() {
	if back := s.queue.standsBack(); back > 0 {
		s.sleep(back)
	} else {
		s.try = true
	}
}

// heed does what was heard about the client's place in the line.
func (s *stay) heed(n notice) {
	p := s.queue.place.Load()
	switch {
	case n.called:
		s.quiet, s.called = 0, true
		if d := p.pause(n, s.queue.known(s.keys)); d > 0 {
			s.sleep(d)
			s.pauses = true
			return
		}
		s.try = true
	case n.lost:
		s.quiet, s.try = 0, true
	case n.watch != "":
		s.sleep(p.watch(n.watch, ""))
	case n.near:
		s.sleep(headListens)
	}
}

// send sends the next attempt, if it is time.
func (s *stay) send() {
	if !s.try {
		return
	}
	looks := s.looks
	s.paused, s.try, s.looks, s.pauses = s.pauses, false, false, false
	if s.asks || s.queue.busy(s.acquisition) {
		s.asks = false
		s.out = s.queue.place.Load().late()
		s.call = s.askInTurn(looks, s.out)
		s.lookAfter(s.lease) // after it no answer is of use
	}
}

// told is what a call does that was told something.
func (s *stay) told() (*level, error) {
	p := s.queue.promiseTo(s.acquisition)
	switch {
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
	case s.leading && !s.queue.ours():
		if n := s.queue.place.Load().heard(); n != (notice{}) {
			s.heed(n)
		}
		if s.queue.look.Swap(false) && !s.pauses {
			s.quiet = 0
			s.takeTurn()
		}
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
	lv, _, err := s.outcome(k)
	if offer {
		s.queue.kept(s.acquisition)
	}
	pause := s.client.poll
	switch {
	case lv != nil:
		if s.paused {
			s.queue.place.Load().paused(false)
		}
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
		s.refused(k.answer)
		return nil, nil
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

// refused waits, as an attempt has not got the lock.
func (s *stay) refused(a scripts.Answer) {
	if a.Outside {
		s.client.toldOutside(s.keys)
	}
	p := s.queue.place.Load()
	if p != nil && s.ticket != "" && a.Before != scripts.NotInLine {
		p.answered(s.ticket, a.Place, a.Before)
		s.queued(p, a)
		return
	}
	lined := s.client.lined()
	if lined && s.ticket == "" && s.queue.callable(s.keys) {
		s.try = true // enters the line
		return
	}
	pause := s.client.poll
	soon := lined && s.ticket == "" && s.quiet == 0 // it enters the line as soon as it would hear a call
	if !soon && s.queue.listen(s.keys.Channel()) && a.TTL != scripts.NoExpiry {
		pause = min(pause<<min(s.quiet, 4), 10*pause)
	}
	switch {
	case a.TTL == scripts.NoKey:
		pause = min(pause, headLate)
		if p != nil {
			pause = p.watch(a.Head, s.out)
		}
	case soon:
		pause = min(pause, headLate)
	case a.TTL >= 0 && a.TTL < pause:
		pause = a.TTL + time.Millisecond
	}
	s.sleep(pause)
}

// brief tells whether the call is to end before it would listen on the lock's own channel, or soon after.
func (s *stay) brief() bool {
	end, ok := s.bound.Deadline()
	return ok && time.Until(end) < 2*headListens
}

// queued waits in the line.
func (s *stay) queued(p *place, a scripts.Answer) {
	vain := s.called && a.TTL != scripts.NoKey
	s.called = false
	if vain {
		p.calledInVain()
	}
	if s.paused {
		p.paused(vain)
	}
	first := a.Before == 0 && a.TTL != scripts.NoKey
	listens := first && (vain || p.firstFor() >= headListens || s.brief()) || a.Before == 1 && p.secondFor() >= secondListens
	switch {
	case listens:
		s.queue.listen(s.keys.Channel()) // and tries when that is confirmed
	case !first:
		s.queue.deaf()
	}
	switch {
	case a.TTL == scripts.NoKey && a.Before < 2:
		s.sleep(p.watch(a.Head, s.out))
		return
	case a.TTL == scripts.NoKey && s.quiet > 0: // the look has called the first one, and the second has not taken it out so far
		s.sleep(p.watch(a.Head, s.out) + headLate)
		return
	case a.TTL == scripts.NoKey:
		s.sleep(p.newcomer())
		return
	}
	if a.Before != 1 {
		p.watch("", "")
	}
	s.sleep(p.looks(a, listens, s.quiet, s.client.poll))
}
