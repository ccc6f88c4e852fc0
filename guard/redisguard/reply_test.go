package redisguard_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// asPlain fails the test unless the guarded command says what the plain one says, on the same data; and what its repeat
// by Once says. The keys "{a}" of the plain one are "{b}" of the guarded.
func asPlain(t *testing.T, name string, plain *redis.Cmd, guarded func(redisguard.Writer) *redis.Cmd, w redisguard.Writer) {
	t.Helper()
	want, wantErr := plain.Result()
	for i, w := range []redisguard.Writer{w.Once("id " + name), w.Once("id " + name), w.Once("id " + name)} {
		got := guarded(w)
		if fmt.Sprintf("%#v", got.Val()) != fmt.Sprintf("%#v", want) || got.Err() != wantErr {
			t.Errorf("%s, time %d: %#v, %v, want %#v, %v", name, i+1, got.Val(), got.Err(), want, wantErr)
		}
		if got.String() == "" || got.Name() != plain.Name() {
			t.Errorf("%s: the command calls itself %q, want %q", name, got.Name(), plain.Name())
		}
	}
}

// Replies of commands are those of rdb.Do, and a repeat by Once has the same again.
func TestReplies_Commands(t *testing.T) {
	addr := redistest.Start(t)
	for _, protocol := range []int{2, 3} {
		rdb := redistest.Client(t, addr, func(o *redis.Options) { o.Protocol = protocol })
		locktest.NoError(t, rdb.FlushAll(t.Context()).Err())
		w := newGuard(t, rdb).Writer("b", 1)
		binary := "\x00\r\n\xff;ä"
		for i, args := range [][]any{
			{"SET", "K", 1}, {"SET", "K", 2, "GET"}, {"GET", "K"}, {"GET", "none"}, {"SET", "K", 1, "NX"}, {"INCRBY", "K", 10}, {"DECRBY", "K", 100},
			{"incr", "K"}, {"INCRBY", "K", int64(1) << 52}, {"APPEND", "K", binary}, {"GET", "K"}, {"EXISTS", "K"}, {"DEL", "K"}, {"DEL", "K"},
			{"SET", "K", []byte(binary)}, {"GET", "K"}, {"SET", "K", ""}, {"GET", "K"}, {"DEL", "K"},
			{"HSET", "H", "f", "v", "g", 2.5}, {"HGET", "H", "f"}, {"HGET", "H", "none"}, {"HMGET", "H", "none", "f", "none"}, {"HINCRBYFLOAT", "H", "g", 0.25},
			{"RPUSH", "L", "a", "b", ""}, {"LRANGE", "L", 0, -1}, {"LRANGE", "L", 9, 10}, {"LPOP", "L"}, {"LPOP", "none"},
			{"SADD", "S", "x"}, {"SMEMBERS", "S"}, {"ZADD", "Z", 1.5, "m"},
			{"XADD", "X", "1-1", "f", "v"}, {"XRANGE", "X", "-", "+"},
			{"MSET", "K", 1, "L2", 2}, {"MGET", "K", "none", "L2", "none"}, {"EXPIRE", "K", 100}, {"PERSIST", "K"}, {"TYPE", "K"}, {"PING"},
		} {
			if protocol == 3 && fmt.Sprint(args[0]) == "SMEMBERS" {
				continue // a set arrives as a list
			}
			line := func(tag string) []any {
				var line []any
				for _, arg := range args {
					if name, ok := arg.(string); ok && (len(name) == 1 && name >= "A" && name <= "Z" || name == "L2" || name == "none") {
						arg = name + "{" + tag + "}"
					}
					line = append(line, arg)
				}
				return line
			}
			asPlain(t, fmt.Sprintf("RESP%d %d %v", protocol, i, args), rdb.Do(t.Context(), line("a")...),
				func(w redisguard.Writer) *redis.Cmd { return w.Do(t.Context(), line("b")...) }, w)
		}
	}
}

// Replies of scripts are those of rdb.Eval, with KEYS and ARGV as they know them, and a repeat has the same again.
func TestReplies_Scripts(t *testing.T) {
	rdb, g := fresh(t)
	for _, text := range []string{
		"return 1", "return -1", "return 0", "return 3.7", "return -3.7", "return 9007199254740991", "return 100000000000000000", "return true", "return false", "return nil", "",
		"return 'x;y'", "return ''", "return '\\0\\r\\n\\255'", "return {}", "return {1, false, 'x', {ok = 'y'}, {true, {2}}, {}, '', nil, 5}",
		"return redis.status_reply('FINE')", "return {ok = 'FINE'}", "return {KEYS[1], KEYS[2], KEYS[3] or 'none', ARGV[1], ARGV[2] or 'none', #KEYS, #ARGV}",
		"return redis.call('SET', KEYS[1], ARGV[1])", "return redis.call('GET', 'none')", "return 1 -- the end", "local function f() return ARGV[1] .. KEYS[2] end return f()",
		"for i, k in ipairs(KEYS) do if i == 2 then return k end end", "if ARGV[1] == 'a' then return redis.call('MGET', 'none', KEYS[1]) end",
	} {
		keys := []string{"k{b}", "l{b}"}
		asPlain(t, text, rdb.Eval(t.Context(), text, keys, "a"),
			func(w redisguard.Writer) *redis.Cmd { return w.Eval(t.Context(), text, keys, "a") }, g.Writer("b", 1))
	}
	// Without keys and arguments.
	asPlain(t, "none", rdb.Eval(t.Context(), "return {#KEYS, #ARGV}", nil),
		func(w redisguard.Writer) *redis.Cmd { return w.Eval(t.Context(), "return {#KEYS, #ARGV}", nil) }, g.Writer("b", 1))
}

// An error of a script names the line of the script.
func TestReplies_Lines(t *testing.T) {
	_, g := fresh(t)
	err := g.Writer("b", 1).Eval(t.Context(), "local a = 1\n\nerror('boo')", nil).Err()
	if err == nil || !contains(err, ":3: boo") {
		t.Errorf("%v", err)
	}
}

// Once: an operation is done once for its id, whoever asks, and those of other ids and resources are others.
func TestOnce(t *testing.T) {
	rdb, g := fresh(t, redisguard.WithOnceMemory(time.Hour))
	ctx := t.Context()
	deposit := func(resource string, token int64, id string) (int64, error) {
		return g.Writer(resource, token).Once(id).Do(ctx, "INCRBY", key, 10).Int64()
	}
	expect := func(resource string, token int64, id string, want int64) {
		t.Helper()
		got, err := deposit(resource, token, id)
		locktest.NoError(t, err)
		locktest.Equal(t, "balance", got, want)
	}
	expect(resource, 5, "a", 10)
	expect(resource, 5, "a", 10)
	expect(resource, 5, "b", 20)
	expect(resource, 7, "c", 30)
	expect(resource, 9, "a", 10) // a later holder takes over the job
	expect(resource, 5, "b", 20) // a holder that was overtaken learns what happened
	_, err := deposit(resource, 5, "d")
	isStale(t, err, 5, 7)
	holds(t, rdb, key, "30")
	holds(t, rdb, marker, "7") // a repeat is no write
	expect(resource, 7, "d", 40)

	// Names that look alike.
	for i, pair := range [][2]string{{"x", "1:y"}, {"x:1", "y"}, {"x}:1", "y"}, {"x", "1}:y"}, {"{x}:1", "y"}, {"a:3", "b"}, {"a", "3:b"}, {"2", "a"}} {
		expect(pair[0], 1, pair[1], int64(50+10*i))
	}
	locktest.Equal(t, "life", rdb.PTTL(ctx, "fencelock_once:12:{account:42}:a").Val() > 59*time.Minute, true)

	// One resource by two names, with one marker, has one set of ids.
	expect("{x}", 1, "1:y", 50)

	// A write that failed leaves the id free, and what is forgotten is done again.
	w := g.Writer(resource, 7).Once("e")
	if err := w.Do(ctx, "HINCRBY", key, "f", 1).Err(); err == nil {
		t.Fatal("no error")
	}
	expect(resource, 7, "e", 130)
	locktest.NoError(t, rdb.Del(ctx, "fencelock_once:12:{account:42}:e").Err())
	expect(resource, 7, "e", 140)

	// Somebody else's value is no reply, and not an operation that may be done.
	for _, spoilt := range []string{"", "x", "i", "i1", "ix;", "s9;abc", "s-1;", "a2;i1;", "i1;i1;", "a99999999999;", ";", "z1;"} {
		locktest.NoError(t, rdb.Set(ctx, "fencelock_once:12:{account:42}:f", spoilt, 0).Err())
		if got, err := deposit(resource, 7, "f"); err == nil || !contains(err, "was done before") {
			t.Errorf("%q is read as %v, %v", spoilt, got, err)
		}
	}
	locktest.NoError(t, rdb.Del(ctx, "fencelock_once:12:{account:42}:f").Err())
	locktest.NoError(t, rdb.RPush(ctx, "fencelock_once:12:{account:42}:f", 1).Err())
	if _, err := deposit(resource, 7, "f"); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v", err)
	}
	holds(t, rdb, key, "140")
}
