package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// own starts the server of a contender that is not on Redis, for the test. Without PostgreSQL its tests fail where CI is set.
func own(t *testing.T, name string) contender {
	t.Helper()
	if name == "postgres" && os.Getenv("CI") == "" {
		if _, err := postgresProgram(); err != nil {
			t.Skip("NOT TESTED: ", err)
		}
	}
	c := contenderOf(t, name)
	if _, err := c.prepare(t.Context(), round{}, t.Output()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.finish)
	return c
}

// forOthers runs the test with each contender that is not on Redis.
func forOthers(t *testing.T, test func(t *testing.T, c contender)) {
	for _, c := range contenders {
		if c.server != nil {
			t.Run(c.name, func(t *testing.T) { test(t, own(t, c.name)) })
		}
	}
}

func TestOthersInTheirModes(t *testing.T) {
	realtime.Test(t, "loads of 300 ms, on server processes of others")
	addr, rdb := testServer(t)
	id := 0
	forOthers(t, func(t *testing.T, c contender) {
		for _, m := range []mode{
			mode{others: true}.own(1),
			mode{others: true}.own(128),
			mode{others: true}.with(8, 1),
			mode{others: true, inside: "2ms", busy: true}.with(8, 1),
		} {
			t.Run(m.name(), func(t *testing.T) {
				r := round{contender: c, mode: m, timing: timing{warm: tiny.warm, window: 300 * time.Millisecond, grace: 20 * time.Second}, addr: addr, rdb: rdb}
				var res result
				for res.Pairs == 0 && r.timing.window < 10*time.Second { // a slow disk on a busy machine
					id++
					r.id = id
					var err error
					if res, err = r.run(t.Context()); err != nil {
						t.Fatal(err)
					}
					r.timing.window *= 3
				}
				if res.Pairs == 0 || res.WaitMax < res.WaitP99 || res.WaitP99 < res.WaitP50 || res.WaitP50 <= 0 || res.UseP99 < res.UseP50 {
					t.Errorf("%+v", res)
				}
				if res.Overlaps > 0 || res.OutOfOrder > 0 || res.Errors > 0 || res.Hung > 0 {
					t.Errorf("%+v", res)
				}
				if has := c.name != "postgres"; res.Tokens != has {
					t.Errorf("has tokens: %v", res.Tokens)
				}
				if res.Commands != 0 || res.Messages != 0 || len(res.CommandsBy) > 0 {
					t.Errorf("commands of Redis: %v, %v", res.Commands, res.Messages)
				}
				want := m.clients
				if c.name == "postgres" {
					want = m.goroutines
				}
				if _, err := os.Stat("/proc/net/tcp"); err == nil && (res.Connections != want || res.ServerCPU < 0) {
					t.Errorf("%d connections, %v us of the server's CPU; want %d, and some", res.Connections, res.ServerCPU, want)
				}
			})
		}
	})
}

// Who does not get the lock in time leaves nothing behind that would keep it from the next one.
func TestOthersKeepAllButOneOut(t *testing.T) {
	realtime.Test(t, "a wait of 200 ms, on server processes of others")
	forOthers(t, func(t *testing.T, c contender) {
		r := round{contender: c}
		holder, late, next := dialed(t, r).lock("k"), dialed(t, r).lock("k"), dialed(t, r).lock("k")
		_, unlock, err := holder(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, _, err := late(brief); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("beside a holder: %v", err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		in, cancelIn := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancelIn()
		_, unlock, err = next(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
	})
}

// A lock of these servers that lets several in is found out: PostgreSQL's shared one, and etcd's where callers share a session.
func TestALockOfOthersThatDoesNotLockIsFoundOut(t *testing.T) {
	realtime.Test(t, "an overlap by chance within 500 ms")
	addr, rdb := testServer(t)
	found := func(t *testing.T, c contender, m mode) {
		t.Helper()
		m.others, m.inside = true, "2ms"
		r := round{contender: c, mode: m, timing: timing{warm: tiny.warm, window: 500 * time.Millisecond, grace: 20 * time.Second}, addr: addr, rdb: rdb}
		res, err := r.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res.Overlaps == 0 {
			t.Errorf("no overlap was seen: %+v", res)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		c := own(t, "postgres")
		c.dial = func(string) (*client, error) {
			return c.server.dialAdvisory("SELECT pg_advisory_lock_shared($1)", "SELECT pg_advisory_unlock_shared($1)"), nil
		}
		found(t, c, mode{}.with(4, 1))
	})
	t.Run("etcd", func(t *testing.T) { found(t, own(t, "etcd-nosync"), mode{}.with(1, 4)) })
}

func TestAHostSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ name, command, want string }{
		{"nothing", "serve", `no server is called "nothing"`},
		{"etcd", "dance", `no command is called "dance"`},
	} {
		h := &hosted{name: c.name}
		if _, err := h.answer(t.Context(), c.command, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s: %v, want %q", c.command, c.name, err, c.want)
		}
	}
}

// A host whose commands end, because this program was killed, ends with its server and its files.
func TestAHostEndsWithItsCommands(t *testing.T) {
	temp := t.TempDir()
	if err := os.Chmod(filepath.Dir(temp), 0o755); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	forOthers(t, func(t *testing.T, c contender) {
		_ = c.server.process.stdin.Close()
		select {
		case _, more := <-c.server.process.answers:
			if more {
				t.Error("it answered")
			}
		case <-time.After(time.Minute):
			t.Fatal("it goes on")
		}
		if conn, err := net.Dial("tcp", c.server.addr); err == nil {
			_ = conn.Close()
			t.Error("its server goes on")
		}
		if left, _ := os.ReadDir(temp); len(left) > 0 {
			t.Errorf("it left %v", left)
		}
	})
}

func TestWithoutPostgresItIsLeftOut(t *testing.T) {
	t.Setenv("POSTGRES_SERVER", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	args := []string{"-only", "fencelock,postgres", "-modes", "others/g=1", "-seconds", "0.05", "-repeats", "1", "-out", dir}
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		var progress bytes.Buffer
		err := run(t.Context(), args, t.Output(), &progress)
		if failed := err != nil && strings.Contains(err.Error(), "left out: postgres: "); failed != (ci != "") || !failed && err != nil {
			t.Errorf("with CI=%q: %v", ci, err)
		}
		if !strings.Contains(progress.String(), "!!! postgres is LEFT OUT") || !strings.Contains(progress.String(), "POSTGRES_SERVER is no program") {
			t.Errorf("the progress is %s", &progress)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for want, has := range map[string]bool{"**Left out**: postgres": true, "a multiple of fencelock's.": true, "In the modes others": true, "Redisson": false} {
		if strings.Contains(string(text), want) != has {
			t.Errorf("results.md has %q: %v, want %v", want, !has, has)
		}
	}
}

func TestTheKernelsMeters(t *testing.T) {
	realtime.Test(t, "a child that gets a processor")
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the meters are NOT TESTED: there is no /proc")
		}
		t.Skip("NOT TESTED: there is no /proc")
	}
	before, others, began := cpuOf(os.Getpid()), cpuOfOthers(), time.Now()
	busy := exec.Command("sh", "-c", "while :; do :; done") // a child that runs
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); cpuOf(os.Getpid()) < before+200*time.Millisecond && time.Since(begin) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	running := cpuOf(os.Getpid()) - before
	_ = busy.Process.Kill()
	_ = busy.Wait()
	ended := cpuOf(os.Getpid()) - before // a child that was waited for
	if running < 200*time.Millisecond || ended < running-2*tick {
		t.Errorf("with a busy child %v, when it has ended %v", running, ended)
	}
	if took, most := cpuOfOthers()-others, time.Duration(runtime.NumCPU())*(time.Since(began)+10*tick); took < -10*tick || took > most {
		t.Errorf("others took %v, want 0 to %v", took, most)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for want := range 3 {
		if got := connectionsTo(listener.Addr().String()); got != want {
			t.Errorf("%d connections, want %d", got, want)
		}
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	if took, err := fsyncTakes(t.TempDir()); err != nil || took <= 0 {
		t.Errorf("a write with fsync takes %v, %v", took, err)
	}
	if text := fmt.Sprint(connectionsTo("nowhere")); text != "0" {
		t.Errorf("%s connections to nowhere", text)
	}
}
