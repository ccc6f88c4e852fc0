package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
)

// Inv6: every method ends with its context on a server that stands still, and says which.
func TestInv6_InspectAFrozenServer(t *testing.T) {
	cluster := redistest.Clustered(t, 1, 0)
	for what, s := range map[string]struct {
		rdb    redis.UniversalClient
		server *redistest.Server
	}{
		"a cluster": {cluster.Client(), cluster.Nodes[0]},
		"a server": func() (s struct {
			rdb    redis.UniversalClient
			server *redistest.Server
		}) {
			s.server = redistest.Real(t)
			s.rdb = s.server.Client()
			return s
		}(),
	} {
		t.Run(what, func(t *testing.T) {
			in := newInspector(t, s.rdb)
			locktest.NoError(t, s.rdb.HSet(t.Context(), "l", "6b1f0d1e-0000-4000-8000-000000000001:83", 1).Err())
			seen := look(t, in, "l")
			s.server.Freeze()
			t.Cleanup(s.server.Thaw)
			for method, call := range map[string]func(ctx context.Context) error{
				"Slots": func(ctx context.Context) error { _, err := in.Slots(ctx, "jobs", 5); return err },
				"Look":  func(ctx context.Context) error { _, err := in.Look(ctx, "l"); return err },
				"LookWith": func(ctx context.Context) error {
					_, err := in.LookWith(ctx, []inspect.Client{{ID: "x"}}, "l")
					return err
				},
				"Known":          func(ctx context.Context) error { _, err := in.Known(ctx); return err },
				"Clients":        func(ctx context.Context) error { _, err := in.Clients(ctx); return err },
				"Contended":      func(ctx context.Context) error { _, err := in.Contended(ctx); return err },
				"ContendedNames": func(ctx context.Context) error { _, err := in.ContendedNames(ctx); return err },
				"Listeners":      func(ctx context.Context) error { _, err := in.Listeners(ctx, "l"); return err },
				"Free":           func(ctx context.Context) error { _, err := in.Free(ctx, seen); return err },
				"Scan": func(ctx context.Context) error {
					for _, err := range in.Scan(ctx, "*", inspect.Pace{}) {
						return err
					}
					return nil
				},
			} {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				began := time.Now()
				err := call(ctx)
				locktest.TookAtMost(t, began, 200*time.Millisecond, 700*time.Millisecond, method)
				locktest.IsError(t, err, context.DeadlineExceeded)
				locktest.ErrorSays(t, err, "inspect: ")
				cancel()
			}
		})
	}
}
