package room

import (
	"time"

	"github.com/fencelock/fencelock/internal/command"
)

// Health is what Redis has said last to the calls that wait for a lock: who has it, or an error.
type Health struct {
	answered     time.Time // when Redis last said who has the lock,
	refusal      error     // and why the lock was not to be had where nobody has it
	failure      error     // the last error in place of an answer; nil after an answer
	failingSince time.Time // when the first attempt of the queue was sent after which it has had errors only; zero for none
	failed       time.Time // when the last error came
}

// said is where what Redis says is noted.
func (r *Room) said() *Health {
	if r.health == nothing {
		r.health = new(Health)
	}
	return r.health
}

// nothing is what Redis has said where it has said nothing. It does not change.
var nothing = new(Health)

// Known tells whether Redis has said anything.
func (h *Health) Known() bool { return h != nothing }

// Answered notes that Redis said who has the lock. why: nobody has, and it was not to be had.
func (h *Health) Answered(now time.Time, why error) {
	h.failure, h.refusal, h.answered, h.failingSince = nil, why, now, time.Time{}
}

// Got notes that a call of this client has got the lock.
func (h *Health) Got(now time.Time) { h.failure, h.answered, h.failingSince = nil, now, time.Time{} }

// Failed notes an error in place of an answer. sent: when the attempt was sent; zero for one of a call that is not in the queue yet, where others
// are: it takes no patience from them, who may ask only much later.
func (h *Health) Failed(now, sent time.Time, err error) {
	if h.failingSince.IsZero() {
		h.failingSince = sent
	}
	if err != command.ErrSilence || h.failure == nil { // it says less than any other error
		h.failure = err
	}
	h.failed = now
}

// PatienceOver is the last error, where for as long as patience there have been errors only, and
// the call that began at this time is as old; otherwise nil.
func (h *Health) PatienceOver(now, began time.Time, patience time.Duration) error {
	if end := h.PatienceEnds(began, patience); end.IsZero() || now.Before(end) {
		return nil
	}
	return h.failure
}

// PatienceEnds is when a call that began at this time has no patience left if errors go on; zero
// where the last word of Redis to the queue was an answer.
func (h *Health) PatienceEnds(began time.Time, patience time.Duration) time.Time {
	if h.failingSince.IsZero() {
		return time.Time{}
	}
	if began.Before(h.failingSince) {
		began = h.failingSince
	}
	return began.Add(patience)
}

// InVain is why a call that began at this time has waited in vain. failed: the error is one in
// place of an answer. Both are nil where others had the lock, as far as Redis said.
func (h *Health) InVain(began time.Time) (refusal, failed error) {
	if h.failure != nil && !h.failed.Before(began) {
		return nil, h.failure
	}
	return h.refusal, nil
}

// Silent tells whether nothing was heard since this time, and an attempt has been under way since
// silent for most of it.
func (h *Health) Silent(now, began, silent time.Time) bool {
	return !silent.IsZero() && h.answered.Before(began) && now.Sub(silent) > now.Sub(began)/2
}

// HeardSince is the later of this time and the last answer.
func (h *Health) HeardSince(began time.Time) time.Time {
	if h.answered.After(began) {
		return h.answered
	}
	return began
}
