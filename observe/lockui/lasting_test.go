package lockui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockui"
)

// A hold that is meant to last is stuck where its client is not heard of, or where it has no lease, however old it is, and however long others stand
// by. Where nobody has such a lock, who stands by waits like others.
func TestLasting(t *testing.T) {
	rdb := redistest.New(t)
	holds := func(name string, n int, d time.Duration, lasting string) presence.Hold {
		return presence.Hold{Lock: name, Field: hold(t, rdb, name, n, time.Minute), For: d, Lasting: lasting}
	}
	stands := func(name string, d time.Duration, lasting string) presence.Wait {
		wait(t, rdb, name, 3)
		return presence.Wait{Lock: name, Calls: 1, For: d, Lasting: lasting}
	}
	const day = 24 * time.Hour
	says(t, rdb, 1, "billing", []presence.Hold{
		holds("led", 1, 9*day, "leads"), holds("led alone", 1, 8*day, "leads"), holds("led, and waited for", 1, 7*day, "leads"),
		holds("no lease", 1, day, "leads"), holds("stuck", 1, time.Hour, ""), holds("opened for a moment", 1, time.Second, ""),
	}, nil)
	hold(t, rdb, "no lease", 1, 0)
	says(t, rdb, 2, "gone", []presence.Hold{holds("not heard of", 2, 20*time.Second, "leads")}, nil)
	heard(t, rdb, 2, 20*time.Second)
	says(t, rdb, 3, "mail", nil, []presence.Wait{
		stands("led", 9*day, "leads"), stands("led, and waited for", 3*day, ""), stands("no lease", day, "leads"), stands("stuck", time.Minute, ""),
		stands("opened for a moment", 2*day, "leads"), stands("not heard of", day, "leads"), stands("nobody leads", 2*time.Hour, "leads"), stands("{jobs}:*", day, "leads"),
	})
	locktest.NoError(t, rdb.ZAdd(t.Context(), "fencelock_line_of:{jobs}:*", redis.Z{Member: id(3) + ":1"}).Err())
	page := newPage(t, rdb)
	s := list(t, page, "/?format=json")
	locktest.Equal(t, "the locks", s.String(), "no lease stuck, nobody leads stuck, stuck stuck, not heard of stuck, led, and waited for waited, jobs waited, opened for a moment waited, led held, led alone held")
	text := ok(t, page, "/")
	contains(t, text, "9 d 0 h <span class=\"where\">leads, meant to last</span>")
	locktest.Equal(t, "waited for", s.Waited, 3)
	contains(t, ok(t, page, "/lock?name=led"), "leads, meant to last", "stands by for 9 d 0 h")
	lacks(t, ok(t, page, "/lock?name=led"), `class="alarm"`, "waited for", "stuck")
	contains(t, ok(t, page, "/lock?name=led&format=json"), `"lasting": "leads"`, `"state": "held"`)
	contains(t, ok(t, page, "/client?id="+id(1)), "leads, meant to last")
	contains(t, ok(t, page, "/client?id="+id(3)), "stands by for 9 d 0 h")
	locktest.Equal(t, "those that are old", list(t, page, "/?format=json&older=192h").String(), "led held, led alone held")
	locktest.Equal(t, "those of the host that leads, which are waited for", list(t, page, "/?format=json&waited=1&q=led&host=host1").String(), "led, and waited for waited, led held")

	// A client of another kind waits for what is led.
	for range 3 {
		sub := redistest.Client(t, rdb.Options().Addr).Subscribe(t.Context(), "redisson_lock__channel:{led}")
		t.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(t.Context())
		locktest.NoError(t, err)
	}
	locktest.Equal(t, "with others that listen", list(t, newPage(t, rdb), "/?format=json&q=led&older=200h").String(), "led waited")
}

// However many lead, a page has what is stuck, and what is waited for.
func TestLastingBesideOthers(t *testing.T) {
	rdb := redistest.New(t)
	var leads []presence.Hold
	var stands []presence.Wait
	for i := range 600 {
		name := fmt.Sprintf("led%03d", i)
		leads = append(leads, presence.Hold{Lock: name, Field: hold(t, rdb, name, 1, time.Minute), For: 24 * time.Hour, Lasting: "leads"})
		stands = append(stands, presence.Wait{Lock: name, Calls: 1, For: 24 * time.Hour, Lasting: "leads"})
	}
	says(t, rdb, 1, "leaders", leads, nil)
	old, young := hold(t, rdb, "old", 3, time.Minute), hold(t, rdb, "young", 3, time.Minute)
	wait(t, rdb, "old", 4)
	wait(t, rdb, "young", 4)
	wait(t, rdb, "nobody leads", 4)
	says(t, rdb, 3, "billing", []presence.Hold{{Lock: "old", Field: old, For: time.Hour}, {Lock: "young", Field: young, For: time.Second}}, nil)
	says(t, rdb, 4, "mail", nil, []presence.Wait{{Lock: "old", Calls: 1, For: time.Second}, {Lock: "young", Calls: 1, For: time.Second}, {Lock: "nobody leads", Calls: 1, For: 2 * time.Minute, Lasting: "leads"}})
	says(t, rdb, 5, "gone", []presence.Hold{{Lock: "not heard of", Field: hold(t, rdb, "not heard of", 5, time.Minute), For: 2 * time.Hour, Lasting: "leads"}}, nil)
	heard(t, rdb, 5, 20*time.Second)
	wait(t, rdb, "not heard of", 2)
	stands = append(stands, presence.Wait{Lock: "not heard of", Calls: 1, For: 24 * time.Hour, Lasting: "leads"})
	says(t, rdb, 2, "standbys", nil, stands)
	s := list(t, newPage(t, rdb), "/?format=json")
	locktest.Equal(t, "stuck", s.Stuck, 3)
	locktest.Equal(t, "waited for", s.Waited, 1)
	locktest.Equal(t, "first", strings.Join(strings.Split(s.String(), ", ")[:4], ", "), "not heard of stuck, old stuck, nobody leads stuck, young waited")
}

// Whoever may write what clients say may write any word.
func TestHostileLasting(t *testing.T) {
	rdb := redistest.New(t)
	words := []string{"<b onclick=x>", "a\x00b\nc", "\u202eoj", "{{.}}", " ", "\x1b[2J"}
	var holds []presence.Hold
	for i, word := range words {
		name := fmt.Sprint("l", i)
		holds = append(holds, presence.Hold{Lock: name, Field: hold(t, rdb, name, 1, time.Minute), For: time.Hour, Lasting: word})
	}
	says(t, rdb, 1, "x", holds, nil)
	page := newPage(t, rdb, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
	for _, path := range []string{"/", "/client?id=" + id(1), "/?format=json"} {
		lacks(t, ok(t, page, path), "<b ", "\x00", "\x1b", "\u202e")
	}
	contains(t, ok(t, page, "/lock?name="+url.QueryEscape("l2")), `\u202eoj`)
}
