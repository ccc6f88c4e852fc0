package rlock_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

var bhFieldForm = regexp.MustCompile(`^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):([0-9]+)$`)

// DESIGN 4, P1: the field is <uuid>:<number>, the uuid is the client's, the number never comes twice; an unfenced lock
// has no counter.
func TestBehaviourWireField(t *testing.T) {
	rdb := redistest.New(t)
	ctx := t.Context()
	clients := map[string]bool{}
	for range 2 {
		client := bhClient(t, rdb)
		l := rlock.NewLock(client, "l")
		shared := rlock.NewHolder(ctx) // the same holder again and again
		id, last := "", 0
		for range 5 {
			bhLock(t, l, shared)
			bhEqual(t, "type", rdb.Type(ctx, "l").Val(), "hash")
			parts := bhFieldForm.FindStringSubmatch(bhField(t, rdb))
			if parts == nil {
				t.Fatalf("field %q", bhField(t, rdb))
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
			bhEqual(t, "value", rdb.HGet(ctx, "l", parts[0]).Val(), "1")
			bhEqual(t, "keys", len(rdb.Keys(ctx, "*").Val()), 1)
			bhOK(t, l.Unlock(shared))
		}
		clients[id] = true
	}
	bhEqual(t, "ids of two clients", len(clients), 2)
}

// DESIGN 4: the names of the counter and of the channel, with and without braces in the lock's name.
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
		bhOK(t, err)
		l := fenced.NewLock(bhClient(t, rdb), c.name)
		bhEqual(t, "name", l.Name(), c.name)
		held, token, err := l.LockAndGetToken(ctx)
		bhOK(t, err)
		bhEqual(t, "token", token, 1)
		bhEqual(t, "token in Redis", rdb.Get(ctx, c.token).Val(), "1")
		bhEqual(t, "count of fields", rdb.HLen(ctx, c.name).Val(), 1)
		bhOK(t, l.Unlock(held))
		bhEqual(t, "message", bhWait(t, sub.Channel(), bhSoon, "a message").Payload, "0")
		bhEqual(t, "keys left", len(rdb.Keys(ctx, "*").Val()), 1)
		if ttl := rdb.PTTL(ctx, c.token).Val(); ttl != -1 {
			t.Errorf("the counter expires in %v", ttl)
		}
		bhOK(t, sub.Close())
	}
}

const bhJava = "0c6e31a2-9a3c-4d8f-8a57-3b0f64f0e0a1:42"

// bhJavaHolds places the hold of a Redisson client on the lock "l".
func bhJavaHolds(t testing.TB, rdb *redis.Client, lease time.Duration) {
	t.Helper()
	ctx := context.Background()
	bhOK(t, rdb.HSet(ctx, "l", bhJava, 1).Err())
	if lease > 0 {
		bhOK(t, rdb.PExpire(ctx, "l", lease).Err())
	}
}

// DESIGN 4: the hold of a Redisson client is respected, and its release (DEL, PUBLISH 0) wakes the waiter at once.
func TestBehaviourRedissonReleases(t *testing.T) {
	rdb, l := bhOne(t, rlock.WithPollInterval(time.Minute))
	ctx := t.Context()
	bhJavaHolds(t, rdb, 30*time.Second)
	_, err := l.TryLock(ctx, 0, 0)
	bhIs(t, err, rlock.ErrNotAcquired)
	bhLocked(t, l, true)
	call := bhGo(func() (context.Context, error) { return l.Lock(ctx) })
	bhSubscribed(t, rdb)
	bhNone(t, call, 20*time.Millisecond, "the lock was taken from Redisson")
	bhEqual(t, "field", bhField(t, rdb), bhJava)
	bhOK(t, rdb.Del(ctx, "l").Err())
	bhOK(t, rdb.Publish(ctx, bhChannel, "0").Err())
	got := bhWait(t, call, bhSoon, "the message wakes the waiter") // the poll and the TTL come much later
	bhOK(t, got.err)
	bhOK(t, l.Unlock(got.ctx))
}

// Inv8: an expiry sends no message; the waiter knows the TTL.
func TestBehaviourRedissonExpires(t *testing.T) {
	rdb, l := bhOne(t, rlock.WithPollInterval(time.Minute))
	began := time.Now()
	bhJavaHolds(t, rdb, 300*time.Millisecond)
	call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
	got := bhWait(t, call, bhSoon, "the TTL wakes the waiter") // the poll comes much later
	bhOK(t, got.err)
	if took := got.at.Sub(began); took < 290*time.Millisecond {
		t.Errorf("a lease of 300 ms was waited for for %v", took)
	}
	bhOK(t, l.Unlock(got.ctx))
}

// ForceUnlock of a Redisson client's hold.
func TestBehaviourRedissonIsForced(t *testing.T) {
	rdb, l := bhOne(t)
	messages := bhMessages(t, rdb)
	bhJavaHolds(t, rdb, 0)
	freed, err := l.ForceUnlock(t.Context())
	bhOK(t, err)
	bhEqual(t, "freed", freed, true)
	bhEqual(t, "message", bhWait(t, messages, bhSoon, "a message").Payload, "0")
	bhLocked(t, l, false)
}
