package redisguard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// newCluster is two real servers with half of the slots each.
func newCluster(t *testing.T) (*redis.ClusterClient, []*redis.Client) {
	t.Helper()
	c := redistest.Clustered(t, 2, 0, "--cluster-node-timeout", "2000")
	return c.Client(), []*redis.Client{c.Nodes[0].Client(), c.Nodes[1].Client()}
}

func TestP16_Cluster(t *testing.T) {
	rdb, nodes := newCluster(t)
	ctx := t.Context()
	h := &counting{}
	rdb.AddHook(h)
	g := newGuard(t, rdb)

	// Everything works, on both nodes, also where they do not know the scripts.
	for i := range 20 {
		name := fmt.Sprint("account:", i)
		key := "balance:{" + name + "}"
		w := g.Writer(name, 3)
		for range 2 {
			locktest.NoError(t, w.Do(ctx, "SET", key, 1).Err())
			locktest.NoError(t, w.Once("id").Do(ctx, "INCRBY", key, 10).Err())
			locktest.NoError(t, w.Eval(ctx, increment, []string{key}).Err())
			locktest.NoError(t, w.Do(ctx, "PING").Err())
			locktest.NoError(t, w.Eval(ctx, "return 1", nil).Err())
		}
		if err := g.Writer(name, 2).Do(ctx, "SET", key, 1).Err(); err == nil {
			t.Error("a stale write is accepted")
		}
		seen, err := g.Seen(ctx, name)
		locktest.NoError(t, err)
		locktest.Equal(t, "seen", seen, int64(3))
	}
	for i, node := range nodes {
		if n := node.DBSize(ctx).Val(); n < 6 {
			t.Errorf("node %d has %d keys: this test shows nothing", i, n)
		}
	}

	// Which keys are checked before anything is sent, and that the error says what to do.
	w := g.Writer(resource, 3)
	for _, c := range []struct {
		fits bool
		args []any
	}{
		{true, []any{"SET", key, 1}}, {true, []any{"SET", "{account:42}:x", 1}}, {true, []any{"set", []byte(resource), 1}},
		{false, []any{"SET", "balance", 1}}, {false, []any{"set", []byte("balance"), 1}}, {false, []any{"GET", "balance:account:42"}},
		{true, []any{"DEL", key, resource}}, {false, []any{"DEL", key, "x", resource}}, {false, []any{"DEL", key, resource, "x"}},
		{true, []any{"MSET", key, "x", resource, "y"}}, {false, []any{"MSET", key, 1, "x", 2}},
		{true, []any{"HSET", "h{account:42}", "f", "v"}}, {true, []any{"XADD", "s{account:42}", "*", "f", "v"}},
		{true, []any{"XGROUP", "CREATE", "s{account:42}", "g", "$"}}, {false, []any{"XGROUP", "CREATE", "s", "g", "$"}},
		{true, []any{"ZUNIONSTORE", "z{account:42}", 2, "y{account:42}", "x{account:42}"}}, {false, []any{"ZUNIONSTORE", "z{account:42}", 2, "y{account:42}", "x"}},
		{true, []any{"SORT", "l{account:42}"}}, {false, []any{"SORT", "l"}}, {true, []any{"PUBLISH", "channel", "x"}}, {true, []any{"OBJECT", "HELP"}},
		{false, []any{"OBJECT", "ENCODING", "x"}}, {true, []any{"xinfo", "stream", "s{account:42}"}}, {true, []any{"GET", ptr(key)}}, {false, []any{"GET", ptr("x")}},
		{true, []any{"COPY", key, "c{account:42}"}}, {false, []any{"COPY", key, "c"}}, {true, []any{"ECHO", "x"}},
	} {
		h.sent.Store(0)
		err := w.Do(ctx, c.args...).Err()
		if c.fits && err != nil && err != redis.Nil {
			t.Errorf("%q: %v", c.args, err)
		}
		if !c.fits && (err == nil || h.sent.Load() != 0 || !contains(err, "{account:42}") || errors.Is(err, redisguard.ErrUnknown)) {
			t.Errorf("%q: %v, after %d commands", c.args, err, h.sent.Load())
		}
	}
	never(t, w.Eval(ctx, increment, []string{key, "x"}).Err())
	never(t, w.Do(ctx, "NOPE", "x").Err())
	if err := w.Do(ctx, "INCR", "h{account:42}").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v", err)
	}
	locktest.Equal(t, "marker", rdb.Get(ctx, marker).Val(), "3")

	// Names that no other key can share a slot with.
	for _, name := range []string{"a{b", "a{}b", "{}", "a}b", "}x", "{"} {
		h.sent.Store(0)
		for _, err := range []error{g.Writer(name, 1).Do(ctx, "SET", name, 1).Err(), g.Writer(name, 1).Eval(ctx, "return 1", nil).Err(), g.Writer(name, 1).Do(ctx, "PING").Err()} {
			if err == nil || !contains(err, "braces") || h.sent.Load() != 0 {
				t.Errorf("%q: %v, after %d commands", name, err, h.sent.Load())
			}
		}
	}
	for _, name := range []string{"{a}b", "a{b}c", "{a}{b}", "a{b}c}", "{{a}}"} {
		w := g.Writer(name, 1).Once("}{x}")
		locktest.NoError(t, w.Do(ctx, "SET", "x"+name, 1).Err())
		locktest.NoError(t, w.Do(ctx, "SET", "x"+name, 1).Err())
	}
}

func ptr(s string) *string { return &s }

// The server is asked once where the commands have their keys, and about each use only of those that have them at changing
// places.
func TestP16_QuestionsForKeys(t *testing.T) {
	rdb := clusterOf(t, redistest.Real(t).Addr())
	questions := &counting{what: "command"}
	rdb.AddHook(questions)
	w := newGuard(t, rdb).Writer(resource, 3)
	ctx := t.Context()
	set(t, w, 1)
	locktest.Equal(t, "questions", questions.sent.Load(), int64(1))
	for _, c := range []struct {
		each int64
		args []any
	}{
		{0, []any{"GET", key}}, {0, []any{"PUBLISH", "channel", 1}}, {0, []any{"PING"}}, {0, []any{"XADD", "s{account:42}", "*", "f", "v"}},
		{0, []any{"XINFO", "STREAM", "s{account:42}"}}, {0, []any{"OBJECT", "ENCODING", key}}, {0, []any{"NOPE", "x"}}, {0, []any{"XINFO", "NOPE"}},
		{1, []any{"XREAD", "STREAMS", "s{account:42}", "0"}}, {1, []any{"SORT", "l{account:42}"}},
	} {
		before := questions.sent.Load()
		for range 3 {
			if err := w.Do(ctx, c.args...).Err(); err != nil && c.args[0] != "NOPE" && c.args[1] != "NOPE" {
				t.Errorf("%q: %v", c.args, err)
			}
		}
		locktest.Equal(t, fmt.Sprint("questions for ", c.args), questions.sent.Load()-before, 3*c.each)
	}
}

// A slot that moves: the client follows.
func TestP16_ASlotThatMoves(t *testing.T) {
	rdb, nodes := newCluster(t)
	ctx := t.Context()
	g := newGuard(t, rdb)
	w := g.Writer(resource, 3)
	add := func(want int) {
		t.Helper()
		n, err := w.Do(ctx, "INCR", key).Int()
		locktest.NoError(t, err)
		locktest.Equal(t, "value", n, want)
	}
	add(1)
	slot := rdb.ClusterKeySlot(ctx, marker).Val()
	from, to := nodes[slot/8192], nodes[1-slot/8192]
	id := func(node *redis.Client) string { return node.Do(ctx, "cluster", "myid").Val().(string) }
	locktest.NoError(t, to.Do(ctx, "cluster", "setslot", slot, "importing", id(from)).Err())
	locktest.NoError(t, from.Do(ctx, "cluster", "setslot", slot, "migrating", id(to)).Err())
	move := func(key string) {
		t.Helper()
		host, port, err := net.SplitHostPort(to.Options().Addr)
		locktest.NoError(t, err)
		locktest.NoError(t, from.Migrate(ctx, host, port, key, 0, 5*time.Second).Err())
	}
	add(2)
	move(marker)
	never(t, w.Do(ctx, "INCR", key).Err()) // TRYAGAIN: the marker is there, the key is here
	never(t, g.Writer(resource, 1).Do(ctx, "INCR", key).Err())
	move(key)
	add(3) // ASK
	isStale(t, g.Writer(resource, 1).Do(ctx, "INCR", key).Err(), 1, 3)
	for _, node := range []*redis.Client{to, from} {
		locktest.NoError(t, node.Do(ctx, "cluster", "setslot", slot, "node", id(to)).Err())
	}
	add(4) // MOVED
	isStale(t, g.Writer(resource, 1).Do(ctx, "INCR", key).Err(), 1, 3)
}

// clusterOf is a cluster client whose one node has all slots.
func clusterOf(t *testing.T, addr string) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}, nil
	}})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Nobody waits for somebody else's question, which has another context.
func TestASlowQuestionForTheCommands(t *testing.T) {
	rdb := clusterOf(t, redistest.Real(t).Addr())
	q := &asking{asked: make(chan struct{}), answer: make(chan struct{})}
	rdb.AddHook(q)
	g := newGuard(t, rdb)
	slow := make(chan error, 1)
	go func() { slow <- g.Writer(resource, 3).Do(context.Background(), "INCR", key).Err() }()
	<-q.asked
	fast := make(chan error, 1)
	go func() { fast <- g.Writer(resource, 3).Do(t.Context(), "INCR", key).Err() }()
	locktest.NoError(t, redistest.Await(t, 20*time.Second, fast, "it does not wait for another one's question"))
	close(q.answer)
	locktest.NoError(t, <-slow)
	locktest.Equal(t, "value", rdb.Get(t.Context(), key).Val(), "2")
}

// A context that ends while the server is asked for the keys ends the call before anything is written.
func TestAContextThatEndsAtTheQuestion(t *testing.T) {
	rdb := clusterOf(t, redistest.Real(t).Addr())
	ctx, cancel := context.WithCancel(t.Context())
	rdb.AddHook(&asking{then: cancel})
	sent := &counting{}
	rdb.AddHook(sent)
	err := newGuard(t, rdb).Writer(resource, 3).Do(ctx, "INCR", key).Err()
	never(t, err)
	locktest.IsError(t, err, context.Canceled)
	locktest.Equal(t, "scripts sent", sent.sent.Load(), int64(0))
}

// asking holds back the first question for the commands until answer is closed, and calls then after each.
type asking struct {
	noHook
	begun         atomic.Bool
	asked, answer chan struct{}
	then          func()
}

func (q *asking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "command" {
			return next(ctx, cmd)
		}
		if q.asked != nil && !q.begun.Swap(true) {
			close(q.asked)
			<-q.answer
		}
		err := next(ctx, cmd)
		if q.then != nil {
			q.then()
		}
		return err
	}
}

// counting counts the scripts that a client sends, or the commands whose name begins with what.
type counting struct {
	noHook
	what string
	sent atomic.Int64
}

func (h *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), cmp.Or(h.what, "eval")) {
			h.sent.Add(1)
		}
		return next(ctx, cmd)
	}
}
