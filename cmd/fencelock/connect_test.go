//go:build unix

package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
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
		show, err := io.ReadAll(start(t, addr, append([]string{"show", "x"}, flags...)...).lines)
		equal(t, "error of show", err, nil)
		equal(t, "show has the hash slot of a cluster", strings.Contains(string(show), "\nHash slot           16287\n"), slices.Contains(flags, "--cluster"))
		equal(t, "exit code of doctor", start(t, addr, append([]string{"doctor"}, flags...)...).ends(), 0)
		busy := start(t, addr, append(append([]string{"run", "-n"}, flags...), "x", "--", "true")...)
		equal(t, "exit code of another run", busy.ends(), exitNotAcquired)
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		try(t, redistest.Clustered(t, 2, 0).Nodes[0].Addr(), "--cluster")
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		try(t, redistest.Watched(t, 1).Sentinels[0].Addr(), "--sentinel-master", redistest.MasterName)
	})
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		socket := filepath.Join(t.TempDir(), "s")
		redistest.Real(t, "--unixsocket", socket)
		try(t, "nowhere:1", "--url", "unix://"+socket)
	})
	t.Run("cluster without the flag", func(t *testing.T) {
		t.Parallel()
		addr := redistest.Clustered(t, 2, 0).Nodes[0].Addr()
		p := start(t, addr, "doctor")
		equal(t, "exit code", p.ends(), exitFailed)
	})
}

// An error about the URL shows no part of a password, whatever the URL is taken for.
func TestURLErrorsShowNoPassword(t *testing.T) {
	for address, why := range map[string]string{
		"redis://:hunter2/x@host:6379":       "cannot be read",
		"redis://:123/hunter2@host:6379":     "cannot be read",
		"redis://:1?hunter2@host:6379":       "cannot be read",
		"redis://:hunter2%zz@host:6379":      "cannot be read",
		"http://:hunter2@host":               "redis:, rediss: and unix:",
		"redis://:hunter2@host:6379/0?dv=1":  "no option dv",
		"redis://:#hunter2@host:6379":        "cannot be read",
		"redis://ada:/hunter2@host:6379":     "cannot be read",
		"redis://:1?hunter=2@host:6379":      "cannot be read",
		"redis://:hunter2@host:6379/hunter2": "cannot be read",
	} {
		t.Setenv(urlVariable, address)
		for _, c := range []connection{{}, {cluster: true}, {sentinel: "m"}} {
			_, err := c.open()
			if err == nil && c.cluster && address == "redis://:hunter2@host:6379/hunter2" {
				continue // go-redis reads no database there
			}
			if err == nil || strings.Contains(err.Error(), "hunter=2") || strings.Contains(err.Error(), "option hunter") || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// The URL of a Sentinel names the master's user, and has its password in a parameter, which is no argument either and is not shown.
func TestSentinelURL(t *testing.T) {
	t.Setenv(passwordVariable, "")
	t.Setenv(urlVariable, "redis://of-sentinel:word@127.0.0.1:1?username=ada&password=secret")
	for _, c := range []struct {
		connection
		user, password string
	}{
		{connection{sentinel: "m"}, "ada", "secret"},
		{connection{sentinel: "m", urls: []string{"redis://bob@127.0.0.1:1"}}, "bob", ""},
	} {
		rdb, err := c.open()
		if err != nil {
			t.Fatal(err)
		}
		o := rdb.(*redis.Client).Options()
		equal(t, "the master's user", o.Username, c.user)
		equal(t, "the master's password", o.Password, c.password)
		if s := c.shown(); strings.Contains(s, "secret") || strings.Contains(s, "word@") {
			t.Errorf("a password is shown: %s", s)
		}
		_ = rdb.Close()
	}
	if _, err := (&connection{sentinel: "m", urls: []string{"redis://127.0.0.1:1?password=secret"}}).open(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a password in an argument: %v", err)
	}
}
