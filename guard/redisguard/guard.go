package redisguard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/observe/locktrace"
)

const (
	defaultMemory = 24 * time.Hour             // of an id: longer than a queue redelivers a message, as a rule
	minLife       = time.Second                // below it any pause is long
	maxLife       = 100 * 365 * 24 * time.Hour // beyond it Redis's own arithmetic overflows
	forever       = time.Duration(math.MaxInt64)
)

// Guard makes Writers. It has no state but the client, and may be used by any number of goroutines.
type Guard struct {
	rdb     redis.UniversalClient
	sharded bool          // keys are spread over servers by their hash tags
	expiry  time.Duration // or forever
	memory  time.Duration
	trace   *locktrace.Trace

	insists atomic.Bool                      // the server, which is no cluster's, has refused a script for a key that it had not declared
	places  atomic.Pointer[map[string]place] // where the keys of each command are; nil until asked for
}

// Option changes a default of New.
type Option func(*Guard)

// WithExpiry lets Redis drop a marker so long after the last accepted write, for resources without number that are
// written for a while and never again. Without it markers stay for ever. A holder that was paused for longer gets in with
// its old token if nobody has written since: choose d far above any pause that a process survives, hours rather than
// seconds. All guards of a resource should have the same expiry: each write sets its own.
func WithExpiry(d time.Duration) Option { return func(g *Guard) { g.expiry = d } }

// WithOnceMemory sets for how long the ids of [Writer.Once] are remembered, 24 h by default. A repeat that comes later is
// done again. Lengthen it where operations are repeated after days; each id takes as much memory as its text, the resource
// and the reply, and about 100 bytes.
func WithOnceMemory(d time.Duration) Option { return func(g *Guard) { g.memory = d } }

// WithTrace makes the guard call t.WriteRefused for each write that it refuses because of a newer token. The caller gets the error all
// the same.
func WithTrace(t *locktrace.Trace) Option { return func(g *Guard) { g.trace = t } }

// New returns a guard on rdb, which stays the caller's. It sends nothing. The error names an option that makes no sense,
// or says that rdb is a redis.Ring, which cannot be fenced, or something that only wraps a Redis client, of which New cannot see whether it
// is a Ring's or a cluster's.
func New(rdb redis.UniversalClient, opts ...Option) (*Guard, error) {
	if rdb == nil {
		return nil, errors.New("redisguard: pass a Redis client to New")
	}
	g := &Guard{rdb: rdb, expiry: forever, memory: defaultMemory}
	switch rdb.(type) {
	case *redis.Client:
	case *redis.ClusterClient:
		g.sharded = true
	case *redis.Ring:
		return nil, errors.New("redisguard: New: a *redis.Ring moves keys when a node is down, to one that has not seen their tokens: use one server, Sentinel or a cluster")
	default:
		return nil, fmt.Errorf("redisguard: New: whether a %T is a cluster's client cannot be seen: pass the *redis.Client or the *redis.ClusterClient itself, and what it is to do besides as a hook (AddHook)", rdb)
	}
	for _, opt := range opts {
		if opt != nil {
			opt(g)
		}
	}
	if g.expiry != forever && (g.expiry < minLife || g.expiry > maxLife) {
		return nil, fmt.Errorf("redisguard: WithExpiry(%v): use a second or more, and 100 years or less, or leave the option out", g.expiry)
	}
	if g.memory < minLife || g.memory > maxLife {
		return nil, fmt.Errorf("redisguard: WithOnceMemory(%v): use a second or more, and 100 years or less", g.memory)
	}
	return g, nil
}

// Seen returns the largest token that was accepted for the resource, 0 if there is none. It asks the master: a replica
// refuses with READONLY. It is for tests and for people: a write that depends on it is not guarded.
func (g *Guard) Seen(ctx context.Context, resource string) (int64, error) {
	if ctx == nil {
		return 0, wrap("Seen", resource, errNoContext)
	}
	seen, err := g.rdb.Do(ctx, "getex", markerOf(resource)).Text() // a plain GET would be answered by a demoted master
	if err == redis.Nil {
		return 0, nil
	}
	if err != nil {
		return 0, wrap("Seen", resource, err)
	}
	token, err := strconv.ParseInt(seen, 10, 64)
	if err != nil {
		return 0, wrap("Seen", resource, fmt.Errorf("%w: %q is no token", errReply, seen))
	}
	return token, nil
}

// Writer returns what writes to the resource under this token. It sends nothing; a token that is none is an error
// (guard.ErrToken) of each write.
func (g *Guard) Writer(resource string, token int64) Writer {
	return Writer{guard: g, resource: resource, token: token}
}
