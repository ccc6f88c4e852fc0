package rlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
)

// Inv1, Inv2: a hold that is lost while it is unlocked, after the look whether it was, gives nothing to those who wait:
// neither where another holder has the lock by then, nor where its queue is another lock's.
func TestInv1_LostWhileItIsUnlocked(t *testing.T) {
	for _, next := range []string{"x", "y"} {
		t.Run(next, func(t *testing.T) {
			rdb := redistest.New(t)
			loading := &loadingOnce{asked: make(chan struct{}), answer: make(chan struct{})}
			rdb.AddHook(loading)
			c, err := New(rdb)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			ctx := t.Context()
			x, y := NewLock(c, "x"), NewLock(c, next)
			inLine := func(name string, want int) {
				t.Helper()
				redistest.Eventually(t, 10*time.Second, func() bool { n, _ := c.InLine(name); return n == want }, "%d in line of %s", want, name)
			}
			type got struct {
				ctx context.Context
				lv  *level
				err error
			}
			lock := func(ctx context.Context, l *Lock) chan got {
				ch := make(chan got, 1)
				go func() {
					held, lv, err := l.tryAcquire(ctx, request{op: "Lock", forever: true, fenced: true, blocks: true})
					ch <- got{held, lv, err}
				}()
				return ch
			}
			// A hold with two tokens, for itself and for a waiter that has left.
			taken := lock(ctx, x)
			<-loading.asked
			short, leave := context.WithCancel(ctx)
			left := lock(short, x)
			inLine("x", 2)
			loading.answer <- struct{}{}
			<-loading.asked // again, for two tokens
			leave()
			<-left
			loading.answer <- struct{}{}
			mine := <-taken
			if mine.err != nil || mine.lv.hold.block == nil {
				t.Fatalf("%v, or no block", mine.err)
			}
			h, now := mine.lv.hold, time.Now()

			lost := h.lost(now) // as unlock does
			if _, err := x.ForceUnlock(ctx); err != nil {
				t.Fatal(err)
			}
			other := <-lock(ctx, y)
			waiter := lock(ctx, y)
			inLine(next, 1)
			if last, err := h.close(mine.lv); !last || err != nil {
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
			if err := y.unlock(other.ctx); err != nil {
				t.Error(err)
			}
			if g := <-waiter; g.err != nil || g.lv.token <= other.lv.token {
				t.Errorf("%v, token %d after %d", g.err, g.lv.token, other.lv.token)
			}
		})
	}
}

// Inv8: a hold that is lost before its call has left the line does not leave the line to another lock.
func TestInv8_LostBeforeItLeftTheLine(t *testing.T) {
	c, err := New(redistest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx := t.Context()
	x := NewLock(c, "x")
	a := &acquisition{
		Lock: x, request: request{op: "Lock", forever: true, lease: time.Minute}, ctx: ctx, who: &holder{base: ctx}, bound: ctx, end: ctx.Done(),
		began: time.Now(), queue: c.use("x"), bell: c.bell(), fresh: new(hold),
	}
	a.trace = &a.fresh.own
	a.trace.keys, a.trace.field, a.trace.lease = a.keys, c.field(), a.lease
	s := stay{acquisition: a, backoff: firstBackoff}
	first, asks := a.queue.join(a)
	s.asks = asks
	if _, err := s.wait(first); err != nil {
		t.Fatal(err)
	}
	if _, err := x.ForceUnlock(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := NewLock(c, "y").TryLock(ctx, 10*time.Second, time.Minute); err != nil {
		t.Errorf("y is free: %v", err)
	}
	a.queue.leave(a)
}

// loadingOnce answers the first command with LOADING, and keeps the second one back for a while.
type loadingOnce struct {
	n             atomic.Int64
	asked, answer chan struct{}
}

func (l *loadingOnce) DialHook(next redis.DialHook) redis.DialHook { return next }
func (l *loadingOnce) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *loadingOnce) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n := int64(9)
		if cmd.Name() == "evalsha" {
			n = l.n.Add(1)
		}
		if n <= 2 {
			l.asked <- struct{}{}
			<-l.answer
		}
		if n == 1 {
			err := loadingError("LOADING Redis is loading the dataset in memory")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

type loadingError string

func (e loadingError) Error() string { return string(e) }
func (loadingError) RedisError()     {}
