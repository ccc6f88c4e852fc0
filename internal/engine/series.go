package engine

import (
	"math"
	"sync/atomic"

	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A series is what the holds of a client have in common that follow each other by local handoffs.
type series struct {
	tokens   int              // so many each attempt takes; 0 before the first
	takenAt  watchdog.Instant // when the attempt was sent that has taken the lock
	reserved atomic.Int64     // the last token of those that the latest command has taken
	next     int64            // the token of the next hold; guarded by lockState.mu
}

// reserve notes the tokens that a command has taken, which has asked for n, and returns the first.
func (s *series) reserve(a *scripts.Answer, n int) int64 {
	if a.Tokens > 0 {
		n = a.Tokens
	}
	s.reserved.Store(a.Token)
	return a.Token - int64(n) + 1
}

// offers has the event say on what terms the hold may be passed on locally, if it may, and returns
// the next hold's token. Redis and the clocks have to confirm the lease on these terms: an Extend
// or a re-entry may have asked for more without an answer. The hold count in Redis has to be one.
func (h *hold) offers(ev *room.Event) (next int64) {
	lease := h.attempts.LongestLease()
	promised := watchdog.DeadlineOf(h.series.takenAt, lease)
	if promised.After(h.Lease.Deadline()) || h.Lease.Passed() || !h.changes.isOne() || h.exported.Load() != nil { // P58
		return 0
	}
	ev.Call.Terms, ev.Tokens = h.lock.terms(lease), math.MaxInt32
	if !h.lock.options.Fenced {
		return 0
	}
	token := h.Token()
	ev.Tokens = int32(max(0, h.series.reserved.Load()-token))
	return token + 1
}

// takeOver is the outcome of a call to which this hold of the client is passed on locally: a hold
// of its own, with the same field and lease in Redis, and a token that was reserved. With ls.mu
// held.
func (w *waiter) takeOver(from *hold) outcome {
	h := &hold{possession: from.possession}
	h.init(w)
	h.local, h.passedOn, h.uncontended = true, from.passedOn, from.uncontended
	o := outcome{hold: h, sentAt: from.series.takenAt, handedOver: true}
	if w.options.Fenced {
		o.token = from.series.next
	}
	return o
}
