package releases

import (
	"io"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// P3: for how long attempts to acquire a hold may have taken the lock, so that a release of it is to be sent.
func TestP3_UntilWhenAttemptsMatter(t *testing.T) {
	const lease = 10 * time.Second
	const forever = time.Duration(-1)
	const refusal = locktest.Reply("LOADING Redis is loading the dataset in memory")
	var free, taken, owed scripts.Answer
	taken.Held, owed.Owed = true, true
	ask := func(a *Attempts, answer scripts.Answer, err error) {
		a.Sent()
		a.noteAnswer(answer, err)
	}
	for _, c := range []struct {
		what       string
		steps      func(t *testing.T, a *Attempts)
		uncertain  bool
		mayBeTaken bool
		until      time.Duration // after the steps
	}{
		{what: "no attempt", steps: func(t *testing.T, a *Attempts) {}},
		{what: "one under way", steps: func(t *testing.T, a *Attempts) { a.Sent() }, uncertain: true, mayBeTaken: true, until: forever},
		{what: "one that was taken back", steps: func(t *testing.T, a *Attempts) { a.Sent(); a.TakenBack() }},
		{what: "one that found another holder", steps: func(t *testing.T, a *Attempts) { ask(a, free, nil) }},
		{what: "one that was refused", steps: func(t *testing.T, a *Attempts) { ask(a, free, refusal) }},
		{what: "one that was refused, and was the last", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, refusal)
			locktest.Equal(t, "it is to be released", a.GiveUp(), true)
		}, uncertain: true, mayBeTaken: true, until: forever},
		{what: "one that was refused before the last", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, refusal)
			ask(a, free, nil)
			locktest.Equal(t, "it is to be released", a.GiveUp(), false)
		}},
		{what: "one that took the lock", steps: func(t *testing.T, a *Attempts) { ask(a, taken, nil) }, uncertain: true, mayBeTaken: true, until: forever},
		{what: "one that took the lock and was released", steps: func(t *testing.T, a *Attempts) {
			ask(a, taken, nil)
			locktest.Equal(t, "another release is to be sent", a.Released(), false)
		}},
		{what: "one without an answer", steps: func(t *testing.T, a *Attempts) { ask(a, free, io.EOF) }, uncertain: true, until: forever},
		{what: "one without an answer, and Redis is heard of hours later", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, io.EOF)
			time.Sleep(3 * time.Hour)
			locktest.Equal(t, "it is the first answer", a.hear(), true)
		}, uncertain: true, until: lease},
		{what: "the same, and Redis is heard of again", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, io.EOF)
			a.hear()
			time.Sleep(lease / 2)
			locktest.Equal(t, "it is the first answer", a.hear(), false)
		}, uncertain: true, until: lease / 2},
		{what: "one without an answer after Redis was heard of", steps: func(t *testing.T, a *Attempts) {
			a.Sent()
			ask(a, free, io.EOF)
			a.hear()
			a.noteAnswer(free, io.EOF)
		}, uncertain: true, until: forever},
		{what: "one without an answer, and one that took the lock", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, io.EOF)
			ask(a, taken, nil)
		}, uncertain: true, mayBeTaken: true, until: forever},
		{what: "the same, released", steps: func(t *testing.T, a *Attempts) {
			ask(a, free, io.EOF)
			time.Sleep(lease / 2)
			ask(a, taken, nil)
			locktest.Equal(t, "another release is to be sent", a.Released(), true)
		}, uncertain: true, until: lease},
		{what: "two under way, and one has its answer", steps: func(t *testing.T, a *Attempts) {
			a.Sent()
			ask(a, free, nil)
		}, uncertain: true, mayBeTaken: true, until: forever},
		{what: "one that some servers may have executed", steps: func(t *testing.T, a *Attempts) { ask(a, owed, io.EOF) }, uncertain: true, mayBeTaken: true, until: forever},
		{what: "the same, released", steps: func(t *testing.T, a *Attempts) {
			ask(a, owed, io.EOF)
			locktest.Equal(t, "another release is to be sent", a.Released(), false)
		}},
		{what: "one without an answer, for a longer lease", steps: func(t *testing.T, a *Attempts) {
			a.Extend(2 * lease)
			ask(a, free, io.EOF)
			a.hear()
		}, uncertain: true, until: 2 * lease},
		{what: "one without an answer, for a shorter lease", steps: func(t *testing.T, a *Attempts) {
			a.Extend(lease / 2)
			ask(a, free, io.EOF)
			a.hear()
		}, uncertain: true, until: lease},
		{what: "one that took the lock and was left to the releaser", steps: func(t *testing.T, a *Attempts) {
			ask(a, taken, nil)
			a.handOver(new(release))
		}, uncertain: true, mayBeTaken: true, until: forever},
		{what: "the same, and Redis refuses to release it", steps: func(t *testing.T, a *Attempts) {
			ask(a, taken, nil)
			a.handOver(new(release))
			a.hear()
		}, uncertain: true, mayBeTaken: true, until: lease},
		{what: "one that took the lock when it was left to the releaser", steps: func(t *testing.T, a *Attempts) {
			a.Sent()
			a.handOver(new(release))
			a.hear()
			time.Sleep(lease / 2)
			a.noteAnswer(taken, nil)
		}, uncertain: true, mayBeTaken: true, until: forever},
	} {
		redistest.Bubble(t, func(t *testing.T) {
			a := &Attempts{lease: lease}
			c.steps(t, a)
			if a.doubt != nil && c.until == forever && a.inFlight == 0 {
				time.Sleep(lease)
				locktest.Equal(t, c.what+": it is to be released where too much is", a.matters(true), false)
			}
			locktest.Equal(t, c.what+": uncertain", a.Uncertain(), c.uncertain)
			locktest.Equal(t, c.what+": may be taken", a.mayBeTaken(), c.mayBeTaken)
			switch {
			case c.until == forever:
				time.Sleep(12 * time.Hour)
				locktest.Equal(t, c.what+": it is to be released hours later", a.NeedsRelease(), true)
			case c.until > 0:
				time.Sleep(c.until - 1)
				locktest.Equal(t, c.what+": it is to be released in time", a.NeedsRelease(), true)
				time.Sleep(time.Nanosecond)
			}
			if c.until != forever {
				locktest.Equal(t, c.what+": it is to be released", a.NeedsRelease(), false)
			}
		})
	}
}

// P3: the attempts of a hold have one entry of the releaser at a time. The answer to an attempt goes to that entry.
func TestP3_AttemptsHaveOneRelease(t *testing.T) {
	const lease = 10 * time.Second
	a := &Attempts{lease: lease}
	first, second := new(release), new(release)
	a.Sent()
	a.Sent()
	locktest.Equal(t, "the release that waits for an answer", a.noteAnswer(scripts.Answer{}, nil), (*release)(nil))
	got, ok := a.handOver(first)
	locktest.Equal(t, "the releaser takes it", ok, true)
	locktest.Equal(t, "lease", got, lease)
	_, ok = a.handOver(second)
	locktest.Equal(t, "the releaser takes it twice", ok, false)
	locktest.Equal(t, "the release that waits for an answer", a.noteAnswer(scripts.Answer{}, nil), first)
	locktest.Equal(t, "all have an answer", a.allAnswered(), true)
	a.releaseDropped()
	_, ok = a.handOver(second)
	locktest.Equal(t, "the releaser takes it anew", ok, true)
}
