package rlock

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A trace is what became of the attempts to acquire one hold. As long as one of them may still arrive at Redis, or has
// taken the lock without anybody knowing, the hold's release is sent again and again.
type trace struct {
	keys  *scripts.Keys
	field string
	lease time.Duration

	mu      sync.Mutex
	flying  int32 // attempts without an outcome yet
	taken   bool  // an attempt took the lock, and the release of that was not confirmed
	refused bool  // the last attempt was, as it seems: a hook of the user's may have failed after it took the lock
	late    *late // nil while all is well
}

// late is for how long attempts that got no answer, and holds whose release got none, matter.
type late struct {
	until   time.Time // no attempt that got no answer matters after this
	ends    time.Time // when what was taken has run out, released or not; zero while it is held
	release *release  // that the releaser sends; nil while somebody may still use the hold
}

// lateness returns t.late, made if need be. With t.mu held.
func (t *trace) lateness() *late {
	if t.late == nil {
		t.late = new(late)
	}
	return t.late
}

func (t *trace) sent() {
	t.mu.Lock()
	t.flying++
	t.mu.Unlock()
}

// unsent notes that an attempt was taken back.
func (t *trace) unsent() {
	t.mu.Lock()
	t.flying--
	t.mu.Unlock()
}

// doubtful tells whether an attempt may have taken the lock: it has got no answer, or that came too late.
func (t *trace) doubtful() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken || t.flying > 0 || t.late != nil && !t.late.until.IsZero()
}

// came notes the outcome of an attempt.
func (t *trace) came(a scripts.Answer, err error) {
	if r := t.note(a, err); r != nil {
		r.attempted()
	}
}

// note is came, and returns the release that the outcome is for where nobody else uses it.
func (t *trace) note(a scripts.Answer, err error) *release {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying--
	t.refused = scripts.Refused(err)
	if !a.Owed && scripts.Unanswered(err) {
		t.lateness().until = time.Now().Add(t.lease)
	}
	if a.Held || a.Owed { // also what is not confirmed
		t.taken = true
		if t.late != nil && !t.late.ends.IsZero() {
			t.late.ends = time.Now().Add(t.lease)
		}
	}
	if t.late == nil {
		return nil
	}
	return t.late.release
}

// open tells whether a release is to be sent.
func (t *trace) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.openLocked()
}

// givenUp notes that no further attempt follows, and tells whether a release is to be sent.
func (t *trace) givenUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = t.taken || t.refused
	return t.openLocked()
}

func (t *trace) openLocked() bool {
	if t.late == nil {
		return t.taken || t.flying > 0
	}
	now := time.Now()
	return t.taken && (t.late.ends.IsZero() || now.Before(t.late.ends)) || t.flying > 0 || now.Before(t.late.until)
}

// longer notes that the hold was promised a longer lease.
func (t *trace) longer(lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = max(t.lease, lease)
}

// length is the longest lease that the hold was promised.
func (t *trace) length() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease
}

// released notes that a release was confirmed, and tells whether another is to be sent.
func (t *trace) released() (open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	return t.openLocked()
}

// answered tells whether all attempts have an outcome.
func (t *trace) answered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flying == 0
}

// owed tells whether an attempt has no outcome yet, or has taken what no release has freed.
func (t *trace) owed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken || t.flying > 0
}

// hand gives the trace to the releaser: nothing extends the hold any more. It returns the hold's lease; false where the
// releaser has it.
func (t *trace) hand(r *release) (lease time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lateness()
	if l.release != nil {
		return 0, false
	}
	l.release = r
	if l.ends.IsZero() {
		l.ends = time.Now().Add(t.lease)
	}
	return t.lease, true
}

// dropped notes that the releaser is done with the trace.
func (t *trace) dropped() {
	t.mu.Lock()
	t.late.release = nil
	t.mu.Unlock()
}
