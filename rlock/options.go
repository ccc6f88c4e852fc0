package rlock

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

const (
	minLease = 10 * time.Millisecond      // below it the margin and a round trip leave nothing
	minWait  = time.Millisecond           // below it no answer of Redis can be waited for
	maxLease = 100 * 365 * 24 * time.Hour // beyond it Redis's own arithmetic overflows
)

type options struct {
	lease         time.Duration
	poll          time.Duration
	unlockTimeout time.Duration
	patience      time.Duration
	handoffs      int
	sharding      pubsub.Sharding
	log           *slog.Logger
	replicas      *scripts.Confirmation // of WithReplicas, or nil
	fsync         *scripts.Confirmation // of WithFsync, or nil
}

// Option changes a default of New.
type Option func(*options)

// WithLease sets the lease of holds that name none themselves, 30 s by default, as in Redisson: how long the lock stays
// taken after its process died, and how long a hold survives without contact to Redis. It is renewed every third of it.
// Shorten it when others must get in sooner after a crash; lengthen it when Redis may be away for longer.
func WithLease(d time.Duration) Option { return func(o *options) { o.lease = d } }

// WithPollInterval sets how often a waiter looks at the lock although nothing told it to, 1 s by default. It bounds the
// wait after a message that got lost, and after a release that sends none (an expiry, a DEL by hand). While the
// subscription is known to work the interval doubles with each look, up to ten times as long. Shorten it where the Redis
// user may not subscribe.
func WithPollInterval(d time.Duration) Option { return func(o *options) { o.poll = d } }

// WithUnlockTimeout bounds the time an Unlock takes when Redis does not answer, 5 s by default. After it Unlock returns
// the error, and the release is sent again in the background. Shorten it where a caller must not be held up; the lock is
// free at the end of its lease in any case.
func WithUnlockTimeout(d time.Duration) Option { return func(o *options) { o.unlockTimeout = d } }

// WithPatience sets for how long a call that may wait rides out errors that go away by themselves, 10 s by default:
// connections refused or broken, a server that is loading, a failover. Then it returns what Redis said. Lengthen it to
// sit out longer failovers; a shorter wait, or the context, ends a call sooner.
func WithPatience(d time.Duration) Option { return func(o *options) { o.patience = d } }

// WithHandoffs sets how many times in a row a lock may pass from one goroutine to the next in this client before others
// get their turn, 32 by default; a series also ends after 20 ms. Such a handoff takes one round trip, where the way to
// another client takes two and a message. The longer the series, the higher the rate of short sections, by a few percent,
// and the longer the slowest waits. With 0 every release goes to the next client in the line. Where Redisson's clients have
// just taken their turns a series is one handoff.
func WithHandoffs(n int) Option { return func(o *options) { o.handoffs = n } }

// WithShardedPubSub says whether the channels are sharded (SPUBLISH, SSUBSCRIBE) in a cluster. The default, pubsub.Auto,
// asks the server, as Redisson does by default; set it when Redisson's shardedSubscriptionMode is set. It has no effect
// outside a cluster, also with redis.NewFailoverClusterClient, whose servers are asked whether they are one: its user needs
// the right to INFO, or to CLUSTER INFO. Where neither can be asked channels are not sharded, but with pubsub.On.
func WithShardedPubSub(s pubsub.Sharding) Option { return func(o *options) { o.sharding = s } }

// WithLogger sets where the client tells of what no caller gets as an error: renewals that fail, holds that were lost or
// dropped, subscriptions that are refused, nested calls that wait for themselves. By default that is what slog.Default
// returns at the time, and only warnings and errors. WithLogger(slog.New(slog.DiscardHandler)) logs nothing. Nothing is
// logged while all is well, and what repeats itself no more than once in 10 s: the first line of a message at once, then
// the last one of each 10 s with the number of those that were left out.
func WithLogger(log *slog.Logger) Option {
	return func(o *options) {
		if o.log = log; log != nil {
			o.log = throttled(log)
		}
	}
}

func (o *options) check() error {
	if err := checkLease(o.lease); err != nil {
		return fmt.Errorf("rlock: WithLease: %w", err)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"WithPollInterval", o.poll}, {"WithUnlockTimeout", o.unlockTimeout}, {"WithPatience", o.patience}} {
		if d.d < time.Millisecond || d.d > 24*time.Hour {
			return fmt.Errorf("rlock: %s(%v): use a millisecond or more, and a day or less", d.name, d.d)
		}
	}
	if o.handoffs < 0 || o.handoffs > 1<<20 {
		return fmt.Errorf("rlock: WithHandoffs(%d): use 0 or more, and a million or less", o.handoffs)
	}
	if o.log == nil {
		return fmt.Errorf("rlock: WithLogger(nil): leave the option out for slog.Default(), or pass slog.New(slog.DiscardHandler) to log nothing")
	}
	return o.checkConfirmation()
}

func checkLease(lease time.Duration) error {
	if lease < minLease || lease > maxLease {
		return fmt.Errorf("lease %v: use %v or more, and 100 years or less%s", lease, minLease, meant(lease))
	}
	return nil
}

// meant asks about a duration that looks like a bare number, as Java takes them: of seconds, or of milliseconds.
func meant(d time.Duration) string {
	switch {
	case d <= 0 || d >= time.Millisecond:
		return ""
	case d < 1000:
		return fmt.Sprintf("; is %d*time.Second meant?", int64(d))
	default:
		return fmt.Sprintf("; is %d*time.Millisecond meant?", int64(d))
	}
}
