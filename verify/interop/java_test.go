package interop

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// javaClient is a RedissonClient.
type javaClient struct {
	t    testing.TB
	jvm  *jvm
	name string
}

// javaLock is a lock of a RedissonClient in the hands of one thread, which is its holder.
type javaLock struct {
	client *javaClient
	thread string
	kind   kind
	name   string
}

var javaClients atomic.Int64

// newJava returns a RedissonClient for the server at addr, whose watchdog has Redisson's default of 30 s. It is shut down
// when the test ends.
func newJava(t testing.TB, addr string, options ...string) *javaClient {
	t.Helper()
	realtime.Test(t, "a JVM that answers within 30 s, and who is woken by it within 5 s")
	j, err := redisson()
	noError(t, err)
	c := &javaClient{t, j, fmt.Sprint("client", javaClients.Add(1))}
	args := url.Values{"address": {addr}, "watchdog": {"30000"}}
	for i := 0; i < len(options); i += 2 {
		args.Set(options[i], options[i+1])
	}
	c.must(c.send("main", "open", args))
	t.Cleanup(c.close)
	return c
}

// version is Redisson's.
func (c *javaClient) version() string {
	text, _, _ := strings.Cut(strings.Trim(string(c.must(c.send("main", "version", url.Values{})).Value), `"`), " ")
	return text
}

// close shuts the RedissonClient down: its holds are renewed no more.
func (c *javaClient) close() {
	if c.name == "" {
		return
	}
	c.must(c.send("main", "close", url.Values{}))
	c.name = ""
}

func (c *javaClient) send(thread, command string, args url.Values) <-chan answer {
	args.Set("client", c.name)
	return c.jvm.call(c.name+"/"+thread, command, args)
}

// must requires an answer that is no exception.
func (c *javaClient) must(ch <-chan answer) answer {
	c.t.Helper()
	a, err := c.jvm.result(ch)
	noError(c.t, err)
	return a
}

// lock returns the lock of this name for a thread.
func (c *javaClient) lock(thread string, k kind, name string) *javaLock {
	return &javaLock{c, thread, k, name}
}

// start calls a method of the lock; args are names and values.
func (l *javaLock) start(method string, args ...string) <-chan answer {
	query := url.Values{"kind": {string(l.kind)}, "name": {l.name}}
	for i := 0; i < len(args); i += 2 {
		query.Set(args[i], args[i+1])
	}
	return l.client.send(l.thread, method, query)
}

// do calls a method of the lock, and requires that it throws nothing.
func (l *javaLock) do(method string, args ...string) answer {
	l.client.t.Helper()
	return l.client.must(l.start(method, args...))
}

// try calls a method of the lock that may throw.
func (l *javaLock) try(method string, args ...string) (answer, error) {
	return l.client.jvm.result(l.start(method, args...))
}

// is calls a method that returns a boolean.
func (l *javaLock) is(method string, want bool, args ...string) {
	l.client.t.Helper()
	equal(l.client.t, "Java: "+method, l.do(method, args...).truth(), want)
}

// number calls a method that returns a number.
func (l *javaLock) number(method string, args ...string) int64 {
	l.client.t.Helper()
	return l.do(method, args...).number()
}

// lock takes the lock for good, and returns its token, or 0 for a lock without.
func (l *javaLock) lock() int64 {
	l.client.t.Helper()
	if l.kind == fencedKind {
		return l.number("lockAndGetToken")
	}
	l.do("lock")
	return 0
}

// startLock is lock, without waiting.
func (l *javaLock) startLock() <-chan answer {
	if l.kind == fencedKind {
		return l.start("lockAndGetToken")
	}
	return l.start("lock")
}

func (l *javaLock) unlock() {
	l.client.t.Helper()
	l.do("unlock")
}

func (a answer) truth() bool { return string(a.Value) == "true" }

// number is -1 for null.
func (a answer) number() int64 {
	n := int64(-1)
	if string(a.Value) != "null" {
		if err := json.Unmarshal(a.Value, &n); err != nil {
			panic(err)
		}
	}
	return n
}

func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
