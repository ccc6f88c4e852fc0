package rlocktest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/virtualtime"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// A Server is a Redis in the memory of the test, and what happens around it. New makes one. Its methods fail the test where what they
// are to do is not possible. They are safe for concurrent use.
type Server struct {
	t      testing.TB
	redis  *memredis.Server
	bubble bool
	paused memredis.Gate
	own    *redis.Client // for what the Server does itself; passes no gate
	admin  *rlock.Client // releases the holds of others
	cycles bool          // locks may be taken in two orders
	order  order
	ended  bool // contexts may end before their holds
	early  early
	port   port // of Addr

	mu      sync.Mutex
	members map[string]*member // by the client's id
}

// A member is a client of the test, as a process of its own.
type member struct {
	client *rlock.Client
	rdb    *redis.Client
	gate   memredis.Gate
	away   bool // stopped or killed: it hears of nothing
	killed bool
}

// Option changes a default of New.
type Option func(*Server)

// AllowCycles lets the test take locks in two orders. By default it fails at its end: a holder of a that waits for b, and a holder of b
// that waits for a, wait for each other.
func AllowCycles() Option { return func(s *Server) { s.cycles = true } }

// AllowEndedContexts lets the context end that Lock, TryLock or one of their kin was given, before the Unlock. By default the test fails at
// its end: such a hold is over with that context, and is not renewed. Where the hold is to last longer use Acquire; where the test is of
// code whose caller goes away, use this option. Holds of Do and Acquire are not looked at, and neither are those that end after the
// test itself, such as by a function of t.Cleanup.
func AllowEndedContexts() Option { return func(s *Server) { s.ended = true } }

// New returns a Server that ends with the test, after its clients. In a testing/synctest bubble call New in the bubble, with the
// bubble's t.
func New(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{t: t, redis: memredis.New(), bubble: inBubble(), members: map[string]*member{}}
	for _, opt := range opts {
		opt(s)
	}
	leave := func() {}
	if s.bubble {
		enter, stop := virtualtime.Enter(), virtualtime.EndWithinADay(t.Name())
		leave = func() {
			stop()
			enter()
		}
	}
	s.own = redis.NewClient(s.redis.Options())
	t.Cleanup(func() {
		s.end()
		leave()
	})
	admin, err := rlock.New(s.own, quiet)
	if err == nil {
		err = s.own.Ping(context.Background()).Err()
	}
	if err != nil {
		t.Fatalf("rlocktest: New: %v", err)
	}
	s.admin = admin
	return s
}

// connect returns a go-redis client of the test, whose connections pass these gates, and which Refuse knows.
func (s *Server) connect(gates ...*memredis.Gate) *redis.Client {
	opts := s.redis.Options(gates...)
	opts.ClientName = refusable
	return redis.NewClient(opts)
}

// quiet is what clients log by default: a test provokes what is worth a line in a service.
var quiet = rlock.WithLogger(slog.New(slog.DiscardHandler))

// inBubble tells whether the test runs in a testing/synctest bubble, whose clock begins with the year 2000.
func inBubble() bool { return time.Now().Year() < 2010 }

// Client returns a client of the locks, with the options of rlock.New. Each is a process of its own: clients exclude each other, and
// [Server.Stop] and [Server.Kill] are about one of them. The Server closes it at the end of the test. It logs nothing, unless
// rlock.WithLogger is among the options.
func (s *Server) Client(opts ...rlock.Option) *rlock.Client {
	s.t.Helper()
	m := &member{}
	m.rdb = s.connect(&s.paused, &m.gate)
	traced := func(set *engine.Settings) { set.Trace = locktrace.Join(set.Trace, s.order.trace(), s.early.trace(s.t)) }
	client, err := rlock.New(m.rdb, append(append([]rlock.Option{quiet}, opts...), traced)...)
	if err != nil {
		_ = m.rdb.Close()
		s.t.Fatalf("rlocktest: Client: %v", err)
	}
	m.client = client
	s.mu.Lock()
	s.members[client.ID()] = m
	s.mu.Unlock()
	return client
}

// Redis returns a go-redis client of the Server, for data and for guards (redisguard). [Server.Pause] and [Server.Refuse] hold for it. The
// Server closes it at the end of the test.
func (s *Server) Redis() *redis.Client {
	rdb := s.connect(&s.paused)
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// end closes everything, and says what the test has left.
func (s *Server) end() {
	s.Resume()
	s.Refuse(nil)
	for _, m := range s.alive() {
		m.gate.Open()
	}
	if !s.t.Failed() {
		if left := s.left(); left != "" {
			s.t.Errorf("rlocktest: at the end of the test %s", left)
		}
		if cycle := s.order.cycle(); cycle != "" && !s.cycles {
			s.t.Errorf("rlocktest: %s", cycle)
		}
		if early := s.early.text(); early != "" && !s.ended {
			s.t.Errorf("rlocktest: %s", early)
		}
	}
	for _, m := range s.all() {
		m.gate.Open()
		_ = m.client.Close()
		_ = m.rdb.Close()
	}
	if s.admin != nil {
		_ = s.admin.Close()
	}
	_ = s.own.Close()
	s.port.close()
	if s.bubble {
		time.Sleep(time.Second) // a dial under way ends before its bubble does
	}
	s.redis.Close()
}

// left says what the clients hold, and wait for, although the test is over; "" for nothing. What a goroutine of the test is about to
// end has a while for it.
func (s *Server) left() string {
	var left []string
	s.until(graceAtEnd, func() bool {
		left = nil
		for _, m := range s.alive() {
			held, waiting := engine.ClientOf(m.client).InUse()
			if len(held) > 0 {
				left = append(left, fmt.Sprintf("%q held by client %s: Unlock is missing", held, m.client.ID()))
			}
			if len(waiting) > 0 {
				left = append(left, fmt.Sprintf("%q waited for by client %s: end the call's context, and wait for the call", waiting, m.client.ID()))
			}
		}
		return len(left) == 0
	})
	return strings.Join(left, "; ")
}

const (
	graceAtEnd = 2 * time.Second
	waitBound  = time.Minute
)

// Wait returns when cond is true. In a bubble it lets everything come to rest between two looks, and time go on. It fails the test, with
// what, where that takes longer than a minute.
func (s *Server) Wait(what string, cond func() bool) {
	s.t.Helper()
	if !s.until(waitBound, cond) {
		s.t.Fatalf("rlocktest: not within %v: %s", waitBound, what)
	}
}

// until looks until cond is true, or the time is over.
func (s *Server) until(bound time.Duration, cond func() bool) bool {
	for deadline := time.Now().Add(bound); ; time.Sleep(time.Millisecond) {
		if s.bubble {
			synctest.Wait()
		}
		if cond() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// all returns the clients.
func (s *Server) all() []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*member, 0, len(s.members))
	for _, m := range s.members {
		all = append(all, m)
	}
	return all
}

// alive returns the clients that were not killed.
func (s *Server) alive() []*member {
	var alive []*member
	for _, m := range s.all() {
		s.mu.Lock()
		killed := m.killed
		s.mu.Unlock()
		if !killed {
			alive = append(alive, m)
		}
	}
	return alive
}

// member returns the client as the Server knows it.
func (s *Server) member(c *rlock.Client) *member {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		if m := s.members[c.ID()]; m != nil {
			return m
		}
	}
	s.t.Fatal("rlocktest: this is no client of the Server: use Server.Client")
	return nil
}
