package redistest

import (
	"context"
	"io"
	"net"
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
	t.Cleanup(m.Close)
	return m, PipeClient(t, m)
}

// PipeClient returns one more client of a miniredis made by [Pipe], in the same
// bubble. It is closed when the test ends.
func PipeClient(t testing.TB, m *miniredis.Miniredis, opts ...func(*redis.Options)) *redis.Client {
	return client(t, &redis.Options{
		Addr:   "pipe",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return dialPipe(m) },
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
