package limits_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencelock/fencelock/internal/test/limits"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which tells of each connection that ends
	os.Exit(locktest.Main(m, 8))
}

// Each feature does on each engine what the table says: it works, and nothing is logged, or the error or the log says what to do.
func TestEngines(t *testing.T) {
	engines := slices.Clone(limits.Profiles)
	if !isReal() { // where it takes too long that clients find out
		engines = append(engines, limits.Profile{Name: "nobody is counted", Source: "none", Limits: []limits.Limit{{Does: limits.CountsNobody}}})
	}
	for _, p := range engines {
		if _, is := expected[p.Name]; !is || p.Source == "" {
			t.Errorf("%s is not in the table, or of no source", p.Name)
		}
		for i, f := range features {
			t.Run(p.Name+"/"+f.name, func(t *testing.T) {
				t.Parallel()
				on(t, p, func(s *site) {
					want, err := expected[p.Name][i], f.try(s.t.Context(), s)
					said := s.log.String()
					if slices.Contains(logged, want) {
						if err != nil && !errors.Is(err, errLate) {
							s.t.Error(err)
						}
					} else if err != nil {
						said = err.Error()
					}
					if (want == works) != (said == "") || !strings.Contains(said, want) {
						s.t.Errorf("%q, want %q", said, want)
					}
				})
			})
		}
	}
}

// isReal tells that the servers are real ones: REDIS_SERVER is set, and REDIS_VIRTUAL is not.
func isReal() bool { return redistest.IsReal() && os.Getenv("REDIS_VIRTUAL") == "" }

// on calls test with a server that has the limits: a real one, or an embedded one in virtual time.
func on(t *testing.T, p limits.Profile, test func(*site)) {
	if isReal() {
		realtime.Test(t, "bounds of handoffs")
		s := newSite(t, p, func() *redis.Client { return redistest.New(t) })
		s.looks = 1733 * time.Millisecond
		test(s)
		return
	}
	redistest.Virtual(t, func(t *testing.T) {
		servers := 0
		test(newSite(t, p, func() *redis.Client {
			m, direct := redistest.Pipe(t)
			locktest.NoError(t, direct.Ping(t.Context()).Err()) // it is up with its first connection
			servers++
			redistest.TellUptime(m, fmt.Sprint("run", servers), time.Now().Add(-time.Hour))
			return direct
		}))
		locktest.Sleep(time.Second)
	})
}

// newSite puts the limits in front of the servers that start starts. Clients are as go-redis has them, but for what start says of connections.
func newSite(t *testing.T, p limits.Profile, start func() *redis.Client) *site {
	connect := func() func() redis.UniversalClient {
		o := start().Options()
		s := limits.New(p, func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dialer(ctx, o.Network, o.Addr) })
		return func() (rdb redis.UniversalClient) {
			if p.Name == "ElastiCache Serverless" {
				rdb = redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{o.Addr}, Dialer: s.Dial, PoolSize: o.PoolSize, ConnMaxIdleTime: o.ConnMaxIdleTime, MaintNotificationsConfig: o.MaintNotificationsConfig,
				})
			} else {
				one := *o
				one.Dialer, one.Protocol, one.DisableIdentity = s.Dial, 3, false
				rdb = redis.NewClient(&one)
			}
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		}
	}
	return &site{t: t, looks: 15733 * time.Millisecond, connect: connect(), nodes: func() (all []redis.UniversalClient) {
		for range 3 {
			all = append(all, connect()())
		}
		return all
	}}
}
