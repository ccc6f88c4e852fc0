package redistest_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/redis/go-redis/v9"
)

// bound is how long these tests wait for what must happen.
const bound = time.Minute

var ctx = context.Background()

// once makes a client send each command at most once and wait long for replies.
func once(o *redis.Options) {
	o.MaxRetries = -1
	o.ReadTimeout = bound
}

// hasty makes a client send each command at most once and give up soon.
func hasty(o *redis.Options) {
	o.MaxRetries = -1
	o.ReadTimeout = 50 * time.Millisecond
}

// await waits for c to be closed.
func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	redistest.Await(t, bound, c, "%s", what)
}

// pending requires that c is not closed.
func pending(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
		t.Fatalf("too early: %s", what)
	default:
	}
}

// want requires that the key n has the value.
func want(t *testing.T, c *redis.Client, value string) {
	t.Helper()
	got, err := c.Get(ctx, "n").Result()
	if err == redis.Nil {
		got = ""
	} else if err != nil {
		t.Fatal(err)
	}
	if got != value {
		t.Fatalf("n is %q, not %q", got, value)
	}
}

// result is the outcome of a call in another goroutine.
type result struct {
	n   int64
	err error
}

// async calls INCR n in another goroutine.
func async(c *redis.Client) <-chan result {
	out := make(chan result, 1)
	go func() {
		n, err := c.Incr(ctx, "n").Result()
		out <- result{n, err}
	}()
	return out
}

// get waits for a result.
func get(t *testing.T, c <-chan result) result {
	t.Helper()
	return redistest.Await(t, bound, c, "the call returns")
}

// double stands for the t of a test that fails: it records the failure instead.
type double struct {
	testing.TB
	mu       sync.Mutex
	cleanups []func()
	errors   []string
}

func (d *double) Helper()          {}
func (d *double) Cleanup(f func()) { d.cleanups = append(d.cleanups, f) }
func (d *double) Errorf(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errors = append(d.errors, fmt.Sprintf(format, args...))
}

// Fatalf panics, to be caught by run.
func (d *double) Fatalf(format string, args ...any) {
	d.Errorf(format, args...)
	panic(d)
}

// run calls f as a test and returns its errors.
func (d *double) run(t *testing.T, f func(t testing.TB)) []string {
	d.TB = t
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(d) {
				panic(r)
			}
		}()
		f(d)
	}()
	for i := len(d.cleanups) - 1; i >= 0; i-- {
		d.cleanups[i]()
	}
	return d.errors
}

// link returns a proxy to a fresh server and a client of the server itself.
func link(t *testing.T) (*redistest.Proxy, *redis.Client) {
	t.Helper()
	redistest.CheckGoroutines(t)
	addr := redistest.Start(t)
	return redistest.NewProxy(t, addr), redistest.Client(t, addr)
}

// dial opens a plain connection that is closed when the test ends.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	locktest.NoError(t, conn.SetDeadline(time.Now().Add(bound)))
	return conn
}
