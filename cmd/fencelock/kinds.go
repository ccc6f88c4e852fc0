package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// A kind is a thing whose rights are asked for, by its name for --for.
type kind struct {
	name    string
	core    string // the need without which it does not work at all
	serious bool   // that is wrong then, and no warning
	rights  func(t *trial) []right
	try     func(ctx context.Context, rdb redis.UniversalClient, t *trial) (string, error) // does it once, and says what was done; nil: nothing to do
}

// kinds are all kinds. Their rights are those of the lists in docs/operations.md.
var kinds = []kind{
	{"lock", needLock, true, lockRights, tryLock},
	{"rw", needReadWrite, true, readWriteRights, tryReadWrite},
	{"semaphore", needSemaphore, true, semaphoreRights, trySemaphore},
	{"quorum", needQuorum, true, quorumRights, nil},
	{"guard", needGuard, true, guardRights, tryGuard},
	{"presence", needPresence, true, presenceRights, nil},
	{"inspect", needView, true, viewRights, nil},
	{"force-unlock", needForce, true, forceRights, nil},
}

// kindNames are the names of all kinds.
func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// coresOf says what these kinds are for.
func coresOf(kinds []kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, k.core)
	}
	return strings.Join(all, ", ")
}

// kindsOf returns the kinds of these names. Without a name they are what most want, and only locks have to work.
func kindsOf(names []string) (all []kind, err error) {
	if len(names) == 0 {
		all, _ = kindsOf([]string{"lock", "presence", "inspect"})
		for i := range all {
			all[i].serious = i == 0
		}
		return all, nil
	}
	for _, name := range names {
		if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); i >= 0 {
			all = append(all, kinds[i])
			continue
		}
		return nil, usage("--for %s: there is no such kind; there are %s", name, strings.Join(kindNames(), ", "))
	}
	return all, nil
}

const (
	needLock      = "locks"
	needReadWrite = "read-write locks"
	needSemaphore = "semaphores"
	needQuorum    = "a quorum"
	needGuard     = "guards"
	needPresence  = "presence"
	needView      = "ls, top and show"
	needForce     = "force-unlock"

	needFloor     = "WithClockFloor and WithCounterExpiry"
	needLine      = "the line of waiters: without it all who wait hear of each release, and try"
	needMessages  = "messages to waiters: without them they look once a second"
	needMoves     = "locks in a slot that moves to another node"
	needGoRedis   = "go-redis, which asks with it which of a command's arguments are keys"
	needOvertaken = "releases that the next holder overtakes: without it their Unlock may return ErrLost"
	needProof     = "the proof that a restart loses nothing: without it a server counts only when it has been up for the longest lease"
	needMembers   = "a quorum's record of its members: without it clients with other servers are not noticed"
	needViewOther = "ls, top and show of semaphores and read-write locks"
	needFreeOther = "force-unlock of semaphores and read-write locks"
	needQueue     = "force-unlock, which leaves Redisson's fair locks alone: without it they are not told apart"
)

const (
	ofToken     = "~redisson_lock_token*"
	ofLine      = "~fencelock_line*"
	ofPresence  = "~fencelock_client*"
	ofLease     = "~*:rwlock_timeout:*"
	ofMarker    = "~fencelock_guard*"
	ofOnce      = "~fencelock_once*"
	ofProof     = "~" + proof
	ofMembers   = "~" + quorums.MembersKey
	ofQueue     = "redisson_lock_queue*"
	ofChannel   = "&redisson_lock__channel*"
	ofReadWrite = "&redisson_rwlock*"
	ofCalls     = "&fencelock_line*"
)

// proof is the key by which a server of a quorum proves that a restart has lost nothing.
const proof = "fencelock:quorum"

// A trial is what rights are tried on: names that nobody uses, and a client that is not there.
type trial struct {
	base  string // that the user has named
	name  string // of a lock, of a read-write lock, of a resource
	slots string // of a semaphore whose slots a user may have who may have those of base; of a lock too
	id    string // the client's

	cluster, sharded bool
	read             string // of a word of ACL SETUSER, before the keys that are read alone
}

func (d *doctor) newTrial(ctx context.Context, at *connection, base string) *trial {
	t := &trial{base: base, name: base + ":" + uuid.NewString(), id: uuid.NewString(), cluster: at.cluster, read: "~"}
	t.slots = t.slotsOf() + uuid.NewString()
	before7 := strings.HasPrefix(d.info["redis_version"], "6.")
	if d.info["redis_version"] != "" && !before7 {
		t.read = "%R~"
	}
	if t.cluster {
		err := d.rdb.Do(ctx, "PUBSUB", "SHARDNUMSUB", t.keys().Channel()).Err()
		t.sharded = err == nil || redis.HasErrorPrefix(err, "NOPERM") && !before7 // which refuses it too, and has none
	}
	return t
}

func (t *trial) keys() *scripts.Keys { return scripts.KeysOf(t.name) }

// slotsOf is what the names of the slots of the semaphore base begin with.
func (t *trial) slotsOf() string { return strings.TrimSuffix(scripts.PermitsOf(t.base, 1).Lock, "*") }

// ofLock is the user's word for the keys of locks that begin with base, and ofSlots that for the slots of semaphores.
func (t *trial) ofLock() string  { return "~" + t.base + "*" }
func (t *trial) ofSlots() string { return "~" + t.slotsOf() + "*" }

// lease is the key of the lease of somebody who reads.
func (t *trial) lease() string { return scripts.ReadWriteOf(t.name, scripts.Reads).LeaseOf("f", 1) }

// said is the key of what the client says of itself.
func (t *trial) said() string { return "fencelock_client:{" + t.id + "}" }

// marker and once are the keys of a guard.
func (t *trial) marker() string { return "fencelock_guard:" + tagged(t.name) }
func (t *trial) once() string {
	return fmt.Sprintf("fencelock_once:%d:%s:x", len(tagged(t.name)), tagged(t.name))
}

// tagged is a name as it stands in keys that belong to it.
func tagged(name string) string {
	if strings.Contains(name, "{") {
		return name
	}
	return "{" + name + "}"
}

// leaves are the keys that a trial may leave.
func (t *trial) leaves() []string {
	all := []string{t.said(), t.marker(), t.once(), t.lease(), "fencelock_guard:" + tagged(t.slots)}
	for _, name := range []string{t.name, t.slots, t.slots + ":0"} {
		keys := scripts.KeysOf(name)
		all = append(all, keys.Lock, keys.Token)
	}
	return all
}

// each returns rights with one need, on the same key or channel.
func each(need, on string, lines ...[]any) (all []right) {
	for _, line := range lines {
		all = append(all, right{line, need, on})
	}
	return all
}

const aScript = "return 1"

// run are the two ways to run a script on a key.
func run(key string) [][]any {
	return [][]any{{"EVAL", aScript, 1, key}, {"EVALSHA", redis.NewScript(aScript).Hash(), 1, key}}
}

// ofCluster are the rights that a client of a cluster needs whatever it does.
func (t *trial) ofCluster(core string) []right {
	if !t.cluster {
		return nil
	}
	return []right{{[]any{"CLUSTER", "SLOTS"}, core, ""}, {[]any{"COMMAND"}, needGoRedis, ""}}
}

// hears are the rights to publish and to listen on a channel.
func (t *trial) hears(need, on, channel string) []right {
	s := ""
	if t.sharded {
		s = "S"
	}
	return each(need, on, []any{s + "PUBLISH", channel, ""}, []any{s + "SUBSCRIBE", channel}, []any{s + "UNSUBSCRIBE", channel})
}

func lockRights(t *trial) []right { return t.locks(t.keys(), needLock, t.ofLock()) }

// locks are the rights that locks with these keys need.
func (t *trial) locks(keys *scripts.Keys, core, ofLock string) []right {
	all := slices.Concat(
		each(core, ofLock, run(keys.Lock)...),
		each(core, ofLock, []any{"EXISTS", keys.Lock}, []any{"HDEL", keys.Lock, "f"}, []any{"PEXPIRE", keys.Lock, 60000}, []any{"HGET", keys.Lock, "f"},
			[]any{"HMGET", keys.Lock, "f"}, []any{"HEXISTS", keys.Lock, "f"}, []any{"HKEYS", keys.Lock}, []any{"PTTL", keys.Lock},
			[]any{"HSET", keys.Lock, "f", 1}, []any{"HINCRBY", keys.Lock, "f", 1}),
		each(core, ofToken, []any{"GET", keys.Token}),
		each(needFloor, ofToken, []any{"SET", keys.Token, 1, "PX", 60000}, []any{"TIME"}),
		each(needLine, ofLine, []any{"ZADD", keys.Line, "XX", 1, "m"}, []any{"ZRANGE", keys.Line, 0, -1}, []any{"ZRANK", keys.Line, "m"},
			[]any{"ZSCORE", keys.Line, "m"}, []any{"ZCARD", keys.Line}, []any{"ZREM", keys.Line, "m"}, []any{"PEXPIRE", keys.Line, 0}, []any{"TIME"}),
		each(needMessages, "", []any{"PING"}),
		t.hears(needMessages, ofChannel, keys.Channel()),
		t.hears(needLine, ofCalls, keys.Calls(t.id)),
		t.ofCluster(core),
	)
	if core != needQuorum { // whose tokens are numbers that clients propose
		all = append(all, right{[]any{"INCRBY", keys.Token, 1}, core, ofToken})
	}
	if t.cluster {
		all = append(all, right{[]any{"PUBSUB", "SHARDNUMSUB", keys.Channel()}, needLine, ""}, right{[]any{"ASKING"}, needMoves, ""})
	}
	return all
}

func readWriteRights(t *trial) []right {
	return slices.Concat(t.locks(t.keys(), needReadWrite, t.ofLock()),
		each(needReadWrite, ofLease, []any{"SET", t.lease(), 1, "PX", 60000}, []any{"PTTL", t.lease()}, []any{"PEXPIRE", t.lease(), 60000}),
		each(needFloor, "", []any{"INFO", "replication"}),
		t.hears(needMessages, ofReadWrite, scripts.ReadWriteOf(t.name, scripts.Reads).Channel()))
}

func semaphoreRights(t *trial) []right {
	return t.locks(scripts.KeysOf(t.slots), needSemaphore, t.ofSlots())
}

func quorumRights(t *trial) []right {
	keys := t.keys()
	return slices.Concat(t.locks(keys, needQuorum, t.ofLock()),
		each(needOvertaken, t.ofLock(), []any{"DEL", keys.Lock}),
		each(needQuorum, "", []any{"INFO", "server"}),
		each(needProof, ofProof, run(proof)...),
		each(needMembers, ofMembers, append(run(quorums.MembersKey), []any{"GET", quorums.MembersKey})...),
		each(needProof, "", []any{"CONFIG", "GET", "appendfsync"}))
}

func guardRights(t *trial) []right {
	return slices.Concat(
		each(needGuard, ofMarker, run(t.marker())...),
		each(needGuard, ofMarker, []any{"SET", t.marker(), 1, "PX", 60000}, []any{"GET", t.marker()}, []any{"GETEX", t.marker()}, []any{"PTTL", t.marker()}, []any{"TIME"}),
		each(needGuard, ofOnce, []any{"SET", t.once(), 1, "PX", 60000}, []any{"GET", t.once()}),
		t.ofCluster(needGuard))
}

const clientsKey = "fencelock_clients"

func presenceRights(t *trial) []right {
	return each(needPresence, ofPresence,
		[]any{"HSETNX", t.said(), "since", 0}, []any{"HSET", t.said(), "seen", 0}, []any{"PEXPIRE", t.said(), 1}, []any{"DEL", t.said()},
		[]any{"ZADD", clientsKey, "XX", 0, t.id}, []any{"ZREM", clientsKey, t.id}, []any{"ZREMRANGEBYSCORE", clientsKey, "(0", "(0"})
}

// reads is a word for keys that are read alone.
func (t *trial) reads(word string) string { return t.read + strings.TrimPrefix(word, "~") }

func viewRights(t *trial) []right {
	keys, slot := t.keys(), scripts.KeysOf(t.slots)
	s := ""
	if t.sharded {
		s = "SHARD"
	}
	return slices.Concat(
		each(needView, t.reads(t.ofLock()), []any{"HMGET", keys.Lock, "f"}, []any{"HSCAN", keys.Lock, 0}, []any{"HLEN", keys.Lock}, []any{"PTTL", keys.Lock},
			[]any{"SCAN", 0, "COUNT", 1}, []any{"TIME"}),
		each(needView, t.reads(ofToken), []any{"GET", keys.Token}),
		each(needView, t.reads(ofLine), []any{"ZRANGE", keys.Line, 0, 0}, []any{"ZCARD", keys.Line}),
		each(needView, t.reads(ofPresence), []any{"HSTRLEN", t.said(), "name"}, []any{"HMGET", t.said(), "name"}, []any{"PTTL", t.said()},
			[]any{"ZRANGE", clientsKey, 0, 0}),
		each(needViewOther, t.reads(t.ofSlots()), []any{"HMGET", slot.Lock, "f"}, []any{"HGET", slot.Lock, "mode"}),
		each(needViewOther, t.reads(ofLine), []any{"ZCARD", slot.Line}),
		each(needView, "", []any{"PUBSUB", s + "CHANNELS", keys.Channel()}, []any{"PUBSUB", s + "NUMSUB", keys.Channel()}),
		t.ofCluster(needView))
}

func forceRights(t *trial) []right {
	keys, slot := t.keys(), scripts.KeysOf(t.slots)
	publish := "PUBLISH"
	if t.sharded {
		publish = "SPUBLISH"
	}
	return slices.Concat(
		each(needForce, t.ofLock(), run(keys.Lock)...),
		each(needForce, t.ofLock(), []any{"EXISTS", keys.Lock}, []any{"HDEL", keys.Lock, "f"}, []any{"HKEYS", keys.Lock}),
		each(needForce, ofLine, []any{"ZREM", keys.Line, "m"}),
		each(needForce, ofChannel, []any{publish, keys.Channel(), ""}),
		each(needForce, ofCalls, []any{publish, keys.Calls(t.id), ""}),
		each(needFreeOther, t.ofSlots(), run(slot.Lock)...),
		each(needFreeOther, t.ofSlots(), []any{"PEXPIRE", slot.Lock, 0}),
		each(needFreeOther, ofLine, []any{"ZREM", slot.Line, "m"}),
		each(needFreeOther, ofCalls, []any{publish, slot.Calls(t.id), ""}),
		each(needFreeOther, ofReadWrite, []any{publish, scripts.ReadWriteOf(t.name, scripts.Reads).Channel(), ""}),
		each(needQueue, t.read+ofQueue, []any{"EXISTS", "redisson_lock_queue:" + tagged(t.name)}),
		viewRights(t))
}

// withClient does what is to be done with a client of locks.
func withClient(rdb redis.UniversalClient, do func(c *rlock.Client) error) error {
	client, err := rlock.New(rdb, rlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	return errors.Join(do(client), client.Close())
}

const takenAndReleased = "taken and released"

func tryLock(ctx context.Context, rdb redis.UniversalClient, t *trial) (string, error) {
	return takenAndReleased, withClient(rdb, func(c *rlock.Client) error {
		return fenced.NewLock(c, t.name).Do(ctx, func(context.Context, int64) error { return nil }, rlock.Wait(0))
	})
}

func tryReadWrite(ctx context.Context, rdb redis.UniversalClient, t *trial) (string, error) {
	return takenAndReleased + ", to read and to write", withClient(rdb, func(c *rlock.Client) error {
		l := fenced.NewRWLock(c, t.name)
		for _, side := range []*fenced.Lock{l.Read(), l.Write()} {
			if err := side.Do(ctx, func(context.Context, int64) error { return nil }, rlock.Wait(0)); err != nil {
				return err
			}
		}
		return nil
	})
}

func trySemaphore(ctx context.Context, rdb redis.UniversalClient, t *trial) (string, error) {
	return takenAndReleased, withClient(rdb, func(c *rlock.Client) error {
		return fenced.NewSemaphore(c, t.slots, 1).Do(ctx, func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(0))
	})
}

func tryGuard(ctx context.Context, rdb redis.UniversalClient, t *trial) (string, error) {
	g, err := redisguard.New(rdb)
	if err == nil {
		// not under the name of the marker that may be left for a moment
		err = g.Writer(t.slots, 1).Eval(ctx, aScript, nil).Err()
	}
	return "a write was accepted", err
}
