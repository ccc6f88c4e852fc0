package lockui_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockui"
	"github.com/fencelock/fencelock/rlock"
)

// A read-write lock is shown with all that read, and who waits for what; the button frees all that read, and no writer that came later.
func TestReadWrite(t *testing.T) {
	rdb := redistest.Real(t).Client()
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	l := fenced.NewRWLock(client, "page")
	take := func(l *fenced.Lock) *fenced.Hold {
		t.Helper()
		h, err := l.Acquire(t.Context())
		locktest.NoError(t, err)
		return h
	}
	first, second := take(l.Read()), take(l.Read())
	waits := locktest.Start(func() error { return l.Write().Do(t.Context(), func(context.Context, int64) error { return nil }) })
	redistest.Eventually(t, 20*time.Second, func() bool { return rdb.ZCard(t.Context(), "fencelock_line:{page}").Val() == 1 }, "a writer waits")
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	contains(t, ok(t, page, "/"), "page", "and 1 other, read", "waited for")
	one := ok(t, page, "/lock?name=page")
	contains(t, one, "2 holders read", "Reader", "lease left", ", to write", "Force open")
	contains(t, ok(t, page, "/lock?name=page&format=json"), `"mode": "read"`, `"reading": 2`, `"ttl_ms"`, `"mode": "write"`)
	shown, err := newInspector(t, rdb).Look(t.Context(), "page")
	locktest.NoError(t, err)
	asked := "/free?name=page&token=1&holder=" + url.QueryEscape(shown[0].Readers[1].Field)
	contains(t, ok(t, page, asked), "2 holders read, and all of them lose the lock")
	locktest.Equal(t, "the button", post(page, asked, "page").Code, http.StatusOK)
	redistest.Await(t, 20*time.Second, first.Context().Done(), "the first one is lost")
	redistest.Await(t, 20*time.Second, second.Context().Done(), "the second one is lost")
	locktest.NoError(t, redistest.Await(t, 20*time.Second, waits, "the writer"))
	writes := take(l.Write())
	locktest.Equal(t, "the button once more", post(page, asked, "page").Code, http.StatusConflict)
	locktest.NoError(t, writes.Context().Err())
	contains(t, ok(t, page, "/lock?name=page"), "Held to write")
	locktest.NoError(t, writes.Unlock(t.Context()))
}

// The name that stands for the slots of a semaphore is no unknown thing: it is waited for, and stuck where somebody waits for long.
func TestSemaphore(t *testing.T) {
	rdb := redistest.New(t)
	hold(t, rdb, "{jobs}:0", 1, time.Minute)
	says(t, rdb, 2, "exports", nil, []presence.Wait{{Lock: "{jobs}:*", Calls: 1, For: time.Hour}})
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line_of:{jobs}:*", redis.Z{Score: 1, Member: id(2) + ":1"}).Err())
	page := newPage(t, rdb)
	locktest.Equal(t, "the locks", list(t, page, "/?format=json").String(), "{jobs}:* stuck")
	contains(t, ok(t, page, "/"), "somebody has waited for a permit for 1 h", "a semaphore")
	contains(t, ok(t, page, "/lock?name="+url.QueryEscape("{jobs}:*")), "A semaphore", "{jobs}:0", "exports")
}
