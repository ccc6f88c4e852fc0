package linemodel

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Stay is a client's stay in the line.
type Stay struct {
	Ticket string
	Score  int64
}

// ClientOf is the client whose ticket it is.
func ClientOf(ticket string) string {
	client, _, _ := strings.Cut(ticket, ":")
	return client
}

// A Line is the line of the clients that wait, as docs/line.md describes it. Its expiry is renewed, or it is what "age" has left.
type Line struct {
	Stays    []Stay
	Aged     bool
	Listened map[string]int // by client: how many connections listen for it; "": on the lock's own channel
	Now      int64          // the server's time, where that made a score
	Seen     []Stay         // what Redis keeps after the latest op: by it the model knows when exactly somebody was asked
	Said     []string       // what the latest op has told those who listen, in order
}

// tell sends a message to the client, or on the lock's own channel. It returns how many were told.
func (l *Line) tell(client, message string) int {
	n := l.Listened[client]
	if n > 0 {
		l.Said = append(l.Said, client+" "+message)
	}
	return n
}

// call calls the first client that is listened for, and tells the next one that is to watch it. Who is before them and does not
// listen is taken out. The first one is told how many heard
// of the release on the lock's own channel, but for the client who had the hold of this field, if that is another one. It reports
// whether it has called one.
func (l *Line) call(told int, field string, known int) bool {
	for len(l.Stays) > 0 {
		head, others := l.Stays[0].Ticket, told
		if ClientOf(head) != ClientOf(field) {
			others = max(told-known, 0)
		}
		if l.tell(ClientOf(head), fmt.Sprintf("c %s %d", head, others)) > 0 {
			if field != "" && l.Stays[0].Score < 0 {
				l.Stays = slices.Clone(l.Stays)
				l.Stays[0].Score |= 1
			}
			if field != "" {
				head += " 1"
			}
			for len(l.Stays) > 1 {
				second := l.Stays[1].Ticket
				if l.tell(ClientOf(second), "w "+second+" "+head) > 0 {
					break
				}
				l.Stays = slices.Delete(l.Stays, 1, 2)
			}
			return true
		}
		l.Stays = l.Stays[1:]
	}
	return false
}

// forLine reports whether a release of the hold of this field is not told on the lock's own channel.
func (l *Line) forLine(field string) bool {
	return len(l.Stays) > 1 && Choice(field, len(l.Stays)+1) > 0
}

// Choice is a number below n that goes with the field.
func Choice(field string, n int) int {
	sum := sha1.Sum([]byte(field))
	return (int(sum[0])<<16 | int(sum[1])<<8 | int(sum[2])) % n
}

// find is where the ticket is in the line, -1 if it is not there.
func (l *Line) find(ticket string) int {
	return slices.IndexFunc(l.Stays, func(s Stay) bool { return s.Ticket == ticket })
}

func (l *Line) remove(ticket string) bool {
	i := l.find(ticket)
	if i >= 0 {
		l.Stays = slices.Delete(slices.Clone(l.Stays), i, i+1)
	}
	return i >= 0
}

// Join puts the ticket at the end, or at the place that it had. It returns its score, and how many are before it.
func (l *Line) Join(ticket string, place int64, at Span) (score int64, before int) {
	n, there := len(l.Stays), l.find(ticket) >= 0
	switch {
	case n > 0 && l.Stays[n-1].Score >= 0:
		score = l.Stays[n-1].Score + 1
	case l.Now >= at.Lo.Add(-Slack).UnixMicro() && l.Now <= at.Hi.Add(Slack).UnixMicro():
		score = l.Now
	default:
		score = at.Hi.UnixMicro()
	}
	if place != 0 {
		score = min(score, place)
	}
	l.Aged = l.Aged && n > 0 && place == 0 && !there && score%16 != 0
	if !there {
		l.Stays = append(slices.Clone(l.Stays), Stay{ticket, score})
		slices.SortFunc(l.Stays, func(a, b Stay) int {
			if a.Score != b.Score {
				return int(a.Score - b.Score)
			}
			return strings.Compare(a.Ticket, b.Ticket)
		})
	}
	i := l.find(ticket)
	return l.Stays[i].Score, min(i, 2)
}

// wait is acquire, if it is the client's turn.
func (m *Model) wait(o Op, at Span) Reply {
	if m.Field != "" && m.Field != o.Field {
		return m.waits(o, at, "")
	}
	waited := false
	if m.Field == "" {
		var first string
		if first, waited = m.Line.before(o.Turn, at); first != "" {
			return m.waits(o, at, first)
		}
	}
	r := m.acquire(o, at)
	if r.Held {
		m.Line.taken(o.Turn, waited)
	}
	return r
}

// waits is what a client hears whose turn it is not.
func (m *Model) waits(o Op, at Span, head string) Reply {
	r := Reply{TTL: true, Before: notInLine, Head: head, Own: m.own(o.Field)}
	if o.Turn.Ticket == "" {
		return r
	}
	m.Second = m.Second || m.Field != ""
	if !m.Line.prove(o.Turn) {
		m.Line.remove(o.Turn.Ticket)
		return r
	}
	r.Place, r.Before = m.Line.stand(o.Turn, at, m.Field != "")
	return r
}

// prove tells whether the client may enter: it was counted, or is now.
func (l *Line) prove(t Turn) bool {
	if t.Unproven && l.tell(ClientOf(t.Ticket), "") == 0 {
		return false
	}
	l.Aged = l.Aged && !t.Unproven
	return true
}

// before is the ticket of the client that comes first to the free lock; "" where the one that asks may take it. waited: somebody is in the line.
func (l *Line) before(t Turn, at Span) (first string, waited bool) {
	if t.Ticket != "" && t.Score != 0 {
		l.Join(t.Ticket, t.Score, at)
	}
	waited = len(l.Stays) > 0
	if l.isToAsk(t, at) {
		l.ask(t.Ticket, at)
	}
	if len(l.Stays) > 0 && l.Stays[0].Ticket != t.Ticket {
		first = l.Stays[0].Ticket
	}
	return first, waited
}

// taken is for a client that has taken the lock.
func (l *Line) taken(t Turn, waited bool) {
	l.remove(t.Ticket)
	if waited && t.Look {
		l.near()
	}
}

// stand has a client be in the line that has not got the lock.
func (l *Line) stand(t Turn, at Span, held bool) (place int64, before int) {
	there := l.find(t.Ticket) >= 0
	place, before = l.Join(t.Ticket, t.Score, at)
	if place < 0 {
		place |= 1 // it has come
		l.Stays = slices.Clone(l.Stays)
		l.Stays[l.find(t.Ticket)].Score = place
	}
	if there && before == 0 && held && len(l.Stays) > 1 {
		second := l.Stays[1].Ticket
		l.tell(ClientOf(second), "a "+second)
	}
	return place, before
}

// The score of a client that was asked says when, in milliseconds, and whether it has come since: see turn.lua.
const askedPlace = int64(1) << 43

// asked says when the client was asked, and whether it has come since; 0 for never.
func (s Stay) asked() (since int64, came bool) {
	if s.Score >= 0 {
		return 0, false
	}
	rest := s.Score & (askedPlace - 1)
	return rest / 2, rest&1 == 1
}

// Late tells whether the client was asked, and has not come within its time.
func (s Stay) Late(now time.Time) bool {
	since, came := s.asked()
	return since != 0 && !came && now.UnixMilli()-since >= 100
}

// within tells whether less than this many milliseconds are over since this time. Where the test cannot know, as both happen at once, Redis
// decides. A span without a length is an instant that is known.
func (at Span) within(since, has int64, redis func() bool) bool {
	const slack = 3
	switch {
	case at.Lo.Equal(at.Hi):
		return at.Lo.UnixMilli()-since < has
	case at.Hi.UnixMilli()-since < has-slack:
		return true
	case at.Lo.UnixMilli()-since > has+slack:
		return false
	}
	return redis()
}

// seenAs is the client's stay as Redis keeps it after the latest op.
func (l *Line) seenAs(ticket string) (s Stay, there bool) {
	i := slices.IndexFunc(l.Seen, func(s Stay) bool { return s.Ticket == ticket })
	if i < 0 {
		return Stay{}, false
	}
	return l.Seen[i], true
}

// awaited tells whether the client was asked, has not come, and has time left; late whether it has none.
func (l *Line) awaited(s Stay, at Span) (is, late bool) {
	since, came := s.asked()
	if since == 0 || came {
		return false, false
	}
	is = at.within(since, 100, func() bool { _, there := l.seenAs(s.Ticket); return there })
	return is, !is
}

// isToAsk takes out the first ones who have not come, and tells whether the client is to have the others asked.
func (l *Line) isToAsk(t Turn, at Span) bool {
	for len(l.Stays) > 0 && l.Stays[0].Ticket != t.Ticket {
		head := l.Stays[0]
		waits, late := l.awaited(head, at)
		if !late && head.Ticket != t.Stale {
			return !waits && (t.Look || len(l.Stays) == 1 || l.Stays[1].Ticket == t.Ticket)
		}
		l.Stays = l.Stays[1:]
		l.tell(ClientOf(head.Ticket), "d "+head.Ticket)
	}
	return false
}

// ask asks the clients before this one for a sign of life, as many as listen of the first eight of which any does.
func (l *Line) ask(ticket string, at Span) {
	for len(l.Stays) > 0 && l.Stays[0].Ticket != ticket && !l.askSome(ticket, at) {
	}
}

// askSome asks the first eight. It tells whether any of them listens, or is not asked.
func (l *Line) askSome(ticket string, at Span) bool {
	kept, n := l.Stays[:0:0], int64(0)
	for i, s := range l.Stays {
		if s.Ticket == ticket || i == 8 {
			kept = append(kept, l.Stays[i:]...)
			break
		}
		since, came := s.asked()
		waits, _ := l.awaited(s, at)
		asks := !waits && !(came && at.within(since, 50, func() bool { seen, _ := l.seenAs(s.Ticket); _, came := seen.asked(); return came }))
		if asks && l.tell(ClientOf(s.Ticket), "s "+s.Ticket) == 0 {
			continue
		}
		if asks {
			seen, _ := l.seenAs(s.Ticket)
			if since, _ = seen.asked(); since < at.Lo.UnixMilli()-1 || since > at.Hi.UnixMilli()+1 {
				since = at.Hi.UnixMilli()
			}
			came = false
		}
		s.Score = (n-1024)*askedPlace + 2*since
		if came {
			s.Score++
		}
		kept, n = append(kept, s), n+1
	}
	whole := len(kept) == len(l.Stays)
	l.Stays = kept
	return whole || n > 0
}

// age makes so much time pass for those who were asked.
func (l *Line) age(d time.Duration) {
	for i := range l.Stays {
		if l.Stays[i].Score < 0 {
			l.Stays[i].Score -= 2 * d.Milliseconds()
		}
	}
}

// release is unlock, and calls the first client in the line.
func (m *Model) release(o Op, at Span) Reply {
	if m.Field != o.Field {
		if m.Field == "" && o.Kind != "unlock" && !m.Line.call(0, "", 0) {
			m.Line.tell("", "0")
		}
		return Reply{Own: m.own(o.Field)}
	}
	calls := o.Kind == "release" || o.Kind == "quick" && (m.Second || m.Change > 0)
	m.free()
	r := Reply{Released: true}
	if calls && o.Again != "" {
		r.Place, _ = m.Line.Join(o.Again, 0, at)
	}
	forLine := calls && o.Known != notTheHolder && m.Line.forLine(o.Field)
	if forLine && m.Line.call(0, o.Field, 0) {
		return r
	}
	r.Told = m.Line.tell("", "0")
	if calls && !forLine {
		m.Line.call(r.Told, o.Field, max(o.Known, 0))
	}
	return r
}

func (m *Model) leave(o Op) {
	removed := m.Line.remove(o.Again)
	if m.Field == "" && !m.Wrong {
		if !m.Line.call(0, "", 0) {
			m.Line.tell("", "0")
		}
	} else if removed {
		m.Line.near()
	}
}

// near tells the first two where they are.
func (l *Line) near() {
	for _, s := range l.Stays[:min(2, len(l.Stays))] {
		l.tell(ClientOf(s.Ticket), "n "+s.Ticket)
	}
}
