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
// There are four ways to find locks. Look shows those of given names, and is exact. Known finds what clients with presence hold and
// wait for; others' holds it does not see. Contended finds locks that somebody waits for, Redisson's clients too. Scan finds all, and walks through all keys for it.
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// An Inspector shows the locks of one Redis, Sentinel group or cluster. New makes one. It is safe for concurrent use.
type Inspector struct {
	rdb      redis.UniversalClient
	sharding pubsub.Sharding
}

// Option changes a default of New.
type Option func(*Inspector)

// WithShardedPubSub says whether channels are sharded, as rlock.WithShardedPubSub of the locks' clients does. The default asks the server.
func WithShardedPubSub(s pubsub.Sharding) Option { return func(in *Inspector) { in.sharding = s } }

// New returns an Inspector on rdb, which stays the caller's. It sends nothing. It refuses the clients that rlock.New refuses: what reads
// from replicas cannot tell who holds a lock. On a node of a quorum Look, Known and Scan show that node's part; Contended, Listeners
// and Free are not for it, whose locks are freed by ForceUnlock.
func New(rdb redis.UniversalClient, opts ...Option) (*Inspector, error) {
	if err := engine.CheckRedis(rdb); err != nil {
		return nil, fmt.Errorf("inspect: %s", strings.TrimPrefix(err.Error(), "rlock: "))
	}
	in := &Inspector{rdb: rdb, sharding: pubsub.Auto}
	for _, opt := range opts {
		if opt != nil {
			opt(in)
		}
	}
	return in, nil
}

// Lock is what is known of one lock.
type Lock struct {
	Name    string
	Holder  *Holder       // nil: the lock is free
	TTL     time.Duration // until the lease ends, if it is not renewed, 100 years at most; NoExpiry for a lock that stays for ever, 0 for a free one
	Token   int64         // the last fencing token that was given; 0 for none
	Waiting int           // clients in the line. Redisson's clients, and those without a right to the line, are in none
	Line    []Waiter      // the first MaxLine of them, the next one first
	Other   string        // why what stands at the lock's key is no lock, or may not be read, in words; "" for a lock. It has nothing of what stands there
}

const (
	// NoExpiry is the TTL of a lock without an expiry.
	NoExpiry time.Duration = -1
	// MaxLine bounds Lock.Line.
	MaxLine = 100
)

// Holder is who has a lock.
type Holder struct {
	Field  string        // in Redis: <client>:<number>, of Redisson's holders <client>:<thread>
	Client string        // the client's id
	Count  int           // how often the holder has acquired the lock without unlocking it
	By     *Client       // what the client says of itself; nil for one without presence, and for Redisson's
	For    time.Duration // since the lock was acquired, as the client said last; 0 where it did not
	Token  int64         // of the hold, as the client said last; 0 where it did not
}

// Waiter is a client in the line of a lock.
type Waiter struct {
	Client string        // the client's id
	By     *Client       // what the client says of itself; nil for one without presence
	Calls  int           // so many of its calls wait, as the client said last; 0 where it did not
	For    time.Duration // since the first of them waits, as the client said last; 0 where it did not
}

// Client is what a client with rlock.WithPresence says of itself, every 10 s.
type Client struct {
	ID      string
	Name    string // of WithPresence
	Host    string
	PID     int
	Program string
	Since   time.Time     // the first time that it was said, by the server's clock
	Seen    time.Time     // the last time, by the server's clock
	Silent  time.Duration // since Seen, when it was read. The client is shown until its longest lease is over, and for half a minute at least

	Holds     []Hold // a thousand at most, the oldest ones
	MoreHolds int    // and so many others
	Waits     []Wait // a thousand at most, the longest ones, longest first
	MoreWaits int    // and so many others
	Cut       bool   // something was longer than any client writes, and was not read
}

// quiet is how long a client may have said nothing that lives: it says it every 10 s.
const quiet = 13 * time.Second

// Quiet tells that the client should have been heard of again by now: it was heard of last c.Silent ago. Its process has ended, stands
// still, or does not reach Redis.
func (c *Client) Quiet() bool { return c.Silent >= quiet }

// Hold is a lock that a client holds, as it said at Client.Seen.
type Hold struct {
	Lock  string
	Field string        // the holder's in Redis
	Token int64         // 0 for a lock without tokens
	For   time.Duration // so long, until Client.Seen
}

// Wait is a lock that a client waits for, as it said at Client.Seen.
type Wait struct {
	Lock  string
	Calls int           // so many calls wait
	For   time.Duration // the first of them so long, until Client.Seen
}

// Clients returns the clients that say that they are there, by name, host and process id.
func (in *Inspector) Clients(ctx context.Context) ([]Client, error) {
	said, err := engine.Within(ctx, func() ([]presence.Client, error) { return presence.Read(ctx, in.rdb) })
	if err != nil {
		return nil, fmt.Errorf("inspect: Clients: %w", err)
	}
	all := make([]Client, len(said))
	for i := range said {
		all[i] = clientOf(&said[i])
	}
	return all, nil
}

func clientOf(said *presence.Client) Client {
	c := Client{ID: said.ID, Name: said.Name, Host: said.Host, PID: said.PID, Program: said.Program, Since: said.Since, Seen: said.Seen, Silent: said.Silent, MoreHolds: said.MoreHolds, MoreWaits: said.MoreWaits, Cut: said.Cut}
	for _, h := range said.Holds {
		c.Holds = append(c.Holds, Hold(h))
	}
	for _, w := range said.Waits {
		c.Waits = append(c.Waits, Wait(w))
	}
	return c
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

// Look returns the locks of these names, in this order. A lock that nobody holds is free, whether it was ever used or not.
func (in *Inspector) Look(ctx context.Context, names ...string) ([]Lock, error) {
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

// clientsByID has the clients that were asked about; nil for one that says nothing of itself.
type clientsByID map[string]*Client

// add asks about those of the clients that are not known yet.
func (known clientsByID) add(ctx context.Context, rdb redis.UniversalClient, ids []string) error {
	var fresh []string
	for _, id := range ids {
		if _, is := known[id]; !is {
			known[id] = nil
			fresh = append(fresh, id)
		}
	}
	said, err := presence.Of(ctx, rdb, fresh...)
	for i := range said {
		c := clientOf(&said[i])
		known[c.ID] = &c
	}
	return err
}

// lookBatch is how many locks are asked about in one round trip. The server does all of it before it turns to others: with 50 locks
// a lock's holder waits for less than a quarter of a millisecond.
const lookBatch = 50

// look asks about the locks of these names, and about the clients that are not known yet. It ends with ctx.
func (in *Inspector) look(ctx context.Context, op string, names []string, known clientsByID) ([]Lock, error) {
	locks, err := engine.Within(ctx, func() ([]Lock, error) { return in.ask(ctx, names, known) })
	if err != nil {
		return nil, fmt.Errorf("inspect: %s: %w", op, err)
	}
	return locks, nil
}

// ask is look, which may outlast ctx.
func (in *Inspector) ask(ctx context.Context, names []string, known clientsByID) ([]Lock, error) {
	all := make([]Lock, 0, len(names))
	var refused error
	readable := false
	for part := range slices.Chunk(names, lookBatch) {
		asked := make([]answers, len(part))
		_, err := in.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, name := range part {
				asked[i].ask(ctx, pipe, scripts.KeysOf(name))
			}
			return nil
		})
		if err == nil || isReply(err) {
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
				l.Other = "a key that the Redis user may not read"
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

// answers is what Redis says of one lock.
type answers struct {
	hash   *redis.ScanCmd // the fields and values of the lock, or of the beginning of a hash that is too large to be one
	ttl    *redis.IntCmd  // in milliseconds: a time.Duration may be too short for what somebody else has given
	token  *redis.StringCmd
	line   *redis.StringSliceCmd
	length *redis.IntCmd
}

func (a *answers) ask(ctx context.Context, pipe redis.Pipeliner, keys *scripts.Keys) {
	a.hash = pipe.HScan(ctx, keys.Lock, 0, "", maxFields)
	a.ttl = redis.NewIntCmd(ctx, "pttl", keys.Lock)
	_ = pipe.Process(ctx, a.ttl)
	a.token = pipe.Get(ctx, keys.Token)
	a.line = pipe.ZRange(ctx, keys.Line, 0, MaxLine-1)
	a.length = pipe.ZCard(ctx, keys.Line)
}

// These are the fields of a lock. A client's id is a UUID, of Redisson's clients too: other hashes have fields such as user:42, which
// nobody may release.
var (
	holderField = regexp.MustCompile("^" + uuid + `:-?\d+$`)
	secondField = regexp.MustCompile("^" + uuid + `:-?\d+#$`)
)

const uuid = `[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`

// fields are those of the hash, with their values.
func (a *answers) fields() map[string]string {
	pairs, _ := a.hash.Val()
	fields := make(map[string]string, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		fields[pair[0]] = pair[1]
	}
	return fields
}

// clients are the ids of those who hold the lock or wait for it.
func (a *answers) clients() (ids []string) {
	for field := range a.fields() {
		if holderField.MatchString(field) {
			ids = append(ids, idOf(field))
		}
	}
	for _, ticket := range a.tickets() {
		ids = append(ids, idOf(ticket))
	}
	return ids
}

// tickets are the first ones in the line, which have the form of a holder's field.
func (a *answers) tickets() []string {
	return slices.DeleteFunc(a.line.Val(), func(ticket string) bool { return !holderField.MatchString(ticket) })
}

// idOf is the id of the client that a holder's field, or a ticket, belongs to.
func idOf(field string) string {
	id, _, _ := strings.Cut(field, ":")
	return id
}

// lock reads the answers. What one of them cannot tell, for the lack of a right, is left out; without an answer about the hash nothing
// can be said.
func (a *answers) lock(name string, clients clientsByID) (Lock, error) {
	l := Lock{Name: name, Waiting: int(a.length.Val())}
	switch err := a.hash.Err(); {
	case redis.HasErrorPrefix(err, "WRONGTYPE"):
		l.Other = "a key that is no hash"
		return l, nil
	case err != nil:
		return l, err
	}
	l.Token, _ = a.token.Int64()
	fields := a.fields()
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case holderField.MatchString(field):
			if l.Holder == nil {
				l.Holder = holderOf(name, field, fields[field], clients)
			}
		case !secondField.MatchString(field):
			l.Other = "a hash that is no lock"
			if field == "mode" {
				l.Other = "a read-write lock of Redisson's"
			}
		}
	}
	if l.Other != "" {
		l.Holder = nil
		return l, nil
	}
	switch ttl := scripts.TTL(a.ttl.Val()); {
	case ttl == scripts.NoKey: // the lease has ended since the hash was read
		l.Holder = nil
	case l.Holder != nil && ttl < 0:
		l.TTL = NoExpiry
	case l.Holder != nil:
		l.TTL = ttl
	}
	for _, ticket := range a.tickets() {
		l.Line = append(l.Line, waiterOf(name, ticket, clients))
	}
	return l, nil
}

func holderOf(name, field, count string, clients clientsByID) *Holder {
	id := idOf(field)
	h := &Holder{Field: field, Client: id, By: clients[id]}
	h.Count, _ = strconv.Atoi(count)
	if h.By == nil {
		return h
	}
	for _, said := range h.By.Holds {
		if said.Lock == name && said.Field == field {
			h.For, h.Token = said.For, said.Token
		}
	}
	return h
}

func waiterOf(name, ticket string, clients clientsByID) Waiter {
	id := idOf(ticket)
	w := Waiter{Client: id, By: clients[id]}
	if w.By == nil {
		return w
	}
	for _, said := range w.By.Waits {
		if said.Lock == name {
			w.Calls, w.For = said.Calls, said.For
		}
	}
	return w
}

// Free releases the hold that was shown, as ForceUnlock does, and wakes the waiters. It returns false where another holder has the
// lock by now, or nobody, or where Redis did not answer the first time: a hold that was not shown is never released. The former holder may be in the middle of its work; its context
// ends with rlock.ErrLost, and guards refuse its writes as soon as the next holder has written.
func (in *Inspector) Free(ctx context.Context, l Lock) (bool, error) {
	if l.Holder == nil {
		return false, nil
	}
	keys := scripts.KeysOf(l.Name)
	field := l.Holder.Field
	a, err := engine.Within(ctx, func() (scripts.Answer, error) {
		return scripts.New(in.rdb).Do(ctx, scripts.Unlock(keys, field, in.sharded(ctx)).Calling("", 0))
	})
	if err != nil {
		return false, fmt.Errorf("inspect: Free: %q: %w", l.Name, err)
	}
	return a.Held, nil
}

// isReply tells that err is an error reply: the connection is there.
func isReply(err error) bool {
	var said redis.Error
	return errors.As(err, &said)
}
