package engine

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// attempts is what became of the attempts to acquire one hold (P3). As long as one of them may still arrive at Redis, or has
// taken the lock without anybody knowing, the hold's release is sent again and again.
type attempts struct {
	keys  *scripts.Keys
	field string
	lease time.Duration

	mu       sync.Mutex
	inFlight int32  // attempts without an outcome yet
	taken    bool   // an attempt took the lock, and the release of that was not confirmed
	refused  bool   // the last attempt was refused, as it seems: a hook of the user's may have failed after the attempt took the lock
	doubt    *doubt // nil while no attempt has ended without an answer, and the releaser has nothing to do with the attempts
}

// A doubt says for how long the attempts to acquire a hold may still matter, where one of them got no answer, so Redis may have executed
// it, or where the releaser is to release the hold.
type doubt struct {
	until   time.Time // no attempt that got no answer matters after this; zero where each got one
	ends    time.Time // when the lease of what was taken is over, released or not; zero before the releaser has it
	release *release  // the releaser's entry for the attempts; nil where the releaser has none
}

// doubtLocked returns a.doubt, made if need be. With a.mu held.
func (a *attempts) doubtLocked() *doubt {
	if a.doubt == nil {
		a.doubt = new(doubt)
	}
	return a.doubt
}

func (a *attempts) sent() {
	a.mu.Lock()
	a.inFlight++
	a.mu.Unlock()
}

// takenBack notes that an attempt was taken back.
func (a *attempts) takenBack() {
	a.mu.Lock()
	a.inFlight--
	a.mu.Unlock()
}

// uncertain tells whether an attempt may have taken the lock without a hold: an attempt is under way or got no answer, or what an attempt
// took was not confirmed, or was answered too late.
func (a *attempts) uncertain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken || a.inFlight > 0 || a.doubt != nil && !a.doubt.until.IsZero()
}

// answered notes the outcome of an attempt.
func (t *attempts) answered(a scripts.Answer, err error) {
	if r := t.noteAnswer(a, err); r != nil {
		r.attempted()
	}
}

// noteAnswer notes the outcome, and returns the release that waits for it, nil where none does.
func (t *attempts) noteAnswer(a scripts.Answer, err error) *release {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.refused = scripts.Refused(err)
	if !a.Owed && scripts.Unanswered(err) {
		t.doubtLocked().until = time.Now().Add(t.lease)
	}
	if a.Copies > 0 {
		t.doubtLocked().until = time.Now().Add(a.Copies + t.lease)
	}
	if a.Held || a.Owed { // also what is not confirmed
		t.taken = true
		if t.doubt != nil && !t.doubt.ends.IsZero() {
			t.doubt.ends = time.Now().Add(t.lease)
		}
	}
	if t.doubt == nil {
		return nil
	}
	return t.doubt.release
}

// needsRelease tells whether a release is to be sent.
func (a *attempts) needsRelease() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.needsReleaseLocked()
}

// giveUp notes that no further attempt follows, and tells whether a release is to be sent.
func (a *attempts) giveUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = a.taken || a.refused
	return a.needsReleaseLocked()
}

func (a *attempts) needsReleaseLocked() bool {
	if a.doubt == nil {
		return a.taken || a.inFlight > 0
	}
	now := time.Now()
	return a.taken && (a.doubt.ends.IsZero() || now.Before(a.doubt.ends)) || a.inFlight > 0 || now.Before(a.doubt.until)
}

// extend notes that the hold may have a longer lease from now on.
func (a *attempts) extend(lease time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = max(a.lease, lease)
}

// longestLease is the longest lease that the hold may have had.
func (a *attempts) longestLease() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease
}

// released notes that a release was confirmed, and tells whether another is to be sent.
func (a *attempts) released() (open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = false
	return a.needsReleaseLocked()
}

// allAnswered tells whether all attempts have an outcome.
func (a *attempts) allAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight == 0
}

// mayBeTaken tells whether an attempt has no outcome yet, or has taken what no release has freed.
func (a *attempts) mayBeTaken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken || a.inFlight > 0
}

// handOver gives the attempts to the releaser: nothing extends the hold any more. It returns the hold's lease; false where the
// releaser has it.
func (a *attempts) handOver(r *release) (lease time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.doubtLocked()
	if d.release != nil {
		return 0, false
	}
	d.release = r
	if d.ends.IsZero() {
		d.ends = time.Now().Add(a.lease)
	}
	return a.lease, true
}

// releaseDropped notes that the releaser is done with the attempts.
func (a *attempts) releaseDropped() {
	a.mu.Lock()
	a.doubt.release = nil
	a.mu.Unlock()
}
