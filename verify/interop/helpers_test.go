package interop

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

const (
	// soon bounds what a message brings about. Without the message it would take the lease of 30 s, or the poll interval of
	// a minute.
	soon = 5 * time.Second
	// shortLease is what a test can wait for, and a busy machine does not sleep through: it is renewed each half second.
	shortLease = 1500 * time.Millisecond
	// patience is how long these tests wait for what must happen and has no bound of its own.
	patience = 30 * time.Second
)

// kind is which of the locks is meant, on both sides.
type kind string

const (
	plainKind  kind = "lock"
	fencedKind kind = "fenced"
	readKind   kind = "read"  // a side of a read-write lock
	writeKind  kind = "write" // the other one
)

var kinds = []kind{plainKind, fencedKind}

// TestMain ends the JVM. What it said is for whoever reads a failure.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6") // they wait most of the time
	}
	code := m.Run()
	if running != nil {
		if err := running.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		if code != 0 {
			fmt.Fprintln(os.Stderr, "the JVM said:\n"+running.stderr.String())
		}
	}
	os.Exit(code)
}

// site is a real server, with a client that sees it as it is.
type site struct {
	t      *testing.T
	server *redistest.Server
	rdb    *redis.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	server := redistest.Real(t)
	return &site{t, server, server.Client()}
}

// keys are those of the locks. Before version 4 each release of Redisson's leaves a key of its own for a while.
func (s *site) keys() []string {
	s.t.Helper()
	keys, err := s.rdb.Keys(context.Background(), "*").Result()
	noError(s.t, err)
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, "redisson_unlock_latch:") })
}

// java returns a RedissonClient of the server.
func (s *site) java(options ...string) *javaClient {
	s.t.Helper()
	return newJava(s.t, s.server.Addr(), options...)
}

// client returns a client of ours, which polls so rarely that only a message or the TTL wakes its waiters soon.
func (s *site) client(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	return newClient(s.t, s.server.Client(), opts...)
}

// named is a client whose connections have a name in Redis.
func (s *site) named(name string, opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	return newClient(s.t, s.server.Client(func(o *redis.Options) { o.ClientName = name }), opts...)
}

func newClient(t testing.TB, rdb redis.UniversalClient, opts ...rlock.Option) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb, append([]rlock.Option{rlock.WithPollInterval(time.Minute)}, opts...)...)
	noError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// listened waits until so many connections listen to the channel: each client with a waiter has one. More may, for a hold
// of ours that lasts for more than a second is listened for too; none is none.
func (s *site) listened(channel string, n int64) {
	s.t.Helper()
	redistest.Eventually(s.t, patience, func() bool {
		return enough(s.rdb.PubSubNumSub(context.Background(), channel).Val()[channel], n)
	}, "%d connections listen to %s", n, channel)
}

// asleep is listened, and waits until those who listen have looked at the lock once more, as both sides do when their
// subscription is confirmed: until no script has been called for a while. Who is slower than that is not asleep, and finds
// the lock free without a message, which makes a test weaker, not wrong.
func (s *site) asleep(channel string, n int64) {
	s.t.Helper()
	s.listened(channel, n)
	last, since := s.calls(), time.Now()
	redistest.Eventually(s.t, patience, func() bool {
		if calls := s.calls(); calls != last {
			last, since = calls, time.Now()
		}
		return time.Since(since) > 20*time.Millisecond
	}, "nobody asks")
}

// calls is how many calls of scripts the server has had.
func (s *site) calls() int {
	s.t.Helper()
	info, err := s.rdb.InfoMap(context.Background(), "commandstats").Result()
	noError(s.t, err)
	n := 0
	for _, command := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		var calls int
		_, _ = fmt.Sscanf(info["Commandstats"][command], "calls=%d", &calls)
		n += calls
	}
	return n
}

func enough(listening, want int64) bool { return listening == want || want > 0 && listening > want }

// locker is what rlock.Lock has, and fenced.Lock withoutToken.
type locker interface {
	Lock(context.Context) (context.Context, error)
	LockLease(context.Context, time.Duration) (context.Context, error)
	TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error)
	Unlock(context.Context) error
	Check(context.Context) error
	ForceUnlock(context.Context) (bool, error)
	IsLocked(context.Context) (bool, error)
	IsHeld(context.Context) (bool, error)
	HoldCount(context.Context) (int, error)
	TTL(context.Context) (time.Duration, error)
}

// withoutToken is a fenced lock with the methods of one without tokens.
type (
	withoutToken struct{ *withToken }
	withToken    = fenced.Lock
)

func (l withoutToken) Lock(ctx context.Context) (context.Context, error) {
	return locktest.NoToken(l.LockAndGetToken(ctx))
}

func (l withoutToken) LockLease(ctx context.Context, lease time.Duration) (context.Context, error) {
	return locktest.NoToken(l.LockLeaseAndGetToken(ctx, lease))
}

func (l withoutToken) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	return locktest.NoToken(l.TryLockAndGetToken(ctx, wait, lease))
}

func newLock(c *rlock.Client, k kind, name string) locker {
	if k == fencedKind {
		return withoutToken{fenced.NewLock(c, name)}
	}
	return rlock.NewLock(c, name)
}

// take acquires, and returns the token, or 0 for a lock without.
func take(t testing.TB, l locker, ctx context.Context) (context.Context, int64) {
	t.Helper()
	held, err := l.Lock(ctx)
	noError(t, err)
	f, ok := l.(withoutToken)
	if !ok {
		return held, 0
	}
	token, err := f.Token(held)
	noError(t, err)
	return held, token
}

// free requires that the lock can be taken from here now, and gives it back.
func free(t testing.TB, l locker) {
	t.Helper()
	held, err := l.TryLock(context.Background(), 0, 0)
	noError(t, err)
	noError(t, l.Unlock(held))
}

// busy requires that somebody has the lock, by all ways to find out.
func busy(t testing.TB, l locker) {
	t.Helper()
	_, err := l.TryLock(context.Background(), 0, 0)
	isError(t, err, rlock.ErrNotAcquired)
	locked, err := l.IsLocked(context.Background())
	noError(t, err)
	equal(t, "IsLocked", locked, true)
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func isError(t testing.TB, err error, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v is not %v", err, target)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// about requires a time to live that is at most d, and not much less.
func about(t testing.TB, what string, got, d time.Duration) {
	t.Helper()
	if got > d || got < d-soon {
		t.Fatalf("%s: got %v, want %v", what, got, d)
	}
}

// result is what an acquiring call returned, and when.
type result struct {
	ctx context.Context
	err error
	at  time.Time
}

// begin makes an acquiring call on a goroutine of its own.
func begin(call func() (context.Context, error)) <-chan result {
	ch := make(chan result, 1)
	go func() {
		ctx, err := call()
		ch <- result{ctx, err, time.Now()}
	}()
	return ch
}

// await takes what comes within a bound.
func await[T any](t testing.TB, ch <-chan T, within time.Duration, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(within):
		t.Fatalf("%snot within %v: %s", realtime.Bound(), within, what)
		panic("not reached")
	}
}

// spread says where the middle and the end of some durations are.
func spread(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("median %v, longest %v of %d", all[len(all)/2].Round(time.Microsecond), all[len(all)-1].Round(time.Microsecond), len(all))
}
