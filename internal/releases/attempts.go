package releases

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// Attempts is what became of the attempts to acquire one hold (P3). As long as one of them may still arrive at Redis, or has
// taken the lock without anybody knowing, the hold's release is sent again and again.
type Attempts struct {
	Keys  *scripts.Keys
	Field string // of the hold in Redis

	mu       sync.Mutex
	lease    time.Duration // the longest that the hold may have had
	inFlight int32         // attempts without an outcome yet
	taken    bool          // an attempt took the lock, and the release of that was not confirmed
	refused  bool          // the last attempt was refused, as it seems: a hook of the user's may have failed after the attempt took the lock
	doubt    *doubt        // nil while no attempt has ended without an answer, and the releaser has nothing to do with the attempts
}

// A doubt says for how long the attempts to acquire a hold may still matter, where one of them got no answer, so Redis may have executed
// it, or where the releaser is to release the hold. An attempt without an answer may lie in a socket of a server that stands still, which
// executes it when it goes on. So the lease of what the attempts take is over one lease after Redis was heard of, and not before.
type doubt struct {
	unanswered bool      // an attempt got no answer
	heard      bool      // Redis has answered a release that was sent when the attempts had ended
	copies     time.Time // until when copies of an attempt that was answered are under way
	until      time.Time // one lease after both, or, until Redis is heard of, one lease after the last attempt
	release    *release  // the releaser's entry for the attempts; nil where the releaser has none
}

// NewAttempts returns the attempts to acquire the hold of this field with this lease.
func NewAttempts(keys *scripts.Keys, field string, lease time.Duration) *Attempts {
	return &Attempts{Keys: keys, Field: field, lease: lease}
}

// Init makes the zero value what NewAttempts returns.
func (a *Attempts) Init(keys *scripts.Keys, field string, lease time.Duration) {
	a.Keys, a.Field, a.lease = keys, field, lease
}

// doubtLocked returns a.doubt, made if need be. With a.mu held.
func (a *Attempts) doubtLocked() *doubt {
	if a.doubt == nil {
		a.doubt = new(doubt)
	}
	return a.doubt
}

// Sent notes that an attempt is sent.
func (a *Attempts) Sent() {
	a.mu.Lock()
	a.inFlight++
	a.mu.Unlock()
}

// TakenBack notes that an attempt was taken back.
func (a *Attempts) TakenBack() {
	a.mu.Lock()
	a.inFlight--
	a.mu.Unlock()
}

// Uncertain tells whether an attempt may have taken the lock without a hold: an attempt is under way or got no answer, or what an attempt
// took was not confirmed, or was answered too late.
func (a *Attempts) Uncertain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken || a.inFlight > 0 || a.doubt != nil && a.doubt.unanswered
}

// Answered notes the outcome of an attempt.
func (t *Attempts) Answered(a scripts.Answer, err error) {
	if r := t.noteAnswer(a, err); r != nil {
		r.attempted()
	}
}

// noteAnswer notes the outcome, and returns the release that waits for it, nil where none does.
func (t *Attempts) noteAnswer(a scripts.Answer, err error) *release {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.refused = scripts.Refused(err)
	if a.Copies > 0 || !a.Owed && scripts.Unanswered(err) {
		t.doubtLocked().unanswered = true
		if until := time.Now().Add(a.Copies); until.After(t.doubt.copies) { // an earlier attempt may have copies for longer
			t.doubt.copies = until
		}
		t.heardLocked(false)
	}
	if a.Held || a.Owed { // also what is not confirmed
		t.taken = true
		if t.doubt != nil {
			t.heardLocked(false)
		}
	}
	if t.doubt == nil {
		return nil
	}
	return t.doubt.release
}

// heardLocked notes whether Redis was heard of since the last attempt. The lease counts from now, or from when no copy is under way. With a.mu
// held, and a.doubt.
func (a *Attempts) heardLocked(heard bool) {
	from := time.Now()
	if a.doubt.copies.After(from) {
		from = a.doubt.copies
	}
	a.doubt.heard, a.doubt.until = heard, from.Add(a.lease)
}

// NeedsRelease tells whether a release is to be sent.
func (a *Attempts) NeedsRelease() bool { return a.matters(false) }

// matters is NeedsRelease. crowded: the attempts are not to matter for longer than a lease, although Redis was not heard of.
func (a *Attempts) matters(crowded bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mattersLocked(crowded)
}

// GiveUp notes that no further attempt follows, and tells whether a release is to be sent.
func (a *Attempts) GiveUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = a.taken || a.refused
	return a.mattersLocked(false)
}

func (a *Attempts) mattersLocked(crowded bool) bool {
	d := a.doubt
	switch {
	case d == nil:
		return a.taken || a.inFlight > 0
	case a.taken || d.unanswered:
		return !d.heard && !crowded || a.inFlight > 0 || time.Now().Before(d.until)
	}
	return a.inFlight > 0
}

// Extend notes that the hold may have a longer lease from now on.
func (a *Attempts) Extend(lease time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lease = max(a.lease, lease)
}

// LongestLease is the longest lease that the hold may have had.
func (a *Attempts) LongestLease() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease
}

// Released notes that a release was confirmed, and tells whether another is to be sent.
func (a *Attempts) Released() (open bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = false
	a.hearLocked()
	return a.mattersLocked(false)
}

// hear notes that Redis has answered a release that was sent when all attempts had ended, and tells whether that is the first answer.
func (a *Attempts) hear() (first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hearLocked()
}

func (a *Attempts) hearLocked() (first bool) {
	if a.doubt == nil || a.doubt.heard {
		return false
	}
	a.heardLocked(true)
	return true
}

// allAnswered tells whether all attempts have an outcome.
func (a *Attempts) allAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight == 0
}

// mayBeTaken tells whether an attempt has no outcome yet, or has taken what no release has freed.
func (a *Attempts) mayBeTaken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken || a.inFlight > 0
}

// handOver gives the attempts to the releaser: nothing extends the hold any more. It returns the hold's lease; false where the
// releaser has it.
func (a *Attempts) handOver(r *release) (lease time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := a.doubtLocked()
	if d.release != nil {
		return 0, false
	}
	d.release = r
	if a.taken {
		a.heardLocked(false)
	}
	return a.lease, true
}

// releaseDropped notes that the releaser is done with the attempts.
func (a *Attempts) releaseDropped() {
	a.mu.Lock()
	a.doubt.release = nil
	a.mu.Unlock()
}

// takenAgain notes that Redis has the hold, after whatever was confirmed, for a lease at most.
func (a *Attempts) takenAgain() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = true
	a.heardLocked(false)
}
