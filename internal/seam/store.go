package seam

import (
	"context"
	"log/slog"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// NewClient returns a *rlock.Client that keeps its locks where parts says, in place of one Redis. options are
// []rlock.Option; parts is given what they say.
var NewClient func(options any, parts func(Settings) (Parts, error)) (client any, err error)

// Settings is what the options of a client say that its parts may want to know.
type Settings struct {
	Lease         time.Duration // of holds that name none themselves
	UnlockTimeout time.Duration
	Log           *slog.Logger
}

// Parts is what a client works with in place of one Redis.
type Parts struct {
	Store   Store
	Bus     Bus
	Longest time.Duration           // of leases
	Tries   int                     // of one call, 0: as many as its wait allows
	Owes    func(field string) bool // tells whether some server may still have this field, or get it late
}

// Store is where the locks are: *scripts.Scripts, whose methods say what these do. A store of several servers says with
// Answer.Owed that some of them have not confirmed a release, or may have taken what the others refused.
type Store interface {
	Send(op *scripts.Op, caller scripts.Caller)
	Withdraw(op *scripts.Op) bool
	Do(ctx context.Context, op scripts.Op) (scripts.Answer, error)
	Renew(ctx context.Context, holds []scripts.Renewal)
	Inspect(ctx context.Context, keys *scripts.Keys, field string) (scripts.State, error)
}

// Bus is what wakes waiters: *pubsub.Bus, whose methods say what these do.
type Bus interface {
	Subscribe(channel string, wake func(message bool, text string)) Subscription
	Hears(channel string) bool
	Sharded(ctx context.Context) bool
	Known() (sharded, known bool)
	Close()
}

// Subscription is *pubsub.Subscription.
type Subscription interface {
	Live() bool
	Close()
	Drop()
}
