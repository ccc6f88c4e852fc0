package lockui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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

// A semaphore is one row of the list, and has a page with who has which slot and who waits; the page of its name leads there, and is
// not green while somebody waits. Beside a lock of its name it is another thing.
func TestSemaphore(t *testing.T) {
	rdb := redistest.New(t)
	permit := func(slot, n int, age time.Duration, lasting string) presence.Hold {
		name := fmt.Sprintf("{jobs}:%d", slot)
		field := fmt.Sprintf("%s:-%d", id(n), slot+1)
		locktest.NoError(t, rdb.HSet(t.Context(), name, field, 1).Err())
		locktest.NoError(t, rdb.PExpire(t.Context(), name, time.Minute).Err())
		locktest.NoError(t, rdb.Set(t.Context(), "redisson_lock_token:"+name, 40+slot, 0).Err())
		return presence.Hold{Lock: name, Field: field, For: age, Lasting: lasting}
	}
	waits := func(age time.Duration, lasting string) {
		says(t, rdb, 2, "exports", nil, []presence.Wait{{Lock: "{jobs}:*", Calls: 1, For: age, Lasting: lasting}})
	}
	locktest.NoError(t, rdb.Set(t.Context(), "redisson_lock_token:{jobs}:3", 9, 0).Err())
	says(t, rdb, 1, "imports", []presence.Hold{permit(0, 1, 3*time.Hour, ""), permit(1, 1, time.Second, ""), permit(2, 1, time.Second, "")}, nil)
	shown := func() string { return list(t, newPage(t, rdb), "/?format=json").String() }
	locktest.Equal(t, "while nobody waits", shown(), "jobs held")
	contains(t, ok(t, newPage(t, rdb), "/"), ">jobs</a>", "a semaphore", "3 taken of 4 slots seen", "3 h 00 min", "the oldest permit", "1 lock found", "Nobody waits")

	waits(time.Second, "")
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line_of:{jobs}:*", redis.Z{Score: 1, Member: id(2) + ":1"}).Err())
	locktest.Equal(t, "while one waits", shown(), "jobs waited")
	page := newPage(t, rdb)
	locktest.Equal(t, "by a part of the name, of a host, older than an hour", list(t, page, "/?format=json&q=obs&host=host1&older=1h&waited=1").String(), "jobs waited")
	one := ok(t, page, "/semaphore?name=jobs")
	contains(t, one, `class="trouble"`, "3 taken of 4 slots seen", "1 client waits for a permit", ">imports</a>", "3 h 00 min", ">42<", ">3</a>", ">free<", ">exports</a>", "waits for 1 s")
	lacks(t, one, `class="calm"`, `class="alarm"`, "Nobody")
	for _, same := range []string{"/semaphore?name=" + url.QueryEscape("{jobs}"), "/lock?name=" + url.QueryEscape("{jobs}:*")} {
		locktest.Equal(t, same, asOf.ReplaceAllString(ok(t, page, same), ""), asOf.ReplaceAllString(one, ""))
	}
	contains(t, ok(t, page, "/semaphore?name=jobs&format=json"), `"taken_slots": 3`, `"seen_slots": 4`, `"waiting_clients": 1`, `"name": "{jobs}:2"`)
	led := ok(t, page, "/lock?name=jobs")
	contains(t, led, `class="trouble"`, "There is no lock of this name, but a semaphore: ", `href="semaphore?name=jobs">3 taken of 4 slots seen, 1 client waits</a>`)
	lacks(t, led, `class="calm"`, "Nobody holds it")
	contains(t, ok(t, page, "/lock?name="+url.QueryEscape("{jobs}:0")), "A permit of the semaphore", `href="semaphore?name=jobs"`)
	contains(t, ok(t, page, "/client?id="+id(2)), "a permit of", ">jobs</a>")

	waits(time.Hour, "")
	page = newPage(t, rdb)
	locktest.Equal(t, "while one waits for long", list(t, page, "/?format=json").String(), "jobs stuck")
	contains(t, ok(t, page, "/"), `href="semaphore?name=jobs">jobs</a>: somebody has waited for a permit for 1 h`)
	contains(t, ok(t, page, "/semaphore?name=jobs"), `class="alarm"`, "somebody has waited for a permit for 1 h")
	contains(t, ok(t, page, "/lock?name=jobs"), `class="alarm"`, "somebody has waited for a permit for 1 h")

	lock := hold(t, rdb, "jobs", 1, time.Minute)
	says(t, rdb, 1, "imports", []presence.Hold{{Lock: "jobs", Field: lock, For: time.Second}, permit(0, 1, time.Hour, "leads"), permit(1, 1, time.Hour, "leads"), permit(2, 1, time.Hour, "leads"), permit(3, 1, time.Hour, "leads")}, nil)
	waits(24*time.Hour, "leads")
	page = newPage(t, rdb)
	locktest.Equal(t, "a lock, and permits of leaders with a standby", list(t, page, "/?format=json").String(), "jobs held, jobs held")
	both := ok(t, page, "/lock?name=jobs")
	contains(t, both, `class="calm"`, ">imports</a>", "A semaphore has this name, too: ", "4 taken of 4 slots seen, 1 client waits")
	lacks(t, both, "no lock of this name")

	locktest.NoError(t, rdb.Del(t.Context(), "{jobs}:1").Err())
	locktest.NoError(t, rdb.Set(t.Context(), "redisson_lock_token:{jobs}:1", "text", 0).Err())
	contains(t, ok(t, newPage(t, rdb), "/semaphore?name=jobs"), `class="alarm"`, "slot 1 is free, but the fencing counter holds something that is not a number")

	page = newPage(t, rdb)
	contains(t, ok(t, page, "/semaphore?name=none"), "0 taken of 0 slots seen")
	contains(t, ok(t, page, "/lock?name=none"), `class="calm"`, "Nobody holds it; a lock that was never used looks the same")
	locktest.Equal(t, "without a name", get(page, "/semaphore").Code, http.StatusBadRequest)
}

// Permits of clients that say nothing of themselves are no rows of their own either. A slot's lock that somebody waits for is one.
func TestSemaphoreWithoutPresence(t *testing.T) {
	rdb := redistest.New(t)
	client, err := rlock.New(rdb)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	for range 3 {
		_, err := fenced.NewSemaphore(client, "jobs", 5).Acquire(t.Context())
		locktest.NoError(t, err)
	}
	_, err = fenced.NewLock(client, "{other}:0").Acquire(t.Context())
	locktest.NoError(t, err)
	redistest.Eventually(t, 20*time.Second, func() bool { return len(rdb.PubSubChannels(t.Context(), "*").Val()) == 4 }, "the holders listen")
	locktest.Equal(t, "the rows", list(t, newPage(t, rdb), "/?format=json").String(), "{other}:0 maybe, jobs held")
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line_of:{jobs}:2", redis.Z{Score: 1, Member: id(2) + ":1"}).Err())
	locktest.Equal(t, "the rows while slot 2 is to be taken out of service", list(t, newPage(t, rdb), "/?format=json").String(), "{jobs}:2 waited, {other}:0 maybe, jobs held")
}

// asOf is when a page was made.
var asOf = regexp.MustCompile(`As of [0-9:]+ UTC`)
