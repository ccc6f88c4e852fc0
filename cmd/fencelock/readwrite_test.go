//go:build unix

package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A read-write lock is shown with those that read or the one that writes, and who waits for which, and is forced open as shown.
func TestReadWrite(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	client, err := rlock.New(server.Client(), rlock.WithPresence("reader"))
	equal(t, "error", err, nil)
	t.Cleanup(func() { _ = client.Close() })
	page := fenced.NewRWLock(client, "page")
	take := func(l *fenced.Lock, lease time.Duration) *fenced.Hold {
		t.Helper()
		h, err := l.Acquire(ctx, rlock.Lease(lease))
		equal(t, "error", err, nil)
		return h
	}
	says := func(code int, args ...string) string {
		t.Helper()
		p := start(t, server.Addr(), args...)
		out, err := io.ReadAll(p.lines)
		equal(t, "error", err, nil)
		equal(t, strings.Join(args, " "), p.ends(), code)
		return p.said() + string(out)
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in:\n%s", part, text)
			}
		}
	}
	first, second := take(page.Read(), 70*time.Minute+20*time.Second), take(page.Read(), time.Minute)
	waits := make(chan error, 1)
	go func() { waits <- page.Write().Do(ctx, func(context.Context, int64) error { return nil }) }()
	redistest.Eventually(t, soon, func() bool { return server.Client().ZCard(ctx, "fencelock_line:{page}").Val() == 1 }, "a writer waits")
	has(says(0, "ls"), "(2 read)", "1h10m")
	has(says(0, "show", "page"), "read by 2", "Reader 1", "Reader 2", "lease ends in 1h10m", ", to write", "redisson_rwlock:{page}", "{page}:<holder>:rwlock_timeout:1")
	var shown struct {
		Mode    string
		Reading int
		Readers []struct {
			Holder string
			TTL    float64
		}
		Line []struct{ Mode string }
	}
	if err := json.Unmarshal([]byte(says(0, "show", "-o", "json", "page")), &shown); err != nil || shown.Mode != "read" || shown.Reading != 2 ||
		len(shown.Readers) != 2 || shown.Readers[1].TTL > 60 || len(shown.Line) != 1 || shown.Line[0].Mode != "write" {
		t.Errorf("JSON: %+v, %v", shown, err)
	}
	has(says(exitFailed, "force-unlock", "page", "--holder", "nobody"), "nothing was released")
	has(says(0, "force-unlock", "page", "--holder", shown.Readers[1].Holder), "page is held by", "what was shown of page is released, and it is still read by 1")
	redistest.Await(t, soon, second.Context().Done(), "the second one is lost")
	has(says(0, "force-unlock", "page", "--yes"), "page is held by", "page is released")
	redistest.Await(t, soon, first.Context().Done(), "the first one is lost")
	equal(t, "the writer", redistest.Await(t, soon, waits, "the writer"), nil)
	writes := take(page.Write(), time.Hour)
	has(says(0, "ls", "page"), "(writes)")
	has(says(0, "show", "page"), "held to write")
	has(says(0, "force-unlock", "page", "--yes"), "page is released")
	redistest.Await(t, soon, writes.Context().Done(), "the writer is lost")
	has(says(0, "show", "page"), "free")
}
