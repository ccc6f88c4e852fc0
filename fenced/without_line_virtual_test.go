package fenced_test

import (
	"bytes"
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A slowEar is a connection whose messages come a millisecond late.
type slowEar struct {
	net.Conn
	listens atomic.Bool
}

func (c *slowEar) Write(p []byte) (int, error) {
	if bytes.Contains(bytes.ToLower(p), []byte("subscribe")) {
		c.listens.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *slowEar) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.listens.Load() {
		time.Sleep(time.Millisecond)
	}
	return n, err
}

// P30: where there is no line a client that releases a permit, or its hold of a read-write lock, leaves it to the others that were told, also where
// one of its own calls waits, which hears of the release after its answer.
func TestP30_OthersComeFirstWithoutALine(t *testing.T) {
	for what, acquire := range map[string]func(t *testing.T, c *rlock.Client) (unlock func(), err error){
		"a semaphore": func(t *testing.T, c *rlock.Client) (func(), error) {
			p, err := fenced.NewSemaphore(c, "jobs", 1).Acquire(t.Context())
			return func() { locktest.NoError(t, p.Unlock(t.Context())) }, err
		},
		"a read-write lock": func(t *testing.T, c *rlock.Client) (func(), error) {
			h, err := fenced.NewRWLock(c, "repo").Write().Acquire(t.Context())
			return func() { locktest.NoError(t, h.Unlock(t.Context())) }, err
		},
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, theirs *redis.Client) {
				locktest.NoError(t, theirs.Ping(t.Context()).Err()) // the server is there
				m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
					refused := slices.Contains([]string{"ZADD", "ZCARD", "ZRANGE", "ZRANK", "ZREM", "ZSCORE"}, cmd)
					if refused {
						c.WriteError("NOPERM User app has no permissions to run this command")
					}
					return refused
				})
				locktest.SpyOn(theirs).Wrap(func(_ []string, next func() error) error {
					time.Sleep(2 * time.Millisecond) // who does not leave it to them is faster
					return next()
				})
				own, other := newClient(t, redistest.PipeClient(t, m, func(o *redis.Options) {
					dial := redistest.Unprobed(o.Dialer)
					o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
						conn, err := dial(ctx, network, addr)
						return &slowEar{Conn: conn}, err
					}
				})), newClient(t, theirs)
				unlock, err := acquire(t, own)
				locktest.NoError(t, err)
				order := make(chan string, 2)
				start := func(who string, c *rlock.Client) <-chan error {
					return locktest.Start(func() error {
						unlock, err := acquire(t, c)
						if err == nil {
							order <- who
							unlock()
						}
						return err
					})
				}
				mine, next := start("its own call", own), start("the other client", other)
				locktest.Sleep(500 * time.Millisecond)
				unlock()
				locktest.NoError(t, <-mine)
				locktest.NoError(t, <-next)
				locktest.Equal(t, "first comes", <-order, "the other client")
			})
		})
	}
}
