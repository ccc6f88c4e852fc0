package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv9: of the states of locks that nobody uses any more a client keeps a bounded number, as new,
// for other locks. It keeps none that a message may still be about.
func TestInv9_SpareStates(t *testing.T) {
	c, err := newTestClient(redistest.New(t))
	locktest.NoError(t, err)
	defer func() { _ = c.Close() }()
	var states []*lockState
	for i := range maxSpare + 5 {
		states = append(states, NewLock(c, fmt.Sprint("l", i), LockOptions{}).lockState())
	}
	for _, ls := range states {
		ls.removeUser()
	}
	locktest.Equal(t, "states that are kept", len(c.spareStates), maxSpare)

	ls := NewLock(c, "one", LockOptions{}).lockState()
	ls.claimed, ls.latest = new(hold), attempt{number: 3}
	ls.removeUser()
	again := NewLock(c, "another", LockOptions{}).lockState()
	locktest.Equal(t, "it is used again", again == ls, true)
	if again.key.name != "another" || again.keys.Lock != "another" || again.claimed != nil || again.latest != (attempt{}) || !again.room.Unused() {
		t.Errorf("it is not as new: %q, %v, %v", again.key.name, again.claimed, again.latest)
	}

	again.expectNews()
	kept := len(c.spareStates)
	again.removeUser()
	locktest.Equal(t, "states that are kept after one that a message may be about", len(c.spareStates), kept)
}

// Inv9: the holds that a client listens for are counted as long as they are there, and none above
// the bound is listened for.
func TestInv9_FollowedHolds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		m, rdb := redistest.Pipe(t)
		c, err := newTestClient(rdb)
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		l, ctx := NewLock(c, "l", LockOptions{}), t.Context()
		followed := func(what string, want int64) {
			t.Helper()
			locktest.Equal(t, "followed holds "+what, c.followedHolds.Load(), want)
		}
		first, _, err := l.Acquire(ctx, Request{Lease: time.Hour})
		locktest.NoError(t, err)
		lost := l.ownHold(holder.Of(first))
		locktest.Sleep(2 * time.Second)
		followed("of a hold that lasts", 1)

		m.Del("l") // nobody is told
		second, _, err := l.Acquire(ctx, Request{})
		locktest.NoError(t, err)
		locktest.IsError(t, first.Err(), ErrLost)
		followed("as soon as another hold has the lock", 0)
		ls := NewLock(c, "l", LockOptions{}).lockState()
		ls.followHold(lost)
		followed("for one that is lost", 0)
		locktest.Equal(t, "the client's own hold", ls.currentHold() == l.ownHold(holder.Of(second)), true)
		ls.removeUser()
		locktest.Sleep(2 * time.Second)
		followed("of the other hold, which lasts too", 1)
		locktest.NoError(t, l.Unlock(second))
		locktest.IsError(t, l.Unlock(first), ErrLost)
		followed("at the end", 0)
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "lock states", c.LockStates(), 0)
		locktest.Equal(t, "states to be used again, after one that listened", len(c.spareStates), 0)

		c.followedHolds.Store(maxFollowed)
		third, _, err := l.Acquire(ctx, Request{Lease: time.Hour})
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Second)
		followed("at the bound", maxFollowed)
		locktest.NoError(t, l.Unlock(third))
		followed("after one that was not listened for", maxFollowed)
		c.followedHolds.Store(maxFollowed - 1)
		third, _, err = l.Acquire(ctx, Request{Lease: time.Hour})
		locktest.NoError(t, err)
		locktest.Sleep(2 * time.Second)
		followed("up to the bound", maxFollowed)
		locktest.NoError(t, l.Unlock(third))
		followed("after one that was", maxFollowed-1)
		c.followedHolds.Store(0)
		locktest.Sleep(time.Second)
	})
}
