package redistest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Pipe returns a fresh miniredis and a client of it that talk over in-memory
// pipes, for use in a testing/synctest bubble: keys expire by the bubble's
// clock. Call it in the bubble with the bubble's t, whose Cleanup closes both.
func Pipe(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	d := &pipeDialer{}
	pipeDialers.Store(m, d)
	t.Cleanup(func() {
		d.end()
		m.Close()
		pipeDialers.Delete(m)
	})
	return m, PipeClient(t, m)
}

// PipeClient returns one more client of a miniredis made by [Pipe], in the same
// bubble. It is closed when the test ends.
func PipeClient(t testing.TB, m *miniredis.Miniredis, opts ...func(*redis.Options)) *redis.Client {
	d, ok := pipeDialers.Load(m)
	if !ok {
		t.Fatal("redistest: the miniredis is not one of Pipe, or its test is over")
	}
	return client(t, &redis.Options{
		Addr:   "pipe",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return d.(*pipeDialer).dial(m) },
		// Nothing on a connection but the commands of the test.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// go-redis shares the timers of callers that wait for a connection
		// between all pools of the process, and a timer from outside a bubble
		// must not be used in it. In a pool this large nobody waits.
		PoolSize:         4096,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  -1,
	}, opts)
}

// pipeDialers has the pipeDialer of each miniredis of [Pipe] whose test runs.
var pipeDialers sync.Map

// pipeDialer opens the connections to one miniredis, until the test ends.
// go-redis dials in goroutines that closing a client does not wait for, and
// miniredis allows no Dial beside its Close, and starts anew with one after it.
type pipeDialer struct {
	mu   sync.Mutex // held while dialing
	over bool
}

// dial connects to m, or fails once the test is over.
func (d *pipeDialer) dial(m *miniredis.Miniredis) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	}
	return dialPipe(m)
}

// end waits until nobody is dialing. Who dials later gets net.ErrClosed.
func (d *pipeDialer) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
}

// dialPipe connects to m. A net.Pipe holds no data, so that m would stand still
// (inside its lock) whenever a client does not read; like a socket, the link
// therefore keeps what m has written until the client takes it.
func dialPipe(m *miniredis.Miniredis) (net.Conn, error) {
	server, err := m.Dial()
	if err != nil {
		return nil, err
	}
	client, inner := net.Pipe()
	replies := newQueue[[]byte]()
	go func() {
		_, _ = io.Copy(server, inner)
		_ = server.Close()
	}()
	go func() {
		defer replies.close()
		for {
			buf := make([]byte, 4096)
			n, err := server.Read(buf)
			replies.push(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		defer func() { _ = inner.Close() }()
		for {
			b, ok := replies.pop()
			if !ok {
				return
			}
			if _, err := inner.Write(b); err != nil {
				return
			}
		}
	}()
	return client, nil
}
