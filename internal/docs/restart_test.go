package docs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What the page says that a restart loses is what a server loses that is killed.
func TestWhatARestartLoses(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, rightsPage))
	locktest.NoError(t, err)
	for name, c := range map[string]struct {
		setting string // as the page has it
		args    []string
		saves   bool // a snapshot is made between the two locks
		kept    [2]bool
	}{
		"always":    {"`appendonly yes`, `appendfsync always`, `no-appendfsync-on-rewrite no`", []string{"--appendonly", "yes", "--appendfsync", "always"}, false, [2]bool{true, true}},
		"snapshots": {"snapshots alone (`save`)", nil, true, [2]bool{true, false}},
		"none":      {"none", nil, false, [2]bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(string(page), "\n| "+c.setting+" | ") {
				t.Errorf("the page has no row for %s", c.setting)
			}
			server := redistest.Real(t, c.args...)
			client, err := rlock.New(server.Client())
			locktest.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			lock := func(i int, opts ...fenced.Option) *fenced.Lock {
				return fenced.NewLock(client, []string{"early", "late"}[i], opts...)
			}
			const lease = 2 * time.Second
			short := fenced.NewLock(client, "short", fenced.WithClockFloor())
			var tokens [2]int64
			_, before, err := short.LockLeaseAndGetToken(t.Context(), lease)
			locktest.NoError(t, err)
			ends := time.Now().Add(lease)
			for i := range tokens {
				_, tokens[i], err = lock(i).LockLeaseAndGetToken(t.Context(), time.Hour)
				locktest.NoError(t, err)
				if i == 0 && c.saves {
					server.Do("save")
				}
			}
			server.Kill()
			time.Sleep(time.Until(ends))
			server.Restart()
			for i, kept := range c.kept {
				locked, err := lock(i).IsLocked(t.Context())
				locktest.NoError(t, err)
				locktest.Equal(t, "the lock is there", locked, kept)
				if !locked {
					_, token, err := lock(i).LockLeaseAndGetToken(t.Context(), time.Hour)
					locktest.NoError(t, err)
					locktest.Equal(t, "the token, which was given before", token, tokens[i])
				}
			}
			locked, err := short.IsLocked(t.Context())
			locktest.NoError(t, err)
			locktest.Equal(t, "the lease that has ended meanwhile is there", locked, false)
			_, after, err := short.LockLeaseAndGetToken(t.Context(), lease)
			locktest.NoError(t, err)
			if after <= before {
				t.Errorf("with a floor the token is %d after %d", after, before)
			}
		})
	}
}

// At maxmemory an acquire is an error, and a release goes on, as the page says.
func TestMaxmemory(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t, "--maxmemory-policy", "noeviction")
	admin := server.Client()
	client, err := rlock.New(server.Client())
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	l := fenced.NewLock(client, "account:42")
	held, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	locktest.NoError(t, admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, _, err = fenced.NewLock(client, "account:43").LockAndGetToken(t.Context())
	locktest.ErrorSays(t, err, "OOM", "maxmemory")
	locktest.NoError(t, l.Unlock(held))
	locktest.Equal(t, "keys of the lock", admin.Exists(context.Background(), "account:42").Val(), int64(0))
}
