// Package linemodel is a lock and its line as docs/protocol.md and docs/line.md describe them: what the scripts
// are compared with by random sequences (package scripts), and what the search of internal/room has for its
// server. So the search believes of the scripts what they do.
package linemodel

import (
	"fmt"
	"time"
)

// A Span is an instant known to lie between two: Redis did it after the command was sent and before it was answered.
type Span struct{ Lo, Hi time.Time }

// Plus is the time so much later.
func (s Span) Plus(d time.Duration) Span { return Span{s.Lo.Add(d), s.Hi.Add(d)} }

// Slack is what the two clocks, Redis's and ours, and rounding to milliseconds may differ by. The leases of the test
// differ by seconds, so no wrong expiry hides in it.
const Slack = time.Second

// An Op is one command as a client composes it. A copy is the same op sent again.
type Op struct {
	Kind    string // acquire, wait, level, unlock, release, quick, leave, transfer, renew, inspect; and what others do: see Model.Apply
	Field   string
	Fenced  bool
	Tokens  int // that are taken in a row, with Fenced; 0 for one
	Lease   time.Duration
	Old     string // of transfer
	Count   int
	Change  int64
	Targets []Target // of renew
	Turn    Turn     // of wait
	PlaceOf string   // of wait: the ticket that had the place; the place itself is another one in each run
	Again   string   // of release and leave: a ticket
	Known   int      // of release: how many of those who listen the client takes itself for
}

// A Turn is that of package scripts, as far as one server looks at it.
type Turn struct {
	Ticket   string
	Score    int64
	Look     bool
	Stale    string
	Unproven bool
}

// These have the values of package scripts.
const (
	notInLine    = -1
	notTheHolder = -1
)

// Aged is what is left of an expiry after the op "age": less than any lease of the sequences.
const Aged = 5 * time.Second

// A Target is a hold whose lease is renewed.
type Target struct {
	Field string
	Lease time.Duration
}

func (o Op) String() string {
	switch o.Kind {
	case "acquire":
		return fmt.Sprintf("acquire %s lease=%v %s", short(o.Field), o.Lease, o.fenced())
	case "wait":
		return fmt.Sprintf("wait %s lease=%v %s ticket=%s place of=%s look=%v stale=%s unproven=%v",
			short(o.Field), o.Lease, o.fenced(), o.Turn.Ticket, o.PlaceOf, o.Turn.Look, o.Turn.Stale, o.Turn.Unproven)
	case "release", "quick", "leave":
		return fmt.Sprintf("%s %s ticket=%s known=%d", o.Kind, short(o.Field), o.Again, o.Known)
	case "transfer":
		return fmt.Sprintf("transfer %s to %s lease=%v %s", short(o.Old), short(o.Field), o.Lease, o.fenced())
	case "level":
		return fmt.Sprintf("level %s count=%d change=%d lease=%v %s", short(o.Field), o.Count, o.Change, o.Lease, o.fenced())
	case "renew":
		s := "renew"
		for _, x := range o.Targets {
			s += fmt.Sprintf(" %s:%v", short(x.Field), x.Lease)
		}
		return s
	}
	return o.Kind + " " + short(o.Field)
}

func (o Op) fenced() string { return fmt.Sprintf("fenced=%v tokens=%d", o.Fenced, o.Tokens) }

// short is the number of a hold.
func short(field string) string {
	if len(field) > 37 {
		return field[37:]
	}
	return field
}

// A Reply is what a command says, without the time that is left, which is compared apart.
type Reply struct {
	Held     bool
	Token    int64
	Released bool
	Told     int
	Locked   bool
	Count    int
	Holder   string
	Own      string // the hold that has the lock, where it is another one of the client that asks
	Gone     string // of renew: for each target, in order, 1 where the hold is gone
	TTL      bool   // a time that is left belongs to this reply
	Failed   string // of an error reply

	Before int // of a client that does not get the lock, and where it is in the line
	Place  int64
	Head   string
	More   bool
}

// The error replies to a lock that somebody else's data is in the way of.
const (
	WrongType = "WRONGTYPE"
	NoNumber  = "not an integer"
)

// A Model is the lock as docs/protocol.md describes it: at most one hold, its count and latest change, its expiry, and the
// counter. It knows nothing of copies: an op does the same whenever it comes, and that is the rule.
type Model struct {
	Field   string // of the hold that has the lock, "" for none
	Count   int
	Change  int64 // number of the latest change, 0 before the first
	Second  bool  // the hold has its second field, although there was no change: somebody has entered the line
	Forever bool  // no expiry: somebody else did that
	Expires Span
	Counted bool // the counter is there
	Counter int64
	Line    Line

	Wrong  bool // the lock's key is of another type: nothing works
	Spoilt bool // the counter is no number: no tokens
}

// Apply does what the op does when Redis runs it within at.
func (m *Model) Apply(o Op, at Span) Reply {
	m.Line.Said = nil
	if o.Kind == "leave" {
		m.leave(o)
		return Reply{}
	}
	if m.Wrong {
		return Reply{Failed: WrongType}
	}
	switch o.Kind {
	case "acquire":
		return m.acquire(o, at)
	case "level":
		return m.level(o, at)
	case "wait":
		return m.wait(o, at)
	case "unlock", "release", "quick":
		return m.release(o, at)
	case "transfer":
		return m.transfer(o, at)
	case "renew":
		var r Reply
		for _, x := range o.Targets {
			if m.Field == x.Field {
				m.extend(x.Lease, at)
				r.Gone += "0"
			} else {
				r.Gone += "1"
			}
		}
		return r
	case "inspect":
		r := Reply{Locked: m.Field != "", Holder: m.Field, TTL: true}
		if m.Field == o.Field {
			r.Count = m.Count
		}
		return r

	// what happens without these scripts
	case "expire":
		m.free()
	case "age": // time passes: five seconds are left
		if m.Field != "" {
			m.Forever, m.Expires = false, at.Plus(Aged)
		}
		m.Line.Aged = len(m.Line.Stays) > 0
		m.Line.age(Aged)
	case "persist":
		m.Forever = m.Field != ""
	case "listen":
		m.Line.Listened[o.Field]++
	case "turn away":
		m.Line.Listened[o.Field]--
	case "drop counter":
		m.Counted, m.Counter = false, 0
	case "redisson lock": // a Java process on the same lock, which adds and counts levels with tokens
		if m.Field != "" && m.Field != o.Field {
			return Reply{TTL: true}
		}
		m.Field = o.Field
		m.Count++
		m.Forever, m.Expires = false, at.Plus(o.Lease)
		return Reply{Held: true, Token: m.next(o)}
	case "redisson unlock":
		if m.Field != o.Field {
			return Reply{}
		}
		if m.Count--; m.Count > 0 {
			m.Forever, m.Expires = false, at.Plus(o.Lease)
			return Reply{}
		}
		m.free()
		m.Line.tell("", "0")
		return Reply{Released: true}
	default:
		panic("no such op: " + o.Kind)
	}
	return Reply{}
}

func (m *Model) acquire(o Op, at Span) Reply {
	switch {
	case m.Field != "" && m.Field != o.Field:
		return Reply{TTL: true, Before: notInLine, Own: m.own(o.Field)}
	case o.Fenced && m.Spoilt:
		return Reply{Failed: NoNumber}
	case m.Field == o.Field:
		return m.repeat(o, at)
	}
	return m.enter(o, at)
}

func (m *Model) transfer(o Op, at Span) Reply {
	switch {
	case m.Field != o.Field && m.Field != o.Old:
		return Reply{}
	case o.Fenced && m.Spoilt:
		return Reply{Failed: NoNumber}
	case m.Field == o.Field:
		return m.repeat(o, at)
	}
	return m.enter(o, at)
}

// enter makes o's the hold that has the lock.
func (m *Model) enter(o Op, at Span) Reply {
	m.free()
	m.Field, m.Count, m.Expires = o.Field, 1, at.Plus(o.Lease)
	if o.Fenced {
		return Reply{Held: true, Token: m.next(o)}
	}
	return Reply{Held: true}
}

func (m *Model) repeat(o Op, at Span) Reply {
	m.extend(o.Lease, at)
	return Reply{Held: true, Token: m.current(o)}
}

func (m *Model) level(o Op, at Span) Reply {
	switch {
	case m.Field != o.Field:
		return Reply{}
	case o.Fenced && m.Spoilt:
		return Reply{Failed: NoNumber}
	case o.Change <= m.Change: // a repeat, or an older one
		return Reply{Held: true, Token: m.current(o)}
	}
	m.Count, m.Change = o.Count, o.Change
	if o.Lease > 0 {
		m.extend(o.Lease, at)
	}
	if o.Fenced {
		return Reply{Held: true, Token: m.next(o)}
	}
	return Reply{Held: true}
}

// own is the hold that has the lock, where it is of the client that the field is of.
func (m *Model) own(field string) string {
	if m.Field != "" && ClientOf(m.Field) == ClientOf(field) {
		return m.Field
	}
	return ""
}

func (m *Model) free() { m.Field, m.Count, m.Change, m.Second, m.Forever = "", 0, 0, false, false }

// extend never shortens.
func (m *Model) extend(lease time.Duration, at Span) {
	to := at.Plus(lease)
	if m.Forever {
		m.Forever, m.Expires = false, to
		return
	}
	if to.Lo.After(m.Expires.Lo) {
		m.Expires.Lo = to.Lo
	}
	if to.Hi.After(m.Expires.Hi) {
		m.Expires.Hi = to.Hi
	}
}

// next takes so many tokens as the op asks for, and returns the last.
func (m *Model) next(o Op) int64 {
	m.Counted = true
	m.Counter += int64(max(o.Tokens, 1))
	return m.Counter
}

// current is the counter's value: the latest token of the hold that has the lock.
func (m *Model) current(o Op) int64 {
	switch {
	case !o.Fenced:
		return 0
	case !m.Counted:
		return m.next(o)
	}
	return m.Counter
}
