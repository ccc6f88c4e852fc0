package rlock_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// slowLink is the network between a client and the miniredis of a bubble. Each direction takes a time of its own, and messages
// can be lost.
type slowLink struct {
	way         time.Duration // there, and as long back
	drop        atomic.Bool   // lose the messages
	silent      atomic.Bool   // lose all, both ways
	subscribing atomic.Bool   // whoever subscribes loses the connection
	lost        atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

// redis is one more client of m, behind the link.
func (l *slowLink) redis(t testing.TB, m *miniredis.Miniredis) *redis.Client {
	t.Cleanup(func() {
		time.Sleep(10 * l.way) // what is on its way
		l.cut(true)            // go-redis leaves a connection that it has given up while it made it
	})
	return redistest.PipeClient(t, m, func(o *redis.Options) {
		dial := o.Dialer
		o.ReadTimeout = 5 * time.Second
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
			slow := &slowConn{Conn: conn, link: l, closed: make(chan struct{})}
			l.conns = append(l.conns, slow)
			return slow, nil
		}
	})
}

// cut closes the connections there are; down says that there will be no others.
func (l *slowLink) cut(down bool) {
	l.mu.Lock()
	conns := l.conns
	l.conns, l.down = nil, down
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// slowConn is one connection of a slowLink.
type slowConn struct {
	net.Conn
	link   *slowLink
	out    chan delivery // what is on its way; nil until there is a way
	closed chan struct{}
	close  sync.Once
}

// delivery is data that arrives at a time.
type delivery struct {
	at   time.Time
	data []byte
}

func (c *slowConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// deliver writes what is on its way when it has arrived.
func (c *slowConn) deliver() {
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

func (c *slowConn) Write(b []byte) (int, error) {
	if c.link.subscribing.Load() && bytes.Contains(b, []byte("\r\nsubscribe\r\n")) {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	if c.link.silent.Load() {
		return len(b), nil
	}
	if c.link.way == 0 && c.out == nil {
		return c.Conn.Write(b)
	}
	// It does not sleep here: go-redis writes with a mutex held, and virtual time stands still while another goroutine waits for one.
	if c.out == nil {
		c.out = make(chan delivery, 1000)
		go c.deliver()
	}
	select {
	case c.out <- delivery{time.Now().Add(c.link.way), bytes.Clone(b)}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *slowConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err == nil && c.link.silent.Load() {
			continue
		}
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
