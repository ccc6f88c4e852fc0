package scripts

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"time"
)

// stay is a client's stay in the line.
type stay struct {
	ticket string
	score  int64
}

// clientOf is the client whose ticket it is.
func clientOf(ticket string) string {
	client, _, _ := strings.Cut(ticket, ":")
	return client
}

// lined is the line of the clients that wait, as docs/line.md describes it. Its expiry is renewed, or it is what "age" has left.
type lined struct {
	stays    []stay
	aged     bool
	listened map[string]bool // the clients that are listened for; "": somebody listens on the lock's own channel
	now      int64           // the server's time, where that made a score
	said     []string        // what the latest op has told those who listen, in order
}

// tell sends a message to the client, or on the lock's own channel. It returns how many were told.
func (l *lined) tell(client, message string) int {
	if !l.listened[client] {
		return 0
	}
	l.said = append(l.said, client+" "+message)
	return 1
}

// call calls the first client that is listened for, and tells the next one that is to watch it. Who is before them and does not
// listen is taken out. The first one is told how many heard
// of the release on the lock's own channel, but for the client who had the hold of this field, if that is another one. It reports
// whether it has called one.
func (l *lined) call(told int, field string, known int) bool {
	for len(l.stays) > 0 {
		head, others := l.stays[0].ticket, told
		if clientOf(head) != clientOf(field) {
			others = max(told-known, 0)
		}
		if l.tell(clientOf(head), fmt.Sprintf("c %s %d", head, others)) > 0 {
			if field != "" {
				head += " 1"
			}
			for len(l.stays) > 1 {
				second := l.stays[1].ticket
				if l.tell(clientOf(second), "w "+second+" "+head) > 0 {
					break
				}
				l.stays = slices.Delete(l.stays, 1, 2)
			}
			return true
		}
		l.stays = l.stays[1:]
	}
	return false
}

// forLine reports whether a release of the hold of this field is not told on the lock's own channel.
func (l *lined) forLine(field string) bool {
	return len(l.stays) > 1 && choice(field, len(l.stays)+1) > 0
}

// choice is a number below n that goes with the field.
func choice(field string, n int) int {
	sum := sha1.Sum([]byte(field))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) % n
}

// find is where the ticket is in the line, -1 if it is not there.
func (l *lined) find(ticket string) int {
	return slices.IndexFunc(l.stays, func(s stay) bool { return s.ticket == ticket })
}

func (l *lined) remove(ticket string) bool {
	i := l.find(ticket)
	if i >= 0 {
		l.stays = slices.Delete(slices.Clone(l.stays), i, i+1)
	}
	return i >= 0
}

// join puts the ticket at the end, or at the place that it had. It returns its score, and how many are before it.
func (l *lined) join(ticket string, place int64, at span) (score int64, before int) {
	n, there := len(l.stays), l.find(ticket) >= 0
	switch {
	case n > 0:
		score = l.stays[n-1].score + 1
	case l.now >= at.lo.Add(-slack).UnixMicro() && l.now <= at.hi.Add(slack).UnixMicro():
		score = l.now
	default:
		score = at.hi.UnixMicro()
	}
	if place != 0 {
		score = min(score, place)
	}
	l.aged = l.aged && n > 0 && place == 0 && !there && score%16 != 0
	if !there {
		l.stays = append(slices.Clone(l.stays), stay{ticket, score})
		slices.SortFunc(l.stays, func(a, b stay) int {
			if a.score != b.score {
				return int(a.score - b.score)
			}
			return strings.Compare(a.ticket, b.ticket)
		})
	}
	i := l.find(ticket)
	return l.stays[i].score, min(i, 2)
}

// wait is acquire, if it is the client's turn.
func (m *model) wait(o op, at span) reply {
	t, l := o.turn, &m.line
	if m.field != "" && m.field != o.field {
		return m.waits(o, at, "")
	}
	waited := false
	if m.field == "" {
		if t.Ticket != "" && t.Score != 0 {
			l.join(t.Ticket, t.Score, at)
		}
		waited = len(l.stays) > 0
		if len(l.stays) > 0 && l.stays[0].ticket == t.Stale && t.Stale != t.Ticket {
			l.stays = l.stays[1:]
			l.tell(clientOf(t.Stale), "d "+t.Stale)
		}
		if n := len(l.stays); n > 0 && l.stays[0].ticket != t.Ticket && (t.Look || n == 1 || l.stays[1].ticket == t.Ticket) {
			l.call(0, "", 0)
		}
		if len(l.stays) > 0 && l.stays[0].ticket != t.Ticket {
			return m.waits(o, at, l.stays[0].ticket)
		}
	}
	r := m.acquire(o, at)
	if r.held {
		l.remove(t.Ticket)
		if waited && t.Look {
			l.near()
		}
	}
	return r
}

// waits is what a client hears whose turn it is not.
func (m *model) waits(o op, at span, head string) reply {
	r := reply{ttl: true, before: NotInLine, head: head, own: m.own(o.field)}
	if o.turn.Ticket != "" {
		m.second = m.second || m.field != ""
		there := m.line.find(o.turn.Ticket) >= 0
		r.place, r.before = m.line.join(o.turn.Ticket, o.turn.Score, at)
		if there && r.before == 0 && m.field != "" && len(m.line.stays) > 1 {
			second := m.line.stays[1].ticket
			m.line.tell(clientOf(second), "a "+second)
		}
	}
	return r
}

// release is unlock, and calls the first client in the line.
func (m *model) release(o op, at span) reply {
	if m.field != o.field {
		if m.field == "" && o.kind != "unlock" && !m.line.call(0, "", 0) {
			m.line.tell("", "0")
		}
		return reply{own: m.own(o.field)}
	}
	calls := o.kind == "release" || o.kind == "quick" && (m.second || m.change > 0)
	m.free()
	r := reply{released: true}
	if calls && o.again != "" {
		r.place, _ = m.line.join(o.again, 0, at)
	}
	forLine := calls && o.known != NotTheHolder && m.line.forLine(o.field)
	if forLine && m.line.call(0, o.field, 0) {
		return r
	}
	r.told = m.line.tell("", "0")
	if calls && !forLine {
		m.line.call(r.told, o.field, max(o.known, 0))
	}
	return r
}

func (m *model) leave(o op) {
	removed := m.line.remove(o.again)
	if m.field == "" && !m.wrong {
		if !m.line.call(0, "", 0) {
			m.line.tell("", "0")
		}
	} else if removed {
		m.line.near()
	}
}

// near tells the first two where they are.
func (l *lined) near() {
	for _, s := range l.stays[:min(2, len(l.stays))] {
		l.tell(clientOf(s.ticket), "n "+s.ticket)
	}
}

// check compares the line.
func (l *lined) check(got snapshot) error {
	if !slices.Equal(got.line, l.stays) {
		return fmt.Errorf("the line is %v, want %v", got.line, l.stays)
	}
	if left := time.Duration(got.linePTTL) * time.Millisecond; len(l.stays) > 0 && (left <= 0 || left > 10*time.Minute || left <= aged != l.aged) {
		return fmt.Errorf("the line lives for %v, aged %v", left, l.aged)
	}
	return nil
}
