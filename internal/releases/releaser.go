package releases

import (
	"container/heap"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// Client is what a Releaser uses of the client whose releases it sends.
type Client interface {
	// Send and TakeBack are those of command.Store. TakeBack is called with the Releaser's mutex held.
	Send(op *scripts.Op, caller scripts.Caller)
	TakeBack(op *scripts.Op) bool
	// Sharded tells whether channels are sharded, and may ask Redis for a while.
	Sharded() bool
	// Unlock returns the release of the hold of this field. It is called with the Releaser's mutex held.
	Unlock(keys *scripts.Keys, field string, sharded bool) scripts.Op
	// Answered is told what a release has said.
	Answered(keys *scripts.Keys, answer scripts.Answer, err error)
	// Owes tells whether one of several servers may still have the hold of this field, or get it late, and whether Close waits for that as it may answer a
	// release. With one server it returns true. It is called with the Releaser's mutex held.
	Owes(field string) (owed, awaited bool)
	// Delayed is told of a release that Redis, or a majority of several servers, is late to confirm, and Ended that it has, or that the release is
	// off the list. They are called in turn, with the Releaser's mutex held.
	Delayed(a *Attempts)
	Ended(a *Attempts, took time.Duration, confirmed bool)
}

// A Releaser sends the releases that nobody waits for: of holds whose release, or one of whose acquires, got no answer.
// Each release is sent again until one lease has passed since Redis first answered one that was sent after the last attempt to
// acquire had ended: what the attempt has taken has then been released, or has expired by itself. Releases travel in company with other
// operations, and no goroutine waits for one.
type Releaser struct {
	client Client
	log    *slog.Logger

	mu       sync.Mutex
	releases queue       // all of them, the one that is due first at the front
	alarm    *time.Timer // calls sendDue when that is due; nil before there was any
	closed   bool
	unheard  int         // the bound maxUnheard
	late     *time.Timer // calls tellLate
	watching bool        // late is set
}

// New returns a Releaser without releases.
func New(client Client, log *slog.Logger) *Releaser {
	return &Releaser{client: client, log: log, unheard: maxUnheard}
}

// A reason is why a release is on the list.
type reason uint8

const (
	inDoubt      reason = iota // an attempt, or a renewal, may have taken or kept the hold
	unlockFailed               // Unlock has said that the release of the hold is sent again
	quorumDone                 // most of several servers have confirmed it already
	wasOver                    // the hold was over already, and a server without the latest data has it
	question                   // it is of a hold that never was, to learn whether the server has one of this client that is over
)

// A release is the Releaser's entry for one hold. The Releaser guards its fields.
type release struct {
	releaser *Releaser
	attempts *Attempts
	reason   reason
	lease    time.Duration
	index    int             // in Releaser.releases; -1: it is over
	began    time.Time       // when it was left to the Releaser
	due      time.Time       // when to send it, again if it is under way
	answers  int             // which entry of releaseAfter is the next pause; each answer moves it on, an error to 2 at most
	pauses   command.Backoff // after errors of connections that had ended
	underWay *sentRelease    // the command that was sent last; nil once that is answered

	confirmed      bool      // Redis, or a majority of several servers, has confirmed a command that was sent when all attempts had their outcome
	told           bool      // as delayed, and not as ended
	confirmedFree  bool      // a command that was sent when all attempts had their outcome was confirmed; with quorumDone: any was answered
	refusedForGood bool      // Redis has refused it: rights are missing
	nodesOwe       bool      // one of several servers may have the hold still
	oweUntil       time.Time // of another client's hold: when its lease is over on every server. Zero: nodesOwe says so
}

// A sentRelease is one command that releases the hold. Its fields are guarded by the Releaser's mu.
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

// Release takes over the release of a hold that an attempt or a renewal may have taken or kept.
func (rl *Releaser) Release(a *Attempts) { rl.add(&release{releaser: rl, attempts: a}) }

// UnlockFailed takes over the release of a hold that is taken still, as far as is known.
func (rl *Releaser) UnlockFailed(a *Attempts) {
	rl.add(&release{releaser: rl, attempts: a, reason: unlockFailed})
}

// Abandon takes over the attempts of a call that does not wait for the lock any longer. Where an attempt is under way the first pause is
// left out, and the release is sent after the second, or as soon as the attempt is answered (see attempted): most attempts take nothing,
// or are answered by then. A release that is sent earlier may reach Redis before the attempt, on another connection.
func (rl *Releaser) Abandon(a *Attempts) {
	n := 0
	if !a.allAnswered() {
		n = 1
	}
	rl.add(&release{releaser: rl, attempts: a, answers: n})
}

// QuorumDone takes over what is left of a release that most of several servers have confirmed. until: of another client's hold, when its lease
// is over on every server.
func (rl *Releaser) QuorumDone(a *Attempts, until time.Time) {
	a.Released()
	rl.add(&release{releaser: rl, attempts: a, reason: quorumDone, confirmed: true, answers: 1, nodesOwe: true, oweUntil: until})
}

// WasOver takes over the release of a hold that is over, and that Redis has all the same (P38).
func (rl *Releaser) WasOver(keys *scripts.Keys, field string, lease time.Duration) {
	rl.mu.Lock()
	for _, r := range rl.releases {
		if r.attempts.Field == field {
			rl.takenAgain(r)
			if r.underWay == nil {
				rl.reschedule(r, 0)
			}
			rl.mu.Unlock()
			return
		}
	}
	rl.mu.Unlock()
	rl.add(&release{releaser: rl, attempts: taken(keys, field, lease), reason: wasOver})
}

// Ask sends the release of a hold that never was. Its answer names the hold of this client that is over, if Redis has one all the same (P38).
func (rl *Releaser) Ask(keys *scripts.Keys, field string, lease time.Duration) {
	rl.add(&release{releaser: rl, attempts: taken(keys, field, lease), reason: question})
}

// taken returns attempts of which one has taken the lock.
func taken(keys *scripts.Keys, field string, lease time.Duration) *Attempts {
	a := NewAttempts(keys, field, lease)
	a.taken = true
	return a
}

// Len returns how many releases are on the list.
func (rl *Releaser) Len() int {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	return len(rl.releases)
}

func (rl *Releaser) add(r *release) {
	a, n := r.attempts, r.answers
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if rl.closed {
		if r.reason != quorumDone && r.reason != question {
			rl.warnUnconfirmed(1, a)
		}
		return
	}
	var ok bool
	if r.lease, ok = a.handOver(r); ok {
		r.began = time.Now()
		r.due = r.began.Add(r.after(n))
		heap.Push(&rl.releases, r)
		rl.watch(r)
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
func (rl *Releaser) reschedule(r *release, d time.Duration) {
	if !r.matters() {
		rl.remove(r)
		return
	}
	r.due = time.Now().Add(d)
	heap.Fix(&rl.releases, r.index)
	rl.setAlarm()
}

func (r *release) matters() bool {
	return r.isOwed() || r.attempts.matters(len(r.releaser.releases) > r.releaser.unheard)
}

// isOwed tells whether one of several servers may have the hold: the rest of them may have confirmed since what most had confirmed.
func (r *release) isOwed() bool {
	if !r.nodesOwe || !r.oweUntil.IsZero() {
		return r.nodesOwe && time.Now().Before(r.oweUntil)
	}
	owed, _ := r.releaser.client.Owes(r.attempts.Field)
	return owed
}

// remove takes the release off the list. With rl.mu held.
func (rl *Releaser) remove(r *release) {
	heap.Remove(&rl.releases, r.index)
	rl.end(r)
}

// end notes that the Releaser is done with the release. With rl.mu held.
func (rl *Releaser) end(r *release) {
	r.attempts.releaseDropped()
	rl.tellEnd(r, r.confirmed || !r.attempts.Uncertain())
}

// setAlarm sets the alarm for the release that is due first. With rl.mu held.
func (rl *Releaser) setAlarm() {
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
func (rl *Releaser) sendDue() {
	sharded := rl.client.Sharded()
	for _, s := range rl.takeDue(sharded) {
		rl.client.Send(&s.op, s)
		rl.mu.Lock()
		s.inStore = true
		rl.mu.Unlock()
	}
}

// takeDue returns what is to be sent now.
func (rl *Releaser) takeDue(sharded bool) (due []*sentRelease) {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	now := time.Now()
	for !rl.closed && len(rl.releases) > 0 && !rl.releases[0].due.After(now) {
		r := rl.releases[0]
		unwritten := r.underWay != nil && !r.underWay.written
		if !r.matters() && (!unwritten || r.underWay.inStore && rl.client.TakeBack(&r.underWay.op)) {
			rl.remove(r)
			continue
		}
		if !unwritten {
			r.underWay = &sentRelease{release: r, op: rl.client.Unlock(r.attempts.Keys, r.attempts.Field, sharded)}
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
	rl.client.Answered(s.attempts.Keys, a, err)
	if r.reason == wasOver && a.Held {
		rl.log.Warn("rlock: Redis had a hold of this client that is over, and it is released now: a server that takes over may not know of a release",
			"lock", s.attempts.Keys.Lock)
	}
	rl.mu.Lock()
	defer rl.mu.Unlock()
	if s.afterAllAttempts && !scripts.Passing(err) && r.attempts.hear() {
		r.answers = 0 // what lay in the sockets of a server that stood still arrives about now
	}
	if (err == nil || redis.HasErrorPrefix(err, "WRONGTYPE")) && s.afterAllAttempts { // no hash has no hold in it
		rl.confirm(r)
		if !a.Owed {
			r.attempts.Released()
			r.confirmedFree = true
		}
	}
	r.confirmedFree = r.confirmedFree || r.reason == quorumDone
	r.refusedForGood = scripts.Refused(err) && !scripts.Passing(err)
	if r.index < 0 || r.underWay != s {
		return
	}
	r.underWay, r.nodesOwe = nil, a.Owed
	r.answers++
	if a.Unheard {
		r.answers = 2 // again within a second,
	}
	after := r.after(r.answers)
	if a.Unheard || err != nil && !r.refusedForGood {
		after = min(after, max(retryRelease-time.Since(s.sentAt), 0)) // the repeats are for what arrives late at a Redis that answers
		r.answers = min(r.answers, 2)
	}
	if a.Unheard {
		r.answers = 0 // and the pauses begin anew with the answer: what lay in the sockets of a server that stood still arrives about then
	}
	if scripts.Ended(err) {
		after = min(after, r.pauses.Next(err, after))
	}
	if err != nil && r.reason == unlockFailed {
		after = min(after, lastRelease)
	}
	if err == nil && !s.afterAllAttempts && r.attempts.allAnswered() && r.attempts.mayBeTaken() {
		after = 0 // an attempt took the lock after this release, and its answer came before the release's
	}
	rl.reschedule(r, after)
}

// SendAllNow sends at once what is not known to be free, whenever it is due.
func (rl *Releaser) SendAllNow() {
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

// OwesAny tells whether anything may be taken that no release has freed, and one still may.
func (rl *Releaser) OwesAny() bool {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	for _, r := range rl.releases {
		if rl.owes(r) && !r.refusedForGood {
			return true
		}
	}
	return false
}

// owes tells whether the hold may be taken still. With rl.mu held.
func (rl *Releaser) owes(r *release) bool {
	free := r.confirmedFree && !r.attempts.mayBeTaken()
	if r.reason == question || free && (r.reason != quorumDone || !r.oweUntil.IsZero()) {
		return false
	}
	_, awaited := rl.client.Owes(r.attempts.Field) // of several servers some may still have what most have released, or all may have said that they have not got it
	return awaited
}

// Close drops what is left, and says so.
func (rl *Releaser) Close() {
	rl.mu.Lock()
	defer rl.mu.Unlock()
	rl.closed = true
	for _, timer := range []*time.Timer{rl.alarm, rl.late} {
		if timer != nil {
			timer.Stop()
		}
	}
	owed := 0
	var one *Attempts
	for _, r := range rl.releases {
		if rl.owes(r) {
			owed, one = owed+1, r.attempts
		}
		r.index = -1
		rl.end(r)
	}
	rl.releases = nil
	if owed > 0 {
		rl.warnUnconfirmed(owed, one)
	}
}

func (rl *Releaser) warnUnconfirmed(locks int, one *Attempts) {
	rl.log.Warn("rlock: closed before a release was confirmed; the lock is free at the end of its lease", "lock", one.Keys.Lock, "locks", locks)
}

// A queue is a heap.Interface of releases, by the time at which they are due.
type queue []*release

func (h queue) Len() int           { return len(h) }
func (h queue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h queue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *queue) Push(x any) {
	r := x.(*release)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *queue) Pop() any {
	old := *h
	r := old[len(old)-1]
	old[len(old)-1] = nil
	r.index = -1
	*h = old[:len(old)-1]
	return r
}
