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

// P3: nodes that stood still for longer than a lease run, when they go on, the votes that lay in their sockets. A second later no lock has a
// majority that nobody has, and after a third of the lease no node has anything left.
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
				for at, most := range map[time.Duration]int{time.Second: 2, 11 * time.Second: 0} {
					time.AfterFunc(at, func() {
						for i := range locks {
							if n := s.has(fmt.Sprint("lock-", i)); n > most {
								t.Errorf("%v after the nodes go on %d of them have a hold that nobody has, want %d at most", at, n, most)
							}
						}
					})
				}
				locktest.Sleep(time.Minute)
				locktest.Equal(t, "records", quorum.Records(u.Client), begun)
			})
		})
	}
}
