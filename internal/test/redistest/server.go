package redistest

import (
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// Owner is what servers and links belong to: a test, or a program that does for them what a test would.
type Owner interface {
	Helper()
	TempDir() string
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Fatalf(format string, args ...any) // does not return
}

// Server is a real server process on loopback, without persistence and with the
// DEBUG command. Its methods that fail end the test: call them from the test's
// own goroutine.
type Server struct {
	*redisserver.Server
	t      Owner
	marked sync.Once
}

// Real starts a server process of the test's own, with args after the arguments
// of this package, and waits until it is up. The program is what the
// environment variable REDIS_SERVER names, else redis-server. The process is
// killed when the test ends; the log of a failed test shows its output. With
// -short the test is skipped: make test runs those in its second pass.
func Real(t Owner, args ...string) *Server {
	t.Helper()
	return launch(t, func(s *redisserver.Server) ([]string, error) { return s.Plain(args...), nil })
}

// launch starts a process with arguments that may depend on its port, and waits
// until it is up.
func launch(t Owner, args func(s *redisserver.Server) ([]string, error)) *Server {
	t.Helper()
	if t, is := t.(testing.TB); is && testing.Short() {
		t.Skip("a server process of its own is for a run without -short")
	}
	s, err := redisserver.Launch(t.TempDir(), args)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() {
		s.Close()
		if t.Failed() {
			t.Logf("output of the server at %s:\n%s", s.Addr(), s.Output())
		}
	})
	return &Server{Server: s, t: t}
}

// Client returns a client of the server, with the defaults of go-redis as
// changed by opts. It is closed when the test ends.
func (s *Server) Client(opts ...func(*redis.Options)) *redis.Client {
	return Client(s.t, s.Addr(), opts...)
}

// Do sends a command, over a connection of its own, and returns the reply as in
// RESP2.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	got, err := s.Server.Do(time.Minute, args...)
	if err != nil {
		s.t.Fatalf("redistest: %v: %v", args, err)
	}
	return got
}

// ask is Do for a server that may not answer: within a second.
func (s *Server) ask(args ...any) (any, error) { return s.Server.Do(time.Second, args...) }

// Freeze stops the process where it is; its connections stay open. It returns
// when the process stands still.
func (s *Server) Freeze() {
	s.t.Helper()
	s.marked.Do(func() { inRealTime(s.t, "a frozen server") })
	s.must(s.Server.Freeze())
}

// Thaw lets the process run again after [Server.Freeze].
func (s *Server) Thaw() {
	s.t.Helper()
	s.must(s.Server.Thaw())
}

// Restart starts the server again, on the same port and with the same
// arguments, and waits until it is up. It kills the process first if it still
// runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.marked.Do(func() { inRealTime(s.t, "a server that starts again") })
	s.must(s.Server.Restart())
}

// inRealTime marks the test, if it is one: see [realtime.Test].
func inRealTime(t Owner, why string) {
	if t, is := t.(testing.TB); is {
		realtime.Test(t, why)
	}
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("redistest: %v", err)
	}
}
