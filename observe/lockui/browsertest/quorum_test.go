package browsertest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
)

// An incident of a quorum, wide and narrow, light and dark: one server stands still, and one has a rest of another hold; then one more is dead. Pictures are written to QUORUM_PICTURES, if
// that is set.
func TestQuorum(t *testing.T) {
	var servers []*redistest.Server
	var all []redis.UniversalClient
	for range 5 {
		s := redistest.Real(t)
		servers, all = append(servers, s), append(all, redistest.Client(t, s.Addr()))
	}
	in, err := inspect.NewQuorum(all, inspect.WithMaxLease(time.Second))
	locktest.NoError(t, err)
	owner, rest, waiter := quorums.NewID(5), quorums.NewID(5), quorums.NewID(5)
	for i, s := range servers {
		field := owner + ":1"
		if i == 2 {
			field = rest + ":4"
		}
		s.Do("hset", "account:42", field, "1")
		s.Do("pexpire", "account:42", "600000")
		s.Do("set", "redisson_lock_token:{account:42}", "1795925973963512")
		s.Do("zadd", "fencelock_line:{account:42}", "1", waiter+":1")
		for _, c := range []*presence.Client{
			{ID: owner, Name: "billing", Host: "node-7", PID: 4711, Program: "billingd", Holds: []presence.Hold{{Lock: "account:42", Field: owner + ":1", For: 12 * time.Minute}}},
			{ID: rest, Name: "mail", Host: strings.Repeat("a-long-host.", 8), PID: 4712, Program: "maild"},
			{ID: waiter, Name: "shop", Host: "node-3", PID: 4713, Program: "shopd", Waits: []presence.Wait{{Lock: "account:42", Calls: 3, For: 11 * time.Minute}}},
		} {
			locktest.NoError(t, presence.Write(t.Context(), s.Client(), c))
		}
	}
	redistest.Eventually(t, 20*time.Second, func() bool {
		counting := 0
		all, err := in.Servers(t.Context())
		for _, s := range all {
			if s.Counts {
				counting++
			}
		}
		return err == nil && counting == 5
	}, "all servers count")
	servers[4].Freeze()
	t.Cleanup(servers[4].Thaw)
	b := openOn(t, servers[0].Client(), in)
	folder := cmp.Or(os.Getenv("QUORUM_PICTURES"), t.TempDir())
	for _, scheme := range []string{"light", "dark"} {
		b.system(scheme)
		for _, width := range []int64{1280, 390} {
			for page, path := range map[string]string{"locks": "", "lock": "lock?name=account:42"} {
				says := map[string]string{"locks": "does not count", "lock": "says nothing"}[page]
				b.run(chromedp.EmulateViewport(width, 900), chromedp.Navigate(b.url+path), chromedp.WaitReady("#live"))
				b.says("account:42")
				b.says(says)
				if got := get[int](b, "document.documentElement.scrollWidth"); int64(got) > width {
					t.Errorf("%s is %d wide, of %d", page, got, width)
				}
				for _, bad := range get[[]string](b, contrasts) {
					t.Errorf("%s, %q: contrast %s", scheme, path, bad)
				}
				png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
				locktest.NoError(t, err)
				locktest.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%s-%d.png", page, scheme, width)), png, 0o600))
			}
		}
	}
	b.run(chromedp.Navigate(b.url + "lock?name=account:42"))
	b.says("a rest of mail")
	servers[1].Kill()
	b.says("2 of 5 servers name the holder " + owner + ":1, and 2 may have it too")
	b.says("held by mail")
}
