package rlock

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A place is this client's place in the line of the clients that wait for one lock. The line is in Redis, see
// scripts/line.lua: a release calls the first client in it, and nobody else of ours takes the lock then. The client is in it
// once, for the call that waits longest here.
type place struct {
	mu     sync.Mutex // a leaf: nothing is called with it held
	ticket string     // of this stay in the line; "" for none
	score  int64      // the place, as Redis has said; 0 until then
	head   time.Time  // since when it is the first, as far as is known; zero if it is not
	second time.Time  // the same of the second
	notice notice
	again  bool // the channel was away: it is to be entered anew, in its old place
	enters bool // the ticket enters the line with a release that is under way

	due    time.Time // when to look, whichever call leads then
	called string    // the ticket of the client that is called, as far as is known; "" for none
	since  time.Time // since when

	entered time.Time     // when this stay began
	last    time.Duration // how long the one before took
	vain    time.Time     // when the client was called last, and another one had taken the lock
	unused  int           // so many pauses for strangers in a row that none of them has used
	noPause time.Time     // no pause for strangers before this time
}

// A notice is what was heard about a place, and what nobody has acted on yet.
type notice struct {
	called bool   // the lock is free, and it is this client's turn
	others int    // so many connections had heard of the release
	length int    // of the line
	watch  string // the ticket of the first one, which was called; this client is the second
	near   bool   // it is the first or the second, and the lock is held
	lost   bool   // it is not in the line any more, or may not be
}

const (
	// headLate is how long a client that was called may take before it is taken out of the line. A frozen client, or a host
	// that is throttled for longer, loses its place.
	headLate = 100 * time.Millisecond
	// headListens is after what time the first client in the line listens on the lock's own channel too: the release of a
	// Redisson client calls nobody, and is told there alone.
	headListens = 20 * time.Millisecond
	// secondListens is after what time the second does, too: the first may be frozen, and others may have the lock again and again.
	secondListens = 300 * time.Millisecond
	// strangersPause is how long a client that was called leaves the lock to those that are in no line: a JVM needs about a
	// millisecond to wake up and ask.
	strangersPause = 5 * time.Millisecond
	// maxUnused is how many pauses in a row may be for nothing: a JVM on a busy machine misses some. After more of them there is
	// none for a while, up to maxNoPause.
	maxUnused  = 3
	maxNoPause = time.Second
	// lineLingers is how long a client that waits no more still listens to be called: its callers may come back, and what it
	// has sent may arrive late.
	lineLingers = 2 * time.Second
)

// begin returns the ticket of this stay, made if need be, and the place that it is to have again, or 0.
func (p *place) begin(fresh func() string) (ticket string, score int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticket == "" {
		p.ticket, p.score, p.head = fresh(), 0, time.Time{}
		p.notice, p.again, p.enters, p.entered = notice{}, false, false, time.Now()
	}
	if p.again {
		score = p.score
	}
	p.notice.called, p.notice.lost = false, false
	return p.ticket, score
}

// in tells whether the client is in the line, as far as Redis has said.
func (p *place) in() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticket != "" && p.score != 0 && !p.again
}

// behind tells whether the client is in the line and knows of others before it.
func (p *place) behind() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticket != "" && (p.score != 0 || p.enters) && !p.again && p.head.IsZero() && lasting(p.second) < secondListens
}

// answered notes what Redis says of the place with this ticket.
func (p *place) answered(ticket string, score int64, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticket != ticket {
		return
	}
	p.score, p.again, p.enters = score, false, false
	p.head, p.second = since(p.head, before == 0), since(p.second, before == 1)
}

// since is when something began that is so or is not.
func since(began time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case began.IsZero():
		return time.Now()
	}
	return began
}

// lasting is for how long has been so what began at this time; 0 for none.
func lasting(began time.Time) time.Duration {
	if began.IsZero() {
		return 0
	}
	return time.Since(began)
}

// pass leaves what the call that leads was about to do to the next one that does: it may have been called.
func (p *place) pass() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice.lost = p.ticket != ""
}

// returned notes the place that this ticket got with a release, the last one; 0: none.
func (p *place) returned(ticket string, score int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enters = false
	if p.ticket == ticket && ticket != "" && score != 0 {
		p.score = score
	}
}

// releases notes that the ticket enters the line with a release.
func (p *place) releases() {
	p.mu.Lock()
	p.enters = true
	p.mu.Unlock()
}

// ends ends the stay with this ticket: it took the lock.
func (p *place) ends(ticket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ticket != "" && p.ticket == ticket {
		p.last = time.Since(p.entered)
		p.ticket, p.score, p.head, p.second, p.notice, p.called = "", 0, time.Time{}, time.Time{}, notice{}, ""
	}
}

// give returns the ticket that the client is to leave the line with, or "".
func (p *place) give() string {
	p.mu.Lock()
	ticket := p.ticket
	p.mu.Unlock()
	p.ends(ticket)
	return ticket
}

// hear notes a message about the client's place. ghost is the ticket of one that calls it for a place that it has not got.
func (p *place) hear(text string) (ghost string) {
	words := strings.Split(text, " ")
	if len(words) < 2 {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if words[1] != p.ticket {
		if words[0] == "c" {
			return words[1]
		}
		return ""
	}
	switch {
	case words[0] == "c" && len(words) == 4:
		p.notice.called, p.notice.watch = true, ""
		p.notice.others, _ = strconv.Atoi(words[2])
		p.notice.length, _ = strconv.Atoi(words[3])
		if p.head.IsZero() {
			p.head = time.Now()
		}
	case words[0] == "w" && len(words) >= 3:
		p.notice.watch = words[2]
		if len(words) > 3 {
			p.called = "" // anew: the bound begins again
		}
	case words[0] == "a":
		p.called = ""
	case words[0] == "n":
		p.notice.near = true
	case words[0] == "d":
		p.notice.lost, p.score, p.again = true, 0, false
	}
	return ""
}

// away notes that the channel on which the client is called was away, or is back: the call that leads asks then.
func (p *place) away() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = p.ticket != "" && p.score != 0
}

// heard returns what was heard since the last time.
func (p *place) heard() notice {
	if p == nil {
		return notice{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.notice
	p.notice = notice{}
	return n
}

// pending tells whether anything was heard.
func (p *place) pending() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.notice != notice{}
}

// sleeps notes when the call that leads is to look: another one may lead by then.
func (p *place) sleeps(due time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.due = due
	p.mu.Unlock()
}

// left is how long it is until somebody is to look.
func (p *place) left() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.due)
}

// watch notes that the client with this ticket is called, or with "" that none is, and returns how long it may take to come. out:
// the ticket that was to be taken out just now, or "".
func (p *place) watch(ticket, out string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.called != ticket || ticket == out {
		p.called, p.since = ticket, time.Now()
	}
	return max(headLate-time.Since(p.since), time.Millisecond)
}

// late returns the ticket of a client that is called and has not come in time, or "".
func (p *place) late() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.called == "" || time.Since(p.since) < headLate {
		return ""
	}
	return p.called
}

// secondFor is for how long the client has been the second in the line, as far as is known.
func (p *place) secondFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lasting(p.second)
}

// firstFor is for how long the client has been the first in the line, as far as is known.
func (p *place) firstFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return lasting(p.head)
}

// newcomer notes that this client is further back in the line of a lock that is free, and returns how long it is until it looks:
// the second watches the first one. Who comes back again and again waits for as long as others in the line.
func (p *place) newcomer() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.called = ""
	return max(2*headLate, 2*p.last)
}

// looks is how long a client in the line waits to be told before it looks by itself. listens: on the lock's own channel
// too. The rule: the first when the lease ends, or at once when it is to begin to listen; the second a bit later; all
// others after twice as long as they waited the last time, and later each time.
func (p *place) looks(a scripts.Answer, listens bool, quiet int, poll time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	most := 10 * poll
	switch {
	case a.TTL == scripts.NoExpiry:
		return poll
	case a.Before == 0 && !listens:
		return max(headListens-time.Since(p.head), 0)
	case a.Before == 0:
		return min(a.TTL+time.Millisecond, poll<<min(quiet, 4), most)
	case a.Before == 1 && !listens:
		return min(a.TTL+headLate, max(secondListens-time.Since(p.second), 0))
	case a.Before == 1:
		return min(a.TTL+headLate, most)
	}
	return min(max(2*p.last, poll<<min(quiet, 4)), most)
}

// pause is how long a client that was called leaves the lock to strangers, which are in no line: one of them gets as many
// turns as one of the clients in it. So many of those who heard of the release are this client itself.
func (p *place) pause(n notice, known int) time.Duration {
	n.others -= known
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if n.others <= 0 || now.Before(p.noPause) || p.vain.After(p.entered) || rand.IntN(max(n.length, 1)) != 0 {
		return 0
	}
	return strangersPause
}

// paused notes whether a stranger has used a pause.
func (p *place) paused(used bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if used {
		p.unused = 0
		return
	}
	if p.unused++; p.unused > maxUnused {
		p.noPause = time.Now().Add(min(10*strangersPause<<min(p.unused-maxUnused, 10), maxNoPause))
	}
}

// calledInVain notes that the client was called, and that another one has the lock, which was in no line.
func (p *place) calledInVain() {
	p.mu.Lock()
	p.vain = time.Now()
	p.mu.Unlock()
}

// strangers tells whether others than the clients in the line have taken the lock a moment ago.
func (p *place) strangers() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.vain.IsZero() && time.Since(p.vain) < maxNoPause
}
