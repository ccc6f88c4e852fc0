package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Clients that wait in a circle are named by ls and top, with the ways out, in lines of 80 letters, and are gone when one of them gives up.
func TestCycles(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	long := "warehouse:" + strings.Repeat("shelf:", 20)
	locks := []string{"account:1", "account:2", long + "3"}
	says := func(n int, waits bool) {
		t.Helper()
		c := &presence.Client{ID: id(n), Name: "service", Host: fmt.Sprint("web-", n), PID: n, Lasts: time.Hour, Holds: []presence.Hold{{Lock: locks[n], Field: id(n) + ":1", For: time.Minute}}}
		if waits {
			c.Waits = []presence.Wait{{Lock: locks[(n+1)%3], Calls: 1, For: 40 * time.Second}}
		}
		locktest.NoError(t, presence.Write(ctx, rdb, c))
		locktest.NoError(t, rdb.Persist(ctx, presence.Key(c.ID)).Err()) // the client is never silent
	}
	for n, lock := range locks {
		locktest.NoError(t, rdb.HSet(ctx, lock, id(n)+":1", 1).Err())
		locktest.NoError(t, rdb.PExpire(ctx, lock, time.Hour).Err())
		locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{"+lock+"}", redis.Z{Member: id((n+2)%3) + ":1"}).Err())
	}
	prints := func(args ...string) (out, said string) {
		t.Helper()
		p := start(t, server.Addr(), args...)
		text, err := io.ReadAll(p.lines)
		locktest.NoError(t, err)
		equal(t, "exit code", p.ends(), 0)
		return string(text), p.said()
	}
	has := func(what, text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("%s does not say %q:\n%s", what, word, text)
			}
		}
	}
	circle := []string{
		"3 clients wait in a circle, each for what the next one holds:",
		"  web-0:0 service holds account:1, waits 4", "s for account:2\n", "  web-1:1 service holds account:2, waits 4", "  web-2:2 service holds warehouse:", "\nTake them by one call, DoAll or AcquireAll; or bound the wait: rlock.Wait.\n",
	}
	for n := range locks {
		says(n, true)
	}
	_, said := prints("ls")
	has("ls", said, circle...)
	for line := range strings.Lines(said) {
		if len([]rune(line)) > 81 {
			t.Errorf("a line of ls has %d letters: %s", len([]rune(line))-1, line)
		}
	}
	out, _ := prints("top", "--once")
	has("top", out, append(circle, "stuck: 3", "STUCK  account:1")...)

	out, _ = prints("ls", "-o", "json")
	var rows []struct {
		Name  string
		Stuck string
		Cycle []struct {
			Client   struct{ Name, Host string }
			Holds    string
			Held     float64
			WaitsFor string `json:"waits_for"`
			Waited   float64
		}
	}
	locktest.NoError(t, json.Unmarshal([]byte(out), &rows))
	equal(t, "locks", len(rows), 3)
	for _, r := range rows {
		if len(r.Cycle) != 3 || r.Stuck != "its holder waits in a circle of clients" || r.Cycle[2].Client.Host != "web-2" || r.Cycle[2].Holds != locks[2] || r.Cycle[2].WaitsFor != locks[0] || r.Cycle[2].Held < 60 || r.Cycle[2].Waited < 40 {
			t.Errorf("JSON of %s: %+v", r.Name, r)
		}
	}

	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("web-1:1 service holds account:2")
	s.types("n")
	s.shows("stuck: its holder waits in a circle of clients")
	says(1, false)
	s.shows("stuck: held for 1m00s while others wait")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}
