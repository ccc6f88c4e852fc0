//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/vt"
	"golang.org/x/sys/unix"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A terminal is a screen with a keyboard, and a program on it.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	keys   *os.File
	exited chan struct{}

	mu     sync.Mutex
	screen *vt.Emulator
}

// onScreen runs a program on a terminal of its own, with the server at addr.
func onScreen(t *testing.T, addr string, program string, args ...string) *terminal {
	t.Helper()
	s := &terminal{t: t, cmd: exec.Command(program, args...), exited: make(chan struct{}), screen: vt.NewEmulator(120, 24)}
	s.cmd.Env = append(os.Environ(), urlVariable+"=redis://"+addr, "TERM=xterm-256color", "PS1=ready ", "ENV=")
	keys, tty := pseudoTerminal(t)
	s.keys, s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = keys, tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := s.cmd.Start()
	_ = tty.Close()
	if err != nil {
		_ = keys.Close()
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(s.keys, s.screen) // what a terminal answers when it is asked what it can do
		_, _ = io.Copy(io.Discard, s.screen)
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		part := make([]byte, 4096)
		for {
			n, err := s.keys.Read(part)
			s.mu.Lock()
			_, _ = s.screen.Write(part[:n])
			s.mu.Unlock()
			if err != nil { // also when the last program has ended
				return
			}
		}
	}()
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.exited
		_ = s.keys.Close()
		<-read
		if t.Failed() {
			t.Logf("on the screen:\n%s", s.text())
		}
		_ = s.screen.InputPipe().(io.Closer).Close() // ends the copying
	})
	return s
}

// pseudoTerminal opens both ends of one. The end of the keys does not block, so that its Close ends a Read, also where a program that was
// left behind has the other end open.
func pseudoTerminal(t *testing.T) (keys, tty *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 120})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = unix.Close(fd)
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "/dev/ptmx"), tty
}

// narrows makes the screen so many columns wide, which tells the program.
func (s *terminal) narrows(columns int) {
	s.t.Helper()
	s.mu.Lock()
	s.screen.Resize(columns, 24)
	s.mu.Unlock()
	raw, err := s.keys.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	var wrong error
	if err := raw.Control(func(fd uintptr) {
		wrong = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)})
	}); err != nil || wrong != nil {
		s.t.Fatal(err, wrong)
	}
}

// text is what is on the screen.
func (s *terminal) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// shows waits until the text is on the screen.
func (s *terminal) shows(text string) {
	s.t.Helper()
	redistest.Settles(s.t, soon, func() bool { return strings.Contains(s.text(), text) }, "%q is on the screen", text)
}

func (s *terminal) types(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func (s *terminal) ends() int {
	s.t.Helper()
	redistest.Await(s.t, 2*soon, s.exited, "%v ends", s.cmd.Args)
	return s.cmd.ProcessState.ExitCode()
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// On a terminal the command gets the keyboard's signals itself, once, and decides what they mean.
func TestTerminalInterrupt(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s := onScreen(t, server.Addr(), "fencelock", append([]string{"run", "x"}, sh(`
		n=0; trap 'n=$((n+1)); echo int $n; [ $n -lt 3 ] || exit 5' INT; echo up; while :; do sleep 0.05; done`)...)...)
	s.shows("up")
	for _, text := range []string{"int 1", "int 2", "int 3"} {
		s.types(ctrlC)
		s.shows(text)
	}
	equal(t, "exit code", s.ends(), 5)
}

// ^C ends the wait.
func TestTerminalInterruptWhileWaiting(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	s := onScreen(t, server.Addr(), "fencelock", "run", "x", "--", "echo", "never")
	rdb := server.Client()
	redistest.Eventually(t, soon, func() bool { return rdb.ZCard(ctx, "fencelock_line:{x}").Val() == 1 }, "it waits")
	s.types(ctrlC)
	equal(t, "exit code", s.ends(), 130)
}

// On a terminal a command that reads from it can, and what it has started gets TERM as well.
func TestTerminalTerm(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s := onScreen(t, server.Addr(), "fencelock", append([]string{"run", "x"}, sh(`
		$0 -c 'trap "echo inner; exit" TERM; echo up; while :; do sleep 0.05; done' & read -r line; echo "read $line"; wait`)...)...)
	s.shows("up")
	s.types("text\n")
	s.shows("read text")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.shows("inner")
	equal(t, "exit code", s.ends(), 128+15)
}

// ^Z stops the command and then fencelock, so that the shell takes over; fg goes on with both.
func TestTerminalStop(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s := onScreen(t, server.Addr(), "/bin/sh", "-i")
	s.types("fencelock run x -- sh -c 'echo $((6*7)); read -r line; echo \"read: $line\"'; echo \"code: $?\"\n")
	s.shows("42")  // the command runs
	s.types(ctrlZ) // once: with each one the terminal throws away what nobody has read yet, as the word Stopped
	s.shows("Stopped")
	s.types("fg\n")
	s.types("text\n")
	s.shows("read: text")
	s.types("exit 0\n")
	s.ends()
}

// ^C ends what the command has left behind when it ended itself: a shell lets its background processes ignore the keyboard.
func TestTerminalInterruptOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	s := onScreen(t, server.Addr(), "fencelock", append([]string{"run", "x"}, sh("sleep 1000 & echo up")...)...)
	s.shows("not all that it has started")
	s.types(ctrlC)
	equal(t, "exit code", s.ends(), 0)
}

// ^Z stops both also where the command neither reads from the terminal nor writes to it.
func TestTerminalStopOfWhatIsRedirected(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	gate := fifo(t)
	s := onScreen(t, server.Addr(), "/bin/sh", "-i")
	s.types("fencelock run x -- sh -c 'read -r line < " + gate + "; exit 3' < /dev/null > /dev/null 2>&1; echo \"code: $?\"\n")
	var writes *os.File
	redistest.Settles(t, soon, func() (opened bool) {
		var err error
		writes, err = os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	}, "the command reads")
	s.types(ctrlZ)
	s.shows("Stopped")
	s.types("fg; echo \"then: $?\"\n")
	if _, err := writes.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	_ = writes.Close()
	s.shows("then: 3")
	s.types("exit 0\n")
	s.ends()
}
