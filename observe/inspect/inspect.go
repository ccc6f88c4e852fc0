// Package inspect shows which locks are held and by whom, who waits for them, and since when: for people on call, for pages and
// commands. It reads what locks of rlock, fenced and Redisson keep in Redis, and what clients say of themselves (rlock.WithPresence).
//
//	in, err := inspect.New(rdb)
//	locks, err := in.Known(ctx) // what clients with rlock.WithPresence hold and wait for
//	for _, l := range locks {
//		if l.Holder != nil && l.Holder.By != nil {
//			fmt.Println(l.Name, "is held by", l.Holder.By.Host, l.Holder.By.PID, "for", l.Holder.For, "and", l.Waiting, "wait")
//		}
//	}
//
// There are four ways to find locks. Look shows those of given names, and is exact; Slots is Look for a semaphore, of which nobody need know how many permits there are. Known finds what clients with presence hold and
// wait for; others' holds it does not see. Contended finds locks that somebody waits for, Redisson's clients too. Scan finds all, and walks through all keys for it.
//
// A quorum's servers are looked at together (NewQuorum): the majority says who has a lock.
//
// What is shown was so a moment ago: a lock may change hands between two answers of Redis. Nothing here decides who may write. Each method
// ends with its context, whatever Redis does; after Free has ended so nobody knows whether the hold was released.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// An Inspector shows the locks of one Redis, Sentinel group or cluster, or of a quorum. New makes one, or NewQuorum. It is safe for concurrent use.
type Inspector struct {
	rdb      redis.UniversalClient
	name     string // the address of one server, "" of several
	sharding pubsub.Sharding
	parts    []*part       // of a quorum, one for each server; rdb is none then
	longest  time.Duration // WithMaxLease
}

// Option changes a default of New and NewQuorum.
type Option func(*Inspector)

// WithShardedPubSub says whether channels are sharded, as rlock.WithShardedPubSub of the locks' clients does. The default asks the server.
func WithShardedPubSub(sharded bool) Option {
	return func(in *Inspector) {
		if in.sharding = pubsub.Off; sharded {
			in.sharding = pubsub.On
		}
	}
}

// New returns an Inspector on rdb, which stays the caller's. It sends nothing. It refuses the clients that rlock.New refuses: what reads
// from replicas cannot tell who holds a lock. On one server of a quorum it shows that server's part, which Lock.IsPart tells, and Free refuses it: see NewQuorum.
func New(rdb redis.UniversalClient, opts ...Option) (*Inspector, error) {
	if err := engine.CheckRedis(rdb); err != nil {
		return nil, fmt.Errorf("inspect: %s", strings.TrimPrefix(err.Error(), "rlock: "))
	}
	in := &Inspector{rdb: rdb, sharding: pubsub.Auto, longest: 30 * time.Second}
	if _, is := rdb.(*redis.Client); is {
		in.name, _ = quorums.Name(rdb)
	}
	for _, opt := range opts {
		if opt != nil {
			opt(in)
		}
	}
	return in, nil
}

// within is engine.Within, whose error says which server it is of.
func within[T any](ctx context.Context, in *Inspector, ask func() (T, error)) (T, error) {
	value, err := engine.Within(ctx, ask)
	if err != nil && in.name != "" {
		err = &plain.At{Where: in.name, Err: err}
	}
	return value, err
}

// Known returns the locks that clients with rlock.WithPresence hold or ask for, by name. A lock that such a client has taken less
// than 10 s ago may be missing.
func (in *Inspector) Known(ctx context.Context) ([]Lock, error) {
	clients, err := in.Clients(ctx)
	if err != nil {
		return nil, err
	}
	names, known := map[string]bool{}, clientsByID{}
	for i := range clients {
		known[clients[i].ID] = &clients[i]
		for _, h := range clients[i].Holds {
			names[h.Lock] = true
		}
		for _, w := range clients[i].Waits {
			names[w.Lock] = true
		}
	}
	return in.look(ctx, "Known", slices.Sorted(maps.Keys(names)), known)
}

// Look returns the locks of these names, in this order. A lock that nobody holds is free, whether it was ever used or not. An
// empty name is an error, as is all that keeps Redis from an answer: a wrong password, a database that
// is not there, LOADING. Where Redis refuses some of the
// locks alone, for the lack of a right, Other of these says so.
func (in *Inspector) Look(ctx context.Context, names ...string) ([]Lock, error) {
	if slices.Contains(names, "") {
		return nil, errors.New("inspect: Look: the name of a lock is empty: give one")
	}
	return in.look(ctx, "Look", slices.Clone(names), clientsByID{})
}

// LookWith is Look for who has asked for Clients a moment ago: it asks about other clients only. The ages that it shows are as old as
// these clients.
func (in *Inspector) LookWith(ctx context.Context, clients []Client, names ...string) ([]Lock, error) {
	known := make(clientsByID, len(clients))
	for _, c := range clients { // copies: the caller may change its own while it is not waited for any longer
		known[c.ID] = &c
	}
	return in.look(ctx, "LookWith", slices.Clone(names), known)
}

// lookBatch is how many locks are asked about in one round trip. The server does all of it before it turns to others: with 50 locks
// a lock's holder waits for less than a quarter of a millisecond.
const lookBatch = 50

// unreadable is Lock.Other for the lack of a right.
const unreadable = "a key that the Redis user may not read"

// look asks about the locks of these names, and about the clients that are not known yet. It ends with ctx.
func (in *Inspector) look(ctx context.Context, op string, names []string, known clientsByID) ([]Lock, error) {
	locks, err := within(ctx, in, func() ([]Lock, error) { return in.ask(ctx, names, known, lookBatch) })
	if err != nil {
		return nil, fmt.Errorf("inspect: %s: %w", op, err)
	}
	return locks, nil
}

// ask is look, which may outlast ctx, with so many locks in one round trip.
func (in *Inspector) ask(ctx context.Context, names []string, known clientsByID, batch int) ([]Lock, error) {
	if in.parts != nil {
		return in.askAll(ctx, names, known, batch)
	}
	all := make([]Lock, 0, len(names))
	var refused error
	readable := false
	for part := range slices.Chunk(names, batch) {
		asked := make([]answers, len(part))
		var err error
		for n := 0; n < mostReads && err == nil && slices.ContainsFunc(asked, func(a answers) bool { return a.again() }); n++ {
			err = pipelined(ctx, in.rdb, func(pipe redis.Pipeliner) {
				for i, name := range part {
					if asked[i].again() {
						asked[i].ask(ctx, pipe, scripts.KeysOf(name))
					}
				}
			})
		}
		for i := range part {
			if err == nil {
				err = asked[i].askReaders(ctx, in.rdb, part[i])
			}
		}
		if err == nil {
			var ids []string
			for i := range part {
				ids = append(ids, asked[i].clients()...)
			}
			err = known.add(ctx, in.rdb, ids)
		}
		if err != nil {
			return nil, err
		}
		for i, name := range part {
			l, err := asked[i].lock(name, known)
			switch {
			case redis.HasErrorPrefix(err, "NOPERM"): // of another service, which this user may not look at
				l.Other = unreadable
				refused = cmp.Or(refused, fmt.Errorf("%q: %w", name, err))
			case err != nil:
				return nil, fmt.Errorf("%q: %w", name, err)
			default:
				readable = true
			}
			all = append(all, l)
		}
	}
	if refused != nil && !readable {
		return nil, refused
	}
	return all, nil
}
