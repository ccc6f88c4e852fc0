package rlock

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
)

// Client is what the locks of one process share: the connection to Redis, the watchdog, the subscriptions, and who holds
// or waits for what. Create one per process with New. It is safe for concurrent use.
type Client struct{ client *engine.Client }

// New returns a client on rdb: a *redis.Client (a Sentinel failover client too) or a *redis.ClusterClient. It sends
// nothing, and returns an error for a client that locks cannot work with, and for options out of their range. New cannot see ReplicaOnly of
// redis.FailoverOptions: acquires then fail with READONLY, once patience is over, and name the option. rdb stays the caller's: close
// it after this client. A *redis.Client gets a hook that notes why a dial failed, for the errors of calls that are over before go-redis
// tells; it leaves commands alone.
//
// Commands go through rdb, so that its hooks, credentials and limits hold for them. Those of many callers travel together,
// without the callers' contexts. A hook must not repeat a command whose reply was lost: the client does so itself, and knows then
// that the first copy may have counted. A release that a hook repeats looks as if the lock had been lost. A hook, or a proxy, may put a prefix before keys,
// the same before those of all commands of the client, on one server: so each tenant of a program has locks of its own. go-redis has no hooks for
// channels. So nobody can be called by the line then, waiters listen for every release and poll (P30), a release wakes the waiters of all tenants, and the
// log says so once. What a client uses of rdb's connections, in a cluster for each node:
//
//   - acquires and releases, fewer than ten at a time: 2 of the pool
//   - acquires and releases, ten or more at a time, however many: 4 of the pool
//   - renewals of the held locks, however many: 1 or 2 of the pool, and 4 where they take long
//   - while answers take longer than 100 ms, up to 16 of the pool for acquires and releases; while one takes longer than 0.3 s, the idle ones
//   - messages, while somebody waits or a lock is held for longer than a second: 1, which is not counted in PoolSize
//   - with WithReplicas or WithFsync acquires take as many as releases, of the pool for pipelines (PipelinePoolSize)
//
// So go-redis's own PoolSize is enough, and 20 for an rdb of the locks alone. In a cluster renewals go by slot: thousands of locks that
// were taken at the same moment take all of a node's pool for a moment, and wait for each other there. A pool that is kept busy by
// blocking commands (BLPOP, XREAD BLOCK) delays locks and renewals: give those a client of their own.
//
// A command that has no answer for 0.3 s is sent again over another connection, once the server answers a PING there; no hook sees that PING.
// A command that has no answer after 5 s more than the ReadTimeout of rdb is given up, and its connection waited for by itself: leave a
// ReadTimeout in place, so that dead connections are closed.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	if err := engine.CheckRedis(rdb); err != nil {
		return nil, err
	}
	set, err := engine.MakeSettings(opts)
	if err != nil {
		return nil, err
	}
	if set.Quorum != nil {
		return nil, errors.New("rlock: New: an option of package quorum is for quorum.New: leave it out, or pass the clients of all servers to quorum.New")
	}
	client, err := engine.New(rdb, set)
	if err != nil {
		return nil, err
	}
	return &Client{client}, nil
}

// ID returns the client's id, a UUID: the fields of its holds in Redis begin with it, and so do the events of a trace.
func (c *Client) ID() string {
	if c.engine() == nil {
		return ""
	}
	return c.client.ID()
}

// Close ends the client's work: calls that wait return ErrClosed, as new ones do; the contexts of held locks end with
// ErrClosed, and their leases are no longer renewed. Unlock still releases, also after Close.
//
// Close waits until what is under way has been answered, and what that has taken was released, so that no lock stays taken
// for others; but no longer than WithUnlockTimeout. What is not released by then is free at the end of its lease; Close
// logs it. A command whose connection broke may still arrive after Close has returned: what that command takes is free at the end of its
// lease. To let the work in hand finish first, call Shutdown. Close may be called more than once: a later call waits until the first one
// has ended. The error is nil. rdb stays open, and is to be closed after Close.
func (c *Client) Close() error {
	if c.engine() == nil {
		return errUnmade
	}
	return c.client.Close()
}

// Shutdown stops taking locks for contexts that hold none, waits until the held ones are unlocked, and closes the
// client, as Close does. Meanwhile holders may re-enter and take further locks, and leases are renewed. When ctx ends
// first, the client is closed all the same, as it is when Close is called meanwhile; the error says how many holds were
// open. Shutdown then takes up to WithUnlockTimeout longer than ctx.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.engine() == nil {
		return errUnmade
	}
	return c.client.Shutdown(ctx)
}

var errUnmade = errors.New("rlock: the client is nil or a zero value: make it with New, and look at its error")

// engine is what is in the client; nil for a nil one, whose locks say so.
func (c *Client) engine() *engine.Client {
	if c == nil {
		return nil
	}
	return c.client
}

func init() {
	engine.ClientOf = func(client any) *engine.Client { return client.(*Client).engine() }
	engine.Public = func(client *engine.Client) any { return &Client{client} }
}
