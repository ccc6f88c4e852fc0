package holder

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/watchdog"
)

// owner is that of a lease which nobody renews.
type owner struct {
	watchdog.Owner
	hold *Hold
	told int
}

func (o *owner) Lost(error) {
	o.told++
	o.hold.End(ErrLost, "the lease ran out", nil)
}

// begin returns a hold of the lock of this name, and the context of its first level.
func begin(ctx context.Context, name string) (*Hold, context.Context) {
	who := Of(ctx)
	if who == nil {
		who = New(ctx)
	}
	h := new(Hold)
	h.Lease.Owner = &owner{hold: h}
	lv := h.Begin(ctx, who, &Lock{Name: name}, true, 7)
	who.Add(h)
	return h, lv.Context(ctx, who)
}

// comes requires that the channel is closed once all goroutines of the test's bubble wait.
func comes(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case <-ch:
	default:
		t.Fatalf("%s is not told, and never will be", what)
	}
}

// A call re-enters by the newest open level on its chain, and each level is closed once, in any order.
func TestLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, outer := begin(t.Context(), "l")
		_, other := begin(outer, "other")
		locktest.Equal(t, "the count with a level more", h.ReentryCount(other), 2)
		locktest.Equal(t, "for the context from before", h.ReentryCount(t.Context()), 0)
		lv, err := h.Open(other, Of(other), true, 8)
		locktest.NoError(t, err)
		inner := lv.Context(other, Of(other))
		locktest.Equal(t, "with the inner level", h.ReentryCount(inner), 3)
		locktest.Equal(t, "without the newest level", h.ReentryCount(other), 0)
		locktest.Equal(t, "the level of a context", LevelOf(inner, &Lock{Name: "l"}) == lv, true)
		locktest.Equal(t, "the locks", slices.Equal(HeldBy(inner), []string{"l", "other", "l"}), true)
		token, ok := inner.Value(TokenKey("l")).(func() (int64, bool))()
		locktest.Equal(t, "the token", token, 8)
		locktest.Equal(t, "there is one", ok, true)

		changed := h.Changed()
		last, err := h.Close(LevelOf(outer, &Lock{Name: "l"}))
		locktest.NoError(t, err)
		locktest.Equal(t, "the last one", last, false)
		comes(t, changed, "the change of the levels")
		comes(t, outer.Done(), "the end of the closed level's context")
		locktest.IsError(t, outer.Err(), ErrUnlocked, context.Canceled)
		locktest.IsError(t, LevelOf(outer, &Lock{Name: "l"}).Err(), ErrUnlocked)
		locktest.NoError(t, lv.Err()) // its context has ended, by the Unlock of an outer level
		_, err = h.Close(LevelOf(outer, &Lock{Name: "l"}))
		locktest.IsError(t, err, ErrNotHeld)
		last, err = h.Close(lv)
		locktest.NoError(t, err)
		locktest.Equal(t, "the last one", last, true)
		locktest.Equal(t, "the holder's hold is gone", Of(inner).Find(&Lock{Name: "l"}) == nil, true)
		_, err = h.Open(other, Of(other), true, 0)
		locktest.IsError(t, err, ErrUnlocked)
	})
}

// Inv1: what has ended with ErrLost stays lost, and a level that is opened too late has ended.
func TestInv1_EndOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ctx := begin(t.Context(), "l")
		changed := h.Changed()
		locktest.Equal(t, "it ended", h.End(errClosed, "", nil), true)
		comes(t, changed, "the end of the hold")
		locktest.Equal(t, "it ended again", h.End(errClosed, "", nil), false)
		locktest.IsError(t, ctx.Err(), errClosed)
		locktest.Equal(t, "lost", h.Loss(), nil)
		locktest.Equal(t, "it is lost", h.End(ErrLost, "gone", nil), true)
		locktest.Equal(t, "it ended after that", h.End(errClosed, "", nil), false)
		locktest.IsError(t, h.Err(), ErrLost)
		locktest.ErrorSays(t, h.Loss(), "lock lost: gone")
		_, err := h.Open(ctx, Of(ctx), true, 0)
		locktest.DeepEqual(t, "the error of a re-entry", err, h.Loss())
		locktest.Equal(t, "the levels", h.Count(), 1)
	})
}

// P5: who asks a context after the end of its lease has the owner of the lease told, although the watchdog does nothing.
func TestP5_ContextsTellTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ctx := begin(t.Context(), "l")
		dog := watchdog.New(nil)
		sent := watchdog.Now()
		locktest.Sleep(time.Minute)
		dog.Close()
		dog.Add(&h.Lease, sent, time.Second)
		locktest.IsError(t, ctx.Err(), ErrLost, context.Canceled)
		locktest.Equal(t, "the owner was told", h.Lease.Owner.(*owner).told > 0, true)
	})
}

// P4: a holder whose contexts were all dropped is garbage once it is held weakly. Its lease is not renewed, and that is told once.
func TestP4_TheHolderIsGarbage(t *testing.T) {
	user, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, ctx := begin(NewHolder(user), "l")
	renewed, dropped := h.Renewed()
	locktest.Equal(t, "renewed while the context is there", renewed && !dropped, true)
	runtime.KeepAlive(ctx)
	for began := time.Now(); !dropped; renewed, dropped = h.Renewed() {
		if runtime.GC(); time.Since(began) > 100*time.Second {
			t.Fatal("the holder is there for ever")
		}
	}
	locktest.Equal(t, "renewed", renewed, false)
	_, dropped = h.Renewed()
	locktest.Equal(t, "told again", dropped, false)
}

// P11: a lease is renewed for a level that was taken without one, while the context of that level's call lives.
func TestP11_WhatIsRenewed(t *testing.T) {
	user, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, ctx := begin(user, "l")
	renewable, why := h.Renewable()
	locktest.Equal(t, "renewable", renewable && why == nil, true)
	_, err := h.Open(context.WithoutCancel(ctx), Of(ctx), false, 0)
	locktest.NoError(t, err)
	cancel()
	renewable, why = h.Renewable()
	locktest.Equal(t, "renewable", renewable, true)
	locktest.IsError(t, why, context.Canceled)
	renewed, dropped := h.Renewed()
	locktest.Equal(t, "renewed, or dropped", renewed || dropped, false)
}
