package rlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// site is a server, a proxy in front of it, and a client that sees the server as it is.
type site struct {
	t      *testing.T
	addr   string
	proxy  *redistest.Proxy
	direct *redis.Client
}

// siteAt returns a site on the server at addr. The scripts are loaded, so that the first EVALSHA of each runs.
func siteAt(t *testing.T, addr string) *site {
	t.Helper()
	s := &site{t: t, addr: addr, proxy: redistest.NewProxy(t, addr), direct: redistest.Client(t, addr)}
	for _, name := range []string{"acquire", "wait", "try", "level", "unlock", "release", "leave", "renew", "inspect"} {
		locktest.NoError(t, s.direct.ScriptLoad(t.Context(), locktest.ScriptText(name)).Err())
	}
	return s
}

// newSite returns a site on a fresh server, for a test that is parallel to others.
func newSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return siteAt(t, redistest.Start(t))
}

// on arranges a fault of the next call of the script through the proxy.
func (s *site) on(script string, do redistest.Action) *redistest.Fault {
	s.t.Helper()
	return s.proxy.On(script, locktest.CallsOf(script), do)
}

// client returns a lock client behind the proxy whose reads give up soon: what is swallowed silently is missed after 300 ms.
func (s *site) client(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	realtime.Test(s.t, "answers within 300 ms")
	return newClient(s.t, redistest.Client(s.t, s.proxy.Addr(), func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }), opts...)
}

// other returns a lock client past the proxy: another process.
func (s *site) other(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	return newClient(s.t, redistest.Client(s.t, s.addr), opts...)
}

// hash is the lock as it is in Redis, without the change number: the fields of holds and their counts.
func (s *site) hash(name string) map[string]string {
	s.t.Helper()
	h, err := s.direct.HGetAll(context.Background(), name).Result()
	locktest.NoError(s.t, err)
	for field := range h {
		if strings.HasSuffix(field, "#") {
			delete(h, field)
		}
	}
	return h
}

// count is the hold count in Redis, "" where nobody holds the lock.
func (s *site) count(name string) string {
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
func (s *site) wantCount(name, want string) {
	s.t.Helper()
	locktest.Equal(s.t, "hold count in Redis", s.count(name), want)
}

// released listens, and returns a function that requires that somebody releases the lock: that sends a message, and the
// end of the lease sends none.
func (s *site) released(name string) func() {
	s.t.Helper()
	sub := s.direct.Subscribe(s.t.Context(), "redisson_lock__channel:{"+name+"}")
	s.t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(s.t.Context())
	locktest.NoError(s.t, err)
	messages := sub.Channel()
	return func() {
		s.t.Helper()
		redistest.Await(s.t, bound, messages, "%q is released", name)
		s.wantCount(name, "")
	}
}

// wantCounter requires the value of the fencing counter.
func (s *site) wantCounter(name, want string) {
	s.t.Helper()
	locktest.Equal(s.t, "fencing counter", s.direct.Get(context.Background(), "redisson_lock_token:{"+name+"}").Val(), want)
}
