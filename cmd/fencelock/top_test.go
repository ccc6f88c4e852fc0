//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/redistest"
)

// top shows the locks, shows one, filters, and frees the one whose name is typed. The cursor stays on its lock, wherever that moves.
func TestTop(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	take := func(name string) *program {
		p := start(t, server.Addr(), append([]string{"run", name}, sh("echo up; read -r x < "+fifo(t))...)...)
		equal(t, "", p.line(), "up")
		return p
	}
	take("beta")
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows("beta ")
	alpha := take("alpha")
	s.shows("alpha ")
	s.types("n")
	s.shows("by name")
	s.types("\r")
	s.shows("redisson_lock_token:{beta}")
	s.types("\x1b")
	s.shows("NAME ")
	s.types("g\r") // the first
	s.shows("redisson_lock_token:{alpha}")
	s.types("\x1b")
	s.shows("NAME ")
	s.types("f")
	s.shows("Type the lock's name:")
	s.types("beta\r")
	s.shows("nothing was released")
	s.types("f")
	s.shows("Take alpha away from ")
	s.types("alpha\r")
	s.shows("alpha is released")
	equal(t, "exit code of the former holder", alpha.ends(), exitLost)
	s.types("/bet")
	s.shows("Filter: bet")
	s.types("q\r") // is typed
	s.shows("only what contains")
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// A lock whose name nobody can type is freed by what top shows of the name.
func TestTopUnprintable(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "a\nb"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	s := onScreen(t, server.Addr(), "fencelock", "top", "-d", "0.2")
	s.shows(`"a\nb"`)
	s.types("f")
	s.shows("Type the lock's name:")
	s.types(`"a\nb"` + "\r")
	s.shows("is released")
	equal(t, "exit code of the former holder", p.ends(), exitLost)
	s.types("q")
	equal(t, "exit code", s.ends(), 0)
}

// Without a terminal the list is printed once, and without colours.
func TestTopOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "alpha"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	for found := false; !found; {
		top := start(t, server.Addr(), "top")
		summary, columns, first := top.line(), top.line(), ""
		if strings.Contains(summary, "locks: 1,") { // after a second at most
			first, found = top.line(), true
			if !strings.HasPrefix(columns, "NAME ") || !strings.HasPrefix(first, "alpha ") || strings.Contains(summary+columns+first, "\x1b") {
				t.Errorf("top prints:\n%s\n%s\n%s", summary, columns, first)
			}
		}
		equal(t, "exit code", top.ends(), 0)
	}
}
