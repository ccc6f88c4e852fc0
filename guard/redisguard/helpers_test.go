package redisguard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

const (
	resource = "account:42"
	marker   = "fencelock_guard:{account:42}"
	key      = "balance:{account:42}"
)

func newGuard(t testing.TB, rdb redis.UniversalClient, opts ...redisguard.Option) *redisguard.Guard {
	t.Helper()
	g, err := redisguard.New(rdb, opts...)
	locktest.NoError(t, err)
	return g
}

// fresh is a guard on a server of the test's own.
func fresh(t testing.TB, opts ...redisguard.Option) (*redis.Client, *redisguard.Guard) {
	t.Helper()
	rdb := redistest.New(t)
	return rdb, newGuard(t, rdb, opts...)
}

// state is what Redis has of a key.
type state struct {
	value   string // with its type
	expires int64  // in milliseconds since 1970, -1 never, -2 no key
}

func stateOf(t testing.TB, rdb redis.UniversalClient, key string) state {
	t.Helper()
	value := rdb.Type(t.Context(), key).Val()
	switch value {
	case "string":
		value += " " + rdb.Get(t.Context(), key).Val()
	case "list":
		value += fmt.Sprint(rdb.LRange(t.Context(), key, 0, -1).Val())
	}
	expires, err := rdb.Do(t.Context(), "pexpiretime", key).Int64()
	if old(err) {
		if expires, err = rdb.Do(t.Context(), "pttl", key).Int64(); expires > 0 {
			expires += rdb.Time(t.Context()).Val().UnixMilli()
		}
	}
	locktest.NoError(t, err)
	return state{value, expires}
}

// old tells that the server does not know the command: it is Redis 6.2.
func old(err error) bool { return err != nil && strings.Contains(err.Error(), "unknown command") }

// stateAfter is stateOf, for a comparison with what it was before: miniredis keeps what is left of a life, and rounds it;
// Redis 6.2 does so too, and does not say when a key expires.
func stateAfter(t testing.TB, rdb redis.UniversalClient, key string, before state) state {
	t.Helper()
	after := stateOf(t, rdb, key)
	off := after.expires - before.expires
	coarse := int64(0)
	if !redistest.IsReal() {
		coarse = 2
	} else if old(rdb.Do(t.Context(), "pexpiretime", key).Err()) {
		coarse = 1000
	}
	if after.expires > 0 && -coarse <= off && off <= coarse {
		after.expires = before.expires
	}
	return after
}

// isStale fails the test unless err is a StaleError with these figures.
func isStale(t testing.TB, err error, token, seen int64) {
	t.Helper()
	var stale *guard.StaleError
	if !errors.As(err, &stale) || !errors.Is(err, guard.ErrStale) {
		t.Fatalf("error %v, want ErrStale", err)
	}
	locktest.Equal(t, "figures", *stale, guard.StaleError{Resource: resource, Token: token, Seen: seen})
}

func set(t testing.TB, w redisguard.Writer, value any) {
	t.Helper()
	got, err := w.Do(t.Context(), "SET", key, value).Text()
	locktest.NoError(t, err)
	locktest.Equal(t, "reply", got, "OK")
}

func holds(t testing.TB, rdb redis.UniversalClient, key, want string) {
	t.Helper()
	got, err := rdb.Get(context.Background(), key).Result()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	locktest.Equal(t, key, got, want)
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }

// noHook is the parts of a hook that do nothing.
type noHook struct{}

func (noHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (noHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
