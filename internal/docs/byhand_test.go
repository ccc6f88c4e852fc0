package docs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

var (
	handCommand = regexp.MustCompile("(?m)^\\| .* \\| `((?:HGETALL|PTTL|GET|ZRANGE|PUBSUB) [^`]*)`")
	freeBlock   = regexp.MustCompile("(?s)```redis free\n(.*?)```")
)

// The commands of the page that show a lock of this name show it, and those that free it free the hold and wake a waiter.
func TestByHand(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, rightsPage))
	locktest.NoError(t, err)
	_, byHand, _ := strings.Cut(string(page), "\n## By hand\n")
	looks, frees := handCommand.FindAllStringSubmatch(byHand, -1), freeBlock.FindStringSubmatch(byHand)
	ofReader := slices.IndexFunc(looks, func(look []string) bool { return strings.Contains(look[1], ":rwlock_timeout:") })
	if len(looks) != 8 || ofReader < 0 || frees == nil {
		t.Fatalf("the page has %d commands to look, and %q to free", len(looks), frees)
	}
	const name = "account:42"
	server := redistest.Real(t)
	admin := server.Client()
	client := func(presence string) *rlock.Client {
		c, err := rlock.New(server.Client(), rlock.WithPresence(presence), rlock.WithPollInterval(time.Hour))
		locktest.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	holder, waiter := client("holder"), client("waiter")
	held, _, err := fenced.NewLock(holder, name).LockLeaseAndGetToken(t.Context(), time.Hour)
	locktest.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := locktest.StartLock(func() (context.Context, error) {
		return locktest.NoToken(fenced.NewLock(waiter, name).LockLeaseAndGetToken(ctx, time.Hour))
	})
	field := ""
	for f := range admin.HGetAll(t.Context(), name).Val() {
		if !strings.HasSuffix(f, "#") {
			field = f
		}
	}
	do := func(line string) *redis.Cmd {
		var args []any
		for _, word := range strings.Fields(line) {
			word = strings.ReplaceAll(word, "<client>:<number>", field)
			args = append(args, strings.ReplaceAll(word, "<client>", holder.ID()))
		}
		return admin.Do(t.Context(), args...)
	}
	empty := func(reply any) bool {
		switch r := reply.(type) {
		case []any:
			return len(r) == 0 || r[len(r)-1] == int64(0) // of PUBSUB NUMSUB
		case map[any]any:
			return len(r) == 0
		case int64:
			return r <= 0
		}
		return reply == nil
	}
	for i, look := range looks {
		if i == ofReader {
			continue
		}
		redistest.Eventually(t, time.Minute, func() bool {
			reply, err := do(look[1]).Result()
			return err == nil && !empty(reply)
		}, "%s shows something", look[1])
	}
	// One field, or also its second; one listener or more, unless the waiter has looked by itself since, and has the lock.
	for line := range strings.Lines(strings.TrimSpace(frees[1])) {
		if n, err := do(line).Int(); err != nil || n < 1 && !strings.HasPrefix(line, "PUBLISH") {
			t.Errorf("%s says %d, %v", line, n, err)
		}
	}
	r := redistest.Await(t, time.Minute, done, "the waiter gets the lock")
	locktest.NoError(t, r.Err)
	redistest.Await(t, time.Minute, held.Done(), "the former holder learns of it")
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.NoError(t, fenced.NewLock(waiter, name).Unlock(r.Ctx))

	reads, _, err := fenced.NewRWLock(waiter, name).Read().LockLeaseAndGetToken(t.Context(), time.Hour)
	locktest.NoError(t, err)
	for f := range admin.HGetAll(t.Context(), name).Val() {
		if strings.HasPrefix(f, waiter.ID()+":") {
			field = f
		}
	}
	if left, err := do(looks[ofReader][1]).Int64(); err != nil || left <= 0 {
		t.Errorf("%s says %d, %v", looks[ofReader][1], left, err)
	}
	locktest.NoError(t, fenced.NewRWLock(waiter, name).Read().Unlock(reads))
}
