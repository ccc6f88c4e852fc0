package rlock

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

// maxReplicas is more than anybody has; a larger number is a mistake.
const maxReplicas = 100

// WithReplicas makes an acquire count only when n replicas of the server (in a cluster: of the lock's master) confirm
// within the timeout that they have it, by WAIT. Otherwise it is released, and the error is ErrUnconfirmed: at once from
// TryLock with wait 0; a call that may wait keeps what it has taken, and rides it out as it does other errors that pass
// (WithPatience). Handoffs, re-entries and renewals count in the same way: a lease that was extended without
// confirmation is trusted for no longer than the last one that had it, so that a hold whose renewals nobody confirms ends
// in time with ErrLost. Unlock does not wait, except for a handoff that it makes: a replica that has not heard of it
// keeps the lock for the rest of the lease, which is late, and safe.
//
// It buys that a crash of the server right after an acquire does not lose the lock, if a replica that confirmed is the one
// that takes over. It does not make Redis consistent: with n less than the number of replicas another one may be
// promoted (Sentinel takes the one that has most, of those that it reaches); a master that is cut off with n replicas
// confirms while the others elect a new one; a replica may itself restart empty. With n as many as there are, one replica
// that is away keeps everybody from locking. Tokens, with fenced.WithClockFloor, and guards hold beyond that.
//
// It costs one round trip between the server and its replicas for each acquire and renewal, one for all that travel
// together. While replicas do not answer, each attempt takes the timeout, on a connection of its own, up to 16 of them.
// The timeout, from a millisecond to less than a third of WithLease and than the ReadTimeout of the Redis client, should
// be several times what the replicas lag; explicit leases must be longer. In a cluster these commands go to the
// node itself, past the hooks of the cluster client. A Redis without WAIT, or a user without the right to it, is an error
// of each call.
//
// Redisson waits outside single-server setups by default: an acquire for all replicas that it thinks are connected, a
// second at most. It fails if there are some and none confirmed; one of three is enough, and with none connected
// nothing is waited for. When a renewal was not confirmed it logs that, and goes on.
func WithReplicas(n int, timeout time.Duration) Option {
	return func(o *options) { o.replicas = &scripts.Confirmation{Replicas: n, Timeout: timeout} }
}

// WithFsync is WithReplicas for the disk, by WAITAOF: with local 1 the server, and so many replicas, have to confirm that
// the acquire is in their append-only files, and that these are on disk. local 1 and no replicas is for a server that
// comes back after a crash, or a loss of power, with what it had; it needs appendonly there, as replicas that are to
// confirm need it: others never do. Set appendfsync always: with everysec, the default, each acquire and renewal waits for
// the next fsync, about a second, and the timeout must be longer than that. It needs Redis 7.2 or later, or Valkey;
// on another server the first call returns ErrUnconfirmed at once, and says so.
func WithFsync(local, replicas int, timeout time.Duration) Option {
	return func(o *options) {
		o.fsync = &scripts.Confirmation{Fsync: true, Local: local, Replicas: replicas, Timeout: timeout}
	}
}

// confirmation is what a change needs before it counts, or nil.
func (o *options) confirmation() *scripts.Confirmation {
	if o.fsync != nil {
		return o.fsync
	}
	return o.replicas
}

func (o *options) checkConfirmation() error {
	switch r, f := o.replicas, o.fsync; {
	case r != nil && f != nil:
		return fmt.Errorf("rlock: WithReplicas and WithFsync: use one of them: what is on the disks of replicas has reached them")
	case r != nil:
		if r.Replicas < 1 || r.Replicas > maxReplicas {
			return fmt.Errorf("rlock: WithReplicas(%d, %v): use 1 to %d replicas; leave the option out to wait for none", r.Replicas, r.Timeout, maxReplicas)
		}
		return o.checkTimeout(fmt.Sprintf("WithReplicas(%d, %v)", r.Replicas, r.Timeout), r.Timeout)
	case f != nil:
		name := fmt.Sprintf("WithFsync(%d, %d, %v)", f.Local, f.Replicas, f.Timeout)
		if f.Local < 0 || f.Local > 1 || f.Replicas < 0 || f.Replicas > maxReplicas || f.Local+f.Replicas == 0 {
			return fmt.Errorf("rlock: %s: use 0 or 1 for the server itself, 0 to %d replicas, and not 0 for both", name, maxReplicas)
		}
		return o.checkTimeout(name, f.Timeout)
	}
	return nil
}

// checkTimeout checks the timeout of a confirmation against the lease: each of its renewals has a third.
func (o *options) checkTimeout(option string, timeout time.Duration) error {
	if timeout < time.Millisecond || timeout >= o.lease/3 {
		return fmt.Errorf("rlock: %s: use a timeout from a millisecond to less than a third of the lease, which is %v: renewals too must be confirmed in time", option, o.lease)
	}
	return nil
}

// checkReads checks the timeout of a confirmation against that of reads: a reply that comes later breaks the connection.
func (o *options) checkReads(rdb redis.UniversalClient) error {
	c := o.confirmation()
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
func (o *options) checkConfirmed(lease time.Duration) error {
	if c := o.confirmation(); c != nil && lease <= c.Timeout {
		return fmt.Errorf("lease %v: use more than the %v that replicas have to confirm it", lease, c.Timeout)
	}
	return nil
}

// onReentry is how long the first command of a re-entry is waited for before it is sent again.
func (c *Client) onReentry() time.Duration {
	each := max(c.unlockTimeout/3, time.Millisecond)
	if confirm := c.confirmation(); confirm != nil {
		each += confirm.Timeout
	}
	return each
}
