package engine

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// Store is where the locks are: *scripts.Scripts, whose methods say what these do, or the nodes of
// a quorum. A store of several servers says with Answer.Owed that some of them have not confirmed a
// release, or may have taken what the others refused.
type Store interface {
	Send(op *scripts.Op, caller scripts.Caller)
	TakeBack(op *scripts.Op) bool
	Do(ctx context.Context, op scripts.Op) (scripts.Answer, error)
	Renew(ctx context.Context, holds []scripts.Renewal)
	Inspect(ctx context.Context, keys *scripts.Keys, field string) (scripts.State, error)
}

// Limits is what a client's store bounds, or cannot do. The zero value is for one Redis.
type Limits struct {
	// so many are the store: one attempt may be taken by some of them, and there are local handoffs
	// alone; 0: it is one Redis
	Servers int
	Longest time.Duration // of leases; 0: as long as Redis allows
	Tries   int           // of one call; 0: as many as its wait allows
	// tells whether some server may still have this field, or get it late, and whether Close waits
	// for that as it may answer a release; nil: each does
	Owes func(field string) (owed, awaited bool)
}

// several tells whether the store is several servers.
func (l *Limits) several() bool { return l.Servers > 0 }

// Bus is what wakes waiters: *pubsub.Bus, whose methods say what these do, or those of the nodes of
// a quorum. The keys are those of the lock that a channel is about; Hears is about the lock's own
// channel.
type Bus interface {
	Subscribe(keys *scripts.Keys, channel string, wake func(message bool, text string)) Subscription
	Hears(keys *scripts.Keys) bool
	Sharded(ctx context.Context) bool
	Known() (sharded, known bool)
	Close()
}

// Subscription is a channel that a Bus listens to.
type Subscription interface {
	Live() bool
	Close()
	Drop()
}

// oneBus is a *pubsub.Bus as a Bus.
type oneBus struct{ *pubsub.Bus }

// Subscribe implements Bus.
func (b oneBus) Subscribe(_ *scripts.Keys, channel string, wake func(message bool, text string)) Subscription {
	return b.Bus.Subscribe(channel, wake)
}

// Hears implements Bus.
func (b oneBus) Hears(keys *scripts.Keys) bool { return b.Bus.Hears(keys.Channel()) }
