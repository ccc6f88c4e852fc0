package redistest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a real server process on loopback, without persistence and with the
// DEBUG command. Its methods that fail end the test: call them from the test's
// own goroutine.
type Server struct {
	t       testing.TB
	program string
	args    []string
	dir     string
	port    int
	bus     int // of a cluster's node
	proc    atomic.Pointer[process]
}

// Real starts a server process of the test's own, with args after the arguments
// of this package, and waits until it is up. The program is what the
// environment variable REDIS_SERVER names, else redis-server. The process is
// killed when the test ends; the log of a failed test shows its output. With
// -short the test is skipped: make test runs those in its second pass.
func Real(t testing.TB, args ...string) *Server {
	t.Helper()
	return launch(t, func(s *Server) ([]string, error) { return s.plain(args...), nil })
}

// launch starts a process with arguments that may depend on its port, and waits
// until it is up.
func launch(t testing.TB, args func(s *Server) ([]string, error)) *Server {
	t.Helper()
	if testing.Testing() && testing.Short() { // verify is no test
		t.Skip("a server process of its own is for a run without -short")
	}
	program := os.Getenv("REDIS_SERVER")
	if program == "" {
		program = "redis-server"
	}
	program, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("redistest: install redis-server (6.2 or later) on the PATH or set REDIS_SERVER to the path of one: %v", err)
	}
	s := &Server{t: t, program: program, dir: t.TempDir()}
	t.Cleanup(func() {
		p := s.proc.Load()
		if p == nil {
			return
		}
		p.kill()
		if t.Failed() {
			t.Logf("output of the server at %s:\n%s", s.Addr(), p.output())
		}
	})
	for range 10 { // another program can take a free port first
		if s.port, err = FreePort(); err != nil {
			break
		}
		if s.args, err = args(s); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s
		}
	}
	t.Fatalf("redistest: start %s: %v", program, err)
	return nil
}

// Addr returns the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return loopback(s.port) }

// Port returns the server's port.
func (s *Server) Port() string { return strconv.Itoa(s.port) }

// Pid returns the id of the server's present process.
func (s *Server) Pid() int { return s.proc.Load().cmd.Process.Pid }

// Client returns a client of the server, with the defaults of go-redis as
// changed by opts. It is closed when the test ends.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	return Client(s.t, s.Addr(), opts...)
}

// Do sends a command, over a connection of its own, and returns the reply as in
// RESP2.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	got, err := s.ask(time.Minute, args...)
	if err != nil {
		s.t.Fatalf("redistest: %v: %v", args, err)
	}
	return got
}

// ask is Do for a server that may not answer within this time.
func (s *Server) ask(within time.Duration, args ...any) (any, error) {
	rdb := redis.NewClient(&redis.Options{
		Addr: s.Addr(), Protocol: 2, PoolSize: 1, MaxRetries: -1,
		DialTimeout: within, ReadTimeout: within, DialerRetries: 1,
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Do(context.Background(), args...).Result()
}

// Info returns the value of a field of a section of INFO, "" where there is none
// or the server does not answer.
func (s *Server) Info(section, field string) string {
	info, _ := s.ask(time.Second, "info", section)
	text, _ := info.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

// Freeze stops the process where it is; its connections stay open. It returns
// when the process stands still.
func (s *Server) Freeze() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	Eventually(s.t, time.Minute, s.proc.Load().stopped, "process %d stops", s.Pid())
}

// Thaw lets the process run again after [Server.Freeze].
func (s *Server) Thaw() {
	s.t.Helper()
	s.signal(syscall.SIGCONT)
}

// Running reports whether the process runs, frozen or not.
func (s *Server) Running() bool {
	select {
	case <-s.proc.Load().exited:
		return false
	default:
		return true
	}
}

// Kill ends the process without giving it time for anything, and waits for its
// end.
func (s *Server) Kill() { s.proc.Load().kill() }

// Restart starts the server again, on the same port and with the same
// arguments, and waits until it is up. It kills the process first if it still
// runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	var err error
	up := poll(time.Minute, func() bool { // another program can have the port for a moment
		err = s.start()
		return err == nil
	})
	if up {
		return
	}
	s.t.Fatalf("redistest: restart %s: %v", s.program, err)
}

// signal sends a signal to the process.
func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.proc.Load().cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redistest: %v to process %d: %v", sig, s.Pid(), err)
	}
}

// plain are the arguments that every server has, and those given.
func (s *Server) plain(args ...string) []string {
	plain := []string{
		"--bind", "127.0.0.1", "--port", s.Port(), "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	if !s.old() { // before, the command was there for everybody
		plain = append(plain, "--enable-debug-command", "yes")
	}
	return append(plain, args...)
}

// old reports whether the program is Redis 6, which does not start with settings
// that Redis 7 brought.
func (s *Server) old() bool {
	said, _ := versions.LoadOrStore(s.program, sync.OnceValue(func() string {
		version, _ := exec.Command(s.program, "--version").Output()
		return string(version)
	}))
	return strings.Contains(said.(func() string)(), " v=6.")
}

// versions has what each program says of itself.
var versions sync.Map

// start runs the program on the server's port and waits until it is up. On an
// error nothing runs, and the error shows the program's output.
func (s *Server) start() error {
	p, err := startProcess(s.program, filepath.Join(s.dir, "output.log"), s.args)
	if err != nil {
		return err
	}
	if err := p.awaitUp(s.Addr()); err != nil {
		p.kill()
		return fmt.Errorf("%w; its output:\n%s", err, p.output())
	}
	s.proc.Store(p)
	return nil
}

// FreePort returns a port on loopback that is free now, and so is the port
// [BusOffset] above it. The system gives neither to outgoing connections: those
// take ports all the time. Other test programs do not get it either before a
// server listens on it: this one keeps the UDP port of the same number, until it
// has taken maxTaken others.
func FreePort() (int, error) {
	taken.Lock()
	defer taken.Unlock()
	var err error
	for range 100 {
		port := 10000 + rand.IntN(BusOffset) // with its bus below 30000: systems begin at 32768 or above
		var mark net.PacketConn
		if mark, err = take(port); err != nil {
			continue
		}
		if taken.marks = append(taken.marks, mark); len(taken.marks) > maxTaken {
			_ = taken.marks[0].Close()
			taken.marks = taken.marks[1:]
		}
		return port, nil
	}
	return 0, err
}

// BusOffset is how far above its port a node of a cluster has its second one, for
// the other nodes, unless it is told another (which Redis 7 can be).
const BusOffset = 10000

// take returns the mark of a port that is free, and its bus too.
func take(port int) (net.PacketConn, error) {
	mark, err := net.ListenPacket("udp", loopback(port))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(vacant(port), vacant(port+BusOffset)); err != nil {
		_ = mark.Close()
		return nil, err
	}
	return mark, nil
}

// vacant returns an error if the port is in use.
func vacant(port int) error {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return err
	}
	return l.Close()
}

// loopback is the address of a port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// maxTaken is far more than there are servers that have a port and do not listen
// yet, or are between two starts, and no burden on the files of a process.
const maxTaken = 300

var taken struct {
	sync.Mutex
	marks []net.PacketConn
}
