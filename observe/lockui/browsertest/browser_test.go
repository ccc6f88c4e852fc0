package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
)

// program is the browser's path.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("there is no Chromium: .ci/chromium installs one and prints its path, or set CHROMIUM")
	return ""
}

// A tab shows the page of a Redis of the test's own.
type tab struct {
	t    *testing.T
	ctx  context.Context
	rdb  *redis.Client
	url  string
	asks atomic.Int64 // for a fragment
	away atomic.Bool  // the site answers as if Redis did not
}

// open starts a browser with one tab, which shows nothing yet. What the browser complains about, such as a script or a style that the page may
// not have, fails the test.
func open(t *testing.T) *tab {
	t.Helper()
	rdb := redistest.New(t)
	in, err := inspect.New(rdb)
	locktest.NoError(t, err)
	return openOn(t, rdb, in)
}

// openOn is open of a page on this inspector.
func openOn(t *testing.T, rdb *redis.Client, in *inspect.Inspector) *tab {
	t.Helper()
	b := &tab{t: t, rdb: rdb}
	page := lockui.New(in, lockui.WithForceUnlock(func(*http.Request) bool { return true }), lockui.WithLogger(new(locktest.Log).Logger()))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("format") == "fragment" {
			b.asks.Add(1)
		}
		if b.away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(site.Close)
	b.url = site.URL + "/ops/locks/"

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program(t)), chromedp.WSURLReadTimeout(time.Minute), chromedp.UserDataDir(t.TempDir()))
	ctx, closeBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeTab := chromedp.NewContext(ctx)
	var mu sync.Mutex
	var complaints []string
	locktest.NoError(t, chromedp.Do(ctx)) // the browser ends with the context of the first call, which has no time limit therefore
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork { // a status of 400 and above is such an entry
				complaints = append(complaints, e.Entry.Text+" "+e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		}
	})
	locktest.NoError(t, err)
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	b.ctx = ctx
	t.Cleanup(func() {
		stop()
		closeTab()
		closeBrowser()
		mu.Lock()
		defer mu.Unlock()
		for _, complaint := range complaints {
			t.Errorf("the browser says: %s", complaint)
		}
	})
	return b
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	locktest.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// system sets the color scheme that the browser's system prefers.
func (b *tab) system(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	locktest.NoError(b.t, err)
}

// get is what the expression is on the page.
func get[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	locktest.NoError(b.t, err)
	return value
}

// until waits until the expression is true on the page, which may be another one by then.
func (b *tab) until(expression string) {
	b.t.Helper()
	redistest.Eventually(b.t, time.Minute, func() bool {
		is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		return err == nil && is
	}, "%s", expression)
}

// says waits until the page has this text.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.body && document.body.innerText.includes(%q)", text))
}

func id(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

// hold makes client 1 hold the locks, which it says, for so many minutes.
func (b *tab) hold(minutes time.Duration, names ...string) {
	b.t.Helper()
	var holds []presence.Hold
	for _, name := range names {
		field := id(1) + ":1"
		locktest.NoError(b.t, b.rdb.HSet(b.t.Context(), name, field, 1).Err())
		locktest.NoError(b.t, b.rdb.PExpire(b.t.Context(), name, time.Hour).Err())
		holds = append(holds, presence.Hold{Lock: name, Field: field, For: minutes * time.Minute})
	}
	b.present(&presence.Client{ID: id(1), Name: "billing", Host: "node-7.example", PID: 4711, Program: "billing-service", Holds: holds})
}

// wait makes client 2 wait for the lock.
func (b *tab) wait(name string) {
	b.t.Helper()
	locktest.NoError(b.t, b.rdb.ZAdd(b.t.Context(), "fencelock_line:{"+name+"}", redis.Z{Member: id(2) + ":1"}).Err())
	b.present(&presence.Client{ID: id(2), Name: "mail", Host: "node-8.example", PID: 42, Program: "mail", Waits: []presence.Wait{{Lock: name, Calls: 2, For: time.Minute}}})
}

// present makes the client say this, for as long as the test takes.
func (b *tab) present(c *presence.Client) {
	b.t.Helper()
	locktest.NoError(b.t, presence.Write(b.t.Context(), b.rdb, c))
	locktest.NoError(b.t, b.rdb.Persist(b.t.Context(), presence.Key(c.ID)).Err())
	locktest.NoError(b.t, b.rdb.HSet(b.t.Context(), presence.Key(c.ID), "seen", 1_800_000_000_000).Err()) // all at the same time
	locktest.NoError(b.t, b.rdb.ZAdd(b.t.Context(), presence.IndexKey, redis.Z{Score: 1e15, Member: c.ID}).Err())
	locktest.NoError(b.t, b.rdb.Persist(b.t.Context(), presence.IndexKey).Err())
}
