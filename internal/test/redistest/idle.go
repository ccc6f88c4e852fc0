package redistest

import (
	"context"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BlindDialer dials connections of which go-redis does not see that the server has ended them, as it does not with TLS: they have no
// SyscallConn.
func BlindDialer(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}

// LeaveIdle puts n connections into the client's pool, as a busy moment leaves them there.
func LeaveIdle(t testing.TB, rdb *redis.Client, n int) {
	t.Helper()
	var conns []*redis.Conn
	for range n {
		conn := rdb.Conn()
		if err := conn.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// LeaveIdlePipelines is LeaveIdle for the pool that a client has for pipelines, by memredis.SetPipelinePool.
func LeaveIdlePipelines(t testing.TB, rdb *redis.Client, n int) {
	t.Helper()
	Eventually(t, time.Minute, func() bool {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				_, _ = rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					p.Do(t.Context(), "wait", 1, 200) // it takes 200 ms, so that all are under way at once
					return nil
				})
			})
		}
		all.Wait()
		stats := reflect.ValueOf(rdb.PoolStats()).Elem().FieldByName("PipelineStats")
		return int(stats.Elem().FieldByName("IdleConns").Uint()) >= n
	}, "%d idle connections for pipelines", n)
}
