package scripts

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// span is an instant known to lie between two: Redis did it after the command was sent and before it was answered.
type span struct{ lo, hi time.Time }

func (s span) plus(d time.Duration) span { return span{s.lo.Add(d), s.hi.Add(d)} }

// slack is what the two clocks, Redis's and ours, and rounding to milliseconds may differ by. The leases of the test
// differ by seconds, so no wrong expiry hides in it.
const slack = time.Second

// op is one command as a client composes it. A copy is the same op sent again.
type op struct {
	kind    string // acquire, wait, level, unlock, release, quick, leave, transfer, renew, inspect; and what others do: see model.apply
	field   string
	fenced  bool
	lease   time.Duration
	old     string // of transfer
	count   int
	change  int64
	targets []target // of renew
	turn    Turn     // of wait
	placeOf string   // of wait: the ticket that had the place; the place itself is another one in each run
	again   string   // of release and leave: a ticket
	known   int      // of release: how many of those who listen the client takes itself for
}

type target struct {
	field string
	lease time.Duration
}

func (o op) String() string {
	switch o.kind {
	case "acquire":
		return fmt.Sprintf("acquire %s lease=%v fenced=%v", short(o.field), o.lease, o.fenced)
	case "wait":
		return fmt.Sprintf("wait %s lease=%v fenced=%v ticket=%s place of=%s look=%v stale=%s",
			short(o.field), o.lease, o.fenced, o.turn.Ticket, o.placeOf, o.turn.Look, o.turn.Stale)
	case "release", "quick", "leave":
		return fmt.Sprintf("%s %s ticket=%s known=%d", o.kind, short(o.field), o.again, o.known)
	case "transfer":
		return fmt.Sprintf("transfer %s to %s lease=%v fenced=%v", short(o.old), short(o.field), o.lease, o.fenced)
	case "level":
		return fmt.Sprintf("level %s count=%d change=%d lease=%v fenced=%v", short(o.field), o.count, o.change, o.lease, o.fenced)
	case "renew":
		s := "renew"
		for _, x := range o.targets {
			s += fmt.Sprintf(" %s:%v", short(x.field), x.lease)
		}
		return s
	}
	return o.kind + " " + short(o.field)
}

// op is what a client sends for o; nil for what goes in no batch.
func (o op) op(keys *Keys) (Op, bool) {
	switch o.kind {
	case "acquire":
		return Acquire(keys, o.fenced, o.field, o.lease), true
	case "wait":
		return Acquire(keys, o.fenced, o.field, o.lease).InTurn(o.turn), true
	case "release":
		return Unlock(keys, o.field, false).Calling(o.again, o.known), true
	case "quick":
		return Unlock(keys, o.field, false).CallingNewcomers(), true
	case "leave":
		return Leave(keys, o.again, false), true
	case "level":
		return Level(keys, o.fenced, o.field, o.lease, o.count, o.change), true
	case "unlock":
		return Unlock(keys, o.field, false), true
	case "transfer":
		return Transfer(keys, o.fenced, o.field, o.lease, o.old), true
	}
	return Op{}, false
}

// reply reads what a client is told; left is the time that belongs to it.
func (o op) reply(said outcome) (r reply, left time.Duration, err error) {
	for _, why := range []string{wrongType, noNumber} {
		var words redis.Error
		if errors.As(said.err, &words) && strings.Contains(words.Error(), why) {
			return reply{failed: why}, 0, nil
		}
	}
	switch o.kind {
	case "unlock", "release", "quick":
		return reply{released: said.Held, told: said.Receivers, place: said.Score, more: said.More, own: said.Own}, 0, said.err
	case "leave":
		return reply{more: said.More}, 0, said.err
	}
	r = reply{held: said.Held, token: said.Token, ttl: (o.kind == "acquire" || o.kind == "wait") && !said.Held}
	if r.own = said.Own; r.ttl {
		r.before, r.place, r.head, r.more = said.Before, said.Score, said.Head, said.More
	}
	return r, said.TTL, said.err
}

// short is the number of a hold.
func short(field string) string {
	if len(field) > 37 {
		return field[37:]
	}
	return field
}

// reply is what a command says, without the time that is left, which is compared apart.
type reply struct {
	held     bool
	token    int64
	released bool
	told     int
	locked   bool
	count    int
	holder   string
	own      string // the hold that has the lock, where it is another one of the client that asks
	gone     string // of renew: for each target, in order, 1 where the hold is gone
	ttl      bool   // a time that is left belongs to this reply
	failed   string // of an error reply

	before int // of a client that does not get the lock, and where it is in the line
	place  int64
	head   string
	more   bool
}

// The error replies to a lock that somebody else's data is in the way of.
const (
	wrongType = "WRONGTYPE"
	noNumber  = "not an integer"
)

// model is the lock as docs/protocol.md describes it: at most one hold, its count and latest change, its expiry, and the
// counter. It knows nothing of copies: an op does the same whenever it comes, and that is the rule.
type model struct {
	field   string // of the hold that has the lock, "" for none
	count   int
	change  int64 // number of the latest change, 0 before the first
	second  bool  // the hold has its second field, although there was no change: somebody has entered the line
	forever bool  // no expiry: somebody else did that
	expires span
	counted bool // the counter is there
	counter int64
	line    lined

	wrong  bool // the lock's key is of another type: nothing works
	spoilt bool // the counter is no number: no tokens
}

// apply does what the op does when Redis runs it within at.
func (m *model) apply(o op, at span) reply {
	m.line.said = nil
	if o.kind == "leave" {
		m.leave(o)
		return reply{}
	}
	if m.wrong {
		return reply{failed: wrongType}
	}
	switch o.kind {
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
		var r reply
		for _, x := range o.targets {
			if m.field == x.field {
				m.extend(x.lease, at)
				r.gone += "0"
			} else {
				r.gone += "1"
			}
		}
		return r
	case "inspect":
		r := reply{locked: m.field != "", holder: m.field, ttl: true}
		if m.field == o.field {
			r.count = m.count
		}
		return r

	// what happens without these scripts
	case "expire":
		m.free()
	case "age": // time passes: five seconds are left
		if m.field != "" {
			m.forever, m.expires = false, at.plus(aged)
		}
		m.line.aged = len(m.line.stays) > 0
		m.line.age(aged)
	case "persist":
		m.forever = m.field != ""
	case "listen":
		m.line.listened[o.field] = true
	case "turn away":
		m.line.listened[o.field] = false
	case "drop counter":
		m.counted, m.counter = false, 0
	case "redisson lock": // a Java process on the same lock, which adds and counts levels with tokens
		if m.field != "" && m.field != o.field {
			return reply{ttl: true}
		}
		m.field = o.field
		m.count++
		m.forever, m.expires = false, at.plus(o.lease)
		return reply{held: true, token: m.next()}
	case "redisson unlock":
		if m.field != o.field {
			return reply{}
		}
		if m.count--; m.count > 0 {
			m.forever, m.expires = false, at.plus(o.lease)
			return reply{}
		}
		m.free()
		m.line.tell("", "0")
		return reply{released: true}
	default:
		panic("no such op: " + o.kind)
	}
	return reply{}
}

func (m *model) acquire(o op, at span) reply {
	switch {
	case m.field != "" && m.field != o.field:
		return reply{ttl: true, before: NotInLine, own: m.own(o.field)}
	case o.fenced && m.spoilt:
		return reply{failed: noNumber}
	case m.field == o.field:
		return m.repeat(o, at)
	}
	return m.enter(o, at)
}

func (m *model) transfer(o op, at span) reply {
	switch {
	case m.field != o.field && m.field != o.old:
		return reply{}
	case o.fenced && m.spoilt:
		return reply{failed: noNumber}
	case m.field == o.field:
		return m.repeat(o, at)
	}
	return m.enter(o, at)
}

// enter makes o's the hold that has the lock.
func (m *model) enter(o op, at span) reply {
	m.free()
	m.field, m.count, m.expires = o.field, 1, at.plus(o.lease)
	if o.fenced {
		return reply{held: true, token: m.next()}
	}
	return reply{held: true}
}

func (m *model) repeat(o op, at span) reply {
	m.extend(o.lease, at)
	return reply{held: true, token: m.current(o.fenced)}
}

func (m *model) level(o op, at span) reply {
	switch {
	case m.field != o.field:
		return reply{}
	case o.fenced && m.spoilt:
		return reply{failed: noNumber}
	case o.change <= m.change: // a repeat, or an older one
		return reply{held: true, token: m.current(o.fenced)}
	}
	m.count, m.change = o.count, o.change
	if o.lease > 0 {
		m.extend(o.lease, at)
	}
	if o.fenced {
		return reply{held: true, token: m.next()}
	}
	return reply{held: true}
}

// own is the hold that has the lock, where it is of the client that the field is of.
func (m *model) own(field string) string {
	if m.field != "" && clientOf(m.field) == clientOf(field) {
		return m.field
	}
	return ""
}

func (m *model) free() { m.field, m.count, m.change, m.second, m.forever = "", 0, 0, false, false }

// extend never shortens.
func (m *model) extend(lease time.Duration, at span) {
	to := at.plus(lease)
	if m.forever {
		m.forever, m.expires = false, to
		return
	}
	if to.lo.After(m.expires.lo) {
		m.expires.lo = to.lo
	}
	if to.hi.After(m.expires.hi) {
		m.expires.hi = to.hi
	}
}

// next takes a token.
func (m *model) next() int64 {
	m.counted = true
	m.counter++
	return m.counter
}

// current is the counter's value: the latest token of the hold that has the lock.
func (m *model) current(fenced bool) int64 {
	switch {
	case !fenced:
		return 0
	case !m.counted:
		return m.next()
	}
	return m.counter
}

// checkTTL compares a time that is left, as read within at.
func (m *model) checkTTL(got time.Duration, at span) error {
	want := "no key"
	switch {
	case m.field == "" && got == NoKey, m.field != "" && m.forever && got == NoExpiry:
		return nil
	case m.field != "" && m.forever:
		want = "no expiry"
	case m.field != "":
		least, most := m.expires.lo.Sub(at.hi)-slack, m.expires.hi.Sub(at.lo)+slack
		if got >= 0 && got >= least && got <= most {
			return nil
		}
		want = fmt.Sprintf("%v to %v", least, most)
	}
	return fmt.Errorf("the time that is left is %v, want %s", got, want)
}

// check compares the whole state, as read within at.
func (m *model) check(got snapshot, at span) error {
	want := map[string]string{}
	if m.field != "" {
		want[m.field] = strconv.Itoa(m.count)
		if m.change > 0 || m.second {
			want[m.field+"#"] = strconv.FormatInt(m.change, 10)
		}
	}
	if !maps.Equal(got.hash, want) {
		return fmt.Errorf("the hash is %v, want %v", got.hash, want)
	}
	counter := ""
	if m.counted {
		counter = strconv.FormatInt(m.counter, 10)
	}
	if m.spoilt {
		counter = spoiltCounter
	}
	if got.counter != counter {
		return fmt.Errorf("the counter is %q, want %q", got.counter, counter)
	}
	if err := m.line.check(got); err != nil {
		return err
	}
	return m.checkTTL(TTL(got.pttl), at)
}
