package rlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// What a client keeps of a line: for how long it listens for calls, what a release leaves to it, and what Close and Shutdown wait for.

// lineGivesUp makes a call of the client wait in the line, and give up.
func lineGivesUp(t *testing.T, p *lineClient) {
	t.Helper()
	ctx, giveUp := context.WithCancel(t.Context())
	got := p.waits(t, ctx)
	giveUp()
	locktest.IsError(t, (<-got).Err, context.Canceled)
}

// P29: a crowd of clients that are gone is before a live one. One release passes 682 of them, and the client that has released goes on until
// the live one is called.
func TestP29_ACrowdThatIsGone(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		for i := range 1500 {
			_, err := m.ZAdd(lineKey, float64(1000+i), fmt.Sprintf("00000000-0000-0000-0000-%012d:1", i))
			locktest.NoError(t, err)
		}
		began := time.Now()
		release()
		lineGets(t, p[0], got[0], began, 0)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}

// A client whose hold has outlasted the time for which it listens for calls releases the lock as ever, with and without callers of its own.
func TestLineAfterALongHold(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, holder, t.Context())
		p := lineNew(t, m, rlock.WithHandoffs(0))
		got := p.waits(t, t.Context())
		locktest.NoError(t, holder.Unlock(held))
		mine := <-got
		locktest.NoError(t, mine.Err)
		locktest.Sleep(5 * time.Second)
		channel := lineKey + ":" + p.c.ID()
		locktest.Equal(t, "it listens for calls", m.PubSubNumSub(channel)[channel], 0)
		next := p.waits(t, t.Context())
		began := time.Now()
		locktest.NoError(t, p.l.Unlock(mine.Ctx))
		lineGets(t, p, next, began, linePause)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}

// Inv9: what a client keeps for callers that come back lasts from when the last of them has left, however many there were.
func TestLineLingersFromTheLastCaller(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		javaHolds(t, rdb, time.Hour)
		p := lineNew(t, m)
		for range 2 {
			lineGivesUp(t, p)
			locktest.Sleep(1500 * time.Millisecond)
			locktest.Equal(t, "lock states", p.c.LockStates(), 1)
		}
		locktest.Sleep(time.Second)
		locktest.Equal(t, "lock states in the end", p.c.LockStates(), 0)
	})
}

// Inv8: the time for which a client listens for callers that come back is over while such a caller waits, behind others. The client goes on to
// listen for it.
func TestLineListensForWhoCameBack(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		third := lineNew(t, m)
		lineGivesUp(t, third)
		locktest.Sleep(1500 * time.Millisecond)
		last := third.waits(t, t.Context())
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 3)
		locktest.Sleep(800 * time.Millisecond)
		began := time.Now()
		release()
		for i := range p {
			lineGets(t, p[i], got[i], began, 2*linePause)
		}
		lineGets(t, third, last, began, 3*linePause) // and not when it looks by itself
	})
}

// A client that enters the line again by its release, as others wait there, does not ask before it is called.
func TestLineAsksOnceAfterItsRelease(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		holder := rlock.NewLock(newClient(t, rdb), "l")
		held := take(t, holder, t.Context())
		p, other := lineNew(t, m, rlock.WithHandoffs(0)), lineNew(t, m)
		one, two := p.waits(t, t.Context()), p.waits(t, t.Context())
		others := other.waits(t, t.Context())
		locktest.NoError(t, holder.Unlock(held))
		mine := <-one
		locktest.NoError(t, mine.Err)
		locktest.Sleep(time.Millisecond)
		p.spy.Reset()
		locktest.NoError(t, p.l.Unlock(mine.Ctx))
		theirs := <-others
		locktest.NoError(t, theirs.Err)
		locktest.Sleep(10 * time.Millisecond)
		locktest.Equal(t, "attempts while the other one has the lock", p.spy.Count("acquire"), 0)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 1)
		began := time.Now()
		locktest.NoError(t, other.l.Unlock(theirs.Ctx))
		lineGets(t, p, two, began, linePause)
		locktest.Equal(t, "attempts when it was called", p.spy.Count("acquire"), 1)
	})
}

// P12: Close waits for the leave of a call that has given up, and for no more than that.
func TestP12_CloseWaitsForALeave(t *testing.T) {
	lineSite(t, 0, func(t *testing.T, m *miniredis.Miniredis, _ func(), _ []*lineClient, _ []<-chan locktest.Result) {
		p := lineNew(t, m)
		lineGivesUp(t, p)
		locktest.Sleep(time.Millisecond) // the server knows the script
		p.spy.Wrap(func(ops []string, next func() error) error {
			if slices.Contains(ops, "leave") {
				time.Sleep(50 * time.Millisecond)
			}
			return next()
		})
		lineGivesUp(t, p)
		began := time.Now()
		locktest.NoError(t, p.c.Close())
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("Close took %v, and the leave 50 ms", took)
		}
		locktest.Equal(t, "in the line after Close", len(lineOf(t, m)), 0)
	})
}

// P12: Shutdown ends a call that waits in the line, and keeps nothing for callers that come back: there will be none.
func TestP12_ShutdownOfAClientInTheLine(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, _ func(), p []*lineClient, got []<-chan locktest.Result) {
		began := time.Now()
		locktest.NoError(t, p[0].c.Shutdown(t.Context()))
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("Shutdown took %v", took)
		}
		locktest.IsError(t, (<-got[0]).Err, rlock.ErrClosed)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
	})
}
