package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// notAcquiredError is why a call that began at this time has waited in vain: somebody else held the
// lock, as far as Redis said, or Redis did not say.
func (ls *lockState) notAcquiredError(began time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.hold != nil && !ls.hold.Lease.Passed() {
		return ErrNotAcquired // held by this very client
	}
	health := ls.room.Health()
	refusal, failure := health.InVain(began)
	switch {
	case errors.Is(failure, ErrUnconfirmed):
		return failure
	case failure != nil:
		return ls.client.withDial(fmt.Errorf("no answer within the wait: %w", failure), began)
	// An attempt that has been under way for most of the wait is one that Redis does not answer.
	case health.Silent(time.Now(), began, ls.room.Silent()):
		return ls.client.withDial(fmt.Errorf("no answer from Redis within the wait: %w", context.DeadlineExceeded), began)
	}
	return notAcquired(refusal)
}

// lastError is what Redis, or the network, said last to calls for the lock that began at this time
// or later, if that is an error.
func (ls *lockState) lastError(began time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	health := ls.room.Health()
	if _, failure := health.InVain(began); failure != nil {
		return failure
	}
	return ls.client.dials.Since(health.HeardSince(began))
}

// withDial is an error in place of an answer, joined with why no connection was made since this
// time, where that may be the cause.
func (c *Client) withDial(err error, since time.Time) error {
	if !scripts.Unanswered(err) { // Redis has answered, or the error is of a dial
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		err = fmt.Errorf("%w: the server ends connections. If it ends each, it is for TLS alone, or a proxy that does not know HELLO, as twemproxy", err)
	}
	return with(err, c.dials.Since(since))
}

// with is the error of a call that waited no longer, joined with what kept it from an answer, if
// that is known.
func with(err, said error) error {
	if said == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, said)
}

// notAcquired is the error of a call that has not got the lock: why, or ErrNotAcquired where why is
// nil, as another holder has the lock.
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
