package fenced_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A hold of a fenced lock has the token, which is the latest of the hold, and stays after its end. A holder on another client hears that somebody
// waits (P41).
func TestHoldOfAFencedLock(t *testing.T) {
	rdb := redistest.New(t)
	mine, other := fenced.NewLock(newClient(t, rdb), "l"), fenced.NewLock(newClient(t, rdb), "l")
	h, err := mine.Acquire(t.Context(), rlock.Lease(time.Minute))
	locktest.NoError(t, err)
	first := h.Token()
	locktest.Equal(t, "the first token", first, 1)
	held, token, err := mine.LockAndGetToken(h.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "after a re-entry", h.Token(), token)
	locktest.NoError(t, mine.Unlock(held))
	locktest.Equal(t, "after its Unlock", h.Token(), token)
	from, ok := fenced.TokenFrom(h.Context(), "l")
	locktest.Equal(t, "the context has it", ok, true)
	locktest.Equal(t, "the token of the context", from, token)
	locktest.NoError(t, h.Extend(t.Context(), 2*time.Minute))
	if left := h.Remaining(); left < time.Minute {
		t.Errorf("%v are left", left)
	}

	waited := h.Waited()
	next := locktest.Start(func() error {
		late, err := other.Acquire(t.Context(), rlock.Wait(time.Minute))
		if err != nil {
			return err
		}
		if late.Token() <= token {
			t.Errorf("the token %d after %d", late.Token(), token)
		}
		return late.Unlock(t.Context())
	})
	select {
	case <-waited:
	case <-time.After(20 * time.Second):
		t.Error("nobody was heard")
	}
	locktest.NoError(t, h.Unlock(t.Context()))
	locktest.NoError(t, <-next)
	<-h.Done()
	locktest.IsError(t, h.Err(), rlock.ErrUnlocked)
	locktest.Equal(t, "what is left", h.Remaining(), 0)
	locktest.Equal(t, "after the end", h.Token(), token)
	locktest.IsError(t, h.Unlock(t.Context()), rlock.ErrNotHeld)

	_, err = mine.Acquire(t.Context(), nil)
	locktest.ErrorSays(t, err, `Acquire "l"`, "leave it out")
}
