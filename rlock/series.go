package rlock

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A series is one client's turn at a lock: from when it took it to when it lets others have it. In between the lock
// passes from each hold to the call that waits longest in the same process, by one command that nobody else is told of:
// cohort locking (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012). It is bounded by count, WithHandoffs, and by time.
type series struct {
	handoffs int
	began    moment
}

const (
	// maxSeries bounds a series whose sections take long.
	maxSeries = 20 * time.Millisecond
	// besideStrangers bounds the handoffs of a series where others are in no line: each of a JVM's threads has one hold in
	// its turn.
	besideStrangers = 1
	// maxBlock bounds the tokens that are reserved at once,
	maxBlock = 256
	// ahead is for how many turns of each waiter tokens are reserved: most come back before the next tokens could. Those that
	// are not used after all are given back,
	ahead = 4
	// maxFloored the same for tokens with a floor: the script itself takes as many microseconds, so that they do not run
	// ahead of the server's clock, which is what they begin from after a loss,
	maxFloored = 8
	// and maxBlockAge the time in which they are used: so long Redis is not asked whether the lock is still held.
	maxBlockAge = 5 * time.Millisecond
)

// A block is tokens that were reserved by one command, for a hold and the ones that follow it without asking Redis. In
// Redis they are one hold, with one field and one lease. While it is used the next tokens are reserved, which also asks
// whether the hold is still there.
type block struct {
	trace      *trace
	sent       watchdog.Instant // the command that reserved it
	lease      time.Duration
	next, last int64

	ahead  *call // reserves the tokens that come after these
	bell   *bell // of who waits for that: the holder that has used them up
	tokens int   // so many
}

// heir returns the call that the lock is to pass to when a hold ends: the leader, if it is there to be promised
// anything. With q.mu held.
func (q *queue) heir() *acquisition {
	a := q.first
	if a == nil || a.busy || isClosed(a.end) || isClosed(q.client.draining) {
		return nil
	}
	return a
}

// promise notes what the call is given, and tells it. With q.mu held.
func (q *queue) promise(a *acquisition) {
	a.busy = true
	a.bell.ring()
}

// grant passes the lock on without a command, with the next token of the hold's block, and tells whether it did. It waits
// no longer than within for tokens that are on their way.
func (q *queue) grant(h *hold, within time.Duration) bool {
	b := h.block
	if b == nil || h.reentered() {
		return false
	}
	if b.next > b.last && b.ahead != nil && q.wanted(b) {
		b.ahead.within(b.bell, time.Now(), min(maxBlockAge, within), nil) // on its way, and sooner here than another command
	}
	b.goOn()
	if b.gone() || b.next > b.last || b.sent.Age() > maxBlockAge {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.heir()
	if !a.wants(b) || q.hold != h { // somebody else has taken the lock since
		return false
	}
	left := int(b.last - b.next) // when this one has its token
	most := min(ahead*(int(q.blocks)-1), a.maxTokens())
	low := left <= most/2
	if b.ahead == nil && most > 0 && (low || b.sent.Age() > maxBlockAge/2) && q.more() {
		b.tokens = most
		if !low {
			b.tokens = max(most-left, 1) // it is to tell whether the hold is still there
		}
		b.ahead = q.client.newCall(a.counted(scripts.Reserve(a.keys, b.trace.field, b.lease, b.tokens)), nil, b.bell)
		q.client.send(b.ahead)
	}
	a.granted = b
	q.promise(a)
	return true
}

// unused is how many tokens of the block nobody has had, where Redis may be told so.
func (b *block) unused() int64 {
	if b == nil || b.ahead != nil {
		return 0
	}
	return b.last - b.next + 1
}

// wanted tells whether somebody is there to be granted a token of the block.
func (q *queue) wanted(b *block) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.heir().wants(b)
}

func (a *acquisition) wants(b *block) bool { return a != nil && a.blocks && a.lease == b.lease }

// gone tells whether Redis has said meanwhile that the hold is not there any more.
func (b *block) gone() bool {
	k := b.ahead
	return k != nil && k.over.Load() && k.err == nil && !k.answer.Held
}

// goOn adds the tokens that were reserved meanwhile. Where somebody else has taken tokens in between, those from before
// are skipped.
func (b *block) goOn() {
	k := b.ahead
	if k == nil || !k.over.Load() || k.err != nil || !k.answer.Held {
		return
	}
	if first := k.answer.Token - int64(b.tokens) + 1; first != b.last+1 {
		b.next = first
	}
	b.sent, b.last, b.ahead = k.sent, k.answer.Token, nil
}

// more counts one more command of the series, if there may be one. With q.mu held.
func (q *queue) more() bool {
	most := q.client.handoffs
	if q.place.Load().strangers() {
		most = min(most, besideStrangers)
	}
	if q.series.handoffs >= most || q.series.began.age() > maxSeries {
		return false
	}
	q.series.handoffs++
	return true
}

// offer passes the lock on by a command, which rings the bell when it is over, and returns that; nil if others are to have
// it, or nobody waits here.
func (q *queue) offer(h *hold, b *bell) *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.heir()
	if a == nil || q.hold != h || !q.more() {
		return nil
	}
	q.reserve(a)
	pass := scripts.Transfer(a.keys, a.fenced, a.trace.field, a.lease, a.tokens, h.trace.field)
	a.offered = q.client.newCall(a.counted(pass), a.trace, b)
	a.offered.heir = a.bell
	q.promise(a)
	q.client.send(a.offered)
	return a.offered
}

// reserve decides how many tokens the call asks for: no more than there are waiters to use them. What a command without
// an answer has asked for is not changed. With q.mu held.
func (q *queue) reserve(a *acquisition) {
	if a.tokens > 0 && a.trace.doubtful() {
		return
	}
	a.tokens = 1
	if a.blocks && q.client.handoffs > 0 {
		a.tokens = min(max(int(q.blocks), 1), a.maxTokens())
	}
}

// maxTokens bounds the tokens that the call asks for at once.
func (a *acquisition) maxTokens() int {
	if a.floor {
		return maxFloored
	}
	return maxBlock
}

// revoke takes an offer back that Redis does not answer: the call is to ask for itself.
func (q *queue) revoke(k *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.first; a != nil && a.offered == k { // an heir that has left took it along
		a.revoked = true
		a.bell.ring()
	}
}

// A promise is what a call in line has been given, as it sees it at one moment.
type promise struct {
	leads   bool
	offered *call
	revoked bool
	granted *block
}

func (q *queue) promiseTo(a *acquisition) promise {
	q.mu.Lock()
	defer q.mu.Unlock()
	return promise{leads: a.leads, offered: a.offered, revoked: a.revoked, granted: a.granted}
}

// kept is the end of a promise, whatever became of it.
func (q *queue) kept(a *acquisition) {
	q.mu.Lock()
	a.offered, a.granted, a.revoked = nil, nil, false
	q.mu.Unlock()
}
