package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/quorum"
)

// P3: nodes that stood still for longer than a lease run, when they go on, the votes that lay in their sockets. A second later no
// node has anything of them left: what one call left on one node and another call on the next ones would keep everybody from a majority.
func TestP3_NodesThatStoodStill(t *testing.T) {
	for _, frozen := range []int{3, 1} {
		t.Run(fmt.Sprint(frozen, " of 5"), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				const locks = 10
				var gate memredis.Gate
				open := s.connect
				s.connect = func(i int) *redis.Client {
					if i < frozen {
						return redistest.GatedClient(t, s.minis[i], &gate)
					}
					return open(i)
				}
				u := s.user()
				use := func(within time.Duration, want error) {
					var calls []<-chan error
					for i := range locks {
						calls = append(calls, locktest.Start(func() error {
							ctx, cancel := context.WithTimeout(t.Context(), within)
							defer cancel()
							return u.lock(fmt.Sprint("lock-", i)).Do(ctx, func(context.Context, int64) error { return nil })
						}))
					}
					for _, call := range calls {
						if err := <-call; !errors.Is(err, want) {
							t.Errorf("got %v, want %v", err, want)
						}
					}
				}
				use(time.Minute, nil) // all nodes know the scripts then
				locktest.Sleep(time.Second)
				gate.Shut()
				if frozen < 3 {
					use(time.Minute, nil)
				} else {
					use(2*time.Second, context.DeadlineExceeded)
				}
				locktest.Sleep(2 * time.Minute)
				const begun = 200 // so many records are a reason to sweep
				for i := range begun {
					quorum.Begin(u.Client, fmt.Sprint("6b1f0d1e-0000-4000-8000-000000000001:", i), time.Second)
				}
				gate.Open()
				locktest.Sleep(1100 * time.Millisecond)
				for i := range locks {
					locktest.Equal(t, "nodes with a hold that nobody has", s.has(fmt.Sprint("lock-", i)), 0)
				}
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "records", quorum.Records(u.Client), begun)
			})
		})
	}
}
