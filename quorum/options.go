package quorum

import (
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// options is what the options of this package say.
type options struct {
	timeout time.Duration    // WithNodeTimeout
	retry   [2]time.Duration // WithRetryDelay
	tries   int              // WithTries
	longest time.Duration    // WithMaxLease; 0: the lease of rlock.WithLease
	all     bool             // WithAllNodes
}

// nodeTimeout is the default of WithNodeTimeout. The lease bounds the timeout of each operation further: see store.within.
const nodeTimeout = 50 * time.Millisecond

// option is an option of quorum.New.
func option(set func(o *options)) rlock.Option {
	return func(s *engine.Settings) {
		o, given := s.Quorum.(*options)
		if !given {
			o = defaults()
			s.Quorum = o
		}
		set(o)
	}
}

func defaults() *options {
	return &options{timeout: nodeTimeout, retry: [2]time.Duration{5 * time.Millisecond, 50 * time.Millisecond}}
}

// WithNodeTimeout sets how long the client waits for one node, 50 ms by default, and an eighth of the lease where that is less. A
// node that is down or hangs costs no more than this time, and only where the other nodes are no majority. A node whose answers take long, as it is far
// away or much is asked of it, has four times as long as they take, and one that this client has not heard of five times d; none has more than ten times d.
// Renewals have more. Lengthen d where nodes are so far away that the handshakes of a first contact do not fit in.
func WithNodeTimeout(d time.Duration) rlock.Option { return option(func(o *options) { o.timeout = d }) }

// WithRetryDelay sets the random time after which a call tries again when several callers had each a part of the nodes and
// none a majority: 5 to 50 ms by default. The time is the lower bound and a bit more at first, and doubles each time that this
// happens again, up to 16 times the upper bound. Lengthen both bounds where nodes are far away: the lower one to some round trips.
func WithRetryDelay(least, most time.Duration) rlock.Option {
	return option(func(o *options) { o.retry = [2]time.Duration{least, most} })
}

// WithTries bounds how often one call that waits asks for the lock, besides its wait: the call ends with rlock.ErrNotAcquired when
// an attempt is refused and the call has made n attempts or more. While no majority answers rlock.WithPatience bounds the call, and
// not n. n does not bound a call with wait 0, which asks once anyway. The option is for code that was written with a count of
// retries. By default only the wait counts, and the waiter sleeps until the lock may be free, so that tries are few.
func WithTries(n int) rlock.Option { return option(func(o *options) { o.tries = n }) }

// WithMaxLease sets the longest lease that a lock may be taken with, by default that of rlock.WithLease. A node that has
// started less than this ago, and a second more for the granularity of its uptime, does not count: it may have forgotten a
// hold that is trusted still. All clients of a quorum must set the same: a client that takes a longer lease breaks
// exclusion when a node restarts. A call with a longer lease than this returns an error.
func WithMaxLease(d time.Duration) rlock.Option { return option(func(o *options) { o.longest = d }) }

// WithAllNodes makes each acquire ask all nodes at once, and not a majority first. A hold of less than 10 ms then lives on more than a bare
// majority of the nodes: exclusion outlasts that a node which such a hold lives on forgets it while it runs (FLUSHALL, DEL, an eviction), which
// the package does not promise otherwise. It costs two thirds more messages with five nodes.
func WithAllNodes() rlock.Option { return option(func(o *options) { o.all = true }) }

// check fills in the defaults that depend on the lease of rlock.WithLease, and returns an error for values out of range.
func (o *options) check(lease time.Duration) error {
	if o.longest == 0 {
		o.longest = lease
	}
	if o.timeout == nodeTimeout {
		o.timeout = min(o.timeout, o.longest/4)
	}
	switch {
	case o.longest < lease:
		return fmt.Errorf("quorum: WithMaxLease(%v): the watchdog's lease is %v, use that or more", o.longest, lease)
	case o.longest > 24*time.Hour:
		return fmt.Errorf("quorum: WithMaxLease(%v): use a day or less, for so long a node that restarts does not count", o.longest)
	case o.timeout < time.Millisecond || o.timeout > o.longest/4:
		return fmt.Errorf("quorum: WithNodeTimeout(%v): use a millisecond or more, and a quarter of the longest lease (%v) or less", o.timeout, o.longest)
	case o.retry[0] < 0 || o.retry[1] < o.retry[0] || o.retry[1] < time.Millisecond || o.retry[1] > time.Minute:
		return fmt.Errorf("quorum: WithRetryDelay(%v, %v): use a lower bound of 0 or more, and an upper one that is not less, from a millisecond to a minute", o.retry[0], o.retry[1])
	case o.tries < 0:
		return fmt.Errorf("quorum: WithTries(%d): use 1 or more, or leave the option out", o.tries)
	}
	return nil
}
