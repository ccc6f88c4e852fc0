package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// retainSite is the lock "l" of a client whose only caller comes back at once, behind a link, while somebody else listens.
type retainSite struct {
	m        *miniredis.Miniredis
	direct   *redis.Client // not behind the link
	link     *handLink
	spy      *handSpy // on the link
	c        *rlock.Client
	l        *fenced.Lock
	acquire  func(context.Context) (context.Context, int64, error) // LockAndGetToken
	listener *redis.PubSub
	token    int64 // of the latest hold
}

const retainOver = 40 * time.Millisecond // after its last release a client no longer counts others' turns

const retainWay = 50 * time.Microsecond // half a round trip: several fit into the time for which the lock is retained

func retainNew(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, opts ...rlock.Option) *retainSite {
	t.Helper()
	s := &retainSite{m: m, direct: rdb, link: &handLink{way: retainWay}}
	own := s.link.redis(t, m)
	s.spy = handSpyOn(own)
	s.c = bhClient(t, own, opts...)
	s.l = fenced.NewLock(s.c, "l")
	s.acquire = s.l.LockAndGetToken
	bhOK(t, rdb.ScriptLoad(t.Context(), bhText("retain")).Err())
	s.listener = rdb.Subscribe(t.Context(), bhChannel)
	t.Cleanup(func() { _ = s.listener.Close() })
	_, err := s.listener.Receive(t.Context())
	bhOK(t, err)
	s.unlock(t, <-s.call(t))
	s.wait(t, 5*time.Millisecond)
	return s
}

// wait makes the client wait for the lock for so long, and so listen: it goes on with that while it comes back and others listen too.
func (s *retainSite) wait(t testing.TB, d time.Duration) {
	bhJavaHolds(t, s.direct, 30*time.Second)
	call := s.call(t)
	bhAsleep(d)
	s.m.Del("l")
	s.direct.Publish(t.Context(), bhChannel, "0")
	s.unlock(t, <-call)
}

func (s *retainSite) call(t testing.TB) <-chan handGot {
	return handGo(func() (context.Context, int64, error) { return s.acquire(handCtx(t)) })
}

func (s *retainSite) unlock(t testing.TB, got handGot) {
	t.Helper()
	bhOK(t, got.err)
	s.token = max(s.token, got.token)
	bhOK(t, s.l.Unlock(got.ctx))
}

// other is the lock of another client, which is not behind the link.
func (s *retainSite) other(t testing.TB) *fenced.Lock {
	return fenced.NewLock(bhClient(t, redistest.PipeClient(t, s.m)), "l")
}

// until takes and releases the lock until it is so, and tells how often that was and how long the last Unlock took.
func (s *retainSite) until(t testing.TB, so func() bool) (n int, unlock time.Duration) {
	t.Helper()
	for n = 1; n <= 60; n++ {
		held, token, err := s.acquire(handCtx(t))
		began := time.Now()
		s.unlock(t, handGot{held, token, err, began})
		if so() {
			return n, time.Since(began)
		}
	}
	t.Fatal("the client retains nothing")
	panic("not reached")
}

// retain takes and releases the lock until it is retained, which it is from now on, and returns how often that was.
func (s *retainSite) retain(t testing.TB) int {
	t.Helper()
	before := s.spy.count("retain")
	n, _ := s.until(t, func() bool { return s.spy.count("retain") > before })
	if len(s.fields()) != 1 {
		t.Fatalf("it is not retained: %v", s.fields())
	}
	s.spy.reset()
	return n
}

// retainLate does the same when the client's last release was so long ago that nothing else keeps its queue.
func (s *retainSite) retainLate(t testing.TB) {
	t.Helper()
	s.until(t, func() bool { return s.spy.count("retain") == 2 })
	s.until(t, func() bool { return len(s.fields()) == 0 })
	s.wait(t, 50*time.Millisecond)
	bhEqual(t, "retained", len(s.fields()), 1)
}

func (s *retainSite) fields() []string {
	fields, _ := s.m.HKeys("l")
	return fields
}

// free requires that nothing is left of the client but its listener's subscription (Inv9).
func (s *retainSite) free(t testing.TB, within time.Duration) {
	t.Helper()
	handFree(t, s.m, within, s.c)
	time.Sleep(5 * time.Second) // the bus keeps a channel for a while
	bhEqual(t, "subscriptions", s.m.PubSubNumSub(bhChannel)[bhChannel], 1)
	handFree(t, s.m, 0, s.c)
}

// endsLater is a context that ends when it is asked for the second time.
type endsLater struct {
	context.Context
	end   context.CancelFunc
	asked int
}

func (c *endsLater) Err() error {
	if c.asked++; c.asked == 2 {
		c.end()
	}
	return c.Context.Err()
}
