package scripts

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// What may go wrong with a batch, for each way in which it travels.

// ways are a batch, and a pipeline of single commands.
func ways(t *testing.T, run func(t *testing.T, single bool)) {
	t.Run("batch", func(t *testing.T) { run(t, false) })
	t.Run("pipeline", func(t *testing.T) { run(t, true) })
}

// scriptsOn are the scripts on rdb, which send a batch or, behind something that takes no several slots, a pipeline.
func scriptsOn(rdb redis.UniversalClient, single bool) *Scripts {
	s := New(rdb)
	s.single.Store(single)
	return s
}

// acquires3 are ops that work, on locks of their own.
func acquires3(t *testing.T) []Op {
	var ops []Op
	for range 3 {
		ops = append(ops, Acquire(newKeys(t), true, newField(), lease))
	}
	return ops
}

// mustHaveAll fails the test unless each hold has its lock, with the first token.
func mustHaveAll(t *testing.T, said []outcome, ops []Op) {
	t.Helper()
	for i, o := range said {
		if o.err != nil || o.Answer != (Answer{Held: true, Token: 1}) {
			t.Errorf("op %d, for %s, hears %+v", i, ops[i].keys.Lock, o)
		}
	}
}

func TestBatcher_ALostReplyLeavesAllUnknown(t *testing.T) {
	ways(t, func(t *testing.T, single bool) {
		addr := redistest.Start(t)
		load(t, redistest.Client(t, addr))
		proxy := redistest.NewProxy(t, addr)
		s := scriptsOn(redistest.Client(t, proxy.Addr()), single) // which repeats commands, but for ours (P13)
		came := &atomic.Int64{}
		is := redistest.Script(batched.sha)
		if single {
			is = redistest.Script(acquire.sha)
		}
		proxy.On("the reply is lost", redistest.Nth(1, is), redistest.SwallowReply)
		proxy.On("never", func(args []string) bool {
			if is(args) {
				came.Add(1)
			}
			return strings.EqualFold(args[0], "ping")
		}, redistest.Refuse("ERR no"))
		ops := acquires3(t)
		for i, o := range together(s, ops...) {
			if o.Answer != (Answer{}) {
				t.Errorf("op %d hears %+v", i, o)
			}
			judge(t, o.err, true, true)
		}
		s.rdb.Ping(t.Context())
		// None is repeated. What was written behind the first one may not have come, as the proxy closes the connection then.
		if most := map[bool]int64{false: 1, true: 3}[single]; came.Load() < 1 || came.Load() > most {
			t.Errorf("%d commands came, want 1 to %d", came.Load(), most)
		}
		mustHaveAll(t, together(s, ops...), ops) // they are repeated as they are (P2)
	})
}

func TestBatcher_AServerThatIsDownHasGotNothing(t *testing.T) {
	ways(t, func(t *testing.T, single bool) {
		server := redistest.Real(t)
		s := scriptsOn(server.Client(once), single)
		server.Kill()
		for i, o := range together(s, acquires3(t)...) {
			if o.Answer != (Answer{}) {
				t.Errorf("op %d hears %+v", i, o)
			}
			judge(t, o.err, false, true)
		}
	})
}

func TestBatcher_AClosedClientSendsNothing(t *testing.T) {
	ways(t, func(t *testing.T, single bool) {
		rdb := redistest.New(t)
		_ = rdb.Close()
		for _, o := range together(scriptsOn(rdb, single), acquires3(t)...) {
			judge(t, o.err, false, false)
		}
	})
}

func TestBatcher_AScriptFlushIsRiddenOut(t *testing.T) {
	ways(t, func(t *testing.T, single bool) {
		rdb := redistest.New(t)
		s := scriptsOn(rdb, single)
		g := newGate(t, rdb)
		for _, want := range []int{2, 1, 2} { // the server knows the scripts the second time
			if want == 2 {
				if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			ops := acquires3(t)
			mustHaveAll(t, together(s, ops...), ops)
			sizes := g.sizes()
			if len(sizes) != want || sizes[want-1] > len(ops) {
				t.Errorf("3 ops took batches of %v, want %d", sizes, want)
			}
		}
	})
}

// Only some scripts are unknown: the rest is not sent again.
func TestBatcher_APipelineRepeatsWhatTheServerDidNotKnow(t *testing.T) {
	rdb := redistest.New(t)
	s := scriptsOn(rdb, true)
	c, old, field := newCaller(t, rdb), newField(), newField()
	c.mustHold(old)
	g := newGate(t, rdb)
	rdb.ScriptFlush(t.Context())
	rdb.ScriptLoad(t.Context(), acquire.text)
	ops := acquires3(t)
	said := together(s, ops[0], Transfer(c.keys, true, field, lease, old), ops[1])
	mustHaveAll(t, []outcome{said[0], said[2]}, ops)
	if said[1].err != nil || said[1].Answer != (Answer{Held: true, Token: 2}) {
		t.Errorf("the transfer hears %+v", said[1])
	}
	if got := fmt.Sprint(g.seen()); got != "[[pipeline acquire transfer acquire] [pipeline transfer]]" {
		t.Errorf("the batches were %s", got)
	}
}

// A client that is no cluster client, on a server that takes no command for several slots: a proxy in front of a cluster.
func TestBatcher_CrossSlotGoesOnOpByOp(t *testing.T) {
	t.Parallel()
	rdb := oneMaster(t).Client()
	s := New(rdb)
	g := newGate(t, rdb)
	for i, want := range []string{
		"[[batch acquire acquire acquire] [pipeline acquire acquire acquire]]",
		"[[pipeline acquire acquire acquire]]", // it remembers
	} {
		ops := acquires3(t)
		mustHaveAll(t, together(s, ops...), ops)
		if got := fmt.Sprint(g.seen()); got != want {
			t.Errorf("batch %d: %s, want %s", i, got, want)
		}
	}
	// Each op's own outcome, in order.
	c, first, second := newCaller(t, rdb), newField(), newField()
	c.mustHold(first)
	bad := newKeys(t)
	rdb.Set(t.Context(), bad.Lock, "x", 0)
	said := together(s, Unlock(c.keys, first, false), Acquire(bad, true, newField(), lease), Acquire(c.keys, true, second, lease))
	if said[0].err != nil || !said[0].Held || said[2].err != nil || said[2].Answer != (Answer{Held: true, Token: 2}) {
		t.Errorf("the ops of a pipeline hear %+v", said)
	}
	judge(t, said[1].err, false, false)
	if !strings.Contains(said[1].err.Error(), "choose a name") {
		t.Errorf("the bad one hears %v", said[1].err)
	}
	holds := held(t, rdb, 2)
	s.Renew(t.Context(), holds) // knows it as well
	mustBeRenewed(t, rdb, holds)
}

// Something that is not Redis, or not these scripts.
func TestBatcher_AStrangeReplyIsNobodysAnswer(t *testing.T) {
	ways(t, func(t *testing.T, single bool) {
		rdb := redistest.New(t)
		sc := &batched
		if single {
			sc = &acquire
		}
		right := *sc
		t.Cleanup(func() { *sc = right })
		for _, reply := range []string{"{1, 1}", "{1, 1, 1, 1, 1, 1, 1, 1}", "1", "'OK'", "{}", "{1, {}, 1, 1, 1, 1}", "{'x', 1, 'x', 1, 'x', 1}", "{1}"} {
			*sc = newScript("return " + reply)
			for i, o := range together(scriptsOn(rdb, single), acquires3(t)...) {
				switch {
				case single && reply == "{1, 1}", !single && i > 0 && reply == "{1, {}, 1, 1, 1, 1}":
					if o.err != nil || !o.Held {
						t.Errorf("of %s op %d hears %+v", reply, i, o)
					}
				case o.Answer != (Answer{}):
					t.Errorf("of %s op %d hears %+v", reply, i, o)
				default:
					strange(t, reply, o.err)
				}
			}
		}
	})
}

// Each op of a batch that hangs has its own end: when go-redis gives up.
func TestBatcher_AFrozenServer(t *testing.T) {
	server := redistest.Real(t)
	load(t, server.Client())
	s := New(server.Client(once, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond }))
	mustHear(t, sendAcquires(t, s, 3)...)
	server.Freeze()
	all := sendAcquires(t, s, 200)
	for _, x := range all {
		judge(t, (<-x.heard).err, true, true)
	}
	server.Thaw()
	redistest.Eventually(t, 20*time.Second, func() bool { return (<-sendAcquires(t, s, 1)[0].heard).err == nil }, "the batcher goes on")
	for _, x := range all {
		if x.sending.Load() != 1 || len(x.heard) != 0 {
			t.Errorf("sent %d times, %d more answers", x.sending.Load(), len(x.heard))
		}
	}
	again := slices.Clone(all)
	for i, x := range all {
		again[i] = send(s, x.op)
	}
	mustHear(t, again...)
	for i, x := range again {
		if s := mustTake(t, s.rdb, x.op.keys); s.counter != "1" {
			t.Fatalf("the repeat of op %d left %v", i, s)
		}
	}
}
