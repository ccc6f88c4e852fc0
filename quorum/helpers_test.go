package quorum_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/quorum"
)

// bound is how long these tests wait for what must happen and has no bound of its own.
const bound = 20 * time.Second

// TestMain runs more parallel tests at a time than there are processors, for they wait most of the time, and requires
// that no goroutine of the library is left when all of them are over (Inv9).
func TestMain(m *testing.M) {
	flag.Parse()
	logging.Disable() // of go-redis, which tells of each connection that is refused
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6")
	}
	code := m.Run()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		left := goroutines()
		if len(left) == 0 {
			break
		}
		if time.Now().After(deadline) {
			fmt.Fprintf(os.Stderr, "Inv9: %d goroutines remain:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
			code = max(code, 1)
			break
		}
	}
	os.Exit(code)
}

// goroutines is the stacks of goroutines that the library started.
func goroutines() []string {
	buf := make([]byte, 1<<22)
	var left []string
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		for _, room := range []string{"quorum.", "rlock.", "watchdog.", "pubsub.", "scripts."} {
			if strings.Contains(stack, "created by github.com/fencelock/fencelock/"+room) {
				left = append(left, stack)
				break
			}
		}
	}
	return left
}

// site is the nodes of a test.
type site struct {
	t       *testing.T
	nodes   int
	connect func(node int) *redis.Client
	minis   []*miniredis.Miniredis // in virtual time: embedded servers whose runs are an hour old
	starts  []run                  // and these are they
	runs    int
	servers []*redistest.Server // otherwise: processes
	direct  []*redis.Client     // and clients that see them as they are
}

type run struct {
	id    string
	began time.Time
}

func virtual(t *testing.T, n int, test func(t *testing.T, s *site)) {
	t.Helper()
	redistest.Virtual(t, func(t *testing.T) {
		s := &site{t: t, nodes: n}
		s.connect = func(i int) *redis.Client { return redistest.PipeClient(t, s.minis[i]) }
		for i := range n {
			m, rdb := redistest.Pipe(t)
			ok(t, rdb.Ping(t.Context()).Err()) // it is up with its first connection
			s.minis = append(s.minis, m)
			s.starts = append(s.starts, run{fmt.Sprintf("first%d", i), time.Now().Add(-time.Hour)})
			s.clock(i, 0)
		}
		defer time.Sleep(10 * time.Second) // what sleeps in a link goes on first: time ends with this goroutine
		test(t, s)
	})
}

// restart makes a node forget everything.
func (s *site) restart(i int) {
	s.runs++
	s.minis[i].FlushAll()
	s.starts[i] = run{fmt.Sprintf("later%d", s.runs), time.Now()}
	s.clock(i, 0)
}

// clock makes a node's clock show so much more than the test's; it did not when the node started.
func (s *site) clock(i int, ahead time.Duration) {
	redistest.TellClock(s.minis[i], s.starts[i].id, s.starts[i].began, ahead)
}

// user is a client of the quorum, with a link to each node that can fail.
type user struct {
	*quorum.Client
	links []*link
}

func (s *site) user(opts ...quorum.Option) *user {
	s.t.Helper()
	u := &user{}
	var nodes []redis.UniversalClient
	for i := range s.nodes {
		l := &link{}
		rdb := s.connect(i)
		rdb.AddHook(l)
		u.links = append(u.links, l)
		nodes = append(nodes, rdb)
	}
	c, err := quorum.New(nodes, opts...)
	ok(s.t, err)
	u.Client = c
	s.t.Cleanup(func() { _ = c.Close() })
	return u
}

func (u *user) lock(name string, opts ...fenced.Option) *fenced.Lock {
	return quorum.NewLock(u.Client, name, opts...)
}

// down cuts the links to these nodes: their connections are refused.
func (u *user) down(nodes ...int) { u.each(nodes, func(l *link) { l.down = true }) }

// up mends them all.
func (u *user) up() {
	for _, l := range u.links {
		l.mu.Lock()
		l.down, l.on = false, nil
		l.mu.Unlock()
	}
}

// on sets what is done with each operation for these nodes.
func (u *user) on(do func(node int, op string, args []any, next func() error) error, nodes ...int) {
	for _, i := range nodes {
		u.each([]int{i}, func(l *link) {
			l.on = func(op string, args []any, next func() error) error { return do(i, op, args, next) }
		})
	}
}

func (u *user) each(nodes []int, do func(*link)) {
	for _, i := range nodes {
		l := u.links[i]
		l.mu.Lock()
		do(l)
		l.mu.Unlock()
	}
}

// link is a go-redis hook between a client and one node.
type link struct {
	mu   sync.Mutex
	down bool
	on   func(op string, args []any, next func() error) error
}

var errRefused = &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}

func (l *link) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

func (l *link) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if l.isDown() {
			return nil, errRefused
		}
		return next(ctx, network, addr)
	}
}

func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if l.isDown() {
			for _, cmd := range cmds {
				cmd.SetErr(errRefused)
			}
			return errRefused
		}
		return next(ctx, cmds)
	}
}

func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.mu.Lock()
		down, on := l.down, l.on
		l.mu.Unlock()
		op := opOf(cmd.Args())
		switch {
		case down:
			cmd.SetErr(errRefused)
			return errRefused
		case on == nil || op == "":
			return next(ctx, cmd)
		}
		err := on(op, slices.Clone(cmd.Args()), func() error { return next(ctx, cmd) })
		cmd.SetErr(err)
		return err
	}
}

var opNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, name := range []string{"vote", "extend", "raise", "withdraw", "look", "recount"} {
		text := file("holder") + file("report") + file(name)
		if name == "recount" {
			level := file("level")
			text = level[:strings.LastIndex(level, "\nlocal verdict")+1] + text
		}
		sum := sha1.Sum([]byte(text))
		names[hex.EncodeToString(sum[:])], names[text] = name, name
	}
	return names
})

func file(name string) string {
	text, err := os.ReadFile("../scripts/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// opOf is the operation that a command does; of several in one, the names with a space between.
func opOf(args []any) string {
	if len(args) < 2 {
		return ""
	}
	name, _ := args[0].(string)
	text, _ := args[1].(string)
	if !strings.HasPrefix(name, "eval") {
		return ""
	}
	if op := opNames()[text]; op != "" {
		return op
	}
	var found []string
	for _, arg := range args[2:] {
		if s, isText := arg.(string); isText {
			if s = strings.TrimSuffix(s, "+"); slices.Contains([]string{"vote", "extend", "raise", "withdraw", "look", "recount"}, s) {
				found = append(found, s)
			}
		}
	}
	return strings.Join(found, " ")
}

// fieldOf is the field that a vote, or an extension, is for.
func fieldOf(args []any) string {
	for _, arg := range args {
		if s, isText := arg.(string); isText && strings.Count(s, "-") == 4 && strings.Contains(s, ":") && len(s) < 60 {
			return s
		}
	}
	return ""
}

// fields is who has the lock on each node, "" for nobody.
func (s *site) fields(name string) []string {
	var all []string
	for _, m := range s.minis {
		var who string
		keys, _ := m.HKeys(name)
		for _, k := range keys {
			if !strings.HasSuffix(k, "#") {
				who += k
			}
		}
		all = append(all, who)
	}
	return all
}

// has is how many nodes somebody has the lock on.
func (s *site) has(name string) int {
	n := 0
	for _, who := range s.fields(name) {
		if who != "" {
			n++
		}
	}
	return n
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// asleep lets virtual time pass, and everything that is due then happen.
func asleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

type result struct {
	ctx   context.Context
	token int64
	err   error
}

func start(call func() (context.Context, int64, error)) <-chan result {
	ch := make(chan result, 1)
	go func() {
		ctx, token, err := call()
		ch <- result{ctx, token, err}
	}()
	return ch
}
