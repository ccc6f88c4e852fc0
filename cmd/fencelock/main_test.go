//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "fencelock" && signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup: what the tests start gets the default all the same
	}
	testscript.Main(m, map[string]func(){"fencelock": main})
}

// soon is a bound for what happens at once on a machine with nothing else to do.
const soon = 30 * time.Second

func TestScripts(t *testing.T) {
	realtime.Test(t, "children that wait for 50 ms")
	t.Parallel()
	for _, dir := range []string{"run", "view"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", dir),
				Setup: func(e *testscript.Env) error {
					server := redistest.Real(t)
					e.Setenv(urlVariable, "redis://"+server.Addr())
					e.Setenv("REDIS_PORT", server.Port())
					e.Setenv("GORACE", os.Getenv("GORACE"))
					return nil
				},
				Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"exits": exits},
			})
		})
	}
}

// exits N COMMAND...: the command ends with this exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, is := err.(*exec.ExitError); is {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if want, _ := strconv.Atoi(args[0]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// A program is a fencelock that runs. Its output ends when all processes that can write to it have ended.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *os.File
	lines  *bufio.Reader
	errs   string // path of what it says
	exited chan struct{}
}

// start runs fencelock with these arguments, on the server at addr, without a terminal.
func start(t *testing.T, addr string, args ...string) *program {
	t.Helper()
	return startProgram(t, addr, "fencelock", args...)
}

// startProgram is start of a program that becomes fencelock.
func startProgram(t *testing.T, addr, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(name, args...), errs: filepath.Join(t.TempDir(), "errs"), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), urlVariable+"=redis://"+addr)
	errs, err := os.Create(p.errs)
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p.out, p.lines, p.cmd.Stdout, p.cmd.Stderr = r, bufio.NewReader(r), w, errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Kill()
		<-p.exited
		_ = r.Close()
		if t.Failed() {
			t.Logf("%q said:\n%s", p.cmd.Args, p.said())
		}
	})
	return p
}

// said is what it and the command have written to the standard error so far.
func (p *program) said() string {
	text, err := os.ReadFile(p.errs)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// line is the next line that the command writes.
func (p *program) line() string {
	p.t.Helper()
	_ = p.out.SetReadDeadline(time.Now().Add(2 * soon))
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the command's output after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// pid is the next line, a process's number.
func (p *program) pid() int {
	p.t.Helper()
	n, err := strconv.Atoi(p.line())
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// ends waits for the end, and returns the exit code. Nothing that was started may run by then.
func (p *program) ends() int {
	p.t.Helper()
	redistest.Await(p.t, 2*soon, p.exited, "fencelock ends")
	fds := []unix.PollFd{{Fd: int32(p.out.Fd()), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 0); err != nil || fds[0].Revents&unix.POLLHUP == 0 {
		p.t.Errorf("something that the command has started still runs: %v", err)
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *program) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// fifo is a named pipe. What opens it for reading waits until something writes.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

var ctx = context.Background()
