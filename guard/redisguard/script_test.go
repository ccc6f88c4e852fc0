package redisguard_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv4: a script that goes to another database, or touches its own marker, is told so, and no other marker is touched.
func TestInv4_AScriptThatMovesTheMarker(t *testing.T) {
	for _, c := range []struct{ script, marker string }{
		{"redis.call('INCR', KEYS[1]) redis.call('SELECT', 1) error('no')", "3"},
		{"redis.call('INCR', KEYS[1]) return redis.call('SELECT', 1)", "3"},
		{"redis.call('INCR', KEYS[1]) return redis.call('SWAPDB', 0, 1)", "9"},
		{"redis.call('INCR', KEYS[1]) redis.call('DEL', ARGV[1]) error('no')", ""},
		{"redis.call('INCR', KEYS[1]) return redis.call('SET', ARGV[1], 2)", "2"},
		{"return redis.call('FLUSHDB')", ""},
		{"redis.call('DEL', ARGV[1]) return redis.call('RPUSH', ARGV[1], 1)", "list"},
	} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprint(c.script, once), func(t *testing.T) {
				server := redistest.Real(t)
				rdb, other := server.Client(), server.Client(func(o *redis.Options) { o.DB = 1 })
				set(t, newGuard(t, rdb).Writer(resource, 2), 1)
				set(t, newGuard(t, other).Writer(resource, 9), 1)
				w := newGuard(t, rdb).Writer(resource, 3)
				if once {
					w = w.Once("id")
				}
				cmd := w.Eval(t.Context(), c.script, []string{key}, marker)
				var said redis.Error
				if err := cmd.Err(); err == nil || !errors.As(err, &said) || !contains(err, "what it did stays") || !contains(err, marker) {
					t.Errorf("%v, %v", cmd.Val(), err)
				}
				if c.marker == "list" {
					locktest.Equal(t, "marker", stateOf(t, rdb, marker).value, "list[1]")
				} else {
					holds(t, rdb, marker, c.marker)
				}
				if strings.Contains(c.script, "SWAPDB") {
					other = rdb
				}
				holds(t, other, marker, "9")
				for _, db := range []*redis.Client{rdb, other} {
					locktest.Equal(t, "ids", len(db.Keys(t.Context(), "fencelock_once:*").Val()), 0)
				}
			})
		}
	}
}

// A script with a NOSCRIPT of its own is not one that the server does not know.
func TestAScriptThatSaysNoscript(t *testing.T) {
	rdb := redistest.Real(t).Client()
	w := newGuard(t, rdb).Writer(resource, 3)
	for i := range 3 {
		err := w.Eval(t.Context(), "redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT no such scene')", []string{key}).Err()
		if err == nil || !contains(err, "no such scene") {
			t.Errorf("%v", err)
		}
		holds(t, rdb, key, fmt.Sprint(i+1))
	}
}

// A reply that cannot be written down does not take mark and id away from a write that was done.
func TestAReplyWithoutEnd(t *testing.T) {
	rdb := redistest.Real(t).Client()
	replies := map[string]string{
		"in a circle": "local a = {} a[1] = a return a",
		"deep":        "local a = {1} for i = 1, 100000 do a = {a} end return a",
	}
	if old(rdb.Do(t.Context(), "pexpiretime", key).Err()) {
		redistest.Lacks(t, "this server never ends writing such a reply, of a plain EVAL too")
	}
	for name, text := range replies {
		w := newGuard(t, rdb).Writer(name, 3).Once("id")
		for i := range 3 {
			cmd := w.Eval(t.Context(), "redis.call('INCR', KEYS[1]) "+text, []string{name})
			if err := cmd.Err(); i > 0 && (err == nil || !contains(err, "was done before") || errors.Is(err, redisguard.ErrUnknown)) {
				t.Errorf("%s: %v", name, err)
			}
			holds(t, rdb, name, "1")
			holds(t, rdb, "fencelock_guard:{"+name+"}", "3")
		}
	}
}

// An argument that cannot be sent is no write that may have happened.
func TestAnArgumentOfAnotherType(t *testing.T) {
	rdb, g := fresh(t)
	w := g.Writer(resource, 3)
	for _, cmd := range []*redis.Cmd{w.Do(t.Context(), "SET", key, struct{}{}), w.Eval(t.Context(), "return 1", nil, struct{}{})} {
		if err := cmd.Err(); err == nil || !contains(err, "marshal") || errors.Is(err, redisguard.ErrUnknown) {
			t.Errorf("%v", err)
		}
	}
	locktest.Equal(t, "keys", rdb.DBSize(t.Context()).Val(), int64(0))
}

// A server that runs no scripts is an error that says what to do.
func TestAServerWithoutScripts(t *testing.T) {
	for _, words := range []string{
		"ERR unknown command 'evalsha', with args beginning with: ", "ERR unknown command `evalsha`, with args beginning with: ", "unsupported command 'EVALSHA'", "ERR This instance has Lua scripting support disabled",
	} {
		redistest.Virtual(t, func(t *testing.T) {
			m, rdb := redistest.Pipe(t)
			locktest.NoError(t, rdb.Ping(t.Context()).Err())
			m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if cmd == "EVALSHA" {
					c.WriteError(words)
				}
				return cmd == "EVALSHA"
			})
			err := newGuard(t, rdb).Writer(resource, 1).Do(t.Context(), "SET", key, 1).Err()
			locktest.ErrorSays(t, err, words)
			locktest.ErrorSays(t, err, "a server, or a way past the proxy, that runs scripts")
		})
	}
}
