package rlock_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/fifo"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// uncounted has the server count nobody who listens on these channels. All messages arrive.
func uncounted(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, channel func(name string) bool) {
	t.Helper()
	locktest.NoError(t, rdb.Ping(t.Context()).Err()) // the server is there
	messages := fifo.New[[]string]()
	go func() {
		for said, ok := messages.Pop(); ok; said, ok = messages.Pop() {
			m.Publish(said[0], said[1]) // which waits for the script to end
		}
	}()
	t.Cleanup(messages.Close)
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if cmd != "PUBLISH" || !channel(args[0]) {
			return false
		}
		messages.Push(slices.Clone(args))
		c.WriteInt(0)
		return true
	})
}

const doesNotCount = "PUBLISH in a script does not count this client"

// lineTurns has these clients take the lock, each as often as this, and requires that no call waits for longer.
func lineTurns(t *testing.T, p []*lineClient, times int, longest time.Duration) {
	t.Helper()
	var got []<-chan error
	for _, c := range p {
		got = append(got, locktest.Start(func() error {
			for range times {
				began := time.Now()
				held, err := c.l.Lock(t.Context())
				if err != nil {
					return err
				}
				if took := time.Since(began); took > longest {
					t.Errorf("a call has waited for %v", took)
				}
				time.Sleep(10 * time.Millisecond)
				if err := c.l.Unlock(held); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		}))
	}
	for _, done := range got {
		locktest.NoError(t, <-done)
	}
}

// P33: where the server counts nobody who listens, clients that wait are not in the line, hear of each release, and say so once.
func TestP33_NobodyIsCounted(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		uncounted(t, m, rdb, func(string) bool { return true })
		var log locktest.Log
		var p []*lineClient
		for range 3 {
			p = append(p, lineNew(t, m, rlock.WithLogger(log.Logger())))
		}
		javaHolds(t, rdb, time.Hour)
		var began time.Time
		var got []<-chan error
		for _, c := range p {
			got = append(got, locktest.Start(func() error {
				held, err := c.l.Lock(t.Context())
				if err != nil {
					return err
				}
				if late := time.Since(began); late > 100*time.Millisecond {
					t.Errorf("a waiter has the lock %v after the release", late)
				}
				return c.l.Unlock(held)
			}))
		}
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
		began = time.Now()
		m.Del("l")
		m.Publish(lockChannel, "0")
		for _, done := range got {
			locktest.NoError(t, <-done)
		}
		lineTurns(t, p, 20, 2*time.Second) // in no order
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
		if logged := log.With(doesNotCount); len(logged) != len(p) {
			t.Errorf("%d clients have logged: %q", len(p), logged)
		}
	})
}

// P33: where the server counts some of those who listen, as one node of a cluster does, those are in the line. The others are not, and wait for no
// longer.
func TestP33_SomeAreCounted(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var p []*lineClient
		var log [4]locktest.Log
		for i := range log {
			p = append(p, lineNew(t, m, rlock.WithLogger(log[i].Logger())))
		}
		uncounted(t, m, rdb, func(name string) bool {
			return strings.HasSuffix(name, ":"+p[0].c.ID()) || strings.HasSuffix(name, ":"+p[1].c.ID())
		})
		javaHolds(t, rdb, time.Hour)
		var tried []<-chan error
		for _, c := range p {
			tried = append(tried, locktest.Start(func() error { _, err := c.l.TryLock(t.Context(), 50*time.Second, 0); return err }))
		}
		for _, done := range tried {
			locktest.IsError(t, <-done, rlock.ErrNotAcquired)
		}
		m.Del("l")
		lineTurns(t, p, 50, 2*time.Second)
		for i := range log {
			locktest.Equal(t, "logged", log[i].Count(doesNotCount), map[bool]int{true: 1}[i < 2])
		}
	})
}

// P33: a client is counted no more by the connection with which it listens from now on, as that is to another node, or a proxy was replaced: it leaves the
// line. Once it is counted again it enters again.
func TestP33_AnotherConnectionIsNotCounted(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var counts atomic.Bool
		counts.Store(true)
		uncounted(t, m, rdb, func(string) bool { return !counts.Load() })
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		got := p.waits(t, t.Context())
		locktest.Sleep(time.Second)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		counts.Store(false)
		p.link.cut(false)
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "in the line, when it is counted no more", len(lineOf(t, m)), 0)
		counts.Store(true)
		locktest.Sleep(2 * time.Minute)
		locktest.Equal(t, "in the line, when it is counted again", len(lineOf(t, m)), 1)
		began := time.Now()
		m.Del("l")
		m.Publish(lockChannel, "0")
		lineGets(t, p, got, began, 0)
	})
}

// P33, P10: a client whose connection the server has ended, and which does not know that yet, is not counted once. It says nothing of that, and is in the
// line soon.
func TestP33_NotCountedOnce(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		var n atomic.Int64
		uncounted(t, m, rdb, func(string) bool { return n.Add(1) == 1 })
		javaHolds(t, rdb, time.Hour)
		var log locktest.Log
		p := lineNew(t, m, rlock.WithLogger(log.Logger()))
		got := p.waits(t, t.Context())
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
		locktest.Sleep(25 * time.Second)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		locktest.Equal(t, "logged", len(log.With("")), 0)
		began := time.Now()
		m.Del("l")
		m.Publish(lockChannel, "0")
		lineGets(t, p, got, began, 0)
		synctest.Wait()
	})
}

// P33: where the server counts nobody a client that releases the lock leaves it to others that may have been told, also where one of its own calls waits.
func TestP33_OthersComeFirst(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		uncounted(t, m, rdb, func(string) bool { return true })
		javaHolds(t, rdb, time.Hour)
		theirs := redistest.PipeClient(t, m)
		locktest.SpyOn(theirs).Wrap(func(_ []string, next func() error) error {
			time.Sleep(time.Millisecond) // who does not leave it to them is faster
			return next()
		})
		l, other := rlock.NewLock(newClient(t, rdb), "l"), rlock.NewLock(newClient(t, theirs), "l")
		for _, one := range []*rlock.Lock{l, other} {
			_, err := one.TryLock(t.Context(), 10*time.Millisecond, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
		}
		m.Del("l")
		held := take(t, l, t.Context())
		mine, next := waits(t.Context(), l), waits(t.Context(), other)
		locktest.Sleep(500 * time.Millisecond) // no handoff follows
		locktest.NoError(t, l.Unlock(held))
		var got locktest.Result
		select {
		case got = <-next:
		case got = <-mine:
			t.Fatalf("the client had the lock, and has it again: %v", got.Err)
		}
		locktest.NoError(t, got.Err)
		locktest.NoError(t, other.Unlock(got.Ctx))
		got = <-mine
		locktest.NoError(t, got.Err)
		locktest.NoError(t, l.Unlock(got.Ctx))
	})
}

// P30: where the server does not publish in scripts clients that wait are not in the line, look for the lock by themselves, and say so once.
func TestP30_TheServerDoesNotPublishInScripts(t *testing.T) {
	for _, words := range []string{
		"ERR PUBLISH is disabled, enable it with --pubsub option.", "ERR This Redis command is not allowed from script",
		"ERR Unknown Redis command called from script",
	} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			locktest.NoError(t, rdb.Ping(t.Context()).Err())
			m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
				if cmd == "PUBLISH" {
					c.WriteError(words)
				}
				return cmd == "PUBLISH"
			})
			var log locktest.Log
			p := lineNew(t, m, rlock.WithLogger(log.Logger()))
			javaHolds(t, rdb, time.Hour)
			got := p.waits(t, t.Context())
			locktest.Sleep(3 * time.Second)
			locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
			began := time.Now()
			m.Del("l")
			lineGets(t, p, got, began, 10*time.Second)
			locktest.Equal(t, "logged", log.Count("the server does not do in scripts what the line takes"), 1)
		})
	}
}
