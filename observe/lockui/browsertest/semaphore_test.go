package browsertest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// The page of a semaphore's name leads to the semaphore. Each page of it fits, and can be read, whatever the name is.
func TestSemaphore(t *testing.T) {
	b := open(t)
	long := strings.Repeat("a-very-long-name-of-a-semaphore:", 8)
	var holds []presence.Hold
	var waits []presence.Wait
	for i, name := range []string{"jobs", long} {
		for slot := range 3 {
			lock := fmt.Sprintf("{%s}:%d", name, slot)
			field := fmt.Sprintf("%s:-%d", id(1), 10*i+slot)
			locktest.NoError(t, b.rdb.HSet(t.Context(), lock, field, 1).Err())
			locktest.NoError(t, b.rdb.PExpire(t.Context(), lock, 25*time.Second).Err())
			holds = append(holds, presence.Hold{Lock: lock, Field: field, For: time.Duration(slot+1) * time.Hour})
		}
		locktest.NoError(t, b.rdb.Set(t.Context(), "redisson_lock_token:{"+name+"}:5", 41, 0).Err())
		locktest.NoError(t, b.rdb.ZAdd(t.Context(), "fencelock_line_of:{"+name+"}:*", redis.Z{Member: id(2) + ":1"}).Err())
		waits = append(waits, presence.Wait{Lock: "{" + name + "}:*", Calls: 2, For: time.Duration(i+1) * 40 * time.Second})
	}
	b.present(&presence.Client{ID: id(1), Name: "billing", Host: "node-7.example", PID: 4711, Program: "billing-service", Holds: holds})
	b.present(&presence.Client{ID: id(2), Name: "mail", Host: "node-8.example", PID: 42, Program: "mail", Waits: waits})

	b.run(chromedp.Navigate(b.url + "lock?name=jobs"))
	b.says("There is no lock of this name, but a semaphore")
	b.tabTo(`[data-key="semaphore"]`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.says("1 client waits for a permit")
	b.tabTo(`[data-key="lock {jobs}:2"]`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.says("A permit of the semaphore jobs")

	for _, scheme := range []string{"light", "dark"} {
		b.system(scheme)
		for _, width := range []int64{390, 1280} {
			b.run(chromedp.EmulateViewport(width, 800))
			for _, path := range []string{"", "lock?name=jobs", "semaphore?name=jobs", "lock?name=" + long, "semaphore?name=" + long, "lock?name=" + url.QueryEscape("{"+long+"}:0"), "client?id=" + id(2)} {
				b.run(chromedp.Navigate(b.url+path), chromedp.WaitReady("#live"))
				if is := get[int64](b, "document.documentElement.scrollWidth"); is > width {
					t.Errorf("%q is %d wide, on a screen of %d", path, is, width)
				}
				for _, bad := range get[[]string](b, contrasts) {
					t.Errorf("%s, %q: contrast %s", scheme, path, bad)
				}
			}
		}
	}
}
