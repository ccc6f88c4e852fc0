package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv1, Inv2: a hold that is lost while it is unlocked, after the look whether it was, gives nothing to those who wait:
// neither where another holder has the lock by then, nor where its lock's state is another lock's.
func TestInv1_LostWhileItIsUnlocked(t *testing.T) {
	for _, next := range []string{"x", "y"} {
		t.Run(next, func(t *testing.T) {
			c, err := newTestClient(redistest.New(t))
			locktest.NoError(t, err)
			defer func() { _ = c.Close() }()
			ctx := t.Context()
			x, y := NewLock(c, "x", LockOptions{Fenced: true}), NewLock(c, next, LockOptions{Fenced: true})
			inQueue := func(name string, want int) {
				t.Helper()
				redistest.Eventually(t, 10*time.Second, func() bool { n, _ := c.InQueue(name); return n == want }, "%d in the queue of %s", want, name)
			}
			type got struct {
				ctx context.Context
				lv  *holder.Level
				err error
			}
			lock := func(ctx context.Context, l *Lock) chan got {
				ch := make(chan got, 1)
				go func() {
					held, lv, err := l.acquire(ctx, nil, Request{Forever: true})
					ch <- got{held, lv, err}
				}()
				return ch
			}
			mine := <-lock(ctx, x)
			locktest.NoError(t, mine.err)
			h, now := holdOfLevel(mine.lv), time.Now()

			lost := h.lost(now) // as Unlock does
			if _, err := x.ForceUnlock(ctx); err != nil {
				t.Fatal(err)
			}
			other := <-lock(ctx, y)
			waiter := lock(ctx, y)
			inQueue(next, 1)
			if last, err := h.Close(mine.lv); !last || err != nil {
				t.Fatal(last, err)
			}
			if err := h.release(lost, now); !errors.Is(err, ErrLost) {
				t.Errorf("the unlock says %v", err)
			}
			select {
			case g := <-waiter:
				t.Fatalf("the waiter got %+v while another one held the lock, whose context says %v", g, other.ctx.Err())
			case <-time.After(100 * time.Millisecond):
			}
			if err := y.Unlock(other.ctx); err != nil {
				t.Error(err)
			}
			if g := <-waiter; g.err != nil || g.lv.Token <= other.lv.Token {
				t.Errorf("%v, token %d after %d", g.err, g.lv.Token, other.lv.Token)
			}
		})
	}
}

// Inv8: a hold that is lost before its call has left the queue does not leave the queue to another lock.
func TestInv8_LostBeforeItLeftTheQueue(t *testing.T) {
	c, err := newTestClient(redistest.New(t))
	locktest.NoError(t, err)
	defer func() { _ = c.Close() }()
	ctx := t.Context()
	x := NewLock(c, "x", LockOptions{})
	w := &waiter{
		Lock: x, request: Request{Forever: true}, lease: time.Minute, ctx: ctx, under: ctx, holder: holder.New(ctx), caller: holder.New(ctx), bound: bound{ctx: ctx, end: ctx.Done()},
		began: time.Now(), lockState: c.lockState(stateKey{name: "x"}), wakeup: c.commands.Wakeup(),
	}
	w.lockState.join(w)
	lv, err := w.untilDone()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.ForceUnlock(ctx); err != nil {
		t.Fatal(err)
	}
	if _, _, err := NewLock(c, "y", LockOptions{}).Acquire(ctx, Request{Wait: 10 * time.Second, Lease: time.Minute}); err != nil {
		t.Errorf("y is free: %v", err)
	}
	w.lockState.leave(w, lv)
}
