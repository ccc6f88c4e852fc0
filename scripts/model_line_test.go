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
	seen     []stay          // what Redis keeps after the latest op: by it the model knows when exactly somebody was asked
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
			if field != "" && l.stays[0].score < 0 {
				l.stays = slices.Clone(l.stays)
				l.stays[0].score |= 1
			}
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
	case n > 0 && l.stays[n-1].score >= 0:
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
		if l.isToAsk(t, at) {
			l.ask(t.Ticket, at)
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
		if r.place < 0 {
			r.place |= 1 // it has come
			m.line.stays[m.line.find(o.turn.Ticket)].score = r.place
		}
		if there && r.before == 0 && m.field != "" && len(m.line.stays) > 1 {
			second := m.line.stays[1].ticket
			m.line.tell(clientOf(second), "a "+second)
		}
	}
	return r
}

// The score of a client that was asked says when, in milliseconds, and whether it has come since: see turn.lua.
const askedPlace = int64(1) << 43

// asked says when the client was asked, and whether it has come since; 0 for never.
func (s stay) asked() (since int64, came bool) {
	if s.score >= 0 {
		return 0, false
	}
	rest := s.score & (askedPlace - 1)
	return rest / 2, rest&1 == 1
}

// before tells whether less than this many milliseconds are over since this time. Where the test cannot know, as both happen at once, Redis decides.
func (at span) before(since, has int64, redis func() bool) bool {
	const slack = 3
	switch {
	case at.hi.UnixMilli()-since < has-slack:
		return true
	case at.lo.UnixMilli()-since > has+slack:
		return false
	}
	return redis()
}

// seenAs is the client's stay as Redis keeps it after the latest op.
func (l *lined) seenAs(ticket string) (s stay, there bool) {
	i := slices.IndexFunc(l.seen, func(s stay) bool { return s.ticket == ticket })
	if i < 0 {
		return stay{}, false
	}
	return l.seen[i], true
}

// awaited tells whether the client was asked, has not come, and has time left; late whether it has none.
func (l *lined) awaited(s stay, at span) (is, late bool) {
	since, came := s.asked()
	if since == 0 || came {
		return false, false
	}
	is = at.before(since, 100, func() bool { _, there := l.seenAs(s.ticket); return there })
	return is, !is
}

// isToAsk takes out the first ones who have not come, and tells whether the client is to have the others asked.
func (l *lined) isToAsk(t Turn, at span) bool {
	for len(l.stays) > 0 && l.stays[0].ticket != t.Ticket {
		head := l.stays[0]
		waits, late := l.awaited(head, at)
		if !late && head.ticket != t.Stale {
			return !waits && (t.Look || len(l.stays) == 1 || l.stays[1].ticket == t.Ticket)
		}
		l.stays = l.stays[1:]
		l.tell(clientOf(head.ticket), "d "+head.ticket)
	}
	return false
}

// ask asks the clients before this one for a sign of life, as many as listen of the first eight of which any does.
func (l *lined) ask(ticket string, at span) {
	for len(l.stays) > 0 && l.stays[0].ticket != ticket && !l.askSome(ticket, at) {
	}
}

// askSome asks the first eight. It tells whether any of them listens, or is not asked.
func (l *lined) askSome(ticket string, at span) bool {
	kept, n := l.stays[:0:0], int64(0)
	for i, s := range l.stays {
		if s.ticket == ticket || i == 8 {
			kept = append(kept, l.stays[i:]...)
			break
		}
		since, came := s.asked()
		waits, _ := l.awaited(s, at)
		asks := !waits && !(came && at.before(since, 50, func() bool { seen, _ := l.seenAs(s.ticket); _, came := seen.asked(); return came }))
		if asks && l.tell(clientOf(s.ticket), "s "+s.ticket) == 0 {
			continue
		}
		if asks {
			seen, _ := l.seenAs(s.ticket)
			if since, _ = seen.asked(); since < at.lo.UnixMilli()-1 || since > at.hi.UnixMilli()+1 {
				since = at.hi.UnixMilli()
			}
			came = false
		}
		s.score = (n-1024)*askedPlace + 2*since
		if came {
			s.score++
		}
		kept, n = append(kept, s), n+1
	}
	whole := len(kept) == len(l.stays)
	l.stays = kept
	return whole || n > 0
}

// age makes so much time pass for those who were asked.
func (l *lined) age(d time.Duration) {
	for i := range l.stays {
		if l.stays[i].score < 0 {
			l.stays[i].score -= 2 * d.Milliseconds()
		}
	}
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
