package redistest

import (
	"os"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// IsReal reports whether [New] and [Start] give a real server, which they do
// when the environment variable REDIS_SERVER is set.
func IsReal() bool { return os.Getenv("REDIS_SERVER") != "" }

// New returns a client of a fresh, empty server (see [Start]). The client and
// the server are closed when the test ends. Nothing between the two loses a
// command, so that the client waits for an answer as long as a busy machine may
// take.
func New(t testing.TB) *redis.Client {
	t.Helper()
	return Client(t, Start(t), func(o *redis.Options) { o.ReadTimeout = time.Minute })
}

// Start starts a fresh, empty server and returns its address, "127.0.0.1:port".
// The server is one of [Real] when [IsReal], else a miniredis whose keys expire
// by the clock. It is closed when the test ends.
func Start(t testing.TB) string {
	t.Helper()
	realtime.Skip(t)
	if IsReal() {
		return Real(t).Addr()
	}
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.Start(); err != nil {
		t.Fatalf("redistest: start miniredis: %v", err)
	}
	t.Cleanup(m.Close)
	return m.Addr()
}

// Client returns a client of the server or proxy at addr, with the defaults of
// go-redis as changed by opts. It is closed when the test ends.
func Client(t Owner, addr string, opts ...func(*redis.Options)) *redis.Client {
	return client(t, &redis.Options{Addr: addr}, opts)
}

// client opens a client that is closed when the test ends.
func client(t Owner, o *redis.Options, opts []func(*redis.Options)) *redis.Client {
	for _, opt := range opts {
		opt(o)
	}
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it already
	return c
}
