package engine

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// A releaser sends the releases that nobody waits for: of holds whose release, or one of whose acquires, got no answer.
// Each release is sent again until one lease has passed since Redis first answered one that was sent after the last attempt to
// acquire had ended: what the attempt has taken has then been released, or has expired by itself. Releases travel in company with other operations, and no
// goroutine waits for one.
type releaser struct {
	client *Client

	mu       sync.Mutex
	releases releases    // all of them, the one that is due first at the front
	alarm    *time.Timer // calls sendDue when that is due; nil before there was any
	closed   bool
}

// A release is the releaser's entry for one hold. The releaser guards its fields.
type release struct {
	releaser *releaser
	attempts *attempts
	lease    time.Duration
	index    int             // in releaser.releases; -1: it is over
	began    time.Time       // when it was left to the releaser, for the trace
	due      time.Time       // when to send it, again if it is under way
	answers  int             // which entry of releaseAfter is the next pause; each answer moves it on, an error to 2 at most
	pauses   command.Backoff // after errors of connections that had ended
	underWay *sentRelease    // the command that was sent last; nil once that is answered
	rest     bool            // most of several servers have confirmed it already
	freed    bool            // a command that was sent when all attempts had their outcome was confirmed; with rest: any was answered
	held     bool            // the release of a hold, of which Unlock has said that it is sent again
	over     bool            // of a hold that was over already, and that a server without the latest data has
	asks     bool            // of a hold that never was, to learn whether the server has one of this client that is over
	owed     bool            // one of several servers may have the hold still
	until    time.Time       // of another client's hold: when its lease is over on every server. Zero: owed says so
	refused  bool            // Redis has refused it for good: rights are missing
}

// A sentRelease is one command that releases the hold. Its fields are guarded by the releaser's mu.
type sentRelease struct {
	*release
	op               scripts.Op
	inStore          bool      // to the store: it may be taken back
	written          bool      // it was written,
	sentAt           time.Time // at this time,
	afterAllAttempts bool      // and all attempts to acquire had an outcome by then
}

// releaseAfter are the first pauses before a release is sent, and sent again until nothing can be taken any more. The further pauses are
// lastRelease, twice lastRelease, and so on. None is longer than a third of the lease; and none longer than lastRelease where Redis refuses to
// release a hold: until Redis does so, nobody gets the lock.
var releaseAfter = []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

const (
	lastRelease = 30 * time.Second
	// retryRelease is the longest time from a sending to the next one while Redis answers none, unless Redis takes as long to answer.
	retryRelease = time.Second
	// maxUnheard bounds the releases that wait for a Redis that is not heard of. Beyond it they are dropped a lease after their last
	// attempt: a server that never comes back is to cost no more than some megabytes.
	maxUnheard = 1 << 13
)

// after returns the pause with this number, counted from 0.
func (r *release) after(n int) time.Duration {
	after := max(r.lease/3, time.Millisecond)
	if n < len(releaseAfter) {
		return min(after, releaseAfter[n])
	}
	return min(after, lastRelease<<min(n-len(releaseAfter), 20))
}

// release takes over the release of the hold.
func (rl *releaser) release(a *attempts) { rl.add(&release{releaser: rl, attempts: a}) }

// releaseHeld is release for a hold that is taken still, as far as is known.
func (rl *releaser) releaseHeld(a *attempts) { rl.add(&release{releaser: rl, attempts: a, held: true}) }

// abandon takes over the attempts of a call that does not wait for the lock any longer. Where an attempt is under way the first pause is
// left out, and the release is sent after the second, or as soon as the attempt is answered (see attempted): most attempts take nothing,
// or are answered by then. A release that is sent earlier may reach Redis before the attempt, on another connection.
func (rl *releaser) abandon(a *attempts) {
	n := 0
	if !a.allAnswered() {
		n = 1
	}
	rl.add(&release{releaser: rl, attempts: a, answers: n})
}

// releaseRest takes over what is left of a release that most of several servers have confirmed. until: see release.
func (rl *releaser) releaseRest(a *attempts, until time.Time) {
	a.released()
	rl.add(&release{releaser: rl, attempts: a, answers: 1, rest: true, owed: true, until: until})
}

func (rl *releaser) add(r *release) {
	a, n := r.attempts, r.answers
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if rl.closed {
		if !r.rest && !r.asks {
			rl.warnUnconfirmed(1, a)
		}
		return
	}
	var ok bool
	if r.lease, ok = a.handOver(r); ok {
		r.began = time.Now()
		r.due = r.began.Add(r.after(n))
		heap.Push(&rl.releases, r)
		rl.note(r, false)
		rl.setAlarm()
	}
}

// attempted is called when an attempt to acquire the hold has got its outcome.
func (r *release) attempted() {
	rl := r.releaser
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if r.index >= 0 && r.underWay == nil {
		rl.reschedule(r, 0)
	}
}

// reschedule makes the release due after d, or drops it if nothing is left to release. With rl.mu held.
func (rl *releaser) reschedule(r *release, d time.Duration) {
	if !r.matters() {
		rl.remove(r)
		return
	}
	r.due = time.Now().Add(d)
	heap.Fix(&rl.releases, r.index)
	rl.setAlarm()
}

func (r *release) matters() bool {
	owed := r.owed && (r.until.IsZero() || time.Now().Before(r.until))
	return owed || r.attempts.matters(len(r.releaser.releases) > maxUnheard)
}

// remove takes the release off the list. With rl.mu held.
func (rl *releaser) remove(r *release) {
	heap.Remove(&rl.releases, r.index)
	r.attempts.releaseDropped()
	rl.note(r, true)
}

// setAlarm sets the alarm for the release that is due first. With rl.mu held.
func (rl *releaser) setAlarm() {
	if len(rl.releases) == 0 {
		return
	}
	after := max(time.Until(rl.releases[0].due), 1) // not 0: in a synctest bubble Go 1.26 runs such a timer at once, and may crash with -race
	if rl.alarm == nil {
		rl.alarm = time.AfterFunc(after, rl.sendDue)
	} else {
		rl.alarm.Reset(after)
	}
}

// sendDue sends the releases that are due.
func (rl *releaser) sendDue() {
	ctx, cancel := context.WithTimeout(context.Background(), rl.client.set.UnlockTimeout)
	sharded := rl.client.bus.Sharded(ctx)
	cancel()
	for _, s := range rl.takeDue(sharded) {
		rl.client.store.Send(&s.op, s)
		rl.mu.Lock()
		s.inStore = true
		rl.mu.Unlock()
	}
}

// takeDue returns what is to be sent now.
func (rl *releaser) takeDue(sharded bool) (due []*sentRelease) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	now := time.Now()
	for !rl.closed && len(rl.releases) > 0 && !rl.releases[0].due.After(now) {
		r := rl.releases[0]
		unwritten := r.underWay != nil && !r.underWay.written
		if !r.matters() && (!unwritten || r.underWay.inStore && rl.client.store.TakeBack(&r.underWay.op)) {
			rl.remove(r)
			continue
		}
		if !unwritten {
			r.underWay = &sentRelease{release: r, op: rl.client.callingFirst(scripts.Unlock(r.attempts.keys, r.attempts.field, sharded), "", 0)}
			due = append(due, r.underWay)
		}
		r.due = now.Add(max(r.lease/3, 100*time.Millisecond))
		heap.Fix(&rl.releases, 0)
	}
	rl.setAlarm()
	return due
}

// Sending implements scripts.Caller.
func (s *sentRelease) Sending(scripts.Caller) {
	s.releaser.mu.Lock()
	defer s.releaser.mu.Unlock()
	s.written, s.sentAt, s.afterAllAttempts = true, time.Now(), s.attempts.allAnswered()
}

// Answered implements scripts.Caller.
func (s *sentRelease) Answered(a scripts.Answer, err error) {
	r, rl := s.release, s.releaser
	rl.client.releaseAnswered(a, s.attempts.keys)
	if r.over && a.Held {
		rl.client.set.Log.Warn("rlock: Redis had a hold of this client that is over, and it is released now: a server that takes over may not know of a release",
			"lock", s.attempts.keys.Lock)
	}
	rl.client.heard(rl.client.slotOf(s.attempts.keys), time.Now(), err)
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear() {
		r.answers = 0 // what lay in the sockets of a server that stood still arrives about now
	}
	if (err == nil || redis.HasErrorPrefix(err, "WRONGTYPE")) && !a.Owed && s.afterAllAttempts { // no hash has no hold in it
		r.attempts.released()
		r.freed = true
	}
	r.freed = r.freed || r.rest
	r.refused = scripts.Refused(err) && !scripts.Passing(err)
	if r.index < 0 || r.underWay != s {
		return
	}
	r.underWay, r.owed = nil, a.Owed
	r.answers++
	after := r.after(r.answers)
	if err != nil && !r.refused {
		after = min(after, max(retryRelease-time.Since(s.sentAt), 0)) // the repeats are for what arrives late at a Redis that answers
		r.answers = min(r.answers, 2)
	}
	if scripts.Ended(err) {
		after = min(after, r.pauses.Next(err, after))
	}
	if err != nil && r.held {
		after = min(after, lastRelease)
	}
	if err == nil && !s.afterAllAttempts && r.attempts.allAnswered() && r.attempts.mayBeTaken() {
		after = 0 // an attempt took the lock after this release, and its answer came before the release's
	}
	rl.reschedule(r, after)
}

// sendAllNow sends at once what is not known to be freed, whenever it is due.
func (rl *releaser) sendAllNow() {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	for _, r := range rl.releases {
		if r.underWay == nil && r.attempts.allAnswered() && rl.owes(r) {
			r.due = time.Time{}
		}
	}
	heap.Init(&rl.releases)
	rl.setAlarm()
}

// owesAny tells whether anything may be taken that no release has freed, and one still may.
func (rl *releaser) owesAny() bool {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	for _, r := range rl.releases {
		if rl.owes(r) && !r.refused {
			return true
		}
	}
	return false
}

// owes tells whether the hold may be taken still. With rl.mu held.
func (rl *releaser) owes(r *release) bool {
	if r.asks || r.freed && !r.attempts.mayBeTaken() {
		return false
	}
	// All of several servers may have said by now that they have not got the hold.
	return rl.client.limits.Owes == nil || rl.client.limits.Owes(r.attempts.field)
}

// close drops what is left, and says so.
func (rl *releaser) close() {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.closed = true
	if rl.alarm != nil {
		rl.alarm.Stop()
	}
	owed := 0
	var one *attempts
	for _, r := range rl.releases {
		if rl.owes(r) {
			owed, one = owed+1, r.attempts
		}
		r.index = -1
		r.attempts.releaseDropped()
		rl.note(r, true)
	}
	rl.releases = nil
	if owed > 0 {
		rl.warnUnconfirmed(owed, one)
	}
}

func (rl *releaser) warnUnconfirmed(locks int, one *attempts) {
	rl.client.set.Log.Warn("rlock: closed before a release was confirmed; the lock is free at the end of its lease", "lock", one.keys.Lock, "locks", locks)
}

// releases is a heap.Interface by the time at which they are due.
type releases []*release

func (h releases) Len() int           { return len(h) }
func (h releases) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h releases) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *releases) Push(x any) {
	r := x.(*release)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *releases) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	r.index = -1
	*h = old[:len(old)-1]
	return r
}
