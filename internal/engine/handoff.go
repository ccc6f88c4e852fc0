package engine

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A handoffRun is one client's turn at a lock: from when the client took it to when it lets other clients have it. In between the lock
// passes from each hold to the call that waits longest in the same process, by one command that nobody else is told of:
// cohort locking (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012). It is bounded by count, WithHandoffs, and by time.
type handoffRun struct {
	handoffs int
	began    moment
}

const (
	// maxRun bounds a run whose sections take long.
	maxRun = 20 * time.Millisecond
	// runBesideOutsiders bounds the handoffs of a run where other clients are in no line: each of a JVM's threads has one hold in
	// its turn.
	runBesideOutsiders = 1
	// maxBlock bounds the tokens that are reserved at once.
	maxBlock = 256
	// tokensPerWaiter is for how many turns of each waiter tokens are reserved: most waiters come back before the next tokens could.
	// Tokens that are not used after all are given back.
	tokensPerWaiter = 4
	// maxFlooredBlock bounds the tokens with a floor that are reserved at once: the script itself takes as many microseconds, so that
	// tokens do not run ahead of the server's clock, from which they begin after a loss.
	maxFlooredBlock = 8
	// maxBlockAge bounds the time in which a block is used: so long Redis is not asked whether the lock is still held.
	maxBlockAge = 5 * time.Millisecond
)

// A tokenBlock is tokens that were reserved by one command, for a hold and the ones that follow it without asking Redis. In
// Redis they are one hold, with one field and one lease. While it is used the next tokens are reserved, which also asks
// whether the hold is still there.
type tokenBlock struct {
	attempts   *attempts
	sentAt     watchdog.Instant // when the command was sent that reserved the block
	lease      time.Duration
	next, last int64

	prefetch      *inflight // reserves the tokens that come after these
	wakeup        *wakeup   // of the holder that has used the tokens up, and waits for the next
	prefetchCount int       // how many tokens prefetch asks for
}

// nextWaiter returns the waiter that the lock is to pass to when a hold ends: the leader, if it waits to be given the lock; else nil.
// With ls.mu held.
func (ls *lockState) nextWaiter() *waiter {
	w := ls.first
	if w == nil || w.busy || isClosed(w.waitEnd) || isClosed(ls.client.draining) {
		return nil
	}
	return w
}

// giveTo wakes the waiter that has been given the lock. With ls.mu held.
func (ls *lockState) giveTo(w *waiter) {
	w.busy = true
	w.wakeup.notify()
}

// passToken passes the lock on without a command, with the next token of the hold's block, and tells whether it did. It waits
// no longer than within for tokens that are on their way.
func (ls *lockState) passToken(h *hold, within time.Duration) bool {
	b := h.tokenBlock
	if b == nil || h.reentered() {
		return false
	}
	if b.next > b.last && b.prefetch != nil && ls.hasTaker(b) {
		b.prefetch.waitFor(b.wakeup, time.Now(), min(maxBlockAge, within), nil) // on its way, and sooner here than another command
	}
	b.takePrefetched()
	if b.holdGone() || b.next > b.last || b.sentAt.Age() > maxBlockAge {
		return false
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.nextWaiter()
	if !w.accepts(b) || ls.hold != h { // somebody else has taken the lock since
		return false
	}
	left := int(b.last - b.next) // when this one has its token
	most := min(tokensPerWaiter*(int(ls.blockWaiters)-1), w.maxTokens())
	low := left <= most/2
	if b.prefetch == nil && most > 0 && (low || b.sentAt.Age() > maxBlockAge/2) && ls.countHandoff() {
		b.prefetchCount = most
		if !low {
			b.prefetchCount = max(most-left, 1) // it is to tell whether the hold is still there
		}
		b.prefetch = ls.client.newInflight(w.tokens.counted(scripts.Reserve(w.keys, b.attempts.field, b.lease, b.prefetchCount)), nil, b.wakeup)
		ls.client.send(b.prefetch)
	}
	w.grantedBlock = b
	ls.giveTo(w)
	return true
}

// unusedTokens returns how many tokens of the block no hold has had, for the release to give back to Redis. It returns 0 where more tokens
// were asked for, because the tokens of the block may not be the last ones then.
func (b *tokenBlock) unusedTokens() int64 {
	if b == nil || b.prefetch != nil {
		return 0
	}
	return b.last - b.next + 1
}

// hasTaker tells whether the next waiter would take a token of the block.
func (ls *lockState) hasTaker(b *tokenBlock) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.nextWaiter().accepts(b)
}

func (w *waiter) accepts(b *tokenBlock) bool {
	return w != nil && w.tokens.Blocks && w.lease == b.lease
}

// holdGone tells whether Redis has answered the prefetch by saying that the hold is not there any more.
func (b *tokenBlock) holdGone() bool {
	f := b.prefetch
	return f != nil && f.done.Load() && f.err == nil && !f.answer.Held
}

// takePrefetched adds the tokens that were reserved meanwhile. Where somebody else has taken tokens in between, those from before
// are skipped.
func (b *tokenBlock) takePrefetched() {
	f := b.prefetch
	if f == nil || !f.done.Load() || f.err != nil || !f.answer.Held {
		return
	}
	if first := f.answer.Token - int64(b.prefetchCount) + 1; first != b.last+1 {
		b.next = first
	}
	b.sentAt, b.last, b.prefetch = f.sentAt, f.answer.Token, nil
}

// countHandoff counts one more command of the run; false where the run is over. With ls.mu held.
func (ls *lockState) countHandoff() bool {
	return ls.run.next(ls.run.began.age(), ls.client.set.Handoffs, ls.place.Load().besideOutsiders())
}

// startHandoff passes the lock on by a command, which notifies the wake-up when it is over, and returns the command; nil if other
// clients are to have the lock, or nobody waits here.
func (ls *lockState) startHandoff(h *hold, wake *wakeup) *inflight {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.nextWaiter()
	if w == nil || ls.hold != h || !ls.countHandoff() {
		return nil
	}
	ls.chooseTokenCount(w)
	pass := scripts.Transfer(w.keys, w.tokens.Fenced, w.attempts.field, w.lease, w.tokenCount, h.attempts.field)
	w.handoff = ls.client.newInflight(w.tokens.counted(pass), w.attempts, wake)
	w.handoff.alsoNotify = w.wakeup
	ls.giveTo(w)
	ls.client.send(w.handoff)
	return w.handoff
}

// chooseTokenCount decides how many tokens the waiter's next attempt asks for: no more than there are waiters to use them. After an
// attempt without an answer the number stays as it is (P9). With ls.mu held.
func (ls *lockState) chooseTokenCount(w *waiter) {
	if w.tokenCount > 0 && w.attempts.uncertain() {
		return
	}
	w.tokenCount = 1
	if w.tokens.Blocks && ls.client.set.Handoffs > 0 {
		w.tokenCount = min(max(int(ls.blockWaiters), 1), w.maxTokens())
	}
}

// maxTokens bounds the tokens that the call asks for at once.
func (w *waiter) maxTokens() int {
	if w.tokens.Floor {
		return maxFlooredBlock
	}
	return maxBlock
}

// cancelHandoff ends a handoff that Redis does not answer: the waiter is to ask by itself.
func (ls *lockState) cancelHandoff(f *inflight) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w := ls.first; w != nil && w.handoff == f { // a waiter that has left took the handoff along
		w.handoffCancelled = true
		w.wakeup.notify()
	}
}

// A handoffState is what a waiter has been given, at one moment.
type handoffState struct {
	isLeader   bool
	handoff    *inflight
	cancelled  bool
	tokenBlock *tokenBlock
}

func (ls *lockState) handoffTo(w *waiter) handoffState {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return handoffState{isLeader: w.isLeader, handoff: w.handoff, cancelled: w.handoffCancelled, tokenBlock: w.grantedBlock}
}

// clearHandoff ends a handoff to the waiter, whatever became of it.
func (ls *lockState) clearHandoff(w *waiter) {
	ls.mu.Lock()
	w.handoff, w.grantedBlock, w.handoffCancelled = nil, nil, false
	ls.mu.Unlock()
}
