package redistest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

func TestProxyForwards(t *testing.T) {
	p, direct := link(t)
	for _, protocol := range []int{2, 3} {
		locktest.NoError(t, direct.FlushAll(ctx).Err())
		c := redistest.Client(t, p.Addr(), once, func(o *redis.Options) { o.Protocol = protocol })
		big := strings.Repeat("x\r\n", 1<<18)
		locktest.NoError(t, c.HSet(ctx, "h", "a", big, "b", "").Err())
		if got, err := c.HGetAll(ctx, "h").Result(); err != nil || len(got) != 2 || got["a"] != big {
			t.Errorf("protocol %d: got %d fields, %v", protocol, len(got), err)
		}
		if err := c.Get(ctx, "none").Err(); err != redis.Nil {
			t.Errorf("protocol %d: got %v", protocol, err)
		}
		if got, err := c.Eval(ctx, "return {1, {KEYS[1], ARGV[1]}, {err='ERR x'}}", []string{"k"}, "v").Slice(); err != nil || len(got) != 3 {
			t.Errorf("protocol %d: got %v, %v", protocol, got, err)
		}
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Incr(ctx, "n")
			p.HGetAll(ctx, "h")
			return nil
		})
		locktest.NoError(t, err)
		want(t, c, "1")
	}
}

func TestProxyKeepsTheOrderOfEachConnection(t *testing.T) {
	p, _ := link(t)
	c := redistest.Client(t, p.Addr(), once)
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			key := fmt.Sprint("k", i)
			for round := range 5 {
				cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 500 {
						p.Incr(ctx, key)
						p.Echo(ctx, key)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
				for j := range 500 {
					n, s := cmds[2*j].(*redis.IntCmd).Val(), cmds[2*j+1].(*redis.StringCmd).Val()
					if n != int64(500*round+j+1) || s != key {
						t.Errorf("place %d has %d, %q", j, n, s)
						return
					}
				}
			}
		})
	}
	running.Wait()
}

func TestProxyPubSub(t *testing.T) {
	p, direct := link(t)
	p.On("subscription", redistest.And(redistest.Command("SUBSCRIBE"), func(args []string) bool {
		return args[1] == "secret"
	}), redistest.Refuse("NOPERM no"))
	for _, protocol := range []int{2, 3} {
		c := redistest.Client(t, p.Addr(), once, func(o *redis.Options) { o.Protocol = protocol })
		sub := c.Subscribe(ctx, "a", "b")
		messages := sub.Channel()
		for _, channel := range []string{"a", "b", "c"} {
			if channel == "c" {
				locktest.NoError(t, sub.Subscribe(ctx, "c"))
			}
			redistest.Eventually(t, bound, func() bool {
				return direct.PubSubNumSub(ctx, channel).Val()[channel] == 1
			}, "%s has a subscriber", channel)
			locktest.NoError(t, direct.Publish(ctx, channel, "hello").Err())
			select {
			case m := <-messages:
				if m.Channel != channel || m.Payload != "hello" {
					t.Errorf("got %v", m)
				}
			case <-time.After(bound):
				t.Fatal("no message")
			}
		}
		locktest.NoError(t, sub.Close())
		redistest.Eventually(t, bound, func() bool {
			return direct.PubSubNumSub(ctx, "a").Val()["a"] == 0
		}, "the subscriber is gone")
	}
	secret := redistest.Client(t, p.Addr(), once).Subscribe(ctx, "secret")
	if _, err := secret.Receive(ctx); err == nil || err.Error() != "NOPERM no" {
		t.Errorf("got %v", err)
	}
	locktest.NoError(t, secret.Close())
}

// A subscribed connection is not asked for matches, except by Refuse.
func TestProxyLeavesSubscribedConnectionsAlone(t *testing.T) {
	p, _ := link(t)
	c := redistest.Client(t, p.Addr(), once)
	f := p.On("ping", redistest.Command("PING"), redistest.Hold)
	sub := c.Subscribe(ctx, "a")
	_, err := sub.Receive(ctx)
	locktest.NoError(t, err)
	locktest.NoError(t, sub.Ping(ctx))
	if _, err := sub.ReceiveTimeout(ctx, bound); err != nil {
		t.Error(err)
	}
	pending(t, f.Fired(), "fired")
	out := make(chan error, 1)
	go func() { out <- c.Ping(ctx).Err() }()
	await(t, f.Fired(), "fired")
	f.Release()
	locktest.NoError(t, <-out)
	locktest.NoError(t, sub.Close())
}

func TestProxyCut(t *testing.T) {
	p, direct := link(t)
	c := redistest.Client(t, p.Addr(), once)
	f := p.On("command", incr, redistest.Hold)
	call := async(c)
	await(t, f.Fired(), "fired")
	p.Cut()
	closed(t, get(t, call).err)
	f.Release()
	await(t, f.Done(), "done")
	want(t, direct, "1")
	want(t, c, "1")
}

func TestProxyRefusesConnections(t *testing.T) {
	p, direct := link(t)
	old := redistest.Client(t, p.Addr(), once)
	locktest.NoError(t, old.Incr(ctx, "n").Err())
	p.Refuse(true)
	if err := redistest.Client(t, p.Addr(), once).Incr(ctx, "n").Err(); err == nil {
		t.Error("a new connection works")
	}
	locktest.NoError(t, old.Incr(ctx, "n").Err())
	p.Refuse(false)
	locktest.NoError(t, redistest.Client(t, p.Addr(), once).Incr(ctx, "n").Err())
	want(t, direct, "3")
}

func TestProxyFreeze(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	p, direct := link(t)
	c, quick := redistest.Client(t, p.Addr(), once), redistest.Client(t, p.Addr(), hasty)
	locktest.NoError(t, c.Ping(ctx).Err())
	locktest.NoError(t, quick.Ping(ctx).Err())
	sub := c.Subscribe(ctx, "a")
	_, err := sub.Receive(ctx)
	locktest.NoError(t, err)
	p.Freeze()
	p.Freeze()
	call := async(c)
	locktest.NoError(t, direct.Publish(ctx, "a", "hello").Err())
	if err := quick.Ping(ctx).Err(); err == nil {
		t.Error("a frozen proxy forwards")
	}
	if m, err := sub.ReceiveTimeout(ctx, 50*time.Millisecond); err == nil {
		t.Errorf("got %v", m)
	}
	want(t, direct, "")
	p.Thaw()
	p.Thaw()
	if r := get(t, call); r.n != 1 || r.err != nil {
		t.Errorf("got %v", r)
	}
	if _, err := sub.ReceiveTimeout(ctx, bound); err != nil {
		t.Error(err)
	}
	locktest.NoError(t, sub.Close())
}

func TestProxyEndsFrozen(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	p, _ := link(t)
	c := redistest.Client(t, p.Addr(), hasty)
	f := p.On("never released", incr, redistest.Hold)
	_ = c.Incr(ctx, "n").Err()
	await(t, f.Fired(), "fired")
	p.Freeze()
	_ = c.Ping(ctx).Err()
}

func TestProxyToADeadServer(t *testing.T) {
	s := redistest.Real(t)
	p := redistest.NewProxy(t, s.Addr())
	c := redistest.Client(t, p.Addr(), once)
	f := p.On("command", redistest.Command("DECR"), redistest.Hold)
	locktest.NoError(t, c.Incr(ctx, "n").Err())
	out := make(chan error, 1)
	go func() { out <- c.Decr(ctx, "n").Err() }()
	await(t, f.Fired(), "fired")
	s.Kill()
	f.Release()
	closed(t, <-out)
	pending(t, f.Done(), "done")
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a dead server answered")
	}
	s.Restart()
	locktest.NoError(t, c.Ping(ctx).Err())
}

func TestProxyDropsInlineCommands(t *testing.T) {
	p, _ := link(t)
	conn := dial(t, p.Addr())
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}
