//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// On a terminal force-unlock asks.
func TestForceUnlockAsks(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	p := start(t, server.Addr(), append([]string{"run", "x"}, sh("echo up; read -r x < "+fifo(t))...)...)
	equal(t, "", p.line(), "up")
	s := onScreen(t, server.Addr(), "fencelock", "force-unlock", "x")
	s.shows("Release it? [y/N]")
	s.types("\n")
	s.shows("nothing was released")
	equal(t, "exit code after no", s.ends(), exitFailed)
	equal(t, "held", server.Client().Exists(ctx, "x").Val(), 1)
	s = onScreen(t, server.Addr(), "fencelock", "force-unlock", "x")
	s.shows("Release it? [y/N]")
	s.types("y\n")
	s.shows("x is released")
	equal(t, "exit code after yes", s.ends(), 0)
	equal(t, "exit code of the former holder", p.ends(), exitLost)
}

// Where the hold that it has shown is over by the time of the answer, force-unlock says what it has found instead.
func TestForceUnlockFindsAnother(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	const first, second = "10000000-0000-4000-8000-000000000001:1", "20000000-0000-4000-8000-000000000002:2"
	for found, change := range map[string]func(){
		"x is free by now": func() { rdb.Del(ctx, "x") },
		"x is held by " + second[:36] + " (" + second + ") by now": func() { rdb.Del(ctx, "x"); rdb.HSet(ctx, "x", second, 1) },
	} {
		rdb.Del(ctx, "x")
		rdb.HSet(ctx, "x", first, 1)
		s := onScreen(t, server.Addr(), "fencelock", "force-unlock", "x")
		s.shows("Release it? [y/N]")
		change()
		s.types("y\n")
		s.shows(found)
		equal(t, "exit code", s.ends(), exitFailed)
		equal(t, "the other hold is there", rdb.HExists(ctx, "x", second).Val(), strings.Contains(found, second))
	}
}
