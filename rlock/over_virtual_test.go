package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// forgetsTheRelease takes the lock, unlocks it, and puts back what Redis had while it was held, as a master has it that takes over and has
// not heard of the release.
func forgetsTheRelease(t *testing.T, m *miniredis.Miniredis, l *rlock.Lock) {
	held := take(t, l, t.Context())
	fields, err := m.HKeys(l.Name())
	locktest.NoError(t, err)
	locktest.NoError(t, l.Unlock(held))
	m.HSet(l.Name(), fields[0], "1", fields[0]+"#", "0")
	m.SetTTL(l.Name(), 30*time.Second)
}

// P38: a hold that is over, and that Redis has all the same, keeps its own client from the lock for no longer than it takes to release it.
func TestP38_AHoldThatIsOverIsReleasedByItsClient(t *testing.T) {
	for name, acquire := range map[string]func(*rlock.Lock, context.Context) (context.Context, error){
		"Lock":    (*rlock.Lock).Lock,
		"one try": func(l *rlock.Lock, ctx context.Context) (context.Context, error) { return l.TryLock(ctx, 0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				l := rlock.NewLock(c, "l")
				forgetsTheRelease(t, m, l)
				began := time.Now()
				held, err := acquire(l, t.Context())
				locktest.NoError(t, err)
				if took := time.Since(began); took > 100*time.Millisecond {
					t.Errorf("P38: the lock was had after %v", took)
				}
				locktest.NoError(t, l.Unlock(held))
				wantFree(t, m, 0, c)
			})
		})
	}
}
