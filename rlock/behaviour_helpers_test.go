package rlock_test

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// The helpers of the behaviour tests; their names begin with bh, because other tests share the package.

// bhSoon bounds what should happen at once. It is less than a third of the lease, and than any poll that is to come late.
const bhSoon = 9 * time.Second

func bhClient(t testing.TB, rdb redis.UniversalClient, opts ...rlock.Option) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb, opts...)
	bhOK(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// bhOne returns a lock called "l" on a server of its own.
func bhOne(t testing.TB, opts ...rlock.Option) (*redis.Client, *rlock.Lock) {
	t.Helper()
	rdb := redistest.New(t)
	return rdb, rlock.NewLock(bhClient(t, rdb, opts...), "l")
}

func bhOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bhIs requires an error that is all of targets.
func bhIs(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("error %v is not %v", err, target)
		}
	}
}

// bhIsNot requires that err is none of targets.
func bhIsNot(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			t.Fatalf("error %v is %v", err, target)
		}
	}
}

func bhEqual[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func bhLock(t testing.TB, l *rlock.Lock, ctx context.Context) context.Context {
	t.Helper()
	held, err := l.Lock(ctx)
	bhOK(t, err)
	return held
}

func bhCount(t testing.TB, l *rlock.Lock, ctx context.Context, want int) {
	t.Helper()
	n, err := l.HoldCount(ctx)
	bhOK(t, err)
	bhEqual(t, "hold count", n, want)
	is, err := l.IsHeld(ctx)
	bhOK(t, err)
	bhEqual(t, "is held", is, want > 0)
}

func bhLocked(t testing.TB, l *rlock.Lock, want bool) {
	t.Helper()
	is, err := l.IsLocked(context.Background())
	bhOK(t, err)
	bhEqual(t, "locked", is, want)
}

// bhGot is the result of an acquiring call.
type bhGot struct {
	ctx context.Context
	err error
	at  time.Time
}

// bhGo makes an acquiring call on a goroutine of its own.
func bhGo(call func() (context.Context, error)) <-chan bhGot {
	ch := make(chan bhGot, 1)
	go func() {
		ctx, err := call()
		ch <- bhGot{ctx, err, time.Now()}
	}()
	return ch
}

// bhWait takes what comes within a bound.
func bhWait[T any](t testing.TB, ch <-chan T, within time.Duration, what string) T {
	t.Helper()
	return redistest.Await(t, within, ch, "%s", what)
}

// bhTaken requires of a try that waits that it says that somebody else has the lock. It gives it 20 ms, and more where
// Redis does not answer within that: the machine is busy.
func bhTaken(t testing.TB, try func(wait time.Duration) error) {
	t.Helper()
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		err := try(wait)
		if err != nil && strings.Contains(err.Error(), "no answer") && wait < bhSoon {
			continue
		}
		bhIs(t, err, rlock.ErrNotAcquired)
		return
	}
}

// bhNone requires that nothing comes for a while.
func bhNone[T any](t testing.TB, ch <-chan T, within time.Duration, what string) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-ch:
		t.Fatalf("%s: %v", what, v)
	case <-timer.C:
	}
}

// bhSubscribed waits until somebody listens to the channel of the lock "l": a waiter is in its place.
func bhSubscribed(t testing.TB, rdb *redis.Client) {
	t.Helper()
	redistest.Eventually(t, bhSoon, func() bool {
		return rdb.PubSubNumSub(context.Background(), bhChannel).Val()[bhChannel] > 0
	}, "a waiter subscribes to %s", bhChannel)
}

const bhChannel = "redisson_lock__channel:{l}"

// bhLog is a log that can be searched.
type bhLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *bhLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *bhLog) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), s)
}

func (l *bhLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *bhLog) option() rlock.Option { return rlock.WithLogger(slog.New(slog.NewTextHandler(l, nil))) }

// bhSpy is a go-redis hook that counts the script calls, and can hold them up.
type bhSpy struct {
	mu     sync.Mutex
	counts map[string]int
	around func(ctx context.Context, script string, next func() error) error
}

// bhSpyOn puts a spy on the client.
func bhSpyOn(rdb *redis.Client) *bhSpy {
	s := &bhSpy{counts: map[string]int{}}
	rdb.AddHook(s)
	return s
}

func (s *bhSpy) count(script string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[script]
}

// wrap sets what is done around each script call.
func (s *bhSpy) wrap(around func(ctx context.Context, script string, next func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.around = around
}

func (s *bhSpy) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *bhSpy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *bhSpy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		script := bhScript(cmd.Args())
		s.mu.Lock()
		if script != "" {
			s.counts[script]++
		}
		around := s.around
		s.mu.Unlock()
		if script == "" || around == nil {
			return next(ctx, cmd)
		}
		return around(ctx, script, func() error { return next(ctx, cmd) })
	}
}

var bhScripts = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"acquire", "level", "unlock", "transfer", "reserve", "wait", "try", "release", "leave", "renew", "inspect"} {
		text := bhText(name)
		sum := sha1.Sum([]byte(text))
		names[hex.EncodeToString(sum[:])] = bhOp(name)
		names[text] = bhOp(name)
	}
	return names
})

// bhOp is what a script does: an acquire, whether others in the line come before it or not, an unlock, whether it calls the
// first of them or not.
func bhOp(script string) string {
	switch script {
	case "wait", "try":
		return "acquire"
	case "release", "quick":
		return "unlock"
	}
	return script
}

// bhText is the text of a script as it is sent: with the functions of others that it calls before it.
func bhText(name string) string {
	var text string
	if slices.Contains([]string{"acquire", "level", "transfer", "reserve", "wait", "try"}, name) {
		text = bhFile("token")
	}
	if slices.Contains([]string{"acquire", "wait", "try", "inspect"}, name) {
		text += bhFile("holder")
	}
	if slices.Contains([]string{"wait", "try", "release", "leave"}, name) {
		text += bhFile("line")
	}
	switch name {
	case "wait":
		text += bhFunction("acquire")
	case "try":
		text += bhFunction("acquire") + bhFunction("wait")
	case "release":
		text += bhFunction("unlock")
	}
	return text + bhFile(name)
}

// bhFunction is a script without its call.
func bhFunction(name string) string {
	body := bhFile(name)
	return body[:strings.LastIndex(body, "\nlocal verdict")+1]
}

func bhFile(name string) string {
	text, err := os.ReadFile("../scripts/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// bhScript returns the name of the script that a command calls, or "".
func bhScript(args []any) string {
	if len(args) < 2 || !strings.HasPrefix(args[0].(string), "eval") {
		return ""
	}
	return bhScripts()[args[1].(string)]
}

// bhVirtual runs a test in virtual time on a miniredis.
func bhVirtual(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client)) {
	t.Helper()
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		test(t, m, rdb)
	})
}

// bhAsleep lets virtual time pass, and everything that is due then happen.
func bhAsleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
