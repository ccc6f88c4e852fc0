package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// What the tests on server processes have: a lease that survives a busy machine, and therefore a delay after a restart
// of three seconds.
const (
	realLease = 2 * time.Second
	realDelay = 3 * time.Second
)

// masters is n server processes, which are old enough to count.
func masters(t *testing.T, n int, args ...string) *site {
	t.Helper()
	realtime.Test(t, "leases of 2 s, and nodes that answer within 400 ms")
	t.Parallel()
	s := &site{t: t, nodes: n}
	for range n {
		server := redistest.Real(t, args...)
		s.servers = append(s.servers, server)
		s.direct = append(s.direct, server.Client())
	}
	s.connect = func(i int) *redis.Client {
		return redistest.Client(t, s.servers[i].Addr(), func(o *redis.Options) { o.ReadTimeout = time.Second })
	}
	for i := range n {
		s.ripen(i)
	}
	return s
}

var uptimeLine = regexp.MustCompile(`uptime_in_seconds:(\d+)`)

// ripen waits until the node counts.
func (s *site) ripen(i int) {
	s.t.Helper()
	redistest.Eventually(s.t, bound, func() bool {
		found := uptimeLine.FindStringSubmatch(s.direct[i].Info(context.Background(), "server").Val())
		if found == nil {
			return false
		}
		up, err := strconv.Atoi(found[1])
		return err == nil && time.Duration(up)*time.Second >= realDelay
	}, "node %d is %v old", i, realDelay)
}

// lease is the options of users of masters.
func lease(opts ...rlock.Option) rlock.Option {
	return together(append([]rlock.Option{rlock.WithLease(realLease)}, opts...)...)
}

// patient is for a machine that is busy with other tests: answers may take a while.
func patient() rlock.Option { return quorum.WithNodeTimeout(400 * time.Millisecond) }

// free requires that the lock is free on all nodes, and stays so.
func (s *site) free(name string) {
	s.t.Helper()
	for i, rdb := range s.direct {
		redistest.Eventually(s.t, bound, func() bool { return rdb.Exists(context.Background(), name).Val() == 0 }, "the lock is free on node %d", i)
	}
}

// clean requires that no node has a key but the counter of the lock.
func (s *site) clean(name string) {
	s.t.Helper()
	for i, rdb := range s.direct {
		var left []string
		redistest.Eventually(s.t, bound, func() bool {
			left = left[:0]
			for _, key := range rdb.Keys(context.Background(), "*").Val() {
				if key != "redisson_lock_token:{"+name+"}" && !strings.HasPrefix(key, "fencelock:quorum") {
					left = append(left, key)
				}
			}
			return len(left) == 0
		}, "node %d has nothing left", i)
	}
}

// witness is the thing that the lock protects: it sees whether two believe to have it.
type witness struct {
	mu     sync.Mutex
	inside context.Context // of who is in the section
	token  int64
	holds  int
	wrong  error
}

// enter is what a holder does first; leave what it does last.
func (w *witness) enter(ctx context.Context, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return // it knows
	}
	if w.inside != nil && w.inside.Err() == nil && ctx.Err() == nil {
		w.blame(errors.New("Inv1: two holders with a context that is alive"))
	}
	if token <= w.token {
		w.blame(fmt.Errorf("Inv2: token %d after %d", token, w.token))
	}
	w.inside, w.token = ctx, token
	w.holds++
}

// raise notes the token of a re-entry into the hold with the token before.
func (w *witness) raise(ctx context.Context, before, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if token <= before {
		w.blame(fmt.Errorf("Inv2: token %d after %d", token, before))
	}
	if w.inside == ctx && ctx.Err() == nil {
		w.token = max(w.token, token)
	}
}

func (w *witness) leave(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside == ctx {
		w.inside = nil
	}
}

func (w *witness) blame(err error) {
	if w.wrong == nil {
		w.wrong = err
	}
}

func (w *witness) verdict() (holds int, wrong error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.holds, w.wrong
}

// within requires that what began then has taken no longer than the bound.
func within(t testing.TB, began time.Time, bound time.Duration, what string) {
	t.Helper()
	locktest.TookAtMost(t, began, bound, 2*time.Second, what)
}
