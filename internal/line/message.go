package line

import (
	"strconv"
	"strings"
	"time"
)

// A notice is what the client has heard about its place, and has not acted on yet.
type notice struct {
	called    bool // the lock is free, and it is this client's turn
	released  released
	listeners int    // so many connections had heard of the release
	watch     string // the ticket of the first one, which was called; this client is the second
	asked     bool   // for a sign of life
	moved     bool   // the client has become the first or the second, and the lock is held
	lost      bool   // the client is not in the line any more, or may not be
}

// A released is what a call in a quorum says of the hold that was released: its field, and the
// latest token that its holder knew. The zero value is of a call that says nothing.
type released struct {
	field string
	token int64
}

// Hear notes a message about the client's place; line.lua says what they are. ghost is the ticket
// of a call for a place that the client has not got: the client is to leave the line with that
// ticket (P19). For all other messages ghost is "": those about a place that the client has just
// left may be late, and a leave for each would have the others called anew.
func (p *Place) Hear(now time.Time, text string) (ghost string) {
	words := strings.Split(text, " ")
	if len(words) < 2 {
		return ""
	}
	if words[1] != p.ticket {
		if words[0] == "c" {
			return words[1]
		}
		return ""
	}
	switch {
	case words[0] == "c" && (len(words) == 3 || len(words) == 5):
		p.notice.called, p.notice.watch, p.notice.released = true, "", released{}
		p.notice.listeners, _ = strconv.Atoi(words[2])
		if len(words) == 5 {
			p.notice.released.field = words[3]
			p.notice.released.token, _ = strconv.ParseInt(words[4], 10, 64)
		}
		p.firstSince = since(p.firstSince, true, now)
	case words[0] == "w" && len(words) >= 3:
		p.notice.watch = words[2]
		if len(words) > 3 {
			p.calledTicket = "" // anew: the bound begins again
		}
	case words[0] == "a":
		p.calledTicket, p.notice.watch = "", "" // also where nobody has acted on the call of the first one yet
		p.alive = true
	case words[0] == "s":
		p.notice.asked = true
	case words[0] == "n":
		p.notice.moved = true
	case words[0] == "d":
		p.notice.lost, p.score, p.entersAgain = true, 0, false
	}
	return ""
}

// ChannelLost notes that the channel on which the client is called was away, or is back, or that
// the ticket may not be in the line any more: with its next attempt the client enters the line
// again, with its old score (P22).
func (p *Place) ChannelLost() { p.entersAgain = p.ticket != "" && p.score != 0 }

// Pending tells whether anything was heard that Heed has not seen.
func (p *Place) Pending() bool { return p.notice != notice{} }

// A Reaction is what a client does that has heard something.
type Reaction uint8

const (
	Nothing Reaction = iota
	Ask              // Redis, for the lock
	Yield            // leave the lock to outsiders for a while, and ask then
	Watch            // wait to be told something, and look by itself after a while
)

// Heed takes what was heard since the last time, and returns what the client does, and after what
// time. own is how many of those who hear of a release on the lock's own channel are this client.
func (p *Place) Heed(now time.Time, own int) (Reaction, time.Duration) {
	n := p.notice
	p.notice = notice{}
	switch {
	case n.called:
		p.called, p.released, p.next, p.quiet = true, n.released, told, 0
		if p.yieldsTo(n.listeners-own, now) {
			return Yield, yieldTime
		}
		return Ask, 0
	case n.lost:
		p.quiet = 0
		return Ask, 0
	case n.asked && p.called:
		return Nothing, 0 // it comes anyway
	case n.asked:
		if n.watch != "" {
			p.watch(n.watch, "", now)
		}
		return Ask, 0
	case n.watch != "":
		return Watch, p.watch(n.watch, "", now)
	case n.moved:
		return Watch, FirstListensAfter
	}
	return Nothing, 0
}

// yieldsTo tells whether a client that was called leaves the lock to outsiders, which are in no
// line and have been told of the release: it is their turn (P37). So many outsiders have heard of
// it. The client does not yield where there are none, where no outsider used its last yields, or
// where it was called in vain in this stay (P27).
func (p *Place) yieldsTo(outsiders int, now time.Time) bool {
	return outsiders > 0 && p.yields.allows(now) && !p.calledInVainAt.After(p.enteredAt)
}
