package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// P10: an attempt that had a majority of the votes and came to nothing looked to others as if it had the lock: they are
// told when it is over, and do not sleep until its lease were.
func TestP10_AttemptThatLookedLikeAHold(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		trying := s.user(quorum.WithNodeTimeout(5 * time.Second))
		trying.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "raise" {
				time.Sleep(time.Second)
				return errors.New("ERR refused")
			}
			return next()
		}, 0, 1, 2)
		failed := start(func() (context.Context, int64, error) { return trying.lock("l").TryLockAndGetToken(t.Context(), 0, 0) })
		asleep(500 * time.Millisecond)
		equal(t, "nodes that have the attempt's field", s.has("l"), 3)
		l := s.user(quorum.WithLockOptions(rlock.WithPollInterval(time.Minute))).lock("l")
		began := time.Now()
		held, err := l.Lock(t.Context())
		ok(t, err)
		if took := time.Since(began); took < 500*time.Millisecond || took > 2*time.Second {
			t.Errorf("the waiter got the lock after %v", took)
		}
		if r := <-failed; r.err == nil {
			t.Error("the attempt came to something")
		}
		ok(t, l.Unlock(held))
	})
}
