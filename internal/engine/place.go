package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A place is this client's place in the line of the clients that wait for one lock. The line is in Redis (scripts/line.lua): a
// release calls the first client in it, and no other client of this library takes the lock then. A client is in the line once,
// for its leader.
type place struct {
	mu sync.Mutex // a leaf: nothing is called with it held
	stay

	lookAt       time.Time // when the leader is to look, whichever waiter leads by then
	calledTicket string    // of the client that has been called, as far as is known; "" for none
	calledSince  time.Time // since when it has been called
	aliveCount   int       // how often the first client in the line has said that it is alive

	lastStay       time.Duration // how long the client was in the line with the ticket before
	calledInVainAt time.Time     // when the client was last called, and another one had taken the lock
	yields         yieldPolicy
}

// A stay is what the client knows of its own place in one stay in the line. Nothing of it outlasts the stay.
type stay struct {
	ticket            string    // with which the client is in the line; "" for none
	enteredAt         time.Time // when the ticket was made
	score             int64     // of the ticket, as Redis has said with Answer.Score; 0 before that
	firstSince        time.Time // since when the client is the first, as far as it knows; zero if it is not
	secondSince       time.Time // since when the client is the second; zero if it is not
	notice            notice
	entersAgain       bool // the channel was away: the client is to enter the line again, with its old score
	enteringByRelease bool // the ticket enters the line with a release that is under way
}

// A notice is what the client has heard about its place, and has not acted on yet.
type notice struct {
	called    bool   // the lock is free, and it is this client's turn
	listeners int    // so many connections had heard of the release
	watch     string // the ticket of the first one, which was called; this client is the second
	moved     bool   // the client has become the first or the second, and the lock is held
	lost      bool   // the client is not in the line any more, or may not be
}

const (
	// calledTimeout is how long a client that was called may take before it is taken out of the line, and maxCalledTimeout how long one
	// may that is far from Redis (distance.go). A frozen client, or a host that is throttled for longer, loses its place.
	calledTimeout    = 100 * time.Millisecond
	maxCalledTimeout = time.Second
	// firstListensAfter is after what time the first client in the line listens on the lock's own channel too: the release of a
	// Redisson client calls nobody, and is told there alone.
	firstListensAfter = 20 * time.Millisecond
	// secondListensAfter is after what time the second does, too: the first may be frozen, and others may have the lock again and again.
	secondListensAfter = 300 * time.Millisecond
	// yieldTime is how long a client that was called leaves the lock to outsiders, which are in no line: a JVM needs about a
	// millisecond to wake up and ask.
	yieldTime = 5 * time.Millisecond
	// maxUnusedYields is how many times in a row a client yields for nothing: a JVM on a busy machine misses some. After more of them
	// the client does not yield for a while, up to maxNoYield.
	maxUnusedYields = 3
	maxNoYield      = time.Second
	// lingerTime is how long a client that waits no more still listens to be called: its callers may come back, and what it
	// has sent may arrive late.
	lingerTime = 2 * time.Second
)

// turn returns the ticket of the client's stay in the line, made by fresh if there is none, and the score that the ticket is to have
// again, or 0. It drops the notices that the client was called and that its place was lost: the attempt with the ticket asks about both.
func (p *place) turn(fresh func() string) (ticket string, score int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticket == "" {
		p.stay = stay{ticket: fresh(), enteredAt: time.Now()}
	}
	if p.entersAgain {
		score = p.score
	}
	p.notice.called, p.notice.lost = false, false
	return p.ticket, score
}

// inLine tells whether the client is in the line, as far as Redis has said.
func (p *place) inLine() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticket != "" && p.score != 0 && !p.entersAgain
}

// behind tells whether the client leaves messages of a release to others (P26): the client is in the line, or a release that is under
// way enters its ticket, and the client is not the first, and has not been the second for secondListensAfter. A client whose channel was
// away is not counted as in the line.
func (p *place) behind() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ticket != "" && (p.score != 0 || p.enteringByRelease) && !p.entersAgain && p.firstSince.IsZero() && timeSince(p.secondSince) < secondListensAfter
}

// placeKnown notes what Redis says of the place with this ticket.
func (p *place) placeKnown(ticket string, score int64, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticket != ticket {
		return
	}
	p.score, p.entersAgain, p.enteringByRelease = score, false, false
	p.firstSince, p.secondSince = keepSince(p.firstSince, before == 0), keepSince(p.secondSince, before == 1)
}

// keepSince returns since when something is so: began, or now where it has not been so before. The zero time says that it is not so.
func keepSince(began time.Time, is bool) time.Time {
	switch {
	case !is:
		return time.Time{}
	case began.IsZero():
		return time.Now()
	}
	return began
}

// timeSince returns how long ago this time was; 0 for the zero time.
func timeSince(began time.Time) time.Duration {
	if began.IsZero() {
		return 0
	}
	return time.Since(began)
}

// leaveToNext is called when the waiter that leads goes without the lock although it was to ask Redis, or had asked. It makes the next
// waiter that leads ask, by the notice that the place may be lost: the client may have been called, and the waiter that goes has had that
// notice.
func (p *place) leaveToNext() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice.lost = p.ticket != ""
}

// entered notes that a release is over, and the score that this ticket got by it, at the end of the line. score 0: the release entered no
// ticket.
func (p *place) entered(ticket string, score int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enteringByRelease = false
	if p.ticket == ticket && ticket != "" && score != 0 {
		p.score = score
	}
}

// entersByRelease notes that the ticket enters the line with a release.
func (p *place) entersByRelease() {
	p.mu.Lock()
	p.enteringByRelease = true
	p.mu.Unlock()
}

// leave ends the stay in the line with this ticket: the client has taken the lock with it, or gives its place up (giveUp). It does nothing
// where the client has another ticket by now.
func (p *place) leave(ticket string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ticket != "" && p.ticket == ticket {
		p.lastStay = time.Since(p.enteredAt)
		p.stay, p.calledTicket = stay{}, ""
	}
}

// giveUp ends the client's stay in the line, and returns the ticket that is to be taken out of the line in Redis; "" for none.
func (p *place) giveUp() string {
	p.mu.Lock()
	ticket := p.ticket
	p.mu.Unlock()
	p.leave(ticket)
	return ticket
}

// onMessage notes a message about the client's place; line.lua says what they are. ghost is the ticket of a call for a place that the
// client has not got: the client is to leave the line with that ticket (P19). For all other messages ghost is "": those about a place that the
// client has just left may be late, and a leave for each would have the others called anew.
func (p *place) onMessage(text string) (ghost string) {
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
	case words[0] == "c" && len(words) == 3:
		p.notice.called, p.notice.watch = true, ""
		p.notice.listeners, _ = strconv.Atoi(words[2])
		if p.firstSince.IsZero() {
			p.firstSince = time.Now()
		}
	case words[0] == "w" && len(words) >= 3:
		p.notice.watch = words[2]
		if len(words) > 3 {
			p.calledTicket = "" // anew: the bound begins again
		}
	case words[0] == "a":
		p.calledTicket, p.notice.watch = "", "" // also where nobody has acted on the call of the first one yet
		p.aliveCount++
	case words[0] == "n":
		p.notice.moved = true
	case words[0] == "d":
		p.notice.lost, p.score, p.entersAgain = true, 0, false
	}
	return ""
}

// channelLost notes that the channel on which the client is called was away, or is back: with its next attempt the client enters the line
// again, with its old score (P22).
func (p *place) channelLost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entersAgain = p.ticket != "" && p.score != 0
}

// takeNotice returns what was heard since the last time, and aliveCount.
func (p *place) takeNotice() (n notice, aliveCount int) {
	if p == nil {
		return notice{}, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, p.notice = p.notice, notice{}
	return n, p.aliveCount
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

// setLookAt notes when the call that leads is to look: another one may lead by then.
func (p *place) setLookAt(due time.Time) {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.lookAt = due
	p.mu.Unlock()
}

// untilLook is how long it is until somebody is to look.
func (p *place) untilLook() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.lookAt)
}

// clearCalled notes that no client has been called, as far as is known.
func (p *place) clearCalled() {
	p.mu.Lock()
	p.calledTicket, p.calledSince = "", time.Now()
	p.mu.Unlock()
}

// watchLocked notes that the client with this ticket has been called, or with "" that none has, and returns for how long that client may
// still take to come. out is the ticket that the last attempt was to take out of the line, or "": if out is the ticket that is called
// still, its time begins again. With p.mu held.
func (p *place) watchLocked(ticket, out string) time.Duration {
	if p.calledTicket != ticket || ticket == out {
		p.calledTicket, p.calledSince = ticket, time.Now()
	}
	return max(timeToComeOf(ticket)-time.Since(p.calledSince), time.Millisecond)
}

// watchUnlessAlive is watchLocked for a message that was heard, or an attempt that was sent, while p.aliveCount was aliveCount. If the
// first client has said since then that it is alive, it is not watched: the message or the answer is about an earlier call.
func (p *place) watchUnlessAlive(ticket, out string, aliveCount int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.aliveCount != aliveCount {
		return timeToComeOf(ticket)
	}
	return p.watchLocked(ticket, out)
}

// alive returns aliveCount.
func (p *place) alive() int {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.aliveCount
}

// overdueTicket returns the ticket of a client that is called and has not come in time, or "".
func (p *place) overdueTicket() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calledTicket == "" || time.Since(p.calledSince) < timeToComeOf(p.calledTicket) {
		return ""
	}
	return p.calledTicket
}

// secondFor is for how long the client has been the second in the line, as far as is known.
func (p *place) secondFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return timeSince(p.secondSince)
}

// firstFor is for how long the client has been the first in the line, as far as is known.
func (p *place) firstFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return timeSince(p.firstSince)
}

// watchFromBehind is for a client that is the third or later in the line of a free lock: the second client watches the first, and this
// one watches nobody. It returns how long the client waits before it looks: twice its last stay in the line, so that a client that comes
// back again and again waits as long as others do; at least twice calledTimeout, and no longer than ten polls.
func (p *place) watchFromBehind(poll time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calledTicket = ""
	return min(max(2*calledTimeout, 2*p.lastStay), 10*poll)
}

// nextLook is how long a client in the line waits to be told before it looks by itself. listens: on the lock's own channel too.
func (p *place) nextLook(a scripts.Answer, listens bool, quiet int, poll time.Duration) time.Duration {
	p.mu.Lock()
	l := lookPolicy{poll, quiet, listens, timeSince(p.firstSince), timeSince(p.secondSince), p.lastStay}
	p.mu.Unlock()
	return l.next(a.TTL, a.Before)
}

// yieldFor returns how long a client that was called leaves the lock to outsiders, which are in no line and have been told of the release:
// it is their turn (P37). known is how many of the connections that heard of the release are this client's own. The client does not yield
// where no other connection heard, where no outsider used its last yields, or where it was called in vain in this stay (P27).
func (p *place) yieldFor(n notice, known int) time.Duration {
	n.listeners -= known
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.listeners <= 0 || !p.yields.allows(time.Now()) || p.calledInVainAt.After(p.enteredAt) {
		return 0
	}
	return yieldTime
}

// yieldEnded notes whether an outsider has used a yield.
func (p *place) yieldEnded(used bool) {
	p.mu.Lock()
	p.yields.ended(time.Now(), used)
	p.mu.Unlock()
}

// calledInVain notes that the client was called, and that another one has the lock, which was in no line.
func (p *place) calledInVain() {
	p.mu.Lock()
	p.calledInVainAt = time.Now()
	p.mu.Unlock()
}

// besideOutsiders tells whether others than the clients in the line have taken the lock a moment ago.
func (p *place) besideOutsiders() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.calledInVainAt.IsZero() && time.Since(p.calledInVainAt) < maxNoYield
}
