package scripts

import (
	"errors"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The rules about copies: P1, P2, P3, P12. Each test shows first that the naive form breaks in the way that the rule
// describes, then that ours does not.

const lease = time.Minute

func (c caller) lockAndCounter() []string { return []string{c.keys.Lock, c.keys.Token} }

func (c caller) naiveLock(field string) {
	c.mustNaive("acquire", c.lockAndCounter(), lease.Milliseconds(), field)
}

func (c caller) naiveUnlock(field string) any {
	return c.mustNaive("unlock", []string{c.keys.Lock}, lease.Milliseconds(), field, c.keys.Channel())
}

func (c caller) mustHold(field string) {
	c.Helper()
	if a := c.acquire(field, lease); !a.Held {
		c.Fatalf("%s has not got the free lock", field)
	}
}

func TestP1_LateUnlockDoesNotReleaseTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: a field of the holder", func(t *testing.T) {
		c, holder := newCaller(t, rdb), newField()
		c.naiveLock(holder)
		c.naiveUnlock(holder)
		c.naiveLock(holder) // the next hold of the same holder
		if got := c.naiveUnlock(holder); got != int64(1) {
			t.Fatalf("the late copy of the first unlock says %v: this test no longer shows why", got)
		}
		c.hash(map[string]string{})
	})
	t.Run("ours: a field of the hold", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		c.mustHold(first)
		c.unlock(first)
		c.mustHold(second)
		if c.unlock(first) {
			t.Error("the late copy of the first unlock has released something")
		}
		c.hash(map[string]string{second: "1"})
	})
}

func TestP1_LateRenewalDoesNotExtendTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	renewed := func(c caller, first, second string) time.Duration {
		c.mustHold(first)
		c.unlock(first)
		c.acquire(second, 10*time.Second)
		err := c.renew(first, time.Hour) // the late copy
		if gone := errors.Is(err, ErrGone); gone != (first != second) {
			c.Errorf("the late renewal says %v", err)
		}
		return c.inspect("").TTL
	}
	t.Run("naive: a field of the holder", func(t *testing.T) {
		holder := newField()
		if left := renewed(newCaller(t, rdb), holder, holder); left < 30*time.Minute {
			t.Fatalf("%v are left of the next hold: this test no longer shows why", left)
		}
	})
	t.Run("ours: a field of the hold", func(t *testing.T) {
		if left := renewed(newCaller(t, rdb), newField(), newField()); left > 10*time.Second {
			t.Errorf("%v are left of a lease of 10 s", left)
		}
	})
}

func TestP1_LateLevelDoesNotTouchTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	late := func(c caller, first, second string) Answer {
		c.mustHold(first)
		c.level(first, lease, 2, 1)
		c.unlock(first)
		c.mustHold(second)
		return c.level(first, lease, 2, 1) // the late copy
	}
	t.Run("naive: a field of the holder", func(t *testing.T) {
		c, holder := newCaller(t, rdb), newField()
		late(c, holder, holder)
		c.hash(map[string]string{holder: "2", holder + "#": "1"})
	})
	t.Run("ours: a field of the hold", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		if a := late(c, first, second); a.Held {
			t.Error("the late copy says that the first hold is there")
		}
		c.hash(map[string]string{second: "1"})
	})
}

func TestP2_ACopyOfAcquireCountsOnce(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: it adds", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.naiveLock(field) // the repeat comes first
		c.naiveLock(field) // then the first copy
		c.hash(map[string]string{field: "2"})
		if got := c.naiveUnlock(field); got != int64(0) {
			t.Fatalf("the only unlock says %v: this test no longer shows why", got)
		}
		c.hash(map[string]string{field: "1"}) // locked for ever, for a holder that has unlocked
	})
	t.Run("ours: a copy is a repeat", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		first := c.acquire(field, lease)
		for range 3 {
			if a := c.acquire(field, lease); a != first {
				t.Errorf("a copy says %+v, the first said %+v", a, first)
			}
		}
		c.hash(map[string]string{field: "1"})
		if !c.unlock(field) {
			t.Error("the unlock found nothing")
		}
		c.hash(map[string]string{})
	})
}

func TestP2_ALateReentryDoesNotUndoAnInnerUnlock(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: it adds", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.naiveLock(field)
		c.naiveLock(field)   // a re-entry
		c.naiveUnlock(field) // an inner unlock
		c.naiveLock(field)   // the late copy of the re-entry
		c.hash(map[string]string{field: "2"})
	})
	t.Run("naive: it sets, without a number of its own", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		c.mustNaive("level", []string{c.keys.Lock}, field, 2)
		c.rdb.HSet(t.Context(), c.keys.Lock, field, 1) // the inner unlock
		c.mustNaive("level", []string{c.keys.Lock}, field, 2)
		c.hash(map[string]string{field: "2"})
	})
	t.Run("ours: it sets, numbered", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		reentry := c.level(field, lease, 2, 1)
		c.level(field, 0, 1, 2)
		if a := c.level(field, lease, 2, 1); a != reentry {
			t.Errorf("the late copy says %+v, the first said %+v", a, reentry)
		}
		c.hash(map[string]string{field: "1", field + "#": "2"})
	})
	t.Run("ours: the late copy is the first to arrive", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		c.level(field, 0, 1, 2) // the inner unlock of a re-entry that has not come
		c.level(field, lease, 2, 1)
		c.hash(map[string]string{field: "1", field + "#": "2"})
	})
}

func TestP2_AReentryDoesNotTakeALostLock(t *testing.T) {
	rdb := redistest.New(t)
	// A stranger forces the lock open, has it, and gives it back.
	lose := func(c caller, field string) {
		stranger := newField()
		c.unlock(field)
		c.mustHold(stranger)
		c.unlock(stranger)
	}
	t.Run("naive: a re-entry is an acquire", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.naiveLock(field)
		lose(c, field)
		c.naiveLock(field)
		c.hash(map[string]string{field: "1"}) // the inner level has the lock, the outer one never hears of its loss
	})
	t.Run("ours: it says lost", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		lose(c, field)
		before := mustTake(t, rdb, c.keys)
		if a := c.level(field, lease, 2, 1); a != (Answer{}) {
			t.Errorf("the re-entry says %+v", a)
		}
		if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
			t.Errorf("the re-entry has left %v, before it there was %v", after, before)
		}
	})
}

func TestP2_ARepeatIsNotTakenForAnotherReentry(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: known by its count", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		c.mustNaive("level", []string{c.keys.Lock}, field, 2) // one goroutine enters from 1
		c.mustNaive("level", []string{c.keys.Lock}, field, 2) // another too, at once: taken for a repeat of the first
		c.hash(map[string]string{field: "2"})                 // three levels are open
	})
	t.Run("ours: known by its number", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		c.mustHold(field)
		one := c.level(field, lease, 2, 1)
		again := c.level(field, lease, 2, 1) // a repeat
		two := c.level(field, lease, 3, 2)   // another goroutine, after it (P2: one at a time)
		if again != one || two.Token != one.Token+1 {
			t.Errorf("tokens %d, repeated %d, next %d", one.Token, again.Token, two.Token)
		}
		c.hash(map[string]string{field: "3", field + "#": "2"})
	})
}

func TestP3_AGhostGoesWithItsOwnUnlock(t *testing.T) {
	c, field, other := newCaller(t, redistest.New(t)), newField(), newField()
	if c.unlock(field) { // overtakes its acquire
		t.Error("the unlock found something")
	}
	c.mustHold(field) // the ghost
	if a := c.acquire(other, lease); a.Held {
		t.Error("two have the lock")
	}
	if !c.unlock(field) { // sent again
		t.Error("the unlock that was sent again found nothing")
	}
	c.mustHold(other)
	if c.unlock(field) { // and again
		t.Error("the ghost's unlock has released the next hold")
	}
	c.hash(map[string]string{other: "1"})
}

func TestP12_ARepeatedForcedUnlockLeavesTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: it deletes what is there", func(t *testing.T) {
		c := newCaller(t, rdb)
		c.mustHold(newField())
		c.mustNaive("force", []string{c.keys.Lock})
		c.mustHold(newField())
		c.mustNaive("force", []string{c.keys.Lock}) // the repeat
		c.hash(map[string]string{})
	})
	t.Run("ours: it releases whom it saw", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		c.mustHold(first)
		c.level(first, lease, 2, 1) // the change number is no holder, and goes too
		seen := c.inspect("").Field
		if !c.unlock(seen) {
			t.Fatalf("%q was seen and is not there", seen)
		}
		c.mustHold(second)
		if c.unlock(seen) {
			t.Error("the repeat has released something")
		}
		c.hash(map[string]string{second: "1"})
	})
}
