//go:build unix

package main

import (
	"testing"

	"github.com/fencelock/fencelock/internal/redistest"
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
	equal(t, "exit code after yes", s.ends(), 0)
	equal(t, "exit code of the former holder", p.ends(), exitLost)
}
