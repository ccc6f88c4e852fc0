package rlock_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

var fieldForm = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):([0-9]+)$`)

// P1: the field is <uuid>:<number>, the uuid is the client's, the number never comes twice; an unfenced lock
// has no counter.
func TestBehaviourWireField(t *testing.T) {
	rdb := redistest.New(t)
	ctx := t.Context()
	clients := map[string]bool{}
	for range 2 {
		client := newClient(t, rdb)
		l := rlock.NewLock(client, "l")
		shared := rlock.NewHolder(ctx) // the same holder again and again
		id, last := "", 0
		for range 5 {
			take(t, l, shared)
			locktest.Equal(t, "type", rdb.Type(ctx, "l").Val(), "hash")
			parts := fieldForm.FindStringSubmatch(fieldInRedis(t, rdb))
			if parts == nil {
				t.Fatalf("field %q", fieldInRedis(t, rdb))
			}
			if id != "" && id != parts[1] {
				t.Errorf("the client's id was %s and is %s", id, parts[1])
			}
			id = parts[1]
			number, _ := strconv.Atoi(parts[2])
			if number <= last {
				t.Errorf("number %d after %d", number, last)
			}
			last = number
			locktest.Equal(t, "value", rdb.HGet(ctx, "l", parts[0]).Val(), "1")
			locktest.Equal(t, "keys", len(rdb.Keys(ctx, "*").Val()), 1)
			locktest.NoError(t, l.Unlock(shared))
		}
		clients[id] = true
	}
	locktest.Equal(t, "ids of two clients", len(clients), 2)
}

// The names of the counter and of the channel, with and without braces in the lock's name.
func TestBehaviourWireNames(t *testing.T) {
	for _, c := range []struct{ name, token, channel string }{
		{"plain", "redisson_lock_token:{plain}", "redisson_lock__channel:{plain}"},
		{"a:{b}:c", "redisson_lock_token:a:{b}:c", "redisson_lock__channel:a:{b}:c"},
		{"a{b", "redisson_lock_token:a{b", "redisson_lock__channel:a{b"},
		{"a}b", "redisson_lock_token:{a}b}", "redisson_lock__channel:{a}b}"},
		{"ä ö\n", "redisson_lock_token:{ä ö\n}", "redisson_lock__channel:{ä ö\n}"},
	} {
		rdb := redistest.New(t)
		ctx := t.Context()
		sub := rdb.Subscribe(ctx, c.channel)
		_, err := sub.Receive(ctx)
		locktest.NoError(t, err)
		l := fenced.NewLock(newClient(t, rdb), c.name)
		locktest.Equal(t, "name", l.Name(), c.name)
		held, token, err := l.LockAndGetToken(ctx)
		locktest.NoError(t, err)
		locktest.Equal(t, "token", token, 1)
		locktest.Equal(t, "token in Redis", rdb.Get(ctx, c.token).Val(), "1")
		locktest.Equal(t, "count of fields", rdb.HLen(ctx, c.name).Val(), 1)
		locktest.NoError(t, l.Unlock(held))
		locktest.Equal(t, "message", redistest.Await(t, soon, sub.Channel(), "a message").Payload, "0")
		locktest.Equal(t, "keys left", len(rdb.Keys(ctx, "*").Val()), 1)
		if ttl := rdb.PTTL(ctx, c.token).Val(); ttl != -1 {
			t.Errorf("the counter expires in %v", ttl)
		}
		locktest.NoError(t, sub.Close())
	}
}

const javaField = "0c6e31a2-9a3c-4d8f-8a57-3b0f64f0e0a1:42"

// javaHolds places the hold of a Redisson client on the lock "l".
func javaHolds(t testing.TB, rdb *redis.Client, lease time.Duration) {
	t.Helper()
	ctx := context.Background()
	locktest.NoError(t, rdb.HSet(ctx, "l", javaField, 1).Err())
	if lease > 0 {
		locktest.NoError(t, rdb.PExpire(ctx, "l", lease).Err())
	}
}

// The hold of a Redisson client is respected, and its release (DEL, PUBLISH 0) wakes the waiter at once.
func TestBehaviourRedissonReleases(t *testing.T) {
	rdb, l := newLock(t, rlock.WithPollInterval(time.Minute))
	ctx := t.Context()
	javaHolds(t, rdb, 30*time.Second)
	_, err := l.TryLock(ctx, 0, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	wantLocked(t, l, true)
	call := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
	waitsForLock(t, rdb)
	locktest.NothingComes(t, call, 20*time.Millisecond, "the lock was taken from Redisson")
	locktest.Equal(t, "field", fieldInRedis(t, rdb), javaField)
	locktest.NoError(t, rdb.Del(ctx, "l").Err())
	locktest.NoError(t, rdb.Publish(ctx, lockChannel, "0").Err())
	got := redistest.Await(t, soon, call, "the message wakes the waiter") // the poll and the TTL come much later
	locktest.NoError(t, got.Err)
	locktest.NoError(t, l.Unlock(got.Ctx))
}

// Inv8: an expiry sends no message; the waiter knows the TTL.
func TestBehaviourRedissonExpires(t *testing.T) {
	rdb, l := newLock(t, rlock.WithPollInterval(time.Minute))
	began := time.Now()
	javaHolds(t, rdb, 300*time.Millisecond)
	call := locktest.StartLock(func() (context.Context, error) { return l.Lock(t.Context()) })
	got := redistest.Await(t, soon, call, "the TTL wakes the waiter") // the poll comes much later
	locktest.NoError(t, got.Err)
	if took := got.At.Sub(began); took < 290*time.Millisecond {
		t.Errorf("a lease of 300 ms was waited for for %v", took)
	}
	locktest.NoError(t, l.Unlock(got.Ctx))
}

// ForceUnlock of a Redisson client's hold.
func TestBehaviourRedissonIsForced(t *testing.T) {
	rdb, l := newLock(t)
	messages := messagesOf(t, rdb)
	javaHolds(t, rdb, 0)
	freed, err := l.ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	locktest.Equal(t, "message", redistest.Await(t, soon, messages, "a message").Payload, "0")
	wantLocked(t, l, false)
}
