// Package redisguard checks a fencing token and writes to Redis in one script, one round trip.
//
//	g, err := redisguard.New(rdb)
//	w := g.Writer("account:42", token)
//	balance, err := w.Do(ctx, "INCRBY", "balance:{account:42}", 10).Int64()
//	if errors.Is(err, guard.ErrStale) { ... } // this call has written nothing
//
// A command runs as rdb.Do would run it, or a Lua script of your own as rdb.Eval would ([Writer.Eval]). A read that a
// write depends on goes through the Writer too (GET is a command like any other). The reply is what Redis gives to a
// script: a status arrives as its text and nil as redis.Nil; maps (HGETALL) arrive as flat lists and floats as strings,
// and integers beyond 2^53 are rounded, as Lua does. Tokens are exact up to 2^63-1.
//
// # The marker
//
// The largest accepted token of a resource is the value of the key `fencelock_guard:{RESOURCE}`, or
// `fencelock_guard:RESOURCE` where the resource has an opening brace of its own: `x` and `{x}` are one resource. It is a
// decimal number, written by nothing but the guard: a write that changes the marker, or shortens its expiry, is done, and is an
// error all the same. A write that lengthens the expiry is not noticed: the marker stays for longer.
//
// A token counts once its command or script was begun, also if that fails: what a script wrote before it failed stays, as
// always in Redis, and an older token must not get in over the half. That shuts out nobody who still has the lock.
//
// The marker outlives the lock: it must be there for as long as somebody may come with an old token, and the guard keeps
// it for ever. WithExpiry bounds that. Delete the marker (DEL, not through a Writer) only together with the resource, or when
// the resource's tokens come from another source from now on. Where the marker gets lost otherwise (FLUSHALL, an eviction, a
// failover to a replica that had not got it), the guard accepts what comes next, and begins anew there: let Redis run with
// maxmemory-policy noeviction.
// At maxmemory the marker is what is refused first, and nothing is written.
//
// All writers of a resource have to use a guard: what is written past it is not seen.
//
// # Keys
//
// A script of your own names its keys. Do declares those of its command on a redis.ClusterClient, and on a server that has refused a script for a key
// that it had not declared (Dragonfly, by default): the guard asks that server which arguments are keys. Where a hook of the client, or a
// proxy, changes the names of keys, it cannot change those of a command in Do, which is an error then: use Eval.
//
// # Cluster
//
// All keys of a write have to be in the marker's slot, which means that they have the resource's hash tag:
// `balance:{account:42}` for the resource `account:42`, any key with `{user:7}` for the resource `account:{user:7}`. On a
// redis.ClusterClient this is checked before anything is sent. The guard asks the server once, with COMMAND, which arguments
// of the commands are keys. About a command whose keys are at changing places (XREAD, SORT, ZUNIONSTORE, what COMMAND INFO
// calls movablekeys) it asks at each use, with COMMAND GETKEYS: that is another round trip. A script of your own names its
// keys. Resources such as `a}b` or `a{b` have no hash tag that other keys could have, and are refused there. On a client of
// a single node of a cluster, or through a proxy, nothing but what the server itself refuses is checked. A redis.Ring is
// refused: where a node is down it moves keys to another one, which has not seen their tokens.
//
// # When Redis is away
//
// A write is sent once: go-redis, which repeats most commands silently after a broken connection, is told not to. So a
// refused connection, or a server that is loading, is an error at once, for the caller to try again. Where no reply came and
// the write may have been done, the error is [ErrUnknown] and its cause. Repeat such a write only if doing it twice is the
// same as once (SET of a value), or through [Writer.Once]. Without ErrUnknown an error means that nothing was done, but for
// what a script of yours, or a command such as MIGRATE, wrote before it failed. A replica, and a master that was demoted,
// refuse with READONLY, also what they would have to call stale.
//
// ctx bounds a call as far as it does with rdb.Do: go-redis looks at it while it waits for a connection, and the
// client's ReadTimeout bounds the rest, unless its ContextTimeoutEnabled is set.
//
// The Redis user needs EVALSHA, EVAL, GET, SET, GETEX, TIME and PTTL on `fencelock_guard:*` and `fencelock_once:*`, and the right to its own
// commands. On a cluster it needs CLUSTER SLOTS and COMMAND too. Redis 6.2 or later, or Valkey.
package redisguard
