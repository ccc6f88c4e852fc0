//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// stubborn is a script that starts another process. Both say their numbers, ignore SIGTERM, and never end.
const stubborn = `trap "" TERM HUP INT
$0 -c 'echo $$; while :; do sleep 1; done' &
echo $$
while :; do sleep 1; done`

// sh is the command that runs a script.
func sh(script string) []string { return []string{"--", "/bin/sh", "-c", script, "/bin/sh"} }

// stillRun is a script that says which of these processes run, and then done. A process that is dead and for which nobody has waited
// yet does not run. Neither does one that SIGKILL is pending for: it executes nothing of its own any more, but on a busy machine the
// kernel may take a second to end it.
func stillRun(pids ...int) []string {
	return sh(fmt.Sprintf(`
		runs() {
			[ -e /proc/self/status ] || { kill -0 $1 2>/dev/null; return; }
			status=$(cat /proc/$1/status 2>/dev/null)
			case "$status" in *State:*) ;; *) return 1;; esac
			! echo "$status" | grep -qE '^State:.[ZX]|^S(ig|hd)Pnd:.*[13579bdf]..$'
		}
		for p in %s; do runs $p && echo $p runs; done
		echo done`, strings.Trim(fmt.Sprint(pids), "[]")))
}

// The lease runs out for a command whose Redis cannot be reached, while others reach it: the command and what it has started are dead
// before another one is run. With this lease a machine may be late with the kill by a second (killMargin).
func TestGoneBeforeTheLease(t *testing.T) {
	realtime.Test(t, "a command that is dead before its lease ends")
	for name, script := range map[string]string{"group": stubborn, "session": strings.Replace(stubborn, "$0 -c", "setsid $0 -c", 1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			link := redistest.NewProxy(t, server.Addr())
			first := start(t, link.Addr(), append([]string{"run", "--lease", "20s", "--grace", "500ms", "x"}, sh(script)...)...)
			pids := []int{first.pid(), first.pid()}
			second := start(t, server.Addr(), append([]string{"run", "x"}, stillRun(pids...)...)...)
			link.Freeze()
			equal(t, "what the second command sees", second.line(), "done")
			equal(t, "the first one's exit code", first.ends(), exitLost)
			equal(t, "the second one's exit code", second.ends(), 0)
			link.Thaw()
		})
	}
}

// A server that stands still.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "--lease", "3s", "--grace", "500ms", "x"}, sh(stubborn)...)...)
	pids := []int{p.pid(), p.pid()}
	other := start(t, server.Addr(), append([]string{"run", "x"}, stillRun(pids...)...)...)
	rdb := server.Client()
	redistest.Eventually(t, soon, func() bool { return rdb.ZCard(ctx, "fencelock_line:{x}").Val() == 1 }, "the other one waits")
	server.Freeze()
	equal(t, "exit code", p.ends(), exitLost)
	server.Thaw()
	equal(t, "what the next command sees", other.line(), "done")
	equal(t, "its exit code", other.ends(), 0)
}

// A server that stands still keeps nobody for longer than the wait and what the manual allows beside it.
func TestFrozenServerAtTheStart(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	server.Freeze()
	defer server.Thaw()
	for wait, bound := range map[string]time.Duration{"-n": 2 * time.Second, "-w=500ms": 1500 * time.Millisecond} {
		began := time.Now()
		p := start(t, server.Addr(), "run", wait, "x", "--", "echo", "up")
		equal(t, wait+": exit code", p.ends(), exitTrouble)
		locktest.TookAtMost(t, began, bound, 900*time.Millisecond, wait)
		if said := p.said(); !strings.Contains(said, "Redis at "+server.Addr()+" does not answer in time") {
			t.Errorf("%s: %s", wait, said)
		}
	}
}

// The commands that show locks say so after askTimeout.
func TestFrozenServerIsLookedAt(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	server.Freeze()
	defer server.Thaw()
	for _, args := range [][]string{{"show", "x"}, {"ls"}, {"ls", "x"}, {"clients"}, {"force-unlock", "-y", "x"}} {
		began := time.Now()
		p := start(t, server.Addr(), args...)
		equal(t, args[0]+": exit code", p.ends(), exitFailed)
		locktest.TookAtMost(t, began, askTimeout, 900*time.Millisecond, args[0])
	}
}

// One that stops while a call waits for another holder: nobody says who that is, and the wait is over all the same.
func TestFrozenServerWhileWaiting(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	client, err := rlock.New(server.Client())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, _, err := fenced.NewLock(client, "x").LockAndGetToken(ctx); err != nil {
		t.Fatal(err)
	}
	const wait = 2 * time.Second
	began := time.Now()
	p := start(t, server.Addr(), "run", "-w", "2s", "x", "--", "echo", "up")
	rdb := server.Client()
	redistest.Eventually(t, soon, func() bool { return rdb.ZCard(ctx, "fencelock_line:{x}").Val() == 1 }, "it waits")
	server.Freeze()
	defer server.Thaw()
	if code := p.ends(); code != exitNotAcquired && code != exitTrouble {
		t.Errorf("exit code %d", code)
	}
	locktest.TookAtMost(t, began, wait+restTimeout, 900*time.Millisecond, "the wait")
}

// Who waits goes on waiting while Redis is away, for longer than a call of the library waits for it.
func TestWaitsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "--lease", "3s", "--grace", "500ms", "x"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "the first command", p.line(), "up")
	waits := start(t, server.Addr(), "run", "-w", "10m", "x", "--", "echo", "up")
	rdb := server.Client()
	redistest.Eventually(t, soon, func() bool { return rdb.ZCard(ctx, "fencelock_line:{x}").Val() == 1 }, "the other one waits")
	server.Kill()
	equal(t, "exit code", p.ends(), exitLost)
	redistest.Eventually(t, soon, func() bool { return strings.Contains(waits.said(), "still waiting") }, "the other one has waited for longer than a call does")
	server.Restart()
	equal(t, "the second command", waits.line(), "up")
	equal(t, "its exit code", waits.ends(), 0)
}

// A command that ends when it is told to has --grace for it.
func TestTerminatedBeforeTheLease(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "--lease", "12s", "--grace", "5s", "x"}, sh(`
		trap 'echo cleaned up; exit 0' TERM; echo up; while :; do sleep 0.1; done`)...)...)
	equal(t, "", p.line(), "up")
	server.Freeze()
	equal(t, "after TERM", p.line(), "cleaned up")
	equal(t, "exit code", p.ends(), exitLost)
	server.Thaw()
}

// The lock is taken away by force, long before the lease would end: TERM, and KILL after --grace for what ignores it.
func TestForcedOpen(t *testing.T) {
	realtime.Test(t, "a command that ends within 3 s")
	t.Parallel()
	for _, script := range []string{
		`trap 'echo term; exit 0' TERM; echo up; while :; do sleep 0.1; done`,
		`trap 'echo term' TERM; echo up; while :; do sleep 0.1; done`,
	} {
		server := redistest.Real(t)
		p := start(t, server.Addr(), append([]string{"run", "--lease", "1h", "--grace", "3s", "x"}, sh(script)...)...)
		equal(t, "", p.line(), "up")
		client, err := rlock.New(server.Client())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if is, err := fenced.NewLock(client, "x").ForceUnlock(ctx); !is || err != nil {
			t.Fatal(is, err)
		}
		equal(t, "after the lock was forced open", p.line(), "term")
		equal(t, "exit code", p.ends(), exitLost)
	}
}

// The lock is held until what the command has left behind has ended, unless that was allowed.
func TestGrandchildren(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	gate := fifo(t)
	leave := sh("(read -r x < " + gate + ") & echo left")
	open := func() {
		if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, server.Addr(), append([]string{"run", "-v", "x"}, leave...)...)
	equal(t, "", p.line(), "left")
	redistest.Eventually(t, soon, func() bool { return strings.Contains(p.said(), "ended with 0") }, "the command has ended")
	other := start(t, server.Addr(), "run", "-n", "x", "--", "true")
	equal(t, "exit code of another one meanwhile", other.ends(), exitNotAcquired)
	redistest.Eventually(t, soon, func() bool { return strings.Contains(p.said(), "not all that it has started: x is held") }, "it says what it waits for")
	open()
	equal(t, "exit code", p.ends(), 0)

	p = start(t, server.Addr(), append([]string{"run", "--detach-ok", "x"}, leave...)...)
	equal(t, "", p.line(), "left")
	redistest.Await(t, soon, p.exited, "with --detach-ok it ends")
	equal(t, "exit code", p.cmd.ProcessState.ExitCode(), 0)
	open()
}

// Without a terminal signals go to the command and all of its group.
func TestSignals(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	for name, sig := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		p := start(t, server.Addr(), append([]string{"run", "x"}, sh("trap 'echo "+name+"; exit 3' "+name+"; echo up; while :; do sleep 0.1; done")...)...)
		equal(t, "", p.line(), "up")
		p.signal(sig)
		equal(t, "what the command has got", p.line(), name)
		equal(t, "exit code after "+name, p.ends(), 3)
	}
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh(`sleep 1000 & sleep 1000 & echo up; wait`)...)...)
	equal(t, "", p.line(), "up")
	p.signal(syscall.SIGTERM)
	equal(t, "exit code of what TERM ended", p.ends(), 128+15)
}

// A TERM that comes twice, as timeout(1) sends it, comes to the command once.
func TestTermTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	for {
		p := start(t, server.Addr(), append([]string{"run", "x"}, sh(`
			trap 'echo term' TERM; trap 'echo cont; exit 0' CONT; echo up; while :; do sleep 0.05; done`)...)...)
		equal(t, "", p.line(), "up")
		began := time.Now()
		p.signal(syscall.SIGTERM)
		equal(t, "", p.line(), "term")
		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGCONT) // of signals that are pending together the one with the larger number is the last
		line := p.line()
		if time.Since(began) < patience { // otherwise the second one is meant
			equal(t, "after the second one", line, "cont")
			return
		}
	}
}

// Two HUPs are two: each may say that a file has changed.
func TestHupTwice(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh(`
		trap 'echo hup' HUP; trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done`)...)...)
	equal(t, "", p.line(), "up")
	for range 2 {
		p.signal(syscall.SIGHUP)
		equal(t, "", p.line(), "hup")
	}
	p.signal(syscall.SIGTERM)
	equal(t, "exit code", p.ends(), 0)
}

// A second TERM kills what has ignored the first.
func TestSecondTerm(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh(stubborn)...)...)
	p.pid()
	p.pid()
	redistest.Settles(t, 2*soon, func() bool {
		select {
		case <-p.exited:
			return true
		default:
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			return false
		}
	}, "TERM, again and again, ends it")
	equal(t, "exit code", p.ends(), 128+9)
}

// Signals end the wait for the lock at once.
func TestSignalsWhileWaiting(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	inLine := func(n int64) func() bool {
		return func() bool { return rdb.ZCard(ctx, "fencelock_line:{x}").Val() == n }
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		w := start(t, server.Addr(), "run", "x", "--", "echo", "never")
		redistest.Eventually(t, soon, inLine(1), "it waits")
		w.signal(sig)
		equal(t, "exit code", w.ends(), 128+int(sig))
		redistest.Eventually(t, soon, inLine(0), "it has left the line")
	}
}

// Who kills fencelock kills the command.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh(`trap "" TERM HUP; echo up; read -r x < `+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	p.signal(syscall.SIGKILL)
	redistest.Await(t, soon, p.exited, "it is killed")
	_ = p.out.SetReadDeadline(time.Now().Add(2 * soon))
	if line, err := p.lines.ReadString('\n'); err == nil || os.IsTimeout(err) {
		t.Errorf("the command runs on: %q, %v", line, err)
	}
}

// A fencelock that stood still for longer than the lease kills at once.
func TestPaused(t *testing.T) {
	realtime.Test(t, "a child with a lease of 2 s")
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	p := start(t, server.Addr(), append([]string{"run", "--lease", "2s", "x"}, sh(stubborn)...)...)
	p.pid()
	p.pid()
	p.signal(syscall.SIGSTOP)
	redistest.Eventually(t, soon, func() bool { return rdb.Exists(ctx, "x").Val() == 0 }, "the lease ends")
	p.signal(syscall.SIGCONT)
	equal(t, "exit code", p.ends(), exitLost)
}

// What fencelock says is not read by anybody, or cannot be: the command and what it has started are stopped all the same.
func TestNobodyReads(t *testing.T) {
	realtime.Test(t, "a child with a lease of 3 s")
	for name, spoil := range map[string]func(pipe *os.File){
		"a pipe that is full": func(pipe *os.File) {
			for part := make([]byte, 4096); ; { // without waiting, as it was opened
				if _, err := pipe.Write(part); err != nil {
					return
				}
			}
		},
		"a pipe that is broken": func(pipe *os.File) { _ = pipe.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Real(t)
			path := fifo(t)
			pipe, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			p := startProgram(t, server.Addr(), "/bin/sh", append([]string{"-c", `exec "$@" 2>` + path, "sh", "fencelock", "run", "--lease", "3s", "--grace", "500ms", "x"}, sh(stubborn)...)...)
			p.pid()
			p.pid()
			if err := pipe.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			spoil(pipe)
			equal(t, "exit code of force-unlock", start(t, server.Addr(), "force-unlock", "--yes", "x").ends(), 0)
			equal(t, "exit code", p.ends(), exitLost)
		})
	}
}

// A release that nobody confirms is a warning; the lease ends by itself.
func TestReleaseNotConfirmed(t *testing.T) {
	t.Parallel()
	for strict, want := range map[string]int{"--strict=false": 0, "--strict": exitLost} {
		server := redistest.Real(t)
		gate := fifo(t)
		p := start(t, server.Addr(), append([]string{"run", strict, "x"}, sh("echo up; read -r x < "+gate)...)...)
		equal(t, "", p.line(), "up")
		server.Kill()
		if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		equal(t, "exit code with "+strict, p.ends(), want)
		if said := p.said(); !strings.Contains(said, "the release of x is not confirmed") {
			t.Errorf("it said %q", said)
		}
	}
}

// The lock stays taken for as long as --hold-at-least says, or until TERM.
func TestHoldAtLeast(t *testing.T) {
	realtime.Test(t, "a child that waits for 50 ms")
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), "run", "--hold-at-least", "1h", "x", "--", "echo", "ran")
	equal(t, "", p.line(), "ran")
	other := start(t, server.Addr(), "run", "-w", "50ms", "-E", "9", "x", "--", "true")
	equal(t, "exit code of another one", other.ends(), 9)
	p.signal(syscall.SIGTERM)
	equal(t, "exit code", p.ends(), 0)

	// Who takes the lock away by then does the command no harm: it has ended.
	p = start(t, server.Addr(), "run", "-v", "--hold-at-least", "1h", "x", "--", "echo", "ran")
	equal(t, "", p.line(), "ran")
	redistest.Eventually(t, soon, func() bool { return strings.Contains(p.said(), "ended with 0") }, "the command has ended")
	equal(t, "exit code of force-unlock", start(t, server.Addr(), "force-unlock", "--yes", "x").ends(), 0)
	equal(t, "exit code", p.ends(), 0)
}

// What the process had started before it became fencelock is neither waited for nor stopped.
func TestChildrenOfBefore(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	gate := fifo(t)
	cmd := exec.Command("/bin/sh", "-c", "(read -r x < "+gate+"; echo $x) & exec fencelock run x -- sh -c 'kill -TERM $$'")
	cmd.Env = append(os.Environ(), urlVariable+"=redis://"+server.Addr())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	_ = cmd.Run()
	_ = w.Close()
	equal(t, "exit code", cmd.ProcessState.ExitCode(), 128+15)
	if err := os.WriteFile(gate, []byte("alive\n"), 0); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(r)
	equal(t, "the other child", string(said), "alive\n")
}

// HUP that was ignored before, as under nohup, does not end the command.
func TestIgnoredHangup(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	gate := fifo(t)
	p := startProgram(t, server.Addr(), "/bin/sh", "-c", "trap '' HUP; exec fencelock run x -- sh -c 'echo up; read -r x < "+gate+"; echo $x'")
	equal(t, "", p.line(), "up")
	p.signal(syscall.SIGHUP)
	if err := os.WriteFile(gate, []byte("alive\n"), 0); err != nil {
		t.Fatal(err)
	}
	equal(t, "the command", p.line(), "alive")
	equal(t, "exit code", p.ends(), 0)
}
