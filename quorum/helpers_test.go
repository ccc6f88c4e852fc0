package quorum_test

import (
	"context"
	"fmt"
	"net"
	"os"
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
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// bound is how long these tests wait for what must happen and has no bound of its own.
const bound = 20 * time.Second

// TestMain looks for goroutines that remain, too.
func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which tells of each connection that is refused
	os.Exit(locktest.Main(m, 6))
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
		s.connect = func(i int) *redis.Client {
			return redistest.PipeClient(t, s.minis[i], func(o *redis.Options) { o.Addr = fmt.Sprintf("node%d:6379", i) })
		}
		for i := range n {
			m, rdb := redistest.Pipe(t)
			locktest.NoError(t, rdb.Ping(t.Context()).Err()) // it is up with its first connection
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
	*rlock.Client
	links []*link
}

func (s *site) user(opts ...rlock.Option) *user {
	s.t.Helper()
	all := make([]int, s.nodes)
	for i := range all {
		all[i] = i
	}
	return s.userOf(all, opts...)
}

// userOf is a user of a quorum of these nodes.
func (s *site) userOf(these []int, opts ...rlock.Option) *user {
	s.t.Helper()
	u := &user{}
	var nodes []redis.UniversalClient
	for _, i := range these {
		l := &link{}
		rdb := s.connect(i)
		rdb.AddHook(l)
		u.links = append(u.links, l)
		nodes = append(nodes, rdb)
	}
	c, err := quorum.New(nodes, opts...)
	locktest.NoError(s.t, err)
	u.Client = c
	s.t.Cleanup(func() { _ = c.Close() })
	return u
}

// together is all these options as one.
func together(opts ...rlock.Option) rlock.Option {
	return func(s *engine.Settings) {
		for _, opt := range opts {
			opt(s)
		}
	}
}

func (u *user) lock(name string, opts ...fenced.Option) *fenced.Lock {
	return fenced.NewLock(u.Client, name, opts...)
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
		l.mu.Lock()
		down, on := l.down, l.on
		l.mu.Unlock()
		op := strings.Join(locktest.Ops(cmds[0].Args()), " ")
		var err error
		switch {
		case down:
			err = errRefused
		case on == nil || op == "":
			return next(ctx, cmds)
		default:
			err = on(op, slices.Clone(cmds[0].Args()), func() error { return next(ctx, cmds) })
		}
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.mu.Lock()
		down, on := l.down, l.on
		l.mu.Unlock()
		op := strings.Join(locktest.Ops(cmd.Args()), " ") // of several in one, with a space between
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

// teach makes all nodes know the scripts of an acquire and a release.
func teach(t *testing.T, l *fenced.Lock) {
	t.Helper()
	locktest.NoError(t, l.Do(t.Context(), func(context.Context, int64) error {
		synctest.Wait() // an Unlock before the last vote has left would keep it from being sent
		return nil
	}))
	locktest.Sleep(time.Second)
}
