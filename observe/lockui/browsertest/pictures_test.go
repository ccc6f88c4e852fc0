package browsertest

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// The pictures of docs/pictures. PICTURES names the folder that they are written to; without it they are thrown away:
//
//	PICTURES=../../../docs/pictures GOWORK=off go test -run TestPictures
func TestPictures(t *testing.T) {
	b := open(t)
	ctx := t.Context()
	type holding struct {
		lock   string
		client int
		held   time.Duration
		ttl    time.Duration
		token  int64
	}
	holds := map[int][]presence.Hold{}
	for _, h := range []holding{
		{"account:42", 1, 12*time.Minute + 8*time.Second, 24 * time.Second, 1873},
		{"report:daily", 3, 41 * time.Second, 9 * time.Second, 211},
		{"feed:prices", 4, 3 * time.Second, 27 * time.Second, 90412},
		{"index:rebuild", 3, 2*time.Hour + 5*time.Minute, 26 * time.Second, 17},
		{"cart:9fe2", 5, 0, 29 * time.Second, 3},
		{"session:cleanup", 9, 0, 22 * time.Second, 0}, // says nothing of itself
	} {
		field := id(h.client) + ":7"
		locktest.NoError(t, b.rdb.HSet(ctx, h.lock, field, 1).Err())
		locktest.NoError(t, b.rdb.PExpire(ctx, h.lock, h.ttl+900*time.Millisecond).Err())
		if h.token > 0 {
			locktest.NoError(t, b.rdb.Set(ctx, "redisson_lock_token:{"+h.lock+"}", h.token, 0).Err())
		}
		if h.held > 0 {
			holds[h.client] = append(holds[h.client], presence.Hold{Lock: h.lock, Field: field, Token: h.token, For: h.held})
		}
	}
	waits := map[int][]presence.Wait{
		2: {{Lock: "account:42", Calls: 4, For: 11*time.Minute + 52*time.Second}},
		5: {{Lock: "account:42", Calls: 1, For: 9 * time.Minute}},
		4: {{Lock: "report:daily", Calls: 1, For: 12 * time.Second}},
	}
	for client, of := range waits {
		for _, w := range of {
			locktest.NoError(t, b.rdb.ZAdd(ctx, "fencelock_line:{"+w.Lock+"}", redis.Z{Score: float64(client), Member: id(client) + ":1"}).Err())
		}
	}
	for client, who := range map[int][2]string{1: {"billing", "node-7"}, 2: {"mail", "node-3"}, 3: {"reports", "node-7"}, 4: {"prices", "node-4"}, 5: {"shop", "node-3"}} {
		b.present(&presence.Client{ID: id(client), Name: who[0], Host: who[1], PID: 4000 + 37*client, Program: who[0] + "d", Holds: holds[client], Waits: waits[client]})
	}
	// A connection on the channel of a lock whose holder says nothing.
	listener := b.rdb.Subscribe(ctx, "redisson_lock__channel:{session:cleanup}")
	t.Cleanup(func() { _ = listener.Close() })
	_, err := listener.Receive(ctx)
	locktest.NoError(t, err)

	folder := cmp.Or(os.Getenv("PICTURES"), t.TempDir())
	for _, p := range []struct {
		name, scheme  string
		width, height int64
	}{
		{"locks-desktop.png", "light", 1100, 640},
		{"locks-narrow-dark.png", "dark", 400, 820},
	} {
		b.system(p.scheme)
		b.run(chromedp.EmulateViewport(p.width, p.height), chromedp.Navigate(b.url), chromedp.WaitReady("#live"))
		b.says("held for 12 min 08 s while others wait")
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		locktest.NoError(t, err)
		if len(png) >= 150_000 {
			t.Errorf("%s has %d bytes", p.name, len(png))
		}
		locktest.NoError(t, os.WriteFile(filepath.Join(folder, p.name), png, 0o644))
	}
}
