//go:build linux

package main

import (
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

// top shows the locks, shows one, filters, and frees the one whose name is typed. The cursor stays on its lock, wherever that moves.
func TestTop(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	take := func(name string) *program {
		p := start(t, server.Addr(), append([]string{"run", name}, sh("echo up; read -r x < "+fifo(t))...)...)
		equal(t, "", p.line(), "up")
		return p
	}
	take("beta")
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("beta ")
	alpha := take("alpha")
	s.shows("alpha ")
	s.types("n")
	s.shows("by name")
	s.types("\r")
	s.shows("redisson_lock_token:{beta}")
	s.types("\x1b")
	s.shows("NAME ")
	s.types("g\r") // the first
	s.shows("redisson_lock_token:{alpha}")
	s.types("\x1b")
	s.shows("NAME ")
	s.types("f")
	s.shows("Type the lock's name:")
	s.types("beta\r")
	s.shows("nothing was released")
	s.types("f")
	s.shows("Take alpha away from ")
	s.types("alpha\r")
	s.shows("alpha is released")
	equal(t, "exit code of the former holder", alpha.ends(), exitLost)
	s.types("/bet")
	s.shows("Filter: bet")
	s.types("q\r") // is typed
	s.shows("only what contains")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// While Redis is away top says so, with the list of before, and goes on when Redis is back.
func TestTopWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t, "--appendonly", "yes")
	p := start(t, server.Addr(), append([]string{"run", "alpha"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("alpha ")
	server.Kill()
	s.shows("Redis at " + server.Addr() + " does not answer: connection refused. Nobody gets a lock meanwhile")
	s.shows("alpha ")
	s.shows("what is shown is of ")
	s.types("\r")
	s.shows("...")
	server.Restart()
	s.shows("redisson_lock_token:{alpha}")
	s.shows("locks: 1,")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// Of a name of 900 letters a list has the beginning and the end, and the columns behind it stay on the screen; what programs read has all.
func TestLongNames(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id, host := "00000001-0000-4000-8000-000000000000", strings.Repeat("web", 20)
	name := strings.Repeat("long/", 180) + "end"
	locktest.NoError(t, rdb.HSet(ctx, name, id+":1", 1).Err())
	locktest.NoError(t, rdb.PExpire(ctx, name, time.Hour).Err())
	locktest.NoError(t, rdb.Set(ctx, "redisson_lock_token:{"+name+"}", 1234567890123456, 0).Err())
	locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{"+name+"}", redis.Z{Member: id + ":2"}).Err())
	says := func() {
		locktest.NoError(t, presence.Write(ctx, rdb, &presence.Client{ID: id, Name: "billing", Host: host, PID: 1, Holds: []presence.Hold{{Lock: name, Field: id + ":1", For: time.Second}}}))
	}
	for _, c := range []struct {
		args  []string
		whole bool
	}{{[]string{"ls"}, false}, {[]string{"top", "--once"}, false}, {[]string{"ls", "-o", "wide"}, true}, {[]string{"ls", "-o", "json"}, true}, {[]string{"ls", "-o", "name"}, true}, {[]string{"show", name}, true}} {
		says()
		out, err := io.ReadAll(start(t, server.Addr(), c.args...).lines)
		locktest.NoError(t, err)
		if text := string(out); strings.Contains(text, name) != c.whole || strings.Contains(text, "long/long/long/ … ") == c.whole {
			t.Errorf("fencelock %q prints\n%s", c.args, text)
		}
	}
	says()
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("WAITERS")
	s.narrows(100)
	for _, whole := range []string{"1234567890123456 1", "WAITERS", " … "} {
		s.shows(whole)
	}
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// A lock whose name nobody can type is freed by what top shows of the name.
func TestTopUnprintable(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "a\nb"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows(`"a\nb"`)
	s.types("f")
	s.shows("Type the lock's name:")
	s.types(`"a\nb"` + "\r")
	s.shows("is released")
	equal(t, "exit code of the former holder", p.ends(), exitLost)
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// Without a terminal the list is printed once, and without colours.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "alpha"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	for found := false; !found; {
		top := start(t, server.Addr(), "top")
		summary, columns, first := top.line(), top.line(), ""
		if strings.Contains(summary, "locks: 1,") { // after a second at most
			first, found = top.line(), true
			if !strings.HasPrefix(columns, "STATE  NAME ") || !strings.HasPrefix(first, "-      alpha ") || strings.Contains(summary+columns+first, "\x1b") {
				t.Errorf("top prints:\n%s\n%s\n%s", summary, columns, first)
			}
		}
		equal(t, "exit code", top.ends(), 0)
	}
}

// What is stuck stands first, with a mark, whatever the list is sorted by; and top says why.
func TestTopStuck(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	var holds []presence.Hold
	for name, held := range map[string]time.Duration{"a-long": 2 * time.Hour, "b-waited": time.Second, "z-stuck": time.Hour} {
		locktest.NoError(t, rdb.HSet(ctx, name, id(1)+":1", 1).Err())
		locktest.NoError(t, rdb.PExpire(ctx, name, time.Hour).Err())
		holds = append(holds, presence.Hold{Lock: name, Field: id(1) + ":1", For: held})
	}
	for _, name := range []string{"b-waited", "z-stuck", "y-free"} {
		locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{"+name+"}", redis.Z{Member: id(2) + ":1"}).Err())
	}
	locktest.NoError(t, rdb.HSet(ctx, "no-lease", id(3)+":1", 1).Err())
	locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{no-lease}", redis.Z{Member: id(2) + ":1"}).Err())
	locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line_of:{jobs}:*", redis.Z{Member: id(2) + ":1"}).Err())
	says := func() { // again: what a client says lasts for half a minute
		locktest.NoError(t, presence.Write(ctx, rdb, &presence.Client{ID: id(1), Name: "billing", Host: "web-1", PID: 1, Holds: holds}))
		locktest.NoError(t, presence.Write(ctx, rdb, &presence.Client{ID: id(2), Name: "mail", Host: "web-2", PID: 2, Waits: []presence.Wait{
			{Lock: "b-waited", Calls: 1, For: time.Second}, {Lock: "z-stuck", Calls: 1, For: time.Second}, {Lock: "y-free", Calls: 1, For: 2 * time.Minute}, {Lock: "no-lease", Calls: 1}, {Lock: "{jobs}:*", Calls: 1, For: 3 * time.Minute},
		}}))
	}
	says()
	top := start(t, server.Addr(), "top", "--once")
	out, err := io.ReadAll(top.lines)
	locktest.NoError(t, err)
	var first []string
	for line := range strings.Lines(string(out)) {
		first = append(first, strings.Join(strings.Fields(line)[:2], " "))
	}
	if got, want := strings.Join(first[1:], ", "), "STATE NAME, STUCK z-stuck, STUCK jobs, STUCK no-lease, STUCK y-free, - a-long, waited b-waited"; got != want || !strings.Contains(string(out), "locks: 6, stuck: 4,") {
		t.Errorf("top shows %s, want %s:\n%s", got, want, out)
	}
	says()
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("STUCK  z-stuck")
	s.types("n")
	s.shows("by name")
	s.types("g")
	s.shows("stuck: somebody has waited for a permit for 3m")
	s.types("j")
	s.shows("stuck: it has no lease")
	s.types("j")
	s.shows("stuck: free, and yet somebody has waited for 2m")
	s.types("j")
	s.shows("stuck: held for 1h00m while others wait")
	s.types("\r")
	s.shows("Stuck")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)

	// A client that should have been heard of since.
	says()
	locktest.NoError(t, rdb.HSet(ctx, presence.Key(id(1)), "seen", time.Now().Add(-20*time.Second).UnixMilli(), "lasts", 3_620_000).Err())
	locktest.NoError(t, rdb.PExpire(ctx, presence.Key(id(1)), time.Hour).Err())
	show := start(t, server.Addr(), "show", "b-waited")
	text, err := io.ReadAll(show.lines)
	locktest.NoError(t, err)
	if !strings.Contains(string(text), "its holder was last heard of 2") {
		t.Errorf("show says\n%s", text)
	}
}

// A semaphore is one row beside a lock of its name. It is stuck where nobody gets a permit, and not where all that have one lead.
func TestTopSemaphore(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	client := func(n int, name string) *presence.Client {
		return &presence.Client{ID: id(n), Name: name, Host: "web", PID: n, Lasts: time.Hour}
	}
	has, waits := client(1, "imports"), client(2, "mail")
	hold := func(name, field, lasting string) {
		locktest.NoError(t, rdb.HSet(ctx, name, field, 1).Err())
		locktest.NoError(t, rdb.PExpire(ctx, name, time.Hour).Err())
		has.Holds = append(has.Holds, presence.Hold{Lock: name, Field: field, For: 2 * time.Hour, Lasting: lasting})
	}
	wait := func(of string, held time.Duration, lasting string) {
		locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line_of:{"+of+"}:*", redis.Z{Member: id(2) + ":1"}).Err())
		waits.Waits = append(waits.Waits, presence.Wait{Lock: "{" + of + "}:*", Calls: 1, For: held, Lasting: lasting})
	}
	hold("jobs", id(1)+":1", "")
	for slot := range 3 {
		hold(fmt.Sprintf("{jobs}:%d", slot), fmt.Sprintf("%s:-%d", id(1), slot), "")
	}
	locktest.NoError(t, rdb.Set(ctx, "redisson_lock_token:{jobs}:3", 1, 0).Err())
	wait("jobs", time.Second, "")
	hold("{pool}:0", id(1)+":-10", "leads")
	wait("pool", 5*time.Hour, "leads")
	locktest.NoError(t, rdb.Set(ctx, "redisson_lock_token:{broken}:0", "text", 0).Err())
	wait("broken", time.Second, "")
	for _, c := range []*presence.Client{has, waits} {
		locktest.NoError(t, presence.Write(ctx, rdb, c))
		locktest.NoError(t, rdb.Persist(ctx, presence.Key(c.ID)).Err()) // it is as if it had just been written
	}
	top := start(t, server.Addr(), "top", "--once")
	out, err := io.ReadAll(top.lines)
	locktest.NoError(t, err)
	var shown []string
	for line := range strings.Lines(string(out)) {
		shown = append(shown, strings.Join(strings.Fields(line)[:5], " "))
	}
	locktest.DeepEqual(t, "the rows", shown[2:], []string{
		"STUCK broken (semaphore: 0 taken", "- jobs web:1 imports 1", "waited jobs (semaphore: 3 taken", "- pool (semaphore: 1 taken",
	})
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("(semaphore: 3 taken of 4 seen)")
	s.types("/3 taken\r")
	s.shows("only what contains")
	s.types("f")
	s.shows("free one of its permits: fencelock force-unlock '{jobs}:0'")
	s.types("\r")
	s.shows("4 seen, 3 taken")
	s.shows("web:2 mail, 1 call")
	s.types("\x1b")
	s.shows("STUCK  broken")
	s.types("g")
	s.shows("stuck: slot 0 is free, but the fencing counter holds something")
	s.types("/imports\r")
	s.shows("only what contains")
	s.types("\r")
	s.shows("there is one of this name, 3 taken of 4 seen, 1 waiting")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// A client names a thousand of the locks that it holds. Lists say how many others are in none of their rows.
func TestLocksThatAreNotListed(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id := "00000001-0000-4000-8000-000000000000"
	for _, name := range []string{"named", "waited", "other"} {
		locktest.NoError(t, rdb.HSet(ctx, name, id+":1", 1).Err())
		locktest.NoError(t, rdb.PExpire(ctx, name, time.Hour).Err())
	}
	sub := rdb.Subscribe(ctx, "redisson_lock__channel:{waited}")
	defer sub.Close()
	_, err := sub.Receive(ctx)
	locktest.NoError(t, err)
	for more, want := range map[int]string{0: "", 1: "", 2: "1 more lock is not listed", 6: "5 more locks are not listed"} {
		locktest.NoError(t, presence.Write(ctx, rdb, &presence.Client{ID: id, MoreHolds: more, Holds: []presence.Hold{{Lock: "named", Field: id + ":1"}}}))
		p := start(t, server.Addr(), "ls", "-o", "name")
		out, err := io.ReadAll(p.lines)
		locktest.NoError(t, err)
		equal(t, "exit code", p.ends(), 0)
		equal(t, "ls", string(out), "named\nwaited\n")
		said := ""
		if want != "" {
			said = "fencelock: " + want + ": --scan finds them\n"
		}
		equal(t, "ls says", p.said(), said)
		out, err = io.ReadAll(start(t, server.Addr(), "top", "--once").lines)
		locktest.NoError(t, err)
		if want != "" {
			want = " (" + want + ")"
		}
		if text := string(out); !strings.Contains(text, "locks: 2"+want+", stuck: 0") {
			t.Errorf("top --once of %d more prints\n%s", more, text)
		}
	}
}
