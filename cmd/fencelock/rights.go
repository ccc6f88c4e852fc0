package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/scripts"
)

// A right is a command that is tried.
type right struct {
	line []any
	need string // what is missing without it
}

const (
	needLock     = "locks"
	needLine     = "the line of waiters: without it all who wait hear of each release, and try"
	needMessages = "messages to waiters: without them they look once a second"
	needPresence = "presence"
	needView     = "ls, top and show"
)

// rights are the commands that locks need, on the keys of a lock that nobody uses. Each leaves what the next one finds.
func rights(keys *scripts.Keys, id string) []right {
	const script = "return 1"
	sha := redis.NewScript(script).Hash()
	said := "fencelock_client:{" + id + "}"
	all := []right{}
	add := func(need string, lines ...[]any) {
		for _, line := range lines {
			all = append(all, right{line, need})
		}
	}
	add(needLock,
		[]any{"EVAL", script, 1, keys.Lock}, []any{"EVALSHA", sha, 1, keys.Lock}, []any{"EXISTS", keys.Lock}, []any{"HSET", keys.Lock, "f", 1},
		[]any{"HGET", keys.Lock, "f"}, []any{"HMGET", keys.Lock, "f"}, []any{"HINCRBY", keys.Lock, "f", 1}, []any{"HEXISTS", keys.Lock, "f"}, []any{"HKEYS", keys.Lock},
		[]any{"PEXPIRE", keys.Lock, 60000}, []any{"PTTL", keys.Lock}, []any{"HDEL", keys.Lock, "f"},
		[]any{"SET", keys.Token, 1, "PX", 60000}, []any{"GET", keys.Token}, []any{"INCRBY", keys.Token, 1}, []any{"DECRBY", keys.Token, 1}, []any{"TIME"})
	add(needLine,
		[]any{"ZADD", keys.Line, 1, "m"}, []any{"ZRANGE", keys.Line, 0, -1}, []any{"ZRANK", keys.Line, "m"}, []any{"ZSCORE", keys.Line, "m"},
		[]any{"ZCARD", keys.Line}, []any{"ZREM", keys.Line, "m"})
	add(needPresence,
		[]any{"HSETNX", said, "since", 0}, []any{"HSET", said, "seen", 0}, []any{"PEXPIRE", said, 1}, []any{"DEL", said},
		[]any{"ZADD", "fencelock_clients", 0, id}, []any{"ZREM", "fencelock_clients", id}, []any{"ZREMRANGEBYSCORE", "fencelock_clients", "-inf", "(0"})
	add(needView,
		[]any{"HSCAN", keys.Lock, 0}, []any{"HLEN", keys.Lock}, []any{"HSTRLEN", said, "name"}, []any{"HMGET", said, "name"}, []any{"PTTL", said}, []any{"ZRANGE", "fencelock_clients", 0, 0}, []any{"PUBSUB", "CHANNELS", keys.Channel()}, []any{"PUBSUB", "NUMSUB", keys.Channel()},
		[]any{"SCAN", 0, "COUNT", 1})
	return all
}

// examineRights tries what locks need, on a name that nobody uses.
func (d *doctor) examineRights(ctx context.Context, at *connection, name string) {
	keys, id := scripts.KeysOf(name), uuid.NewString()
	missing := map[string][]string{}
	var needs []string
	refuse := func(need, command string, err error) {
		if err == nil || !redis.HasErrorPrefix(err, "NOPERM") {
			return
		}
		if missing[need] == nil {
			needs = append(needs, need)
		}
		if !slices.Contains(missing[need], command) {
			missing[need] = append(missing[need], command)
		}
	}
	defer d.rdb.Del(context.WithoutCancel(ctx), keys.Token)
	for _, r := range rights(keys, id) {
		refuse(r.need, r.line[0].(string), d.rdb.Do(ctx, r.line...).Err())
	}
	publish, subscribe, listen := "PUBLISH", "SUBSCRIBE", d.rdb.Subscribe
	if at.cluster {
		publish, subscribe, listen = "SPUBLISH", "SSUBSCRIBE", d.rdb.SSubscribe
	}
	refuse(needMessages, publish, d.rdb.Do(ctx, publish, keys.Channel(), 0).Err())
	heard := listen(ctx, keys.Channel())
	_, err := heard.ReceiveTimeout(ctx, 5*time.Second)
	_ = heard.Close()
	refuse(needMessages, subscribe, err)
	for _, need := range needs {
		result := warning
		if need == needLock {
			result = wrong
		}
		d.note(result, "rights", "the user may not use %s on keys and channels such as %s, for %s", strings.Join(missing[need], ", "), name, need)
	}
	if len(needs) == 0 {
		d.note(fine, "rights", "all commands that locks, presence and ls need")
	}
	d.tryLock(ctx, name)
}

// tryLock takes a lock and releases it.
func (d *doctor) tryLock(ctx context.Context, name string) {
	client, err := rlock.New(d.rdb, rlock.WithLogger(slog.New(slog.DiscardHandler)))
	if err == nil {
		defer client.Close()
		began := time.Now()
		err = fenced.NewLock(client, name).TryDo(ctx, 0, 0, func(context.Context, int64) error { return nil })
		if err == nil {
			d.note(fine, "lock", "taken and released in %v", time.Since(began).Round(10*time.Microsecond))
			return
		}
	}
	d.note(wrong, "lock", "%v", err)
}
