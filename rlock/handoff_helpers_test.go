package rlock_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The helpers of the tests of handoffs and turns; their names begin with hand.

// handSpy is a go-redis hook that keeps what ops were sent, in company or alone, and can hold them up.
type handSpy struct {
	mu       sync.Mutex
	ops      []string
	commands int
	around   func(ops []string, next func() error) error
}

func handSpyOn(rdb *redis.Client) *handSpy {
	s := new(handSpy)
	rdb.AddHook(s)
	return s
}

// handOps is which ops a command is made of.
func handOps(args []any) (ops []string) {
	name := bhScript(args)
	if name != "" {
		return []string{name}
	}
	if first, ok := args[0].(string); !ok || !strings.HasPrefix(first, "eval") {
		return nil
	}
	for _, arg := range args[3:] {
		s, _ := arg.(string)
		s = strings.TrimRight(s, "+")
		if slices.Contains([]string{"acquire", "level", "unlock", "transfer", "reserve", "wait", "try", "release", "quick", "leave"}, s) {
			ops = append(ops, bhOp(s))
		}
	}
	return ops
}

// wrap sets what is done around each command.
func (s *handSpy) wrap(around func(ops []string, next func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.around = around
}

// reset forgets what was seen.
func (s *handSpy) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops, s.commands = nil, 0
}

func (s *handSpy) count(op string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.ops {
		if o == op {
			n++
		}
	}
	return n
}

func (s *handSpy) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ops, " ")
}

func (s *handSpy) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *handSpy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *handSpy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ops := handOps(cmd.Args())
		if len(ops) == 0 {
			return next(ctx, cmd)
		}
		s.mu.Lock()
		s.ops = append(s.ops, ops...)
		s.commands++
		around := s.around
		s.mu.Unlock()
		send := func() error { return next(ctx, cmd) }
		if around != nil {
			bare := send
			send = func() error { return around(ops, bare) }
		}
		err := send()
		if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") { // it is sent again as a whole, and does not count
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, op := range ops {
				if i := slices.Index(s.ops, op); i >= 0 { // it may have been forgotten meanwhile
					s.ops = slices.Delete(s.ops, i, i+1)
				}
			}
			s.commands = max(s.commands-1, 0)
		}
		return err
	}
}

// handLink is the network between a client and the miniredis of a bubble: each direction takes a time of its own, and
// messages can be lost.
type handLink struct {
	way         time.Duration // there, and as long back
	drop        atomic.Bool   // lose the messages
	subscribing atomic.Bool   // whoever subscribes loses the connection
	lost        atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

type handConn struct {
	net.Conn
	link   *handLink
	out    chan handWrite // what is on its way; nil until there is a way
	closed chan struct{}
	close  sync.Once
}

// A handWrite is data that arrives at a time.
type handWrite struct {
	at   time.Time
	data []byte
}

func (c *handConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deliver writes what is on its way when it has arrived.
func (c *handConn) deliver() {
	for {
		select {
		case w := <-c.out:
			time.Sleep(time.Until(w.at))
			if _, err := c.Conn.Write(w.data); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *handConn) Write(b []byte) (int, error) {
	if c.link.subscribing.Load() && bytes.Contains(b, []byte("\r\nsubscribe\r\n")) {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	if c.link.way == 0 && c.out == nil {
		return c.Conn.Write(b)
	}
	// It does not sleep here: go-redis writes with a mutex held, and virtual time stands still while another goroutine waits for one.
	if c.out == nil {
		c.out = make(chan handWrite, 1000)
		go c.deliver()
	}
	select {
	case c.out <- handWrite{time.Now().Add(c.link.way), bytes.Clone(b)}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *handConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err == nil && c.link.drop.Load() && bytes.Contains(b[:n], []byte("\r\nmessage\r\n")) {
			c.link.lost.Add(1)
			continue
		}
		if err == nil {
			time.Sleep(c.link.way)
		}
		return n, err
	}
}

// cut closes the connections there are; down says that there will be no others.
func (l *handLink) cut(down bool) {
	l.mu.Lock()
	conns := l.conns
	l.conns, l.down = nil, down
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// redis is one more client of m, behind the link.
func (l *handLink) redis(t testing.TB, m *miniredis.Miniredis) *redis.Client {
	t.Cleanup(func() { time.Sleep(10 * l.way) }) // what is on its way
	return redistest.PipeClient(t, m, func(o *redis.Options) {
		dial := o.Dialer
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.down {
				return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
			}
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			l.conns = append(l.conns, conn)
			return &handConn{Conn: conn, link: l, closed: make(chan struct{})}, nil
		}
	})
}

// handInside counts who believes to be in the section (Inv1), and sees the tokens grow (Inv2).
type handInside struct {
	mu     sync.Mutex
	who    map[context.Context]int64
	tokens []int64
	most   int64
}

// enter notes a holder; leave must be called before its Unlock. A token of 0 is none.
func (in *handInside) enter(t testing.TB, held context.Context, token int64) (leave func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for other, theirs := range in.who {
		if other.Err() == nil && held.Err() == nil {
			t.Errorf("Inv1: token %d has the lock, and token %d is alive", token, theirs)
		}
	}
	if in.who == nil {
		in.who = map[context.Context]int64{}
	}
	in.who[held] = token
	if token != 0 {
		if token <= in.most {
			t.Errorf("Inv2: token %d after %d", token, in.most)
		}
		in.most = token
		in.tokens = append(in.tokens, token)
	}
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.who, held)
	}
}

// handCtx is the test's context, with an end: a holder that failed keeps its lock.
func handCtx(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// handLine starts waiters one after the other, each standing in line before the next one comes.
func handLine(n int, wait func(i int)) (done func()) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { wait(i) })
		synctest.Wait()
	}
	return all.Wait
}

// handFree requires that the lock "l" of the miniredis is free and that the clients' books are empty within this time.
func handFree(t testing.TB, m *miniredis.Miniredis, within time.Duration, clients ...*rlock.Client) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		var left []string
		if m.Exists("l") {
			fields, _ := m.HKeys("l")
			left = append(left, fmt.Sprint("in Redis: ", fields))
		}
		for _, c := range clients {
			if books := c.Books(); books != "" {
				left = append(left, books)
			}
		}
		if len(left) == 0 {
			return
		}
		if !time.Now().Before(deadline) {
			t.Fatalf("Inv9: after %v there is left: %s", within, strings.Join(left, "; "))
		}
		time.Sleep(time.Millisecond)
	}
}

// handGot is the result of an acquiring call.
type handGot struct {
	ctx   context.Context
	token int64
	err   error
	at    time.Time
}

func handGo(call func() (context.Context, int64, error)) <-chan handGot {
	ch := make(chan handGot, 1)
	go func() {
		ctx, token, err := call()
		ch <- handGot{ctx, token, err, time.Now()}
	}()
	return ch
}

func handTake(t testing.TB, l *fenced.Lock, want int64) context.Context {
	t.Helper()
	held, token, err := l.LockAndGetToken(t.Context())
	bhOK(t, err)
	bhEqual(t, "token", token, want)
	return held
}
