package redisguard_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv4: an accepted token is at least the largest before it, to the last digit.
func TestInv4_TheRule(t *testing.T) {
	for _, pair := range [][2]int64{
		{1, 2}, {9, 10}, {19, 20}, {99, 100}, {199, 200}, {1<<53 - 1, 1 << 53}, {1 << 53, 1<<53 + 1}, {1<<62 + 1, 1<<62 + 2},
		{999999999999999999, 1000000000000000000}, {math.MaxInt64 - 1, math.MaxInt64},
	} {
		t.Run(fmt.Sprint(pair[1]), func(t *testing.T) {
			rdb, g := fresh(t)
			older, newer := g.Writer(resource, pair[0]), g.Writer(resource, pair[1])
			seen, err := g.Seen(t.Context(), resource)
			locktest.NoError(t, err)
			locktest.Equal(t, "seen before", seen, int64(0))
			for range 2 { // a hold may write many times
				set(t, older, "older")
			}
			for range 2 {
				set(t, newer, "newer")
			}
			for _, cmd := range []*redis.Cmd{
				older.Do(t.Context(), "SET", key, "stale"),
				older.Do(t.Context(), "GET", key), // a read is shown the token too
				older.Eval(t.Context(), "return redis.call('SET', KEYS[1], ARGV[1])", []string{key}, "stale"),
				older.Once("id").Do(t.Context(), "SET", key, "stale"),
			} {
				isStale(t, cmd.Err(), pair[0], pair[1])
				if cmd.Val() != nil || errors.Is(cmd.Err(), redisguard.ErrUnknown) {
					t.Errorf("a refusal says %v, %v", cmd.Val(), cmd.Err())
				}
			}
			holds(t, rdb, key, "newer")
			holds(t, rdb, marker, fmt.Sprint(pair[1]))
			set(t, newer, "again")
			seen, err = g.Seen(t.Context(), resource)
			locktest.NoError(t, err)
			locktest.Equal(t, "seen", seen, pair[1])
			locktest.Equal(t, "keys", rdb.DBSize(t.Context()).Val(), int64(2))
		})
	}
}

// The marker has a name that others can rely on, and the resource's hash tag.
func TestMarker(t *testing.T) {
	rdb, g := fresh(t)
	for name, marker := range map[string]string{
		"a": "fencelock_guard:{a}", "a b": "fencelock_guard:{a b}", "{a}b": "fencelock_guard:{a}b", "a{b}c": "fencelock_guard:a{b}c",
		"a}b": "fencelock_guard:{a}b}", "a{b": "fencelock_guard:a{b", "{}": "fencelock_guard:{}", "\x00\xff": "fencelock_guard:{\x00\xff}",
	} {
		locktest.NoError(t, g.Writer(name, 7).Do(t.Context(), "PING").Err())
		holds(t, rdb, marker, "7")
		locktest.IsError(t, g.Writer(name, 6).Do(t.Context(), "PING").Err(), guard.ErrStale)
	}
	locktest.Equal(t, "keys", rdb.DBSize(t.Context()).Val(), int64(8))
}

// A marker that no guard has written is an error, nothing is written, and it stays what it is.
func TestASpoiltMarker(t *testing.T) {
	rdb, g := fresh(t)
	ctx := t.Context()
	for _, value := range []string{"", "x", "0", "-1", "1.5", "007", " 7", "7\n", "1e3", "9223372036854775808", strings.Repeat("1", 40), "list"} {
		locktest.NoError(t, rdb.Del(ctx, marker).Err())
		if value == "list" {
			locktest.NoError(t, rdb.RPush(ctx, marker, 7).Err())
		} else {
			locktest.NoError(t, rdb.Set(ctx, marker, value, time.Hour).Err())
		}
		before := stateOf(t, rdb, marker)
		for _, token := range []int64{1, math.MaxInt64} {
			err := g.Writer(resource, token).Do(ctx, "SET", key, "x").Err()
			if err == nil || errors.Is(err, guard.ErrStale) || errors.Is(err, redisguard.ErrUnknown) || !strings.Contains(err.Error(), marker) {
				t.Errorf("marker %q: %v", value, err)
			}
		}
		locktest.Equal(t, "marker", stateAfter(t, rdb, marker, before), before)
		holds(t, rdb, key, "")
		if _, err := g.Seen(ctx, resource); err == nil && value != "0" && value != "-1" && value != "007" {
			t.Errorf("marker %q: Seen has no error", value)
		}
	}
}

// Inv4: a command or script that fails may have written half, so that its token counts: an older one does not get in
// behind it. Its id is free. One that was never run leaves the marker as it was.
func TestInv4_AFailureCounts(t *testing.T) {
	rdb := redistest.New(t)
	ctx := t.Context()
	locktest.NoError(t, rdb.HSet(ctx, "hash", "f", "v").Err())
	do := func(args ...any) func(redisguard.Writer) *redis.Cmd {
		return func(w redisguard.Writer) *redis.Cmd { return w.Do(ctx, args...) }
	}
	eval := func(text string) func(redisguard.Writer) *redis.Cmd {
		return func(w redisguard.Writer) *redis.Cmd { return w.Eval(ctx, text, []string{"hash"}, "a") }
	}
	failures := []struct {
		name, says string
		op         func(redisguard.Writer) *redis.Cmd
	}{
		{"wrong type", "WRONGTYPE", do("INCRBY", "hash", 1)},
		{"wrong type of what is set", "not an integer", do("HINCRBY", "hash", "f", 1)},
		{"unknown command", "nknown", do("NOPE", "hash")},
		{"empty command", "nknown", do("")},
		{"too few arguments", "rong number of arg", do("SET", "hash")},
		{"not allowed in a script", "not allowed", do("SUBSCRIBE", "c")},
		{"not allowed in a script, MULTI", "not allowed", do("MULTI")},
		{"a script in a script", "not allowed", do("EVAL", "return 1", 0)},
		{"raised by a command of the script", "WRONGTYPE", eval("return redis.call('INCR', KEYS[1])")},
		{"returned by a command of the script", "WRONGTYPE", eval("return redis.pcall('INCR', KEYS[1])")},
		{"returned by the script", "MINE because", eval("return redis.error_reply('MINE because')")},
		{"raised by the script", "boo", eval("error('boo')")},
		{"raised by the script, a table", "", eval("error({})")},
		{"Lua's own", "index", eval("local t; return t.x")},
		{"a global of the script", "", eval("x = 1")},
		{"no Lua", "ompil", eval("return return")},
	}
	for _, expiry := range [][]redisguard.Option{nil, {redisguard.WithExpiry(time.Hour)}} {
		g := newGuard(t, rdb, expiry...)
		for name, prepare := range map[string]func(){
			"no marker":                func() {},
			"marker":                   func() { locktest.NoError(t, rdb.Set(ctx, marker, 5, 0).Err()) },
			"marker with expiry":       func() { locktest.NoError(t, rdb.Set(ctx, marker, 5, 12345678*time.Millisecond).Err()) },
			"the same token's, expiry": func() { locktest.NoError(t, rdb.Set(ctx, marker, 7, 12345678*time.Millisecond).Err()) },
		} {
			for _, f := range failures {
				for _, w := range []redisguard.Writer{g.Writer(resource, 7), g.Writer(resource, 7).Once("id")} {
					locktest.NoError(t, rdb.Del(ctx, marker).Err())
					prepare()
					before := stateOf(t, rdb, marker)
					cmd := f.op(w)
					err := cmd.Err()
					var said redis.Error
					if err == nil || !strings.Contains(err.Error(), f.says) || !strings.Contains(err.Error(), resource) || !errors.As(err, &said) ||
						errors.Is(err, guard.ErrStale) || errors.Is(err, redisguard.ErrUnknown) || cmd.Val() != nil {
						t.Fatalf("%s, %s: %v, %v", f.name, name, cmd.Val(), err)
					}
					after, want := stateAfter(t, rdb, marker, before), before
					if f.name != "no Lua" {
						after = stateOf(t, rdb, marker)
						want = state{"string 7", -1}
						if len(expiry) > 0 {
							want.expires = after.expires // TestExpiry
						}
						isStale(t, g.Writer(resource, 6).Do(ctx, "GET", key).Err(), 6, 7)
					}
					if after != want {
						t.Fatalf("%s, %s: the marker was %+v, and is %+v", f.name, name, before, after)
					}
					if n := rdb.Exists(ctx, "fencelock_once:12:{account:42}:id").Val(); n != 0 {
						t.Fatalf("%s, %s: the id is remembered", f.name, name)
					}
				}
			}
		}
	}
	if err := newGuard(t, rdb).Writer(resource, 8).Do(ctx, "INCR", "hash").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("go-redis does not find the code of %v", err)
	}
}

// The life of the marker: for ever, or from the last accepted write on.
func TestExpiry(t *testing.T) {
	rdb := redistest.New(t)
	ctx := t.Context()
	set(t, newGuard(t, rdb).Writer(resource, 1), 1)
	locktest.Equal(t, "expiry", stateOf(t, rdb, marker).expires, int64(-1))
	short := newGuard(t, rdb, redisguard.WithExpiry(time.Hour))
	lives := func(least, most time.Duration) {
		t.Helper()
		if ttl := rdb.PTTL(ctx, marker).Val(); ttl < least || ttl > most {
			t.Fatalf("the marker lives for %v, want %v to %v", ttl, least, most)
		}
	}
	set(t, short.Writer(resource, 2), 1)
	lives(59*time.Minute, time.Hour)
	locktest.NoError(t, rdb.PExpire(ctx, marker, time.Minute).Err())
	isStale(t, short.Writer(resource, 1).Do(ctx, "GET", key).Err(), 1, 2) // is no write
	lives(0, time.Minute)
	set(t, short.Writer(resource, 2), 1)
	lives(59*time.Minute, time.Hour)
	set(t, newGuard(t, rdb).Writer(resource, 2), 1)
	locktest.Equal(t, "expiry", stateOf(t, rdb, marker).expires, int64(-1))

	// What WithExpiry risks, as its doc says.
	locktest.NoError(t, rdb.Do(ctx, "pexpireat", marker, 1).Err())
	set(t, short.Writer(resource, 1), "old")
}

func TestBadArguments(t *testing.T) {
	rdb := redistest.New(t)
	locktest.NoError(t, rdb.Close()) // whoever asks says so
	for _, c := range []struct {
		says string
		opt  redisguard.Option
	}{
		{"WithExpiry", redisguard.WithExpiry(0)}, {"WithExpiry", redisguard.WithExpiry(-1)}, {"WithExpiry", redisguard.WithExpiry(time.Millisecond)},
		{"WithExpiry", redisguard.WithExpiry(101 * 365 * 24 * time.Hour)},
		{"WithOnceMemory", redisguard.WithOnceMemory(0)}, {"WithOnceMemory", redisguard.WithOnceMemory(-time.Hour)},
		{"WithOnceMemory", redisguard.WithOnceMemory(101 * 365 * 24 * time.Hour)},
	} {
		if g, err := redisguard.New(rdb, c.opt); g != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
	if _, err := redisguard.New(nil); err == nil {
		t.Error("no client is no error")
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": rdb.Options().Addr}})
	t.Cleanup(func() { _ = ring.Close() })
	if g, err := redisguard.New(ring); g != nil || err == nil || !contains(err, "Ring") {
		t.Errorf("a Ring: %v", err)
	}
	g := newGuard(t, rdb, nil)
	for _, w := range []redisguard.Writer{g.Writer("", 1), g.Writer("", 1).Once("id")} {
		for _, err := range []error{w.Do(t.Context(), "GET", key).Err(), w.Eval(t.Context(), "return 1", nil).Err()} {
			if err == nil || !contains(err, "name the resource") {
				t.Errorf("no resource: %v", err)
			}
		}
	}
	for _, token := range []int64{0, -1, math.MinInt64} {
		locktest.IsError(t, g.Writer(resource, token).Do(t.Context(), "GET", key).Err(), guard.ErrToken)
		locktest.IsError(t, g.Writer(resource, token).Eval(t.Context(), "return 1", nil).Err(), guard.ErrToken)
	}
	w := g.Writer(resource, 1)
	many := make([]any, 7001)
	many[0] = "DEL"
	for says, err := range map[string]error{
		"name a command": w.Do(t.Context()).Err(),
		"too many":       w.Do(t.Context(), many...).Err(),
		"needs an id":    w.Once("").Do(t.Context(), "GET", key).Err(),
		"select of":      w.Do(t.Context(), "select", 1).Err(),
		"SwapDB of":      w.Do(t.Context(), []byte("SwapDB"), 0, 1).Err(),
		"FLUSHDB of":     w.Do(t.Context(), "FLUSHDB").Err(),
		"flushall of":    w.Once("id").Do(t.Context(), "flushall", "async").Err(),
		"#!":             w.Eval(t.Context(), "#!lua\nreturn 1", nil).Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), resource) || errors.Is(err, redisguard.ErrUnknown) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// As many arguments as Do lets through. (The stack of miniredis is smaller.)
func TestManyArguments(t *testing.T) {
	w := newGuard(t, redistest.Real(t).Client()).Writer(resource, 1)
	args := []any{"RPUSH", key}
	for i := range 6998 {
		args = append(args, i)
	}
	n, err := w.Do(t.Context(), args...).Int()
	locktest.NoError(t, err)
	locktest.Equal(t, "length", n, 6998)
	n, err = w.Eval(t.Context(), "return #KEYS + #ARGV", make([]string, 9000), make([]any, 9000)...).Int()
	locktest.NoError(t, err)
	locktest.Equal(t, "keys and arguments", n, 18000)
}
