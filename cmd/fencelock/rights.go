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
	on   string // the words of ACL SETUSER for its key or its channel
}

const (
	needLock     = "locks"
	needFloor    = "WithClockFloor and WithCounterExpiry"
	needLine     = "the line of waiters: without it all who wait hear of each release, and try"
	needMessages = "messages to waiters: without them they look once a second"
	needMoves    = "locks in a slot that moves to another node"
	needGoRedis  = "go-redis, which asks with it which of a command's arguments are keys"
	needPresence = "presence"
	needView     = "ls, top and show"
)

const (
	ofToken    = "~redisson_lock_token*"
	ofLine     = "~fencelock_line*"
	ofPresence = "~fencelock_client*"
	ofChannel  = "&redisson_lock__channel*"
	ofCalls    = "&fencelock_line*"
)

// rights are the commands that locks need, on the keys of a lock that nobody uses, and of a client that is not there. tidy takes away what
// they leave.
func rights(keys *scripts.Keys, id, ofLock string) []right {
	const script = "return 1"
	sha := redis.NewScript(script).Hash()
	said := saidBy(id)
	all := []right{}
	add := func(need, on string, lines ...[]any) {
		for _, line := range lines {
			all = append(all, right{line, need, on})
		}
	}
	add(needLock, ofLock,
		[]any{"EVAL", script, 1, keys.Lock}, []any{"EVALSHA", sha, 1, keys.Lock}, []any{"EXISTS", keys.Lock}, []any{"HDEL", keys.Lock, "f"},
		[]any{"PEXPIRE", keys.Lock, 60000}, []any{"HGET", keys.Lock, "f"}, []any{"HMGET", keys.Lock, "f"}, []any{"HEXISTS", keys.Lock, "f"},
		[]any{"HKEYS", keys.Lock}, []any{"PTTL", keys.Lock}, []any{"HSET", keys.Lock, "f", 1}, []any{"HINCRBY", keys.Lock, "f", 1})
	add(needLock, ofToken, []any{"INCRBY", keys.Token, 1}, []any{"GET", keys.Token})
	add(needFloor, ofToken, []any{"SET", keys.Token, 1, "PX", 60000}, []any{"TIME"})
	add(needLine, ofLine,
		[]any{"ZADD", keys.Line, "XX", 1, "m"}, []any{"ZRANGE", keys.Line, 0, -1}, []any{"ZRANK", keys.Line, "m"}, []any{"ZSCORE", keys.Line, "m"},
		[]any{"ZCARD", keys.Line}, []any{"ZREM", keys.Line, "m"}, []any{"PEXPIRE", keys.Line, 0}, []any{"TIME"})
	add(needPresence, ofPresence,
		[]any{"HSETNX", said, "since", 0}, []any{"HSET", said, "seen", 0}, []any{"PEXPIRE", said, 1}, []any{"DEL", said},
		[]any{"ZADD", "fencelock_clients", "XX", 0, id}, []any{"ZREM", "fencelock_clients", id}, []any{"ZREMRANGEBYSCORE", "fencelock_clients", "(0", "(0"})
	add(needView, ofLock, []any{"HSCAN", keys.Lock, 0}, []any{"HLEN", keys.Lock}, []any{"PTTL", keys.Lock}, []any{"SCAN", 0, "COUNT", 1}, []any{"TIME"})
	add(needView, ofToken, []any{"GET", keys.Token})
	add(needView, ofLine, []any{"ZRANGE", keys.Line, 0, 0}, []any{"ZCARD", keys.Line})
	add(needView, ofPresence, []any{"HSTRLEN", said, "name"}, []any{"HMGET", said, "name"}, []any{"PTTL", said}, []any{"ZRANGE", "fencelock_clients", 0, 0})
	return all
}

// saidBy is the key of what the client of this id says of itself.
func saidBy(id string) string { return "fencelock_client:{" + id + "}" }

// tidy takes away what rights and tryLock leave: by PEXPIRE, which locks need anyway, or by what else the user may do.
func (d *doctor) tidy(ctx context.Context, keys *scripts.Keys, id string) {
	for _, key := range []string{keys.Lock, keys.Token, saidBy(id)} {
		for _, line := range [][]any{{"PEXPIRE", key, 0}, {"DEL", key}, {"HDEL", key, "f"}, {"SET", key, 0, "PX", 1}} {
			if d.rdb.Do(ctx, line...).Err() == nil {
				break
			}
		}
	}
}

// word is what ACL SETUSER would need to allow what was refused with err.
func (r right) word(err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, "permissions to run"):
	case strings.Contains(text, " key"), strings.Contains(text, " channel"):
		return r.on
	}
	word := "+" + strings.ToLower(r.line[0].(string))
	if container := r.line[0] == "PUBSUB" || r.line[0] == "CLUSTER"; container {
		word += "|" + strings.ToLower(r.line[1].(string))
	}
	return word
}

// gaps are the words that are missing, for each need in the order in which it was found.
type gaps struct {
	needs []string
	words map[string][]string
	other error // the first error that was no refusal
}

// found notes what became of a right that was tried.
func (g *gaps) found(r right, err error) {
	switch {
	case err == nil || err == redis.Nil:
	case !redis.HasErrorPrefix(err, "NOPERM"):
		if g.other == nil {
			g.other = err
		}
	default:
		if g.words[r.need] == nil {
			g.needs = append(g.needs, r.need)
		}
		if word := r.word(err); !slices.Contains(g.words[r.need], word) {
			g.words[r.need] = append(g.words[r.need], word)
		}
	}
}

// examineRights tries what locks need, on a name that nobody uses: base, and an ending.
func (d *doctor) examineRights(ctx context.Context, at *connection, base string) {
	name := base + ":" + uuid.NewString()
	keys, id := scripts.KeysOf(name), uuid.NewString()
	missing := gaps{words: map[string][]string{}}
	tidy := func() { d.tidy(context.WithoutCancel(ctx), keys, id) }
	defer tidy()
	missing.found(right{[]any{"PING"}, needMessages, ""}, d.rdb.Ping(ctx).Err())
	for _, r := range rights(keys, id, "~"+base+"*") {
		missing.found(r, d.rdb.Do(ctx, r.line...).Err())
	}
	d.examineMessages(ctx, at, keys, id, &missing)
	for _, need := range missing.needs {
		result := warning
		if need == needLock {
			result = wrong
		}
		d.note(result, "rights", "the user lacks %s, for %s", strings.Join(missing.words[need], " "), need)
	}
	if missing.other != nil {
		d.note(wrong, "commands", "%v", missing.other)
	}
	if len(missing.needs) == 0 && missing.other == nil {
		d.note(fine, "rights", "all commands that locks, presence and ls need")
	}
	if missing.words[needLock] == nil {
		tidy()
		d.tryLock(ctx, name)
	}
}

// examineMessages tries to publish and to listen on the channels of the lock and of the line, by sharded messages in a cluster that has them.
func (d *doctor) examineMessages(ctx context.Context, at *connection, keys *scripts.Keys, id string, missing *gaps) {
	sharded := false
	if at.cluster {
		ask := right{[]any{"PUBSUB", "SHARDNUMSUB", keys.Channel()}, needLine, ""}
		err := d.rdb.Do(ctx, ask.line...).Err()
		if refused := redis.HasErrorPrefix(err, "NOPERM"); err == nil || refused {
			missing.found(ask, err)
			sharded = err == nil || !strings.HasPrefix(d.info["redis_version"], "6.") // which refuses it too, and has none
		}
		for _, r := range []right{
			{[]any{"CLUSTER", "SLOTS"}, needLock, ""}, {[]any{"ASKING"}, needMoves, ""}, {[]any{"COMMAND"}, needGoRedis, ""},
		} {
			missing.found(r, d.rdb.Do(ctx, r.line...).Err())
		}
	}
	publish, s, channels, numsub := "PUBLISH", "", "CHANNELS", "NUMSUB"
	if sharded {
		publish, s, channels, numsub = "SPUBLISH", "S", "SHARDCHANNELS", "SHARDNUMSUB"
	}
	for _, r := range []right{{[]any{"PUBSUB", channels, keys.Channel()}, needView, ""}, {[]any{"PUBSUB", numsub, keys.Channel()}, needView, ""}} {
		missing.found(r, d.rdb.Do(ctx, r.line...).Err())
	}
	for _, on := range []right{{[]any{keys.Channel()}, needMessages, ofChannel}, {[]any{keys.Calls(id)}, needLine, ofCalls}} {
		channel := on.line[0].(string)
		missing.found(right{[]any{publish}, on.need, on.on}, d.rdb.Do(ctx, publish, channel, "").Err())
		missing.found(right{[]any{s + "SUBSCRIBE"}, on.need, on.on}, d.listen(ctx, sharded, true, channel))
		missing.found(right{[]any{s + "UNSUBSCRIBE"}, on.need, on.on}, d.listen(ctx, sharded, false, channel))
	}
}

// listen subscribes to a channel, or with begin false leaves it, and returns the error that the server has for that.
func (d *doctor) listen(ctx context.Context, sharded, begin bool, channel string) error {
	subscribe, leave := d.rdb.Subscribe, (*redis.PubSub).Unsubscribe
	if sharded {
		subscribe, leave = d.rdb.SSubscribe, (*redis.PubSub).SUnsubscribe
	}
	heard := subscribe(ctx, channel)
	defer heard.Close()
	_, err := heard.ReceiveTimeout(ctx, answerTime)
	if begin {
		return err
	}
	if err := leave(heard, ctx, channel); err != nil {
		return err
	}
	_, err = heard.ReceiveTimeout(ctx, answerTime)
	return err
}

// answerTime bounds the wait for an answer on a connection for messages.
const answerTime = 5 * time.Second

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
