//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// fiveServers is five servers that count, and a file with their URLs.
func fiveServers(t *testing.T) (servers []*redistest.Server, file string) {
	t.Helper()
	var urls strings.Builder
	for range 5 {
		s := redistest.Real(t)
		servers = append(servers, s)
		urls.WriteString("redis://" + s.Addr() + "\n")
	}
	file = filepath.Join(t.TempDir(), "urls")
	if err := os.WriteFile(file, []byte("# a quorum\n"+urls.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, soon, func() bool {
		_, said, _ := fencelock(t, "ls", "--urls-file", file, "--max-lease", "2s")
		return said == ""
	}, "all servers count")
	return servers, file
}

// fencelock runs the command, and returns what it has written and its exit code.
func fencelock(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr strings.Builder
	cmd := exec.Command("fencelock", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s has no %q:\n%s", what, part, text)
		}
	}
}

// A quorum's lock is shown by the majority, on one server as a part, and is released on all, although one stands still.
func TestQuorum(t *testing.T) {
	t.Parallel()
	servers, file := fiveServers(t)
	all := []string{"--urls-file", file, "--max-lease", "2s"}
	on := func(args ...string) []string { return append(args, all...) }
	p := start(t, servers[0].Addr(), append(on("run", "--lease", "2s"), append([]string{"x"}, sh("echo up; read -r x < "+fifo(t))...)...)...)
	equal(t, "", p.line(), "up")
	redistest.Eventually(t, soon, func() bool {
		out, _, _ := fencelock(t, on("ls")...)
		return strings.Contains(out, "run sh\n") || strings.Contains(out, "run sh  ")
	}, "ls shows the lock, and who has it")
	out, _, _ := fencelock(t, on("ls", "-o", "json", "x")...)
	has(t, "JSON", out, `"quorum": 5`, `"home": true`, `"server": "`+servers[4].Addr()+`"`)
	busy, said, code := fencelock(t, append(on("run", "-n", "--lease", "2s"), "x", "--", "true")...)
	equal(t, "exit code of another run: "+busy+said, code, exitNotAcquired)
	_, said, code = fencelock(t, append(on("run", "-n"), "x", "--", "true")...)
	equal(t, "exit code of a lease of 30 s: "+said, code, exitUsage)
	_, said, code = fencelock(t, append(on("run", "--permits", "2"), "x", "--", "true")...)
	equal(t, "exit code of a semaphore", code, exitUsage)
	has(t, "a semaphore", said, "a quorum has no semaphores")

	one := []string{"--url", "redis://" + servers[1].Addr()}
	out, _, _ = fencelock(t, append([]string{"ls"}, one...)...)
	has(t, "ls of one server", out, "(a part, of a quorum of 5 servers)")
	out, said, code = fencelock(t, append([]string{"force-unlock", "-y", "x"}, one...)...)
	equal(t, "exit code on one server", code, exitFailed)
	has(t, "force-unlock on one server", out+said, "x is held by", "on this server, and of a quorum of 5: nothing was released", "Give the URLs of all")
	out, _, code = fencelock(t, append([]string{"force-unlock", "-y", "--this-server-only", "x"}, one...)...)
	equal(t, "exit code on this server only", code, 0)
	has(t, "on this server only", out, "x is released on this server only", "released on 1 of 5 servers")
	_, said, code = fencelock(t, "force-unlock", "-y", "x", "--url", "redis://"+servers[1].Addr()+",redis://"+servers[2].Addr())
	equal(t, "exit code on two servers: "+said, code, exitFailed)

	servers[3].Freeze()
	t.Cleanup(servers[3].Thaw)
	out, _, _ = fencelock(t, on("show", "x")...)
	has(t, "show", out, "Server "+servers[3].Addr()+"  says nothing: no answer in time", "home of the line", "has it, lease ends in")
	_, said, _ = fencelock(t, on("ls")...)
	has(t, "ls", said, "server "+servers[3].Addr()+" does not count: it does not answer in time\n")
	top, _, _ := fencelock(t, on("top", "--once")...)
	has(t, "top", top, "a quorum of 5 servers, 4 of them count", "\nserver "+servers[3].Addr()+" does not count: it does not answer in time\n")
	out, said, code = fencelock(t, on("force-unlock", "-y", "x")...)
	equal(t, "exit code on all: "+said, code, 0)
	has(t, "force-unlock", out, "x is released on 4 of 5 servers; "+servers[3].Addr()+": no answer in time", "; no majority has it any more")
	equal(t, "exit code of the former holder", p.ends(), exitLost)
	servers[3].Thaw()
	redistest.Eventually(t, soon, func() bool {
		out, said, code = fencelock(t, on("show", "x")...)
		return strings.Count(out, "  free") >= 6
	}, "the lock is free on all")

	servers[0].Kill()
	servers[1].Kill()
	servers[2].Kill()
	out, said, code = fencelock(t, on("force-unlock", "-y", "x")...)
	equal(t, "exit code with two of five", code, exitFailed)
	has(t, "with two of five", said, "x: 2 of 5 servers answer and count, 3 are needed to tell who has the lock: nothing was released", "connection refused")

	const nobody = "Nobody gets a lock: 2 of 5 servers answer and count, 3 are needed\n"
	for _, args := range [][]string{{"ls"}, {"ls", "-o", "json"}, {"ls", "x"}} {
		out, said, code = fencelock(t, on(args...)...)
		equal(t, "exit code of "+strings.Join(args, " ")+out, code, exitFailed)
		has(t, "ls", said, nobody+"fencelock: server "+servers[0].Addr()+" does not count: it does not answer: connection refused\n")
	}
	out, _, code = fencelock(t, on("top", "--once")...)
	equal(t, "exit code of top", code, exitFailed)
	has(t, "top", out, nobody+"fencelock  a quorum of 5 servers, 2 of them count", "; server "+servers[2].Addr()+" does not count: it does not answer: connection refused\n")
	_, said, code = fencelock(t, append(on("run", "-n", "--lease", "2s"), "y", "--", "true")...)
	equal(t, "exit code of run", code, exitTrouble)
	has(t, "run", said, "Redis at "+servers[1].Addr()+" does not answer: connection refused")
	servers[3].Freeze()
	_, said, _ = fencelock(t, append(on("run", "-n", "--lease", "2s"), "y", "--", "true")...)
	has(t, "run", said, "Redis at "+servers[3].Addr()+" does not answer in time")
	if strings.Contains(said, "WithNodeTimeout") {
		t.Errorf("run names an option of the library: %s", said)
	}
	screen := onScreen(t, servers[4].Addr(), "fencelock", on("top")...)
	screen.shows("Nobody gets a lock: 1 of 5 servers answer and count, 3 are needed")
	screen.shows("server " + servers[0].Addr() + " does not count: ")
	screen.types("q")
	equal(t, "exit code of top on a screen", screen.ends(), 0)
}
