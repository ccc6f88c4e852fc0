package line

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A Place is what a client knows of its place in the line for one lock. A client is in the line
// once, whichever of its calls asks. With the zero value the client is in no line.
type Place struct {
	stay
	entered bool // the client has had a ticket before

	next  reason // why the client asks Redis the next time
	asked reason // why it has asked the last time
	stale string // the ticket that the last attempt was to take out of the line; "" for none
	alive bool   // since the last attempt was sent, the first client has said that it is alive
	quiet int    // so many looks in a row had no other reason than that their time had come

	calledTicket string    // of the client that has been called, as far as is known; "" for none
	calledSince  time.Time // since when it has been called

	lastStay       time.Duration // how long the client was in the line with the ticket before
	calledInVainAt time.Time     // when the client was last called, and another one had taken the lock
	yields         yieldPolicy
}

// A stay is what the client knows of its own place in one stay in the line. Nothing of it outlasts
// the stay.
type stay struct {
	ticket            string    // with which the client is in the line; "" for none
	enteredAt         time.Time // when the ticket was made
	score             int64     // of the ticket, as Redis has said with Answer.Score; 0 before that
	firstSince        time.Time // since when the client is the first, as far as it knows; zero if it is not
	secondSince       time.Time // since when the client is the second; zero if it is not
	notice            notice
	called            bool     // the client was called, and no attempt has been refused since
	released          released // of that call
	entersAgain       bool     // the channel was away: the client is to enter the line again, with its old score
	enteringByRelease bool     // the ticket enters the line with a release that is under way
}

// A reason is why a client asks Redis for the lock.
type reason uint8

const (
	told    reason = iota // a call waits, the client was called, or the lock may be free
	yielded               // the client was called, and has left the lock to outsiders for a moment before it asks
	looks                 // nothing was heard
)

const (
	// CalledTimeout is how long a client that was called may take before it is taken out of the
	// line, and maxCalledTimeout how long one may that is far from Redis (Distance). A frozen
	// client, or a host that is throttled for longer, loses its place.
	CalledTimeout    = 100 * time.Millisecond
	maxCalledTimeout = time.Second
	// FirstListensAfter is after what time the first client in the line listens on the lock's own
	// channel too: the release of a Redisson client calls nobody, and is told there alone.
	FirstListensAfter = 20 * time.Millisecond
	// secondListensAfter is after what time the second does, too: the first may be frozen, and
	// others may have the lock again and again.
	secondListensAfter = 300 * time.Millisecond
	// lookWhileKept is how long a client that is to read waits before it looks the third time,
	// where others read and those before it wait to write: each look asks these for a sign of life,
	// and finds out who has given none since the one before.
	lookWhileKept = 400 * time.Millisecond
)

// Turn returns the client's part in the line for an attempt that is sent now. hears: the client
// would hear that it is called; otherwise it does not enter the line. fresh makes the ticket of a
// new stay. Turn drops the notices that the client was called and that its place was lost: the
// attempt asks about both.
func (p *Place) Turn(now time.Time, hears bool, fresh func() string) scripts.Turn {
	t := scripts.Turn{Look: p.next == looks, Stale: p.overdue(now), Called: p.called || p.notice.called}
	t.Quiet = t.Look && p.quiet > 1
	if gone := p.released; t.Called {
		if p.notice.called {
			gone = p.notice.released
		}
		t.Gone, t.Counter = gone.field, gone.token
	}
	p.asked, p.next, p.stale, p.alive = p.next, told, t.Stale, false
	if hears {
		t.Ticket = p.enter(now, fresh)
		if p.entersAgain {
			t.Score = p.score
		}
	}
	return t
}

// enter returns the ticket of the stay, and begins a stay where there is none.
func (p *Place) enter(now time.Time, fresh func() string) string {
	if p.ticket == "" {
		p.stay, p.entered = stay{ticket: fresh(), enteredAt: now}, true
	}
	p.notice.called, p.notice.lost, p.notice.released = false, false, released{}
	return p.ticket
}

// EnterByRelease returns the ticket with which the client enters the line by a release; "" where
// the client is in the line.
func (p *Place) EnterByRelease(now time.Time, fresh func() string) string {
	if p.InLine() {
		return ""
	}
	ticket := p.enter(now, fresh)
	p.enteringByRelease = true
	return ticket
}

// EnteredByRelease notes that a release is over, and the score that this ticket got by it, at the
// end of the line. score 0: the release entered no ticket, as far as is known. left: the stay with
// the ticket is over.
func (p *Place) EnteredByRelease(ticket string, score int64) (left bool) {
	p.enteringByRelease = false
	if p.ticket == ticket && ticket != "" && score != 0 {
		p.score = score
	}
	return p.ticket != ticket && ticket != ""
}

// Leave ends the stay in the line with this ticket: the client has taken the lock with it, or gives
// its place up. It does nothing where the client has another ticket by now.
func (p *Place) Leave(now time.Time, ticket string) {
	if ticket != "" && p.ticket == ticket {
		p.lastStay = now.Sub(p.enteredAt)
		p.stay, p.calledTicket, p.next = stay{}, "", told
	}
}

// GiveUp ends the client's stay in the line, and returns the ticket that is to be taken out of the
// line in Redis; "" for none.
func (p *Place) GiveUp(now time.Time) string {
	ticket := p.ticket
	p.Leave(now, ticket)
	return ticket
}

// Taken notes that the client has the lock. A yield before that was used by nobody.
func (p *Place) Taken(now time.Time) {
	if p.asked == yielded {
		p.yields.ended(now, false)
	}
	p.asked, p.next, p.quiet = told, told, 0
}

// Has tells whether the client is in the line with this ticket, or is to enter it.
func (p *Place) Has(ticket string) bool { return ticket != "" && p.ticket == ticket }

// Entered tells whether the client has been in the line, or was to enter it.
func (p *Place) Entered() bool { return p.entered }

// Stood tells whether the ticket was in the line, as Redis has said, or may be by a release that is
// under way.
func (p *Place) Stood() bool { return p.ticket != "" && (p.score != 0 || p.enteringByRelease) }

// InLine tells whether the client is in the line, as far as Redis has said.
func (p *Place) InLine() bool { return p.ticket != "" && p.score != 0 && !p.entersAgain }

// Behind tells whether the client leaves messages of a release to others (P26): the client is in
// the line, or a release that is under way enters its ticket, and the client is not the first, and
// has not been the second for secondListensAfter. A client whose channel was away is not counted as
// in the line.
func (p *Place) Behind(now time.Time) bool {
	return p.ticket != "" && (p.score != 0 || p.enteringByRelease) && !p.entersAgain && p.firstSince.IsZero() && age(p.secondSince, now) < secondListensAfter
}

// BesideOutsiders tells whether others than the clients in the line have taken the lock a moment
// ago.
func (p *Place) BesideOutsiders(now time.Time) bool {
	return !p.calledInVainAt.IsZero() && now.Sub(p.calledInVainAt) < maxNoYield
}

// Due notes that the time has come for which the client was to wait: it asks now. yielding: for
// which it was to leave the lock to outsiders.
func (p *Place) Due(yielding bool) {
	if yielding {
		p.next = yielded
		return
	}
	p.next = looks
	p.quiet++
}

// Told notes that the lock may be free.
func (p *Place) Told() { p.quiet = 0 }

// since returns since when something is so: began, or now where it has not been so before. The zero
// time says that it is not so.
func since(began time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case began.IsZero():
		return now
	}
	return began
}

// age returns how long ago this time was; 0 for the zero time.
func age(began, now time.Time) time.Duration {
	if began.IsZero() {
		return 0
	}
	return now.Sub(began)
}
