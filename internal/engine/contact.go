package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// contact is what Redis has said last to the waiters of one lock: who has it, or an error.
type contact struct {
	answeredAt   time.Time // when Redis last said who has the lock,
	refusal      error     // and why the lock was not to be had where nobody has it
	failure      error     // the last error in place of an answer; nil after an answer
	failingSince time.Time // when the first command was sent after which there have been errors only
	failedAt     time.Time // when the last error came
}

// redisAnswered notes that Redis said who has the lock. why: nobody has it, and it was not to be had all the same. With ls.mu held.
func (ls *lockState) redisAnswered(why error) {
	ls.noteAnswer(why)
	ls.silent = time.Time{}
}

// noteAnswer is redisAnswered for an attempt that is not the asker's: Redis may still owe the asker an answer. With ls.mu held.
func (ls *lockState) noteAnswer(why error) {
	n := ls.contactLocked()
	n.failure, n.refusal, n.answeredAt = nil, why, time.Now()
}

// gotLock notes that a waiter has got the lock, by an answer of Redis or from another hold of this client. Where other waiters
// are there, or Redis has said something before, this counts as an answer of Redis from now. With ls.mu held.
func (ls *lockState) gotLock() {
	if ls.asker != nil {
		ls.silent = time.Time{}
	}
	if ls.first != ls.last || ls.contact != nil { // a waiter may ask for the contact
		ls.contactLocked().failure = nil
		ls.contact.answeredAt = time.Now()
	}
}

// redisFailed notes an error in place of an answer to a command of the asker's that was sent at this time. With ls.mu held.
func (ls *lockState) redisFailed(sent time.Time, err error) {
	ls.noteFailure(sent, err)
	ls.silent = time.Time{}
}

// noteFailure notes an error in place of an answer to a command that was sent at this time. With ls.mu held.
func (ls *lockState) noteFailure(sent time.Time, err error) {
	n := ls.contactLocked()
	if n.failure == nil {
		n.failingSince = sent
	}
	if err != command.ErrSilence || n.failure == nil { // it says less than any other error
		n.failure = err
	}
	n.failedAt = time.Now()
}

// contactLocked returns what is known of Redis. With ls.mu held.
func (ls *lockState) contactLocked() *contact {
	if ls.contact == nil {
		ls.contact = new(contact)
	}
	return ls.contact
}

// patienceOver returns the last error in place of an answer, if there have been errors only for as long as patience, and the call that
// began at this time is as old; otherwise nil. With ls.mu held.
func (ls *lockState) patienceOver(began time.Time, patience time.Duration) error {
	if ls.contact == nil || ls.contact.failure == nil || time.Since(ls.contact.failingSince) < patience || time.Since(began) < patience {
		return nil
	}
	return ls.contact.failure
}

// patienceEnds returns when a call that began at this time has no patience left, if errors go on; zero where the last word of Redis was an
// answer. With ls.mu held.
func (ls *lockState) patienceEnds(began time.Time, patience time.Duration) time.Time {
	if ls.contact == nil || ls.contact.failure == nil {
		return time.Time{}
	}
	if began.Before(ls.contact.failingSince) {
		began = ls.contact.failingSince
	}
	return began.Add(patience)
}

// notAcquiredError is why a call that began at this time has waited in vain: somebody else held the lock, as far as Redis said, or
// Redis did not say.
func (ls *lockState) notAcquiredError(began time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	n := ls.contactLocked()
	switch {
	case ls.hold != nil && !ls.hold.Lease.Passed():
		return ErrNotAcquired // held by this very client
	case n.failure != nil && !n.failedAt.Before(began):
		if errors.Is(n.failure, ErrUnconfirmed) {
			return n.failure
		}
		return ls.client.withDial(fmt.Errorf("no answer within the wait: %w", n.failure), began)
	// An attempt that has been under way for most of the wait is one that Redis does not answer.
	case ls.asker != nil && !ls.silent.IsZero() && n.answeredAt.Before(began) && time.Since(ls.silent) > time.Since(began)/2:
		return ls.client.withDial(fmt.Errorf("no answer from Redis within the wait: %w", context.DeadlineExceeded), began)
	}
	return notAcquired(n.refusal)
}

// lastError is what Redis, or the network, said last to calls for the lock that began at this time or later, if that is an
// error.
func (ls *lockState) lastError(began time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	heard := began
	if n := ls.contact; n != nil {
		if n.failure != nil && !n.failedAt.Before(began) {
			return n.failure
		}
		if n.answeredAt.After(began) {
			heard = n.answeredAt
		}
	}
	return ls.client.dials.Since(heard)
}

// withDial is an error in place of an answer, joined with why no connection was made since this time, where that may be the cause.
func (c *Client) withDial(err error, since time.Time) error {
	if !scripts.Unanswered(err) { // Redis has answered, or the error is of a dial
		return err
	}
	return with(err, c.dials.Since(since))
}

// with is the error of a call that waited no longer, joined with what kept it from an answer, if that is known.
func with(err, said error) error {
	if said == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, said)
}

// notAcquired is the error of a call that has not got the lock: why, or ErrNotAcquired where why is nil, as another holder has the lock.
func notAcquired(why error) error {
	if why != nil {
		return why
	}
	return ErrNotAcquired
}

// passing tells that an attempt is worth repeating.
func passing(err error) bool {
	return scripts.Passing(err) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrLost)
}
