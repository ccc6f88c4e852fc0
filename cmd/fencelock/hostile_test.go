//go:build unix

package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// What others have written into Redis does nothing to a terminal, in no format of any command: names of locks, of clients, hosts and
// programs, ids and tickets. Each is on a line of its own, and nothing turns a line around.
func TestHostileText(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	const hostile = "a\x1b[2J\nb\u202ec\u2066\u009bd\x07\r\u2028e\x7f"
	id := "10000000-0000-4000-8000-000000000001"
	says := func(id, lock, other string) {
		t.Helper()
		locktest.NoError(t, presence.Write(ctx, rdb, &presence.Client{
			ID: id, Name: "name" + hostile, Host: "host" + hostile, PID: 1, Program: "program" + hostile,
			Holds: []presence.Hold{{Lock: lock, Field: id + ":1", For: time.Minute}}, Waits: []presence.Wait{{Lock: other, Calls: 1, For: 30 * time.Second}},
		}))
	}
	says(id, hostile, "other"+hostile) // each waits for what the other one holds
	says("id"+hostile, "other"+hostile, hostile)
	locktest.NoError(t, rdb.HSet(ctx, hostile, id+":1", 1).Err())
	locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{"+hostile+"}", redis.Z{Score: 1, Member: id + ":2"}, redis.Z{Score: 2, Member: "ticket" + hostile}).Err())
	locktest.NoError(t, rdb.HSet(ctx, "bytes\xff"+hostile, id+":1", 1).Err())
	locktest.NoError(t, rdb.HSet(ctx, "hash"+hostile, "field"+hostile, "value"+hostile).Err())

	for _, args := range [][]string{
		{"ls"}, {"ls", "-o", "wide"}, {"ls", "-o", "json"}, {"ls", "-o", "name"}, {"ls", "--scan", "-o", "name"}, {"ls", "hash" + hostile},
		{"show", hostile}, {"show", "-o", "json", hostile}, {"show", "-o", "name", hostile}, {"show", "hash" + hostile},
		{"clients"}, {"clients", "-o", "wide"}, {"clients", "-o", "json"}, {"clients", "-o", "name"},
		{"top", "--once"}, {"__complete", "show", ""},
		{"force-unlock", hostile, "--holder", hostile}, {"force-unlock", "--yes", "hash" + hostile}, {"run", "-n", hostile, "--", "true"},
		{"force-unlock", "--yes", hostile}, // the last one: nobody holds it then
	} {
		p := start(t, server.Addr(), args...)
		out, err := io.ReadAll(p.lines)
		locktest.NoError(t, err)
		p.ends()
		if strings.IndexFunc(string(out)+p.said(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) || r == unicode.ReplacementChar }) >= 0 {
			t.Errorf("fencelock %q writes\n%q\n%q", args, out, p.said())
		}
		if slices.Contains(args, "name") {
			for line := range strings.Lines(string(out)) {
				if !strings.HasSuffix(line, "e\\x7f\"\n") && line != id+"\n" {
					t.Errorf("fencelock %q writes the line %q", args, line)
				}
			}
		}
		if slices.Contains(args, "json") && !json.Valid(out) {
			t.Errorf("fencelock %q writes no JSON: %s", args, out)
		}
	}
}
