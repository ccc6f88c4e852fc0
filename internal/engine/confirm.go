package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// maxReplicas is more than anybody has; a larger number is a mistake.
const maxReplicas = 100

// confirmation is what a change needs before it counts, or nil.
func (s *Settings) confirmation() *scripts.Confirmation {
	if s.Fsync != nil {
		return s.Fsync
	}
	return s.Replicas
}

// confirmTime is how long Redis waits for the confirmation of a change before it answers.
func (s *Settings) confirmTime() time.Duration {
	if c := s.confirmation(); c != nil {
		return c.Timeout
	}
	return 0
}

// confirmTimes is confirmTime of a command that goes twice, as the server has not got its script.
func (s *Settings) confirmTimes() time.Duration { return 2 * s.confirmTime() }

// CheckSeveral refuses the settings that are for one Redis only.
func (s *Settings) CheckSeveral() error {
	if s.confirmation() != nil {
		return errors.New("rlock: WithReplicas and WithFsync are for one Redis: leave them out where several have the lock")
	}
	return nil
}

func (s *Settings) checkConfirmation() error {
	switch r, f := s.Replicas, s.Fsync; {
	case r != nil && f != nil:
		return fmt.Errorf("rlock: WithReplicas and WithFsync: use one of them: what is on the disks of replicas has reached them")
	case r != nil:
		if r.Replicas < 1 || r.Replicas > maxReplicas {
			return fmt.Errorf("rlock: WithReplicas(%d, %v): use 1 to %d replicas; leave the option out to wait for none", r.Replicas, r.Timeout, maxReplicas)
		}
		return s.checkTimeout(fmt.Sprintf("WithReplicas(%d, %v)", r.Replicas, r.Timeout), r.Timeout)
	case f != nil:
		name := fmt.Sprintf("WithFsync(%d, %d, %v)", f.Local, f.Replicas, f.Timeout)
		if f.Local < 0 || f.Local > 1 || f.Replicas < 0 || f.Replicas > maxReplicas || f.Local+f.Replicas == 0 {
			return fmt.Errorf("rlock: %s: use 0 or 1 for the server itself, 0 to %d replicas, and not 0 for both", name, maxReplicas)
		}
		return s.checkTimeout(name, f.Timeout)
	}
	return nil
}

// checkTimeout checks the timeout of a confirmation against the lease: each of its renewals has a
// third.
func (s *Settings) checkTimeout(option string, timeout time.Duration) error {
	if timeout < time.Millisecond || timeout >= s.Lease/3 {
		return fmt.Errorf("rlock: %s: use a timeout from a millisecond to less than a third of the lease, which is %v: renewals too must be confirmed in time", option, s.Lease)
	}
	return nil
}

// checkReads checks the timeout of a confirmation against that of reads: a reply that comes later
// breaks the connection.
func (s *Settings) checkReads(rdb redis.UniversalClient) error {
	c := s.confirmation()
	if c == nil {
		return nil
	}
	var reads time.Duration
	switch r := rdb.(type) {
	case *redis.Client:
		reads = r.Options().ReadTimeout
	case *redis.ClusterClient:
		reads = r.Options().ReadTimeout
	}
	if reads > 0 && c.Timeout >= reads {
		return fmt.Errorf("rlock: New: replicas have %v to confirm, and reads of rdb end after %v: use a shorter timeout, or a longer ReadTimeout", c.Timeout, reads)
	}
	return nil
}

// checkConfirmed checks an explicit lease against the time in which it has to be confirmed.
func (s *Settings) checkConfirmed(lease time.Duration) error {
	if c := s.confirmation(); c != nil && lease <= c.Timeout {
		return fmt.Errorf("lease %v: use more than the %v that replicas have to confirm it", lease, c.Timeout)
	}
	return nil
}

// onReentry is how long the first command of a re-entry is waited for before it is sent again.
func (c *Client) onReentry() time.Duration {
	return max(c.set.UnlockTimeout/3, time.Millisecond) + c.set.confirmTime()
}
