//go:build unix

package main

import (
	"path/filepath"
	"testing"

	"github.com/fencelock/fencelock/internal/redistest"
)

// Every way to Redis: the command runs, ls shows its lock, doctor finds nothing wrong.
func TestConnections(t *testing.T) {
	try := func(t *testing.T, addr string, flags ...string) {
		t.Helper()
		p := start(t, addr, append(append([]string{"run"}, flags...), append([]string{"x"}, sh("echo up; read -r x < "+fifo(t))...)...)...)
		equal(t, "", p.line(), "up")
		ls := start(t, addr, append([]string{"ls", "-o", "name", "x"}, flags...)...)
		equal(t, "ls", ls.line(), "x")
		equal(t, "exit code of ls", ls.ends(), 0)
		equal(t, "exit code of doctor", start(t, addr, append([]string{"doctor"}, flags...)...).ends(), 0)
		busy := start(t, addr, append(append([]string{"run", "-n"}, flags...), "x", "--", "true")...)
		equal(t, "exit code of another run", busy.ends(), exitNotAcquired)
	}
	t.Run("cluster", func(t *testing.T) {
		try(t, redistest.Clustered(t, 2, 0).Nodes[0].Addr(), "--cluster")
	})
	t.Run("sentinel", func(t *testing.T) {
		try(t, redistest.Watched(t, 1).Sentinels[0].Addr(), "--sentinel-master", redistest.MasterName)
	})
	t.Run("unix", func(t *testing.T) {
		socket := filepath.Join(t.TempDir(), "s")
		redistest.Real(t, "--unixsocket", socket)
		try(t, "nowhere:1", "--url", "unix://"+socket)
	})
	t.Run("cluster without the flag", func(t *testing.T) {
		addr := redistest.Clustered(t, 2, 0).Nodes[0].Addr()
		p := start(t, addr, "doctor")
		equal(t, "exit code", p.ends(), exitFailed)
	})
}
