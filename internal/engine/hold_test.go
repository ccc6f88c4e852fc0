package engine

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// In a cluster renewals travel by the slots of their locks, and otherwise all together.
func TestSlotOfAHold(t *testing.T) {
	keys := scripts.KeysOf("l")
	if keys.Slot == 0 {
		t.Fatal("the lock's slot is 0: this test shows nothing")
	}
	for cluster, want := range map[bool]uint16{true: keys.Slot, false: 0} {
		h := holdOn(&Client{server: server{cluster: cluster}}, keys, "", 0)
		if got := h.Slot(); got != want {
			t.Errorf("in a cluster: %v: slot %d, want %d", cluster, got, want)
		}
	}
}

// Inv12: an Unlock that comes between the end of a hold's last level and its release, by a context that carries the holder alone, finds no
// hold.
func TestInv12_UnlockWhileTheHoldIsReleased(t *testing.T) {
	c, err := newTestClient(redistest.New(t))
	locktest.NoError(t, err)
	defer func() { _ = c.Close() }()
	l, ctx := NewLock(c, "l", LockOptions{}), holder.NewHolder(t.Context())
	held, _, err := l.Acquire(ctx, Request{Forever: true})
	locktest.NoError(t, err)
	h := l.ownHold(holder.Of(held))
	last, err := h.Close(h.Newest())
	locktest.NoError(t, err)
	locktest.Equal(t, "it was the last level", last, true)
	for range 2 {
		err := l.Unlock(ctx)
		locktest.IsError(t, err, ErrNotHeld)
		locktest.ErrorSays(t, err, "this holder has no hold of the lock")
	}
	locktest.NoError(t, h.release(false, time.Now()))
	locktest.IsError(t, l.Unlock(ctx), ErrNotHeld)
}
