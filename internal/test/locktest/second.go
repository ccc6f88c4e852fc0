package locktest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// secondly is the variable of the environment that makes of a test binary a second process.
const secondly = "FENCELOCK_TEST_SECOND"

// Answer does one call of a test in a second process. Calls run side by side.
type Answer func(call string, args ...string) (string, error)

// ServeAsSecond does in a second process what the first one calls, until that one hangs up, and ends the process. In a test's own process it
// returns at once. TestMain calls it first. begin gets the arguments of [StartSecond].
func ServeAsSecond(begin func(args []string) (Answer, error)) {
	if os.Getenv(secondly) == "" {
		return
	}
	code := 0
	if err := serve(os.Stdin, os.Stdout, begin); err != nil {
		fmt.Fprintln(os.Stderr, "second process:", err)
		code = 1
	}
	os.Exit(code)
}

// Lines are words with tabs between them: a number, then the call with its arguments, or what came of it.
func serve(in io.Reader, out io.Writer, begin func(args []string) (Answer, error)) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() {
		return io.ErrUnexpectedEOF
	}
	answer, err := begin(strings.Split(lines.Text(), "\t"))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		go func() {
			said, err := answer(words[1], words[2:]...)
			kind := "ok"
			if err != nil {
				kind, said = "error", err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(out, "%s\t%s\t%s\n", words[0], kind, strings.ReplaceAll(said, "\n", " "))
		}()
	}
	return lines.Err()
}

// A Second is the test binary once more, as another process that the test tells what to call.
type Second struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	over chan struct{}
	mu   sync.Mutex
	open map[string]chan string
	sent int
}

// StartSecond runs the test binary as a second process. The test's end ends it.
func StartSecond(t testing.TB, args ...string) *Second {
	t.Helper()
	s := &Second{t: t, cmd: exec.Command(os.Args[0]), over: make(chan struct{}), open: map[string]chan string{}}
	s.cmd.Env = append(os.Environ(), secondly+"=1")
	s.cmd.Stderr = os.Stderr
	in, err := s.cmd.StdinPipe()
	NoError(t, err)
	out, err := s.cmd.StdoutPipe()
	NoError(t, err)
	s.in = in
	NoError(t, s.cmd.Start())
	go s.read(out)
	t.Cleanup(s.Kill)
	fmt.Fprintln(in, strings.Join(args, "\t"))
	return s
}

func (s *Second) read(out io.Reader) {
	defer close(s.over)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, said, _ := strings.Cut(lines.Text(), "\t")
		s.mu.Lock()
		if ch := s.open[n]; ch != nil {
			ch <- said
		}
		s.mu.Unlock()
	}
}

// Start sends a call. What came of it comes over the channel: "ok" or "error", a tab, and the answer or the error.
func (s *Second) Start(call string, args ...string) <-chan string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent++
	n, ch := fmt.Sprint(s.sent), make(chan string, 1)
	s.open[n] = ch
	if _, err := fmt.Fprintln(s.in, strings.Join(append([]string{n, call}, args...), "\t")); err != nil {
		s.t.Fatalf("the second process is gone: %v", err)
	}
	return ch
}

// Call makes a call, and returns the answer. An error of the call ends the test.
func (s *Second) Call(call string, args ...string) string {
	s.t.Helper()
	kind, said, _ := strings.Cut(redistest.Await(s.t, time.Minute, s.Start(call, args...), "the second process answers %s", call), "\t")
	if kind != "ok" {
		s.t.Fatalf("%s in the second process: %s", call, said)
	}
	return said
}

// Fails makes a call that is to end in an error, and returns its text.
func (s *Second) Fails(call string, args ...string) string {
	s.t.Helper()
	kind, said, _ := strings.Cut(redistest.Await(s.t, time.Minute, s.Start(call, args...), "the second process answers %s", call), "\t")
	if kind != "error" {
		s.t.Fatalf("%s in the second process returned no error, but %q", call, said)
	}
	return said
}

// Kill ends the process where it is, and waits until it is gone.
func (s *Second) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	<-s.over
	_ = s.cmd.Wait()
}
