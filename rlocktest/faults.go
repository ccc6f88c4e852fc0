package rlocktest

import (
	"context"
	"strings"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// Pause makes Redis stand still: it answers nobody, and executes what it was sent after [Server.Resume]. Its clock goes on.
func (s *Server) Pause() { s.paused.Shut() }

// Resume ends [Server.Pause].
func (s *Server) Resume() { s.paused.Open() }

// Refuse makes Redis answer every command with this error, for example errors.New("LOADING Redis is loading the dataset in memory").
// nil ends that.
func (s *Server) Refuse(err error) {
	if err == nil {
		s.redis.Server().SetPreHook(nil)
		return
	}
	text := strings.NewReplacer("\r", " ", "\n", " ").Replace(err.Error())
	s.redis.Server().SetPreHook(func(c *server.Peer, _ string, _ ...string) bool {
		if c.ClientName != refusable { // the Server itself, and what a script of its own calls
			return false
		}
		c.WriteError(text)
		return true
	})
}

// refusable is the name of the connections of the test's clients.
const refusable = "rlocktest"

// Forget makes Redis lose all that it has, as one that restarts without persistence: locks, tokens, scripts, and your data. Holders
// are told as by their next renewal: their contexts end with ErrLost. Who waits for a lock finds by its own look, within 10 s,
// that it is free.
func (s *Server) Forget() {
	s.t.Helper()
	ctx := context.Background()
	if err := s.own.FlushAll(ctx).Err(); err != nil {
		s.t.Fatalf("rlocktest: Forget: %v", err)
	}
	if err := s.own.ScriptFlush(ctx).Err(); err != nil {
		s.t.Fatalf("rlocktest: Forget: %v", err)
	}
	for _, m := range s.listening() {
		held, _ := engine.ClientOf(m.client).InUse()
		for _, name := range held {
			engine.ClientOf(m.client).HoldGone(name, "", false)
		}
	}
}

// Stop cuts a client off: Redis gets nothing from it, and it hears nothing, until [Server.Continue]. What it has sent meanwhile arrives
// then. Its clock goes on: a hold that is not renewed ends with its lease.
func (s *Server) Stop(c *rlock.Client) {
	s.t.Helper()
	m := s.member(c)
	s.mu.Lock()
	m.away = true
	s.mu.Unlock()
	m.gate.Shut()
}

// Continue ends [Server.Stop].
func (s *Server) Continue(c *rlock.Client) {
	s.t.Helper()
	m := s.member(c)
	s.mu.Lock()
	m.away = m.killed
	s.mu.Unlock()
	m.gate.Open()
}

// Kill is the end of a client's process: Redis gets nothing from it any more, its locks are free when their leases have run out, and
// what it holds at the end of the test does not count.
func (s *Server) Kill(c *rlock.Client) {
	s.t.Helper()
	m := s.member(c)
	s.mu.Lock()
	m.away, m.killed = true, true
	s.mu.Unlock()
	m.gate.Cut()
}

// listening returns the clients that hear of what happens.
func (s *Server) listening() []*member {
	var all []*member
	for _, m := range s.all() {
		s.mu.Lock()
		away := m.away
		s.mu.Unlock()
		if !away {
			all = append(all, m)
		}
	}
	return all
}
