package rlock_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// faultBound is how long these tests wait for what must happen and has no bound of its own.
const faultBound = 20 * time.Second

// faultSite is a server, a proxy in front of it, and a client that sees the server as it is.
type faultSite struct {
	t      *testing.T
	addr   string
	proxy  *redistest.Proxy
	direct *redis.Client
}

// faultAt is a site on the server at addr. The scripts are loaded, so that the first EVALSHA of each runs.
func faultAt(t *testing.T, addr string) *faultSite {
	t.Helper()
	s := &faultSite{t: t, addr: addr, proxy: redistest.NewProxy(t, addr), direct: redistest.Client(t, addr)}
	for _, name := range []string{"acquire", "wait", "try", "level", "unlock", "release", "leave", "renew", "inspect"} {
		if err := s.direct.ScriptLoad(t.Context(), bhText(name)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// faultNew is a site on a fresh server, for a test that is parallel to others.
func faultNew(t *testing.T) *faultSite {
	t.Helper()
	t.Parallel()
	return faultAt(t, redistest.Start(t))
}

// faultOf matches the calls of a script, and of the one that does the same with the line of clients.
func faultOf(t *testing.T, script string) func([]string) bool {
	t.Helper()
	var any []func([]string) bool
	for _, name := range []string{"acquire", "wait", "try", "level", "unlock", "release", "leave", "renew", "inspect", "transfer", "reserve"} {
		if name == script || bhOp(name) == script {
			sum := sha1.Sum([]byte(bhText(name)))
			any = append(any, redistest.Script(hex.EncodeToString(sum[:])))
		}
	}
	return func(command []string) bool {
		return slices.ContainsFunc(any, func(is func([]string) bool) bool { return is(command) })
	}
}

// on arranges a fault of the next call of the script through the proxy.
func (s *faultSite) on(script string, do redistest.Action) *redistest.Fault {
	s.t.Helper()
	return s.proxy.On(script, faultOf(s.t, script), do)
}

// client is a lock client behind the proxy whose reads give up soon: what is swallowed silently is missed after 300 ms.
func (s *faultSite) client(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	return faultClient(s.t, redistest.Client(s.t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }), opts...)
}

// other is a lock client past the proxy: another process.
func (s *faultSite) other(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	return faultClient(s.t, redistest.Client(s.t, s.addr), opts...)
}

func faultClient(t *testing.T, rdb redis.UniversalClient, opts ...rlock.Option) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// hash is the lock as it is in Redis, without the change number: the fields of holds and their counts.
func (s *faultSite) hash(name string) map[string]string {
	s.t.Helper()
	h, err := s.direct.HGetAll(context.Background(), name).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	for field := range h {
		if strings.HasSuffix(field, "#") {
			delete(h, field)
		}
	}
	return h
}

// count is the hold count in Redis, "" where nobody holds the lock.
func (s *faultSite) count(name string) string {
	s.t.Helper()
	switch h := s.hash(name); len(h) {
	case 0:
		return ""
	case 1:
		for _, n := range h {
			return n
		}
		panic("not reached")
	default:
		return fmt.Sprint(h)
	}
}

// wantCount requires the hold count in Redis, "" for a free lock.
func (s *faultSite) wantCount(name, want string) {
	s.t.Helper()
	if got := s.count(name); got != want {
		s.t.Fatalf("the hold count in Redis is %q, want %q", got, want)
	}
}

// released listens, and returns a function that requires that somebody releases the lock: that sends a message, and the
// end of the lease sends none.
func (s *faultSite) released(name string) func() {
	s.t.Helper()
	sub := s.direct.Subscribe(s.t.Context(), "redisson_lock__channel:{"+name+"}")
	s.t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(s.t.Context())
	faultNo(s.t, err)
	messages := sub.Channel()
	return func() {
		s.t.Helper()
		redistest.Await(s.t, faultBound, messages, "%q is released", name)
		s.wantCount(name, "")
	}
}

// wantCounter requires the value of the fencing counter.
func (s *faultSite) wantCounter(name, want string) {
	s.t.Helper()
	if got := s.direct.Get(context.Background(), "redisson_lock_token:{"+name+"}").Val(); got != want {
		s.t.Fatalf("the fencing counter is %q, want %q", got, want)
	}
}

func faultAwait(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	redistest.Await(t, faultBound, ch, "%s", what)
}

func faultNo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func faultIs(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// faultWithin requires that what began then has taken no longer than this. The slack is the
// machine's, and grows with what it shows itself to be.
func faultWithin(t *testing.T, began time.Time, bound time.Duration, what string) {
	t.Helper()
	const slack = 700 * time.Millisecond
	if took := time.Since(began); took > redistest.Bound(began, bound+slack) {
		t.Fatalf("%s took %v, want %v at most", what, took.Round(time.Millisecond), bound)
	}
}

// faultGo calls f on a goroutine and returns where its error comes.
func faultGo(f func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- f() }()
	return ch
}

func faultGet(t *testing.T, ch <-chan error, what string) error {
	t.Helper()
	return redistest.Await(t, faultBound, ch, "%s", what)
}

// faultTimeout is a context that is cancelled with the test.
func faultTimeout(t *testing.T, parent context.Context, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(parent, d)
	t.Cleanup(cancel)
	return ctx
}

// faultHeld returns a context that ends when the fault has its command, so that it was sent.
func faultHeld(t *testing.T, f *redistest.Fault) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		select {
		case <-f.Fired():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx
}

// faultLog keeps what is logged.
type faultLog struct{ redistest.Log }

func (l *faultLog) option() rlock.Option { return rlock.WithLogger(slog.New(&l.Log)) }
