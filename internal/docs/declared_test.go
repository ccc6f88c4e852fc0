package docs

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// Scripts declare the keys that their commands use, as servers may insist on (Dragonfly does): those of locks, of presence and of guards. Those
// of semaphores, read-write locks and quorums make names of keys themselves.
func TestScriptsDeclareTheirKeys(t *testing.T) {
	t.Parallel()
	s := onServer(t)
	connect := s.connect
	s.connect = func() redis.UniversalClient {
		rdb := connect()
		rdb.AddHook(locktest.Insists(new(atomic.Int32))) // so that guards declare the keys of commands
		return rdb
	}
	heard := monitor(t, s.nodes[0].Addr())
	locktest.NoError(t, s.try([]string{"~*", "&*", "+@all"}, rightsBound, func(u *rightsUse) {
		u.opts = []rlock.Option{rlock.WithPresence("a service")}
		useLocks(u)
		useGuard(u)
	}))
	var declared []string
	scripts, commands := 0, 0
	known := map[string][]string{} // the keys of a command
	for _, line := range heard() {
		from, args := monitored(t, line)
		switch {
		case from != "lua" && (args[0] == "evalsha" || args[0] == "eval"):
			n, err := strconv.Atoi(args[2])
			locktest.NoError(t, err)
			declared = args[3 : 3+n]
			scripts++
		case from == "lua":
			commands++
			command := strings.Join(args, " ")
			if _, asked := known[command]; !asked {
				known[command] = keysOf(t, s.admin[0], args)
			}
			for _, key := range known[command] {
				if !slices.Contains(declared, key) {
					t.Errorf("%q uses a key that its script has not declared: it declared %q", args, declared)
				}
			}
		}
	}
	if scripts < 100 || commands < 2*scripts {
		t.Errorf("%d scripts, %d commands in them: this test shows nothing", scripts, commands)
	}
	t.Logf("%d scripts, %d commands in them", scripts, commands)
}

// monitor listens to what the server executes. The function that it returns ends that, and returns the lines of MONITOR.
func monitor(t *testing.T, addr string) (heard func() []string) {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: rightsBound}).DialContext(t.Context(), "tcp", addr)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprint(conn, "MONITOR\r\n")
	locktest.NoError(t, err)
	lines := bufio.NewScanner(conn)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatalf("MONITOR says %q, %v", lines.Text(), lines.Err())
	}
	const last = `"echo" "the last line"`
	all := make(chan []string, 1)
	go func() {
		var said []string
		for lines.Scan() && !strings.HasSuffix(lines.Text(), last) {
			said = append(said, lines.Text())
		}
		all <- said
	}()
	return func() []string {
		rdb := redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = rdb.Close() }()
		locktest.NoError(t, rdb.Do(context.Background(), "echo", "the last line").Err())
		select {
		case said := <-all:
			return said
		case <-time.After(rightsBound):
			t.Fatal("MONITOR has not ended")
			return nil
		}
	}
}

// monitored reads a line of MONITOR: +1700000000.123456 [0 127.0.0.1:6379] "get" "key". A command of a script is from lua.
func monitored(t *testing.T, line string) (from string, args []string) {
	t.Helper()
	head, rest, _ := strings.Cut(line, "] ")
	_, from, _ = strings.Cut(head, "[")
	_, from, _ = strings.Cut(from, " ")
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		locktest.NoError(t, err)
		arg, err := strconv.Unquote(quoted)
		locktest.NoError(t, err)
		args = append(args, arg)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	args[0] = strings.ToLower(args[0])
	return from, args
}

// keysOf asks the server for the keys of a command.
func keysOf(t *testing.T, rdb *redis.Client, command []string) []string {
	t.Helper()
	if len(command) == 1 {
		return nil // TIME: COMMAND GETKEYS wants an argument
	}
	args := []any{"command", "getkeys"}
	for _, arg := range command {
		args = append(args, arg)
	}
	keys, err := rdb.Do(t.Context(), args...).StringSlice()
	if err != nil && !strings.Contains(err.Error(), "no key arguments") {
		t.Fatalf("%q: %v", command, err)
	}
	return keys
}
