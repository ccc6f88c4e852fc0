package locktest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A Spy is a hook that keeps which operations a go-redis client sends: one in a command, or several in one. A command that
// the server does not know yet (NOSCRIPT) is sent again as a whole. The spy counts it once.
type Spy struct {
	mu       sync.Mutex
	ops      []string
	commands int
	around   func(ops []string, next func() error) error
}

// SpyOn returns a new spy on the client.
func SpyOn(rdb redis.UniversalClient) *Spy {
	s := new(Spy)
	rdb.AddHook(Hook(s.see))
	return s
}

// Wrap sets the function that is called instead of sending a command with operations, and returns the one that was set
// before. The function sends the command by calling next. Without a function, or with nil, commands are sent as usual.
func (s *Spy) Wrap(around func(ops []string, next func() error) error) (before func(ops []string, next func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.around = s.around, around
	return before
}

// Reset makes the spy forget what it has seen.
func (s *Spy) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops, s.commands = nil, 0
}

// Count tells how often the operation was sent.
func (s *Spy) Count(op string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.ops {
		if o == op {
			n++
		}
	}
	return n
}

// Commands tells how many commands with operations were sent.
func (s *Spy) Commands() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands
}

// String returns the operations in the order in which they were sent.
func (s *Spy) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ops, " ")
}

func (s *Spy) see(_ context.Context, cmd redis.Cmder, send func() error) error {
	ops := Ops(cmd.Args())
	if len(ops) == 0 {
		return send()
	}
	s.mu.Lock()
	s.ops = append(s.ops, ops...)
	s.commands++
	around := s.around
	s.mu.Unlock()
	var err error
	if around != nil {
		err = around(ops, send)
	} else {
		err = send()
	}
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		s.forget(ops)
	}
	return err
}

// forget takes back what was noted of one command. Reset may have been called meanwhile.
func (s *Spy) forget(ops []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range ops {
		if i := slices.Index(s.ops, op); i >= 0 {
			s.ops = slices.Delete(s.ops, i, i+1)
		}
	}
	s.commands = max(s.commands-1, 0)
}
