package redistest_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

var incr = redistest.Command("INCR")

// closed requires the error of a connection that was closed.
func closed(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
}

func TestSwallowReply(t *testing.T) {
	p, direct := link(t)
	f := p.On("reply", incr, redistest.SwallowReply)
	c := redistest.Client(t, p.Addr(), once)
	closed(t, c.Incr(ctx, "n").Err())
	await(t, f.Fired(), "fired")
	await(t, f.Done(), "done")
	want(t, direct, "1")
	locktest.NoError(t, c.Incr(ctx, "n").Err())
	want(t, direct, "2")
}

// The replies to what was sent earlier on the connection come before its end.
func TestSwallowReplyInAPipeline(t *testing.T) {
	p, direct := link(t)
	p.On("reply", redistest.Nth(3, incr), redistest.SwallowReply)
	cmds, err := redistest.Client(t, p.Addr(), once).Pipelined(ctx, func(p redis.Pipeliner) error {
		for range 4 {
			p.Incr(ctx, "n")
		}
		return nil
	})
	closed(t, err)
	for i, cmd := range cmds {
		n := cmd.(*redis.IntCmd).Val() // go-redis gives the error to all of them
		if i < 2 && n != int64(i)+1 || i >= 2 && n != 0 {
			t.Errorf("command %d: %d", i, n)
		}
	}
	// The fourth command may have passed the proxy when the third one's reply came and ended the connection, or not.
	if n := direct.Get(ctx, "n").Val(); n != "3" && n != "4" {
		t.Errorf("%s commands ran", n)
	}
}

func TestSwallowReplySilently(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	p, direct := link(t)
	f := p.On("reply", incr, redistest.SwallowReplySilently)
	c := redistest.Client(t, p.Addr(), hasty)
	if _, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "n")
		p.Incr(ctx, "n")
		return nil
	}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	await(t, f.Fired(), "fired")
	redistest.Eventually(t, bound, func() bool { return direct.Get(ctx, "n").Val() == "2" }, "both commands run")
}

func TestHold(t *testing.T) {
	p, direct := link(t)
	f := p.On("command", incr, redistest.Hold)
	call := async(redistest.Client(t, p.Addr(), once))
	await(t, f.Fired(), "fired")
	want(t, direct, "")
	pending(t, f.Done(), "done")
	locktest.NoError(t, direct.Set(ctx, "n", 10, 0).Err())
	f.Release()
	f.Release()
	if r := get(t, call); r.n != 11 || r.err != nil {
		t.Errorf("got %v", r)
	}
	await(t, f.Done(), "done")
}

func TestHoldOutlivesTheClient(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	p, direct := link(t)
	f := p.On("command", incr, redistest.Hold)
	c := redistest.Client(t, p.Addr(), hasty)
	if err := c.Incr(ctx, "n").Err(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	locktest.NoError(t, c.Close())
	want(t, direct, "")
	f.Release()
	await(t, f.Done(), "done")
	want(t, direct, "1")
}

// What follows the held command on its connection overtakes it at the server,
// and is answered after it.
func TestHoldKeepsTheOrderOfReplies(t *testing.T) {
	p, direct := link(t)
	f := p.On("command", redistest.Nth(2, incr), redistest.Hold)
	c := redistest.Client(t, p.Addr(), once)
	out := make(chan []int64, 1)
	go func() {
		cmds, _ := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 3 {
				p.Incr(ctx, "n")
			}
			return nil
		})
		var ns []int64
		for _, cmd := range cmds {
			ns = append(ns, cmd.(*redis.IntCmd).Val())
		}
		out <- ns
	}()
	await(t, f.Fired(), "fired")
	redistest.Eventually(t, bound, func() bool { return direct.Get(ctx, "n").Val() == "2" }, "the others run")
	f.Release()
	if ns := <-out; len(ns) != 3 || ns[0] != 1 || ns[1] != 3 || ns[2] != 2 {
		t.Errorf("got %v", ns)
	}
}

func TestHoldCut(t *testing.T) {
	p, direct := link(t)
	f := p.On("command", incr, redistest.HoldCut)
	closed(t, redistest.Client(t, p.Addr(), once).Incr(ctx, "n").Err())
	await(t, f.Fired(), "fired")
	want(t, direct, "")
	f.Release()
	await(t, f.Done(), "done")
	want(t, direct, "1")
}

func TestHoldReply(t *testing.T) {
	p, direct := link(t)
	f := p.On("reply", incr, redistest.HoldReply)
	call := async(redistest.Client(t, p.Addr(), once))
	await(t, f.Fired(), "fired")
	want(t, direct, "1")
	pending(t, f.Done(), "done")
	locktest.NoError(t, direct.Set(ctx, "n", 10, 0).Err())
	f.Release()
	if r := get(t, call); r.n != 1 || r.err != nil {
		t.Errorf("got %v", r)
	}
	await(t, f.Done(), "done")
}

func TestDuplicate(t *testing.T) {
	p, direct := link(t)
	f := p.On("command", incr, redistest.Duplicate)
	c := redistest.Client(t, p.Addr(), once)
	if n, err := c.Incr(ctx, "n").Result(); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	await(t, f.Fired(), "fired")
	want(t, direct, "1")
	f.Release()
	await(t, f.Done(), "done")
	want(t, c, "2")
}

func TestRefuseCommand(t *testing.T) {
	p, direct := link(t)
	f := p.On("command", incr, redistest.Refuse("OOM no memory"))
	c := redistest.Client(t, p.Addr(), once)
	if err := c.Incr(ctx, "n").Err(); err == nil || err.Error() != "OOM no memory" {
		t.Errorf("got %v", err)
	}
	await(t, f.Done(), "done")
	want(t, direct, "")
	locktest.NoError(t, c.Incr(ctx, "n").Err())
}

// A fault is for one command, and each fault counts the commands for itself.
func TestFaultsTakeOneCommandEach(t *testing.T) {
	p, direct := link(t)
	p.On("first", incr, redistest.Refuse("ERR first"))
	p.On("third", redistest.Nth(3, incr), redistest.Refuse("ERR third"))
	c := redistest.Client(t, p.Addr(), once)
	var got []string
	for range 4 {
		s := "ok"
		if err := c.Incr(ctx, "n").Err(); err != nil {
			s = err.Error()
		}
		got = append(got, s)
	}
	if s := strings.Join(got, ", "); s != "ERR first, ok, ERR third, ok" {
		t.Errorf("got %s", s)
	}
	want(t, direct, "2")
}

func TestFaultThatDoesNotFire(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	s := redistest.Real(t)
	c := new(double)
	errs := c.run(t, func(t testing.TB) {
		p := redistest.NewProxy(t, s.Addr())
		p.On("fires", incr, redistest.Hold)
		p.On("no command", redistest.Command("NONE"), redistest.Hold)
		p.On("no answer", incr, redistest.SwallowReply)
		client := redistest.Client(t, p.Addr(), hasty)
		_ = client.Incr(ctx, "n").Err()
		locktest.NoError(c.TB, client.Ping(ctx).Err())
		s.Freeze()
		_ = client.Incr(ctx, "n").Err()
	})
	if len(errs) != 2 ||
		!strings.Contains(errs[0], `fault 2, "no command", did not fire: no command matched`) ||
		!strings.Contains(errs[1], `fault 3, "no answer", did not fire: the server has not answered`) {
		t.Errorf("got %q", errs)
	}
}

// The reply that a fault waits for is awaited even if the client has gone.
func TestFaultFiresAfterTheClientHasGone(t *testing.T) {
	realtime.Test(t, "answers within 50 ms")
	s := redistest.Real(t)
	p := redistest.NewProxy(t, s.Addr())
	f := p.On("reply", incr, redistest.SwallowReply)
	c := redistest.Client(t, p.Addr(), hasty)
	locktest.NoError(t, c.Ping(ctx).Err())
	s.Freeze()
	if err := c.Incr(ctx, "n").Err(); err == nil {
		t.Error("a frozen server answered")
	}
	locktest.NoError(t, c.Close())
	pending(t, f.Fired(), "fired")
	s.Thaw()
	await(t, f.Fired(), "fired")
	want(t, s.Client(), "1")
}
