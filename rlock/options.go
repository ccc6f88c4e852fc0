package rlock

import (
	"log/slog"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// Option changes a default of New, which returns an error for a value out of the option's range.
type Option func(*settings)

type settings = engine.Settings

// WithLease sets the lease of holds that name none themselves, 30 s by default, as in Redisson: how long the lock stays
// taken after its process died, and how long a hold survives without contact to Redis. It is renewed every third of it.
// Shorten it when others must get in sooner after a crash; lengthen it when Redis may be away for longer. The lease is from
// 10 ms to 100 years; what is below a millisecond is cut off.
func WithLease(d time.Duration) Option { return func(s *settings) { s.Lease = d } }

// WithPollInterval sets how often a waiter looks at the lock although nothing told it to, 1 s by default. It bounds the
// wait after a message that got lost, and after a release that sends none (an expiry, a DEL by hand). While the
// subscription is known to work the interval doubles with each look, up to ten times as long. Shorten it where the Redis
// user may not subscribe. The interval is from 1 ms to 24 h.
func WithPollInterval(d time.Duration) Option { return func(s *settings) { s.Poll = d } }

// WithUnlockTimeout bounds the time an Unlock takes when Redis does not answer, 5 s by default. After it Unlock returns
// the error, and the release is sent again in the background. Shorten it where a caller must not be held up; the lock is
// free at the end of its lease in any case. The time is from 1 ms to 24 h.
func WithUnlockTimeout(d time.Duration) Option {
	return func(s *settings) { s.UnlockTimeout = d }
}

// WithPatience sets for how long a call that may wait rides out errors that go away by themselves, 10 s by default:
// connections refused or broken, a server that is loading, a failover. Then it returns what Redis said. So long it also waits
// for an answer, or for a second where the patience is shorter, whatever it is that hangs: a dial, a TLS handshake, Redis. Then
// the error is context.DeadlineExceeded, and says which. Lengthen it to sit out longer failovers; a shorter wait, or the
// context, ends a call sooner. The patience is from 1 ms to 24 h.
func WithPatience(d time.Duration) Option { return func(s *settings) { s.Patience = d } }

// WithHandoffs sets how many times in a row a lock may pass from one goroutine to the next in this client before others
// get their turn, 32 by default; a series also ends after 20 ms. Such a handoff takes one round trip, where the way to
// another client takes two and a message. The longer the series, the higher the rate of short sections, by a few percent,
// and the longer the slowest waits. With 0 every release goes to the next client in the line. Where Redisson's clients have
// just taken their turns a series is one handoff. n is from 0 to 1,048,576.
func WithHandoffs(n int) Option { return func(s *settings) { s.Handoffs = n } }

// WithLocalHandoffs lets a lock pass up to n times in a row from one goroutine of this client to the next without asking Redis,
// where the calls ask for the same lease and tokens; 0, none, by default. So a key that many goroutines of a few processes want
// passes at the speed of memory. Redis keeps one hold for all of them, with its lease and renewals. Each has a holder, a context and
// a fencing token of its own: an acquire for which others wait here reserves n tokens more, and those that are not used are a gap. A
// series ends after 20 ms, after a tenth of the lease, or where nobody waits here; then Redis is asked as without this option. With
// fenced.WithClockFloor or fenced.WithCounterExpiry it has 32 local handoffs at most: tokens are not to run ahead of the clock.
//
// What it costs: an Unlock that passes the lock on returns nil without having asked Redis, so that it does not notice that the lock
// was forced open less than 20 ms ago. The last one of the series is told, and a guard refuses the tokens. A holder of a series has
// up to a tenth of its lease less. Waiters in other processes wait for the series to end: the larger n is, the longer. It has no effect on semaphores
// and read-write locks. n is from 0 to 1,024.
func WithLocalHandoffs(n int) Option {
	return func(s *settings) { s.LocalHandoffs = n }
}

// WithShardedPubSub says whether the channels are sharded (SPUBLISH, SSUBSCRIBE) in a cluster. Without this option the client asks
// the server, as Redisson does by default; use it where Redisson's shardedSubscriptionMode is ON or OFF. It has no effect outside a
// cluster, also with redis.NewFailoverClusterClient, whose servers are asked whether they are one: its user needs the right to INFO,
// or to CLUSTER INFO. Where neither can be asked channels are not sharded, but with true.
func WithShardedPubSub(sharded bool) Option {
	return func(s *settings) {
		if s.Sharding = pubsub.Off; sharded {
			s.Sharding = pubsub.On
		}
	}
}

// WithLogger sets where the client tells of what no caller gets as an error: renewals that fail, holds that were lost or
// dropped, subscriptions that are refused, nested calls that wait for themselves. By default that is what slog.Default
// returns at the time, and only warnings and errors. A lease that the call gave and that runs out before the Unlock is Info,
// for some leave each lease to run out. WithLogger(slog.New(slog.DiscardHandler)) logs nothing. Nothing is
// logged while all is well, and what repeats itself no more than once in 10 s: the first line of a message at once, then
// the last one of each 10 s with the number of those that were left out. A goroutine of its own calls the handler, in order: nothing of the
// client waits for it, but Close, for a second at most. While it does not return 4,096 lines are kept; how many more there were the next
// line says.
func WithLogger(log *slog.Logger) Option { return func(s *settings) { s.SetLog(log) } }

// WithTrace makes the client call the functions of t for what happens to its locks: acquires, waits, the ends of holds, renewals,
// subscriptions, releases in the background. Package locktrace says when, and what they must not do. nil is no trace.
func WithTrace(t *locktrace.Trace) Option { return func(s *settings) { s.Trace = t } }

// WithPresence makes the client say in Redis that it is there: name, which is that of the service or the program, host, process id,
// program, since when, and the locks that it holds and waits for, up to a thousand of each. package observe/inspect shows that, so
// that people see which process holds a lock, and who waits. The client writes with its first acquire, a second later, and then every
// 10 s, without being in the way of any lock, two scripts of a few commands. What it wrote goes when the client is closed; otherwise it
// expires 10 s after the longest of its leases may have ended, and after 30 s at least: it names the holder as long as the lock is taken.
//
// The Redis user needs the keys fencelock_client* and the commands HSET, HSETNX, ZADD, ZREM, ZREMRANGEBYSCORE, TIME, PEXPIRE and DEL.
// Where Redis refuses the client logs that once, and works all the same. The names of locks are then readable by whoever may read
// these keys.
func WithPresence(name string) Option { return func(s *settings) { s.SetPresence(name) } }

// WithReplicas makes an acquire count only when n replicas of the server (in a cluster: of the lock's master) confirm
// within the timeout that they have it, by WAIT. Otherwise it is released, and the error is ErrUnconfirmed: at once from
// TryLock with wait 0; a call that may wait keeps what it has taken, and rides it out as it does other errors that pass
// (WithPatience). Handoffs, re-entries and renewals count in the same way: a lease that was extended without
// confirmation is trusted for no longer than the last one that had it, so that a hold whose renewals nobody confirms ends
// in time with ErrLost. Unlock does not wait, except for a handoff that it makes: a replica that has not heard of it
// keeps the lock for the rest of the lease, which is late, and safe.
//
// It buys that a crash of the server right after an acquire does not lose the lock, if a replica that confirmed is the one
// that takes over. It does not make Redis consistent: with n less than the number of replicas another one may be
// promoted (Sentinel takes the one that has most, of those that it reaches); a master that is cut off with n replicas
// confirms while the others elect a new one; a replica may itself restart empty. With n as many as there are, one replica
// that is away keeps everybody from locking. Tokens, with fenced.WithClockFloor, and guards hold beyond that.
//
// It costs one round trip between the server and its replicas for each acquire and renewal, one for all that travel
// together. While replicas do not answer, each attempt takes the timeout, on a connection of its own, up to 16 of them.
// The timeout, from a millisecond to less than a third of WithLease and than the ReadTimeout of the Redis client, should
// be several times what the replicas lag; explicit leases must be longer. In a cluster these commands go to the
// node itself, past the hooks of the cluster client. A Redis without WAIT, or a user without the right to it, is an error
// of each call.
//
// Redisson waits outside single-server setups by default: an acquire for all replicas that it thinks are connected, a
// second at most. It fails if there are some and none confirmed; one of three is enough, and with none connected
// nothing is waited for. When a renewal was not confirmed it logs that, and goes on.
func WithReplicas(n int, timeout time.Duration) Option {
	return func(s *settings) { s.Replicas = &scripts.Confirmation{Replicas: n, Timeout: timeout} }
}

// WithFsync is WithReplicas for the disk, by WAITAOF: with local 1 the server, and so many replicas, have to confirm that
// the acquire is in their append-only files, and that these are on disk. local 1 and no replicas is for a server that
// comes back after a crash, or a loss of power, with what it had; it needs appendonly there, as replicas that are to
// confirm need it: others never do. Set appendfsync always: with everysec, the default, each acquire and renewal waits for
// the next fsync, about a second, and the timeout must be longer than that. It needs Redis 7.2 or later, or Valkey;
// on another server the first call returns ErrUnconfirmed at once, and says so.
func WithFsync(local, replicas int, timeout time.Duration) Option {
	return func(s *settings) {
		s.Fsync = &scripts.Confirmation{Fsync: true, Local: local, Replicas: replicas, Timeout: timeout}
	}
}
