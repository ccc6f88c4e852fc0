package line

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// Listening is what a client does about the lock's own channel, where a release is told to all.
type Listening uint8

const (
	AsBefore Listening = iota
	Listens
	Ignores // the client is called, and is to be no outsider to the others
)

// Refused notes the answer to an attempt that was sent with the place's ticket and has not got the
// lock, and returns for how long the client waits to be told something before it looks by itself.
// poll is that of WithPollInterval. endsSoon: the call that asks is to end before it would listen
// on the lock's own channel, or soon after.
func (p *Place) Refused(now time.Time, a *scripts.Answer, poll time.Duration, endsSoon bool) (time.Duration, Listening) {
	free := a.TTL == scripts.NoKey // it is another client's turn
	kept := !free && a.Head != ""  // the first one waits to write; this client is to read, and others do (P55)
	vain := p.called && !free
	if vain {
		p.calledInVainAt = now
	}
	if p.asked == yielded {
		p.yields.ended(now, vain)
	}
	p.asked, p.called, p.released = told, false, released{}
	p.score, p.entersAgain, p.enteringByRelease = a.Score, false, false
	p.firstSince, p.secondSince = since(p.firstSince, a.Before == 0, now), since(p.secondSince, a.Before == 1, now)

	first, firstFor, secondFor := a.Before == 0 && !free, age(p.firstSince, now), age(p.secondSince, now)
	listens := first && (vain || firstFor >= FirstListensAfter || endsSoon) || a.Before == 1 && secondFor >= secondListensAfter
	listening := AsBefore
	if listens {
		listening = Listens
	} else if !first {
		listening = Ignores
	}
	look := lookPolicy{poll, p.quiet, listens, firstFor, secondFor, p.lastStay}.next(a.TTL, a.Before)
	switch {
	case kept && p.quiet == 0:
		return min(look, CalledTimeout), listening
	case kept && p.quiet == 1:
		return min(look, timeToComeOf(a.Head)+time.Millisecond), listening
	case kept:
		return min(look, lookWhileKept<<min(p.quiet-2, 4), 5*poll), listening
	case free && a.Before < 2:
		return p.watchUnlessAlive(a.Head, now), listening
	case free && p.quiet > 0: // the look has had those before it asked
		p.calledTicket = ""
		return timeToComeOf(a.Head) + time.Millisecond, listening
	case free:
		return p.watchFromBehind(poll), listening
	case a.Before != 1:
		p.calledTicket = ""
	}
	return look, listening
}

// RefusedOutside is Refused for a client that is not in the line. entering: the client enters the
// line as soon as it would hear a call. listens: the client hears of releases on the lock's own
// channel.
func (p *Place) RefusedOutside(now time.Time, a *scripts.Answer, poll time.Duration, entering, listens bool) time.Duration {
	p.asked = told
	switch {
	case a.TTL == scripts.NoKey:
		return min(poll, p.watchUnlessAlive(a.Head, now))
	case entering:
		return min(poll, CalledTimeout)
	case listens && a.TTL != scripts.NoExpiry:
		poll = min(poll<<min(p.quiet, 4), 10*poll)
	}
	if a.TTL >= 0 && a.TTL < poll {
		return a.TTL + time.Millisecond
	}
	return poll
}

// Quiet tells whether the last attempt was a look for which there was no other reason than that its
// time had come.
func (p *Place) Quiet() bool { return p.quiet > 0 }

// watch notes that the client with this ticket has been called, or with "" that none has, and
// returns for how long that client may still take to come. out is the ticket that the last attempt
// was to take out of the line, or "": if out is the ticket that is called still, its time begins
// again.
func (p *Place) watch(ticket, out string, now time.Time) time.Duration {
	if p.calledTicket != ticket || ticket == out {
		p.calledTicket, p.calledSince = ticket, now
	}
	return max(timeToComeOf(ticket)-now.Sub(p.calledSince), time.Millisecond)
}

// watchUnlessAlive is watch for the answer to the last attempt. If the first client has said since
// that attempt was sent that it is alive, it is not watched: the answer is about an earlier call.
func (p *Place) watchUnlessAlive(ticket string, now time.Time) time.Duration {
	if p.alive {
		return timeToComeOf(ticket)
	}
	return p.watch(ticket, p.stale, now)
}

// overdue returns the ticket of a client that is called and has not come in time, or "".
func (p *Place) overdue(now time.Time) string {
	if p.calledTicket == "" || now.Sub(p.calledSince) < timeToComeOf(p.calledTicket) {
		return ""
	}
	return p.calledTicket
}

// watchFromBehind is for a client that is the third or later in the line of a free lock: the second
// client watches the first, and this one watches nobody. It returns how long the client waits
// before it looks: twice its last stay in the line, so that a client that comes back again and
// again waits as long as others do; at least twice CalledTimeout, and no longer than ten polls.
func (p *Place) watchFromBehind(poll time.Duration) time.Duration {
	p.calledTicket = ""
	return min(max(2*CalledTimeout, 2*p.lastStay), 10*poll)
}
