package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// news is what Redis has said to the leader.
type news struct {
	heard   time.Time // when it last said who has the lock,
	why     error     // and if nobody, why it was not to be had
	trouble error     // what it last said instead
	since   time.Time // and since when it has been like that
	failure time.Time // the last time that it did
}

// answered notes that Redis said who has the lock; why: nobody has.
func (q *queue) answered(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.tidings()
	q.asked, n.trouble, n.why, n.heard = 0, nil, why, time.Now()
}

// heardOf is answered with q.mu held.
func (q *queue) heardOf() {
	q.asked = 0
	if q.first != q.last || q.news != nil { // somebody waits
		q.tidings().trouble = nil
		q.news.heard = time.Now()
	}
}

// failed notes an error in place of an answer.
func (q *queue) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.tidings()
	if n.trouble == nil {
		n.since = time.Now()
	}
	q.asked, n.trouble, n.failure = 0, err, time.Now()
}

// tidings returns what is known of Redis. With q.mu held.
func (q *queue) tidings() *news {
	if q.news == nil {
		q.news = new(news)
	}
	return q.news
}

// exhausted returns what Redis said in place of an answer, if a call that began at this time has heard nothing else for
// as long as its patience.
func (q *queue) exhausted(began time.Time, patience time.Duration) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.news == nil || q.news.trouble == nil || time.Since(q.news.since) < patience || time.Since(began) < patience {
		return nil
	}
	return q.news.trouble
}

// verdict is why a call that began at this time has waited in vain: somebody else held the lock, as far as Redis told,
// or it did not tell.
func (q *queue) verdict(began time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.tidings()
	switch {
	case q.hold != nil && !q.hold.lease.Passed():
		return ErrNotAcquired // held by this very client
	case n.trouble != nil && !n.failure.Before(began):
		if errors.Is(n.trouble, ErrUnconfirmed) {
			return n.trouble
		}
		return fmt.Errorf("no answer within the wait: %w", n.trouble)
	// An attempt that has been under way for most of the wait is one that Redis does not answer.
	case q.asked != 0 && n.heard.Before(began) && q.asked.age() > time.Since(began)/2:
		return with(fmt.Errorf("no answer from Redis within the wait: %w", context.DeadlineExceeded), q.client.dials.since(began))
	}
	return notAcquired(n.why)
}

// lastWord is what Redis, or the network, said last to calls for the lock that began at this time or later, if that is an
// error.
func (q *queue) lastWord(began time.Time) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	heard := began
	if n := q.news; n != nil {
		if n.trouble != nil && !n.failure.Before(began) {
			return n.trouble
		}
		if n.heard.After(began) {
			heard = n.heard
		}
	}
	return q.client.dials.since(heard)
}

// with is the error of a call that waited no longer, joined with what kept it from an answer, if that is known.
func with(err, said error) error {
	if said == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, said)
}
