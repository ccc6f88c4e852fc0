package rlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What lies at the lock's name and is no lock of this kind is refused by each call that meets it, with an error
// that says what is there, and stays as it is. Only a hold gets a second field where a client enters the line behind it. A hash of Redisson's RFairLock looks as an RLock's does.
func TestBehaviourAnotherObjectOfTheName(t *testing.T) {
	const reader = "0c6e31a2-9a3c-4d8f-8a57-3b0f64f0e0a1:42"
	for what, c := range map[string]struct {
		hash  map[string]any
		ttl   time.Duration
		says  string // "": it is a lock
		waits bool   // an acquire does
	}{
		"write lock":                {map[string]any{"mode": "write", reader + ":write": 1}, time.Minute, "'mode'", false},
		"read lock":                 {map[string]any{"mode": "read", reader: 2, reader + "7": 1}, time.Minute, "'mode'", false},
		"read lock with few fields": {map[string]any{reader: 1, "mode": "read"}, time.Minute, "'mode'", false},
		"map":                       {map[string]any{"a\r\nname": "x"}, 0, "'a??name'", true},
		"map of numbers":            {map[string]any{"7": "x"}, 0, "'7'", true},
		"fair lock":                 {map[string]any{reader: 1}, time.Minute, "", true},
		"re-entered":                {map[string]any{reader: 2, reader + "#": 1}, time.Minute, "", true},
		"a thread of a caller's":    {map[string]any{strings.Replace(reader, ":", ":-", 1): 1}, time.Minute, "", true},
	} {
		t.Run(what, func(t *testing.T) {
			rdb, l := newLock(t)
			ctx := t.Context()
			locktest.NoError(t, rdb.HSet(ctx, "l", c.hash).Err())
			if c.ttl > 0 {
				locktest.NoError(t, rdb.PExpire(ctx, "l", c.ttl).Err())
			}
			before := rdb.HGetAll(ctx, "l").Val()
			refused := func(call string, says string, err error) {
				t.Helper()
				if says == "" {
					locktest.NoError(t, err)
					return
				}
				if !redis.HasErrorPrefix(err, "WRONGTYPE") || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), `"l"`) {
					t.Errorf("%s: %v", call, err)
				}
			}
			_, err := l.IsLocked(ctx)
			refused("IsLocked", c.says, err)
			_, err = l.TTL(ctx)
			refused("TTL", c.says, err)
			tokens := fenced.NewLock(newClient(t, rdb), "l")
			for _, try := range []func(wait time.Duration) error{
				func(wait time.Duration) error { return lockOnly(l.TryLock(ctx, wait, 0)) },
				func(wait time.Duration) error {
					return lockOnly(locktest.NoToken(tokens.TryLockAndGetToken(ctx, wait, 0)))
				},
			} {
				if c.waits {
					locktest.IsError(t, try(0), rlock.ErrNotAcquired)
					wantTaken(t, try)
				} else {
					refused("TryLock", c.says, try(0))
					refused("TryLock that waits", c.says, try(soon))
				}
			}
			if !c.waits {
				_, err = l.Lock(ctx)
				refused("Lock", c.says, err)
			}
			after := rdb.HGetAll(ctx, "l").Val()
			for field := range before {
				if after[field+"#"] == "0" { // a call that waited has entered the line (P36), unless its wait was over before that
					delete(after, field+"#")
				}
			}
			locktest.Equal(t, "the hash", fmt.Sprint(after), fmt.Sprint(before))
			freed, err := l.ForceUnlock(ctx)
			refused("ForceUnlock", c.says, err)
			locktest.Equal(t, "freed", freed, c.says == "")
			if c.says != "" {
				locktest.Equal(t, "the hash", fmt.Sprint(rdb.HGetAll(ctx, "l").Val()), fmt.Sprint(before))
			} else {
				locktest.Equal(t, "the key is there", rdb.Exists(ctx, "l").Val(), 0)
			}
		})
	}
}

// A hold of ours whose hash another object writes into, as RReadWriteLock does, can be unlocked, and takes nothing of that.
func TestBehaviourAnotherObjectInOurHash(t *testing.T) {
	rdb, l := newLock(t)
	ctx := t.Context()
	held := take(t, l, ctx)
	locktest.NoError(t, rdb.HSet(ctx, "l", "mode", "read", javaField, 1).Err())
	_, err := l.HoldCount(held)
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("HoldCount: %v", err)
	}
	locktest.NoError(t, l.Unlock(held))
	locktest.Equal(t, "the hash", fmt.Sprint(rdb.HGetAll(ctx, "l").Val()), fmt.Sprint(map[string]string{"mode": "read", javaField: "1"}))
}
