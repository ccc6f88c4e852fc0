package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

// tellTermTimeout is how long the client tries to tell of a term, and Close waits for that.
const tellTermTimeout = time.Second

// TellTerm tells those who called HearTerms that a leader's term with this lock has begun, or is
// over. It waits for nothing. Whoever is not told looks later.
func (l *Lock) TellTerm() {
	c, channel := l.client, l.keys.Term()
	for _, rdb := range c.on {
		c.underWay.Add(1) // Close waits for it
		go func() {
			defer c.underWay.Add(-1)
			ctx, cancel := context.WithTimeout(context.Background(), tellTermTimeout)
			defer cancel()
			_, _ = detach(ctx, func() error {
				if c.bus.Sharded(ctx) {
					return rdb.SPublish(ctx, channel, "").Err()
				}
				return rdb.Publish(ctx, channel, "").Err()
			})
		}()
	}
}

// HearTerms calls wake when a term with this lock may have begun or ended, as Bus.Subscribe does.
func (l *Lock) HearTerms(wake func()) Subscription {
	return l.client.bus.Subscribe(l.keys, l.keys.Term(), func(bool, string) { wake() })
}

// Servers returns what the lock's client is on, and how long leases of its quorum may be: 0 for one
// Redis.
func (l *Lock) Servers() (servers []redis.UniversalClient, longest time.Duration) {
	return l.client.on, l.client.limits.Longest
}

// Closed returns the channel that is closed when Close of the lock's client has begun.
func (l *Lock) Closed() <-chan struct{} { return l.client.closed }

// Looks returns how often a client looks that nothing tells it to, its lease, and its log.
func (l *Lock) Looks() (every, lease time.Duration, log *slog.Logger) {
	return l.client.set.Poll, l.client.set.Lease, l.client.set.Log
}
