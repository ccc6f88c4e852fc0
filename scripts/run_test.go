package scripts

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// counting is a hook that counts the scripts that a client sends, and answers some itself.
type counting struct {
	sent   atomic.Int64           // by themselves
	piped  atomic.Int64           // in pipelines,
	pipes  atomic.Int64           // of which there were so many
	refuse func(args []any) error // nil for none
}

func (h *counting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *counting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name != "evalsha" && name != "eval" {
			return next(ctx, cmd)
		}
		h.sent.Add(1)
		if h.refuse != nil {
			if err := h.refuse(cmd.Args()); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (h *counting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		n := int64(0)
		for _, cmd := range cmds {
			if name := cmd.Name(); name == "evalsha" || name == "eval" {
				n++
			}
		}
		h.pipes.Add(min(n, 1))
		h.piped.Add(n)
		return next(ctx, cmds)
	}
}

func TestRun_AScriptFlushIsRiddenOut(t *testing.T) {
	rdb := redistest.New(t)
	c, field := newCaller(t, rdb), newField()
	flushed := func() caller {
		t.Helper()
		if err := rdb.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 {
		token := flushed().acquire(field, lease).Token
		if a := flushed().acquire(field, lease); a.Token != token {
			t.Errorf("a repeat says %+v, the first had token %d", a, token)
		}
		if a := flushed().level(field, lease, 2, 1); a.Token != token+1 {
			t.Errorf("level says %+v", a)
		}
		if err := flushed().renew(field, time.Hour); err != nil {
			t.Errorf("renew says %v", err)
		}
		if s := flushed().inspect(field); s.Count != 2 || s.Field != field || s.TTL < 30*time.Minute {
			t.Errorf("inspect says %+v", s)
		}
		old := field
		field = newField()
		if a := flushed().transfer(old, field, lease); a.Token != token+2 {
			t.Errorf("transfer says %+v", a)
		}
		if a := flushed().do(Acquire(c.keys, true, newField(), lease).InTurn(Turn{Ticket: "a:1"})); a.Before != 0 || a.Score == 0 {
			t.Errorf("an acquire in turn says %+v", a)
		}
		flushed().do(Leave(c.keys, "a:1", false))
		if a := flushed().do(Unlock(c.keys, field, false).Calling("", 0)); !a.Held {
			t.Errorf("a release that calls says %+v", a)
		}
		c.mustHold(field)
		if !flushed().unlock(field) {
			t.Error("unlock says that the hold was not there")
		}
	}

	// A known script is one command.
	h := &counting{}
	rdb.AddHook(h)
	c.acquire(field, lease)
	c.acquire(field, lease)
	if h.sent.Store(0); c.acquire(field, lease).Held && h.sent.Load() != 1 {
		t.Errorf("a known script took %d commands", h.sent.Load())
	}
}

// P13: go-redis repeats a command silently after a broken connection. Then the lease is counted from the wrong moment,
// and a command whose outcome nobody knows looks answered.
func TestP13_AScriptIsSentOnce(t *testing.T) {
	addr := redistest.Start(t)
	direct := redistest.Client(t, addr)
	// attempts counts how often acquire.lua comes through, while the first reply is lost.
	attempts := func(t *testing.T, ask func(c caller, field string) error) (n int64, err error) {
		proxy := redistest.NewProxy(t, addr)
		c := newCaller(t, redistest.Client(t, proxy.Addr()))
		if err := direct.ScriptLoad(t.Context(), acquire.text).Err(); err != nil {
			t.Fatal(err)
		}
		h := &atomic.Int64{}
		seen := redistest.Script(acquire.sha)
		lost := proxy.On("the reply to acquire is lost", redistest.Nth(1, seen), redistest.SwallowReply)
		proxy.On("never", func(args []string) bool { // counts what comes; fires on PING at the end
			if seen(args) {
				h.Add(1)
			}
			return strings.EqualFold(args[0], "ping")
		}, redistest.Refuse("ERR no"))
		err = ask(c, newField())
		<-lost.Fired()
		c.rdb.Ping(t.Context())
		if s := mustTake(t, direct, c.keys); s.counter != "1" || len(s.hash) != 1 {
			t.Errorf("the attempts left %v", s)
		}
		return h.Load(), err
	}
	t.Run("naive: a plain command", func(t *testing.T) {
		n, err := attempts(t, func(c caller, field string) error {
			return c.rdb.EvalSha(t.Context(), acquire.sha, c.lockAndCounter(), lease.Milliseconds(), field).Err()
		})
		if err != nil || n < 2 {
			t.Fatalf("%d attempts, %v: this test no longer shows why", n, err)
		}
	})
	t.Run("ours", func(t *testing.T) {
		n, err := attempts(t, func(c caller, field string) error {
			_, err := c.Do(t.Context(), Acquire(c.keys, true, field, lease))
			return err
		})
		if err == nil || n != 1 || !Unanswered(err) || !Passing(err) {
			t.Errorf("%d attempts, %v", n, err)
		}
	})
}

// held returns n holds of locks in different slots, each with a lease of a minute.
func held(t testing.TB, rdb redis.UniversalClient, n int) []Renewal {
	t.Helper()
	holds := make([]Renewal, n)
	for i := range holds {
		holds[i] = Renewal{Keys: newKeys(t), Field: newField(), Lease: time.Hour}
		if _, err := New(rdb).Do(t.Context(), Acquire(holds[i].Keys, true, holds[i].Field, lease)); err != nil {
			t.Fatal(err)
		}
	}
	return holds
}

func mustBeRenewed(t *testing.T, rdb redis.UniversalClient, holds []Renewal) {
	t.Helper()
	for _, h := range holds {
		if s := mustTake(t, rdb, h.Keys); h.Err != nil || s.pttl < time.Minute.Milliseconds() {
			t.Errorf("%s: %v, %v", h.Keys.Lock, h.Err, s)
		}
	}
}

func TestRenew_GoesOnLockByLockAfterCrossSlot(t *testing.T) {
	rdb := redistest.New(t)
	holds := held(t, rdb, 5)
	s := New(rdb)
	s.Renew(t.Context(), holds[:1]) // the server knows the script
	refused := atomic.Int64{}
	h := &counting{refuse: func(args []any) error {
		if args[2].(int) > 1 {
			refused.Add(1)
			return redis.ErrCrossSlot
		}
		return nil
	}}
	rdb.AddHook(h)
	for _, want := range []int64{1, 0, 0} { // one try with all of them, and never again
		h.sent.Store(0)
		h.pipes.Store(0)
		h.piped.Store(0)
		holds[3].Field = newField() // is gone
		s.Renew(t.Context(), holds)
		if got := h.sent.Load(); got != want || h.pipes.Load() != 1 || h.piped.Load() != 5 {
			t.Errorf("a renewal of 5 took %d commands, want %d, and %d in %d pipelines", got, want, h.piped.Load(), h.pipes.Load())
		}
		if !errors.Is(holds[3].Err, ErrGone) {
			t.Errorf("the hold that is gone gets %v", holds[3].Err)
		}
		mustBeRenewed(t, rdb, holds[:3])
		mustBeRenewed(t, rdb, holds[4:])
	}
	if refused.Load() != 1 {
		t.Errorf("%d commands were refused, want the first alone", refused.Load())
	}
}

func TestRenew_OneLockThatIsRefusedIsAnError(t *testing.T) {
	rdb := redistest.New(t)
	holds := held(t, rdb, 1)
	h := &counting{refuse: func([]any) error { return redis.ErrCrossSlot }}
	rdb.AddHook(h)
	New(rdb).Renew(t.Context(), holds)
	if !errors.Is(holds[0].Err, redis.ErrCrossSlot) || h.sent.Load() != 1 || Passing(holds[0].Err) {
		t.Errorf("%v after %d commands", holds[0].Err, h.sent.Load())
	}
}

func TestRenew_AnErrorIsEveryHolds(t *testing.T) {
	addr := redistest.Start(t)
	holds := held(t, redistest.Client(t, addr), 3)
	proxy := redistest.NewProxy(t, addr)
	s := New(redistest.Client(t, proxy.Addr()))
	proxy.On("busy", redistest.Command("evalsha"), redistest.Refuse("BUSY Redis is busy running a script."))
	s.Renew(t.Context(), holds)
	for _, h := range holds {
		if !redis.HasErrorPrefix(h.Err, "BUSY") || !Passing(h.Err) || Unanswered(h.Err) {
			t.Errorf("%v", h.Err)
		}
	}
	s.Renew(t.Context(), holds) // an old Err does not stay
	mustBeRenewed(t, s.rdb, holds)
	s.Renew(t.Context(), nil) // of nothing is nothing
}

// oneMaster is a cluster of one server, which refuses several slots in one command as all do.
func oneMaster(t *testing.T) *redistest.Server {
	t.Helper()
	server := redistest.Real(t, "--cluster-enabled", "yes")
	rdb := server.Client()
	if err := rdb.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, 20*time.Second, func() bool {
		info, err := rdb.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	}, "the cluster is up")
	return server
}

func TestCluster_EveryCallWorks(t *testing.T) {
	t.Parallel()
	server := oneMaster(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = cluster.Close() })
	sharded := server.Client().PubSubShardNumSub(t.Context(), "any").Err() == nil // not so with Redis 6, whose line cannot be called by such a channel
	for name, rdb := range map[string]redis.UniversalClient{"cluster client": cluster, "single client, as behind a proxy": server.Client()} {
		t.Run(name, func(t *testing.T) {
			for _, lock := range []string{"plain", "{a}b", "a{b}c", "{a}{b}", "{a}b}"} {
				c, field := newCaller(t, rdb), newField()
				c.keys = KeysOf(c.keys.Lock + lock)
				if err := c.keys.CheckCluster(); err != nil {
					t.Fatal(err)
				}
				c.mustHold(field)
				c.acquire(newField(), lease)
				if a := c.level(field, lease, 2, 1); a.Token != 2 {
					t.Errorf("%s: level says %+v", lock, a)
				}
				if err := c.renew(field, time.Hour); err != nil {
					t.Errorf("%s: renew says %v", lock, err)
				}
				if s := c.inspect(field); s.Count != 2 {
					t.Errorf("%s: inspect says %+v", lock, s)
				}
				next := newField()
				if a := c.transfer(field, next, lease); a != (Answer{Held: true, Token: 3}) {
					t.Errorf("%s: transfer says %+v", lock, a)
				}
				if a := c.do(Acquire(c.keys, true, newField(), lease).InTurn(Turn{Ticket: "a:1"})); a.Held || a.Before != 0 || a.Outside != 0 {
					t.Errorf("%s: an acquire in turn says %+v", lock, a)
				}
				c.do(Leave(c.keys, "a:1", false))
				last := newField()
				if a := c.do(Unlock(c.keys, next, sharded).Calling("a:2", 0)); !a.Held || a.Score == 0 || a.Outside != 0 {
					t.Errorf("%s: a release that calls says %+v", lock, a)
				}
				if a := c.do(Acquire(c.keys, true, last, lease).InTurn(Turn{Ticket: "a:2", Sharded: sharded})); !a.Held || a.Outside != 0 {
					t.Errorf("%s: an acquire in turn says %+v", lock, a)
				}
				for i, sharded := range []bool{true, false} {
					if a, err := c.Do(t.Context(), Unlock(c.keys, last, sharded)); a.Held != (i == 0) || err != nil {
						t.Errorf("%s: unlock says %+v, %v", lock, a, err)
					}
				}
			}
			s, holds := New(rdb), held(t, rdb, 4)
			if name == "cluster client" { // its locks are in one slot in a batch
				return
			}
			for range 2 {
				s.Renew(t.Context(), holds)
				mustBeRenewed(t, rdb, holds)
			}
			if !s.single.Load() {
				t.Error("the real CROSSSLOT did not come, or was not noticed")
			}
		})
	}
}
