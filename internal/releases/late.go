package releases

import "time"

// lateAfter is how long a release may be without a confirmation before it is told as delayed. One that Unlock has waited for in vain is told at once.
const lateAfter = time.Second

// isLate tells whether the release is told as delayed. With the Releaser's mu held.
func (r *release) isLate(now time.Time) bool {
	return !r.confirmed && r.reason != question && (r.reason == unlockFailed || now.Sub(r.began) >= lateAfter)
}

// watch has the release told as delayed when it is late. With rl.mu held.
func (rl *Releaser) watch(r *release) {
	switch {
	case r.confirmed || r.told || r.reason == question || rl.closed:
	case r.isLate(time.Now()):
		r.told = true
		rl.client.Delayed(r.attempts)
	case !rl.watching:
		rl.watching = true
		rl.late = time.AfterFunc(lateAfter, rl.tellLate)
	}
}

// tellLate tells of the releases that are late by now, and comes again for those that may be.
func (rl *Releaser) tellLate() {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.watching = false
	for _, r := range rl.releases {
		rl.watch(r)
	}
}

// confirm notes that Redis has confirmed the release, a majority of several servers; what the others have of the hold is released later, and is no
// delay. With rl.mu held.
func (rl *Releaser) confirm(r *release) {
	r.confirmed = true
	rl.tellEnd(r, true)
}

// takenAgain notes that Redis has the hold after the release was confirmed. With rl.mu held.
func (rl *Releaser) takenAgain(r *release) {
	r.attempts.takenAgain()
	if r.confirmed {
		r.confirmed, r.began = false, time.Now()
	}
	rl.watch(r)
}

// tellEnd tells of the end of a release that was told as delayed. With rl.mu held.
func (rl *Releaser) tellEnd(r *release, confirmed bool) {
	if r.told {
		r.told = false
		rl.client.Ended(r.attempts, time.Since(r.began), confirmed)
	}
}
