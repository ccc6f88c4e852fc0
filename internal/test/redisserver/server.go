// Package redisserver starts real Redis and Valkey servers on loopback: for tests (package redistest), verify and bench.
// Nothing in it knows of a test: what fails is returned. The package needs a Unix system.
package redisserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a server process on loopback, without persistence and with the DEBUG command.
type Server struct {
	program string
	args    []string
	dir     string
	ownsDir bool // dir was made by Launch, and is removed by Close
	session bool // the process has a session of its own
	port    int
	proc    atomic.Pointer[process]
}

// startTimeout is how long a process may take to answer, or to stop.
const startTimeout = time.Minute

// Start starts a server with args after those of this package, and waits until the server answers. The program is what the
// environment variable REDIS_SERVER names, else redis-server. The server keeps its files in dir; with "" in a new folder, which
// [Server.Close] removes.
func Start(dir string, args ...string) (*Server, error) {
	return Launch(dir, func(s *Server) ([]string, error) { return s.Plain(args...), nil })
}

// StartApart is [Start] with a session of its own for the server, as a service has one. Where Linux schedules sessions as groups
// (sched_autogroup) the server has a part of the CPUs of its own then, and does not share that of its clients.
func StartApart(args ...string) (*Server, error) {
	return launch("", true, func(s *Server) ([]string, error) { return s.Plain(args...), nil })
}

// Launch is [Start] for a process whose arguments depend on its port or its folder.
func Launch(dir string, args func(s *Server) ([]string, error)) (*Server, error) {
	return launch(dir, false, args)
}

func launch(dir string, session bool, args func(s *Server) ([]string, error)) (*Server, error) {
	program, err := exec.LookPath(Program())
	if err != nil {
		return nil, fmt.Errorf("install redis-server (6.2 or later) on the PATH or set REDIS_SERVER to the path of one: %w", err)
	}
	s := &Server{program: program, dir: dir, session: session}
	if dir == "" {
		if s.dir, err = os.MkdirTemp("", "redisserver"); err != nil {
			return nil, err
		}
		s.ownsDir = true
	}
	for range 10 { // another program can take a free port first
		if s.port, err = FreePort(); err != nil {
			break
		}
		if s.args, err = args(s); err != nil {
			break
		}
		if err = s.start(); err == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, fmt.Errorf("start %s: %w", program, err)
}

// Program is the name or the path of the program that [Start] starts.
func Program() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

// Plain are the arguments that every server has, and those given. They are for [Launch].
func (s *Server) Plain(args ...string) []string {
	plain := []string{
		"--bind", "127.0.0.1", "--port", s.Port(), "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}
	if !s.Redis6() { // before, the command was there for everybody
		plain = append(plain, "--enable-debug-command", "yes")
	}
	return append(plain, args...)
}

// start runs the program on the server's port and waits until it is up. On an error nothing runs, and the error shows the
// program's output.
func (s *Server) start() error {
	p, err := startProcess(s.program, filepath.Join(s.dir, "output.log"), s.args, s.session)
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

// Redis6 reports whether the program is Redis 6, which does not start with settings that Redis 7 brought.
func (s *Server) Redis6() bool { return isRedis6(s.program) }

// IsRedis6 reports whether the program that [Start] starts is Redis 6.
func IsRedis6() bool { return isRedis6(Program()) }

func isRedis6(program string) bool {
	said, _ := versions.LoadOrStore(program, sync.OnceValue(func() string {
		version, _ := exec.Command(program, "--version").Output()
		return string(version)
	}))
	return strings.Contains(said.(func() string)(), " v=6.")
}

// versions has what each program says of itself.
var versions sync.Map

// Addr returns the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return loopback(s.port) }

// Port returns the server's port.
func (s *Server) Port() string { return strconv.Itoa(s.port) }

// Dir returns the folder with the server's files.
func (s *Server) Dir() string { return s.dir }

// Pid returns the id of the server's present process.
func (s *Server) Pid() int { return s.proc.Load().cmd.Process.Pid }

// Output returns what the server's present process has written so far.
func (s *Server) Output() string { return s.proc.Load().output() }

// Do sends a command, over a connection of its own, and returns the reply as in RESP2. within is a bound for the way to the server,
// and for its answer.
func (s *Server) Do(within time.Duration, args ...any) (any, error) {
	rdb := redis.NewClient(&redis.Options{
		Addr: s.Addr(), Protocol: 2, PoolSize: 1, MaxRetries: -1,
		DialTimeout: within, ReadTimeout: within, DialerRetries: 1,
	})
	defer func() { _ = rdb.Close() }()
	return rdb.Do(context.Background(), args...).Result()
}

// Info returns the value of a field of a section of INFO, "" where there is none or the server does not answer.
func (s *Server) Info(section, field string) string {
	info, _ := s.Do(time.Second, "info", section)
	text, _ := info.(string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && name == field {
			return value
		}
	}
	return ""
}

// Freeze stops the process where it is; its connections stay open. It returns when the process stands still.
func (s *Server) Freeze() error {
	if err := s.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if !poll(startTimeout, s.proc.Load().stopped) {
		return fmt.Errorf("process %d does not stop", s.Pid())
	}
	return nil
}

// Thaw lets the process run again after [Server.Freeze].
func (s *Server) Thaw() error { return s.signal(syscall.SIGCONT) }

// signal sends a signal to the process.
func (s *Server) signal(sig syscall.Signal) error {
	if err := s.proc.Load().cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("%v to process %d: %w", sig, s.Pid(), err)
	}
	return nil
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

// Kill ends the process without giving it time for anything, and waits for its end.
func (s *Server) Kill() { s.proc.Load().kill() }

// Restart starts the server again, on the same port and with the same arguments, and waits until it is up. It kills the process
// first if it still runs.
func (s *Server) Restart() error {
	s.Kill()
	var err error
	up := poll(startTimeout, func() bool { // another program can have the port for a moment
		err = s.start()
		return err == nil
	})
	if !up {
		return fmt.Errorf("restart %s: %w", s.program, err)
	}
	return nil
}

// Close ends the process, if it has ever run, and removes the folder that Start made.
func (s *Server) Close() {
	if s.proc.Load() != nil {
		s.Kill()
	}
	if s.ownsDir {
		_ = os.RemoveAll(s.dir)
	}
}

// poll calls cond again and again until it reports true or the time is over: every millisecond at first, less often the longer
// it waits.
func poll(within time.Duration, cond func() bool) bool {
	for began := time.Now(); ; {
		last := time.Since(began) >= within
		if cond() {
			return true
		}
		if last {
			return false
		}
		time.Sleep(min(max(time.Millisecond, time.Since(began)/20), 50*time.Millisecond))
	}
}
