package redisguard_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// What only a real server shows: memory, replicas, rights.

// P8: at maxmemory the marker is refused first, and nothing is left behind.
func TestP8_OutOfMemory(t *testing.T) {
	rdb := redistest.Real(t).Client()
	ctx := t.Context()
	g := newGuard(t, rdb)
	set(t, g.Writer(resource, 3), "x")
	locktest.NoError(t, rdb.PExpire(ctx, marker, time.Hour).Err())
	before := stateOf(t, rdb, marker)
	locktest.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "1").Err())
	for _, token := range []int64{3, 4} {
		for name, w := range map[string]redisguard.Writer{"old": g.Writer(resource, token), "new": g.Writer("new", token), "once": g.Writer(resource, token).Once("id")} {
			for _, cmd := range []*redis.Cmd{w.Do(ctx, "SET", key, "y"), w.Do(ctx, "DEL", key), w.Eval(ctx, "return redis.call('SET', KEYS[1], 'y')", []string{key})} {
				if err := cmd.Err(); !redis.HasErrorPrefix(err, "OOM") || errors.Is(err, redisguard.ErrUnknown) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	isStale(t, g.Writer(resource, 2).Do(ctx, "SET", key, "y").Err(), 2, 3) // can still be told
	locktest.NoError(t, rdb.ConfigSet(ctx, "maxmemory", "0").Err())
	holds(t, rdb, key, "x")
	locktest.Equal(t, "marker", stateAfter(t, rdb, marker, before), before)
	locktest.Equal(t, "keys", rdb.DBSize(ctx).Val(), int64(2))
}

// P8: a replica that is behind, and a master that was demoted, refuse with READONLY: they neither say that a token is
// stale nor show data to one that is.
func TestP8_Replicas(t *testing.T) {
	first, second := redistest.Real(t), redistest.Real(t, "--repl-diskless-sync-delay", "0")
	master := first.Client(func(o *redis.Options) { o.MaxRetries = -1 })
	ctx := t.Context()
	g := newGuard(t, master)
	set(t, g.Writer(resource, 3), "x")
	locktest.NoError(t, g.Writer(resource, 3).Once("id").Do(ctx, "APPEND", key, "y").Err())
	host, port, err := net.SplitHostPort(second.Addr())
	locktest.NoError(t, err)
	locktest.NoError(t, second.Client().Do(ctx, "set", marker, 5).Err()) // the new master has seen more
	readonly := func(what string) {
		t.Helper()
		for _, token := range []int64{2, 3, 4} {
			w := g.Writer(resource, token)
			for _, cmd := range []*redis.Cmd{
				w.Do(ctx, "SET", key, "z"), w.Do(ctx, "GET", key), w.Eval(ctx, "return redis.call('GET', KEYS[1])", []string{key}),
				w.Once("id").Do(ctx, "APPEND", key, "y"), w.Once("other").Do(ctx, "GET", key),
			} {
				if err := cmd.Err(); !redis.HasErrorPrefix(err, "READONLY") || errors.Is(err, redisguard.ErrUnknown) || errors.Is(err, guard.ErrStale) {
					t.Errorf("%s, token %d: %v says %v, %v", what, token, cmd.Args(), cmd.Val(), err)
				}
			}
		}
		if seen, err := g.Seen(ctx, resource); !redis.HasErrorPrefix(err, "READONLY") {
			t.Errorf("%s: Seen says %d, %v", what, seen, err)
		}
	}
	// Not synchronized yet, so that it has its own data: the link to its master is cut off by a wrong port.
	locktest.NoError(t, master.Do(ctx, "replicaof", host, 1).Err())
	readonly("behind")
	locktest.NoError(t, master.Do(ctx, "replicaof", host, port).Err())
	redistest.Eventually(t, 20*time.Second, func() bool { return master.Get(ctx, marker).Val() == "5" }, "the replica has its master's data")
	readonly("synchronized")
	locktest.NoError(t, master.Do(ctx, "replicaof", "no", "one").Err())
	isStale(t, g.Writer(resource, 4).Do(ctx, "SET", key, "z").Err(), 4, 5)
	set(t, g.Writer(resource, 5), "z")
}

// The rights that the package's doc lists are enough, and without the right to the command itself nothing is left.
func TestTheRightsOfTheDocAreEnough(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	locktest.NoError(t, err)
	list := regexp.MustCompile("The Redis user needs ([A-Z, ]+) and ([A-Z]+) on `(.*)`").FindStringSubmatch(string(doc))
	if list == nil {
		t.Fatal("no rights are listed in doc.go")
	}
	server := redistest.Real(t)
	ctx := t.Context()
	rights := []any{"acl", "setuser", "writer", "reset", "on", ">secret", "~" + key, "+ping", "+incr", "+hset"}
	for keys := range strings.SplitSeq(list[3], "` and `") {
		rights = append(rights, "~"+keys)
	}
	for _, command := range append(strings.Split(list[1], ", "), list[2]) {
		rights = append(rights, "+"+strings.ToLower(strings.TrimSpace(command)))
	}
	rdb := server.Client()
	locktest.NoError(t, rdb.Do(ctx, rights...).Err())
	g := newGuard(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "writer", "secret" }), redisguard.WithExpiry(time.Hour))
	for i, op := range []string{"Do", "Eval", "Do", "Eval"} {
		locktest.NoError(t, operations[op](ctx, g.Writer(resource, 3).Once(fmt.Sprint(i/2, op))).Err())
		locktest.NoError(t, operations[op](ctx, g.Writer(resource, 3)).Err())
	}
	isStale(t, g.Writer(resource, 2).Do(ctx, "INCR", key).Err(), 2, 3)
	seen, err := g.Seen(ctx, resource)
	locktest.NoError(t, err)
	locktest.Equal(t, "seen", seen, int64(3))
	for _, cmd := range []*redis.Cmd{
		g.Writer(resource, 4).Do(ctx, "HSET", key, "f", 1), g.Writer(resource, 4).Do(ctx, "DECR", key), g.Writer(resource, 4).Do(ctx, "INCR", "foreign"),
		g.Writer(resource, 4).Once("a").Eval(ctx, increment, []string{"foreign"}), g.Writer(resource, 4).Do(ctx, "HSET", "foreign", 1, 2),
	} {
		never(t, cmd.Err())
		holds(t, rdb, marker, "4") // the write was begun
	}
	before := stateOf(t, rdb, marker)
	g = newGuard(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "writer", "secret" }))
	for _, once := range []string{"~none", "%R~fencelock_once:*"} { // no right to look at ids, and none to keep them
		err := rdb.Do(ctx, "acl", "setuser", "writer", "resetkeys", once, "~"+marker, "~"+key).Err()
		if err != nil && once[0] == '%' && old(rdb.Do(ctx, "pexpiretime", key).Err()) {
			t.Log("this server has no rights to read alone: what they would change DID NOT RUN")
			continue
		}
		locktest.NoError(t, err)
		value := rdb.Get(ctx, key).Val()
		never(t, g.Writer(resource, 4).Once("b").Do(ctx, "INCR", key).Err())
		locktest.Equal(t, "marker", stateAfter(t, rdb, marker, before), before)
		holds(t, rdb, key, value)
	}
	locktest.Equal(t, "foreign keys", rdb.Exists(ctx, "foreign").Val(), int64(0))
}
