package scripts

import (
	"maps"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The rules about passing a lock on: P2, P7 and P15 for transfer.

func (c caller) naiveTransfer(old, field string) {
	c.Helper()
	c.mustNaive("transfer", c.lockAndCounter(), lease.Milliseconds(), old, field)
}

// onlyHash is hash for what a naive script has left without an expiry.
func (c caller) onlyHash(want map[string]string) {
	c.Helper()
	if got := mustTake(c, c.rdb, c.keys).hash; !maps.Equal(got, want) {
		c.Fatalf("the lock's hash is %v, want %v: this test no longer shows why", got, want)
	}
}

// mustGet passes the lock on and fails the test unless it works.
func (c caller) mustGet(old, field string) Answer {
	c.Helper()
	a := c.transfer(old, field, lease)
	if !a.Held {
		c.Fatalf("%s has not got the lock of %s", field, old)
	}
	return a
}

func TestP2_ACopyOfTransferCountsOnce(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: it adds", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		c.mustHold(first)
		c.naiveTransfer(first, second)
		c.naiveTransfer(first, second)
		c.onlyHash(map[string]string{second: "2"})
	})
	t.Run("ours: a copy is a repeat", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		token := c.acquire(first, lease).Token
		got := c.mustGet(first, second)
		if got.Token != token+1 {
			t.Errorf("transfer says %+v after token %d", got, token)
		}
		for range 3 {
			if a := c.transfer(first, second, lease); a != got {
				t.Errorf("a copy says %+v, the first said %+v", a, got)
			}
		}
		c.hash(map[string]string{second: "1"})
		if s := mustTake(t, rdb, c.keys); s.counter != strconv.FormatInt(got.Token, 10) {
			t.Errorf("the copies left %v", s)
		}
	})
}

func TestP2_ALateTransferDoesNotTakeTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	t.Run("naive: it asks for no field", func(t *testing.T) {
		c, first, second, third := newCaller(t, rdb), newField(), newField(), newField()
		c.mustHold(first)
		c.naiveTransfer(first, second)
		c.unlock(second)
		c.mustHold(third)
		c.naiveTransfer(first, second) // the late copy
		c.onlyHash(map[string]string{second: "1"})
	})
	for name, next := range map[string]func(c caller, second, third string){
		"is free":          func(c caller, second, _ string) { c.unlock(second) },
		"is a stranger's":  func(c caller, second, third string) { c.unlock(second); c.mustHold(third) },
		"was passed on":    func(c caller, second, third string) { c.mustGet(second, third) },
		"is used again":    func(c caller, second, third string) { c.mustGet(second, third); c.level(third, lease, 2, 1) },
		"was passed twice": func(c caller, second, third string) { c.mustGet(second, newField()); c.unlock(second) },
	} {
		t.Run("ours: the lock "+name, func(t *testing.T) {
			c, first, second, third := newCaller(t, rdb), newField(), newField(), newField()
			c.mustHold(first)
			c.mustGet(first, second)
			next(c, second, third)
			before := mustTake(t, rdb, c.keys)
			for range 2 {
				if a := c.transfer(first, second, lease); a != (Answer{}) {
					t.Errorf("the late copy says %+v", a)
				}
			}
			if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
				t.Errorf("the late copy has left %v, before it there was %v", after, before)
			}
		})
	}
}

// P15: what has had no answer is sent again in another form, and may come in any order.
func TestP15_TransferMeetsUnlockAndAcquireInAnyOrder(t *testing.T) {
	rdb := redistest.New(t)
	hold := func(t *testing.T) (c caller, first, second string) {
		c, first, second = newCaller(t, rdb), newField(), newField()
		c.mustHold(first)
		c.level(first, lease, 2, 7)
		return c, first, second
	}
	t.Run("unlock of the old comes first", func(t *testing.T) {
		c, first, second := hold(t)
		c.unlock(first)
		if a := c.transfer(first, second, lease); a != (Answer{}) {
			t.Errorf("transfer says %+v", a)
		}
		c.hash(map[string]string{})
		token := c.acquire(second, lease).Token // falls back, under its number
		if a := c.transfer(first, second, lease); a != (Answer{Held: true, Token: token}) {
			t.Errorf("the late transfer says %+v, the acquire said token %d", a, token)
		}
		c.hash(map[string]string{second: "1"})
	})
	t.Run("acquire of the new comes first", func(t *testing.T) {
		c, first, second := hold(t)
		if a := c.acquire(second, lease); a.Held {
			t.Error("two have the lock")
		}
		got := c.mustGet(first, second)
		if a := c.acquire(second, lease); a != got {
			t.Errorf("the acquire afterwards says %+v, the transfer said %+v", a, got)
		}
		if c.unlock(first) {
			t.Error("the old hold has released something")
		}
		c.hash(map[string]string{second: "1"})
	})
	t.Run("unlock of the new comes first", func(t *testing.T) {
		c, first, second := hold(t)
		if c.unlock(second) {
			t.Error("it has released something")
		}
		c.mustGet(first, second) // a ghost
		if !c.unlock(second) {   // sent again (P3)
			t.Error("the unlock that was sent again found nothing")
		}
		c.hash(map[string]string{})
	})
	t.Run("levels of the old come late", func(t *testing.T) {
		c, first, second := hold(t)
		c.mustGet(first, second)
		for _, a := range []Answer{c.level(first, lease, 2, 7), c.level(first, lease, 3, 8), c.level(first, 0, 1, 9)} {
			if a != (Answer{}) {
				t.Errorf("a level of the old hold says %+v", a)
			}
		}
		c.hash(map[string]string{second: "1"})
		c.level(second, lease, 2, 1) // its changes begin anew
		c.hash(map[string]string{second: "2", second + "#": "1"})
	})
	t.Run("the old hold is the new one too", func(t *testing.T) {
		c, first, _ := hold(t)
		before := mustTake(t, rdb, c.keys)
		if a := c.transfer(first, first, lease); !a.Held {
			t.Errorf("transfer says %+v", a)
		}
		if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
			t.Errorf("it has left %v, before it there was %v", after, before)
		}
	})
}

// P6 counts the lease from the attempt that was answered: so must Redis.
func TestP6_ARepeatedTransferExtends(t *testing.T) {
	rdb := redistest.New(t)
	c, first, second := newCaller(t, rdb), newField(), newField()
	c.acquire(first, time.Hour)
	c.mustGet(first, second)
	if s := c.inspect(second); s.TTL > lease {
		t.Errorf("the lease of %v lasts %v", lease, s.TTL)
	}
	rdb.PExpire(t.Context(), c.keys.Lock, aged) // time passes until the repeat
	c.mustGet(first, second)
	if s := c.inspect(second); s.TTL < lease/2 {
		t.Errorf("%v are left of the lease after the repeat that was answered", s.TTL)
	}
	c.renew(second, time.Hour)
	c.mustGet(first, second)
	if s := c.inspect(second); s.TTL < time.Hour/2 {
		t.Errorf("a late copy has shortened the expiry to %v", s.TTL)
	}
}

// On a real server alone, as TestP7_NoPathLeavesALockWithoutExpiry.
func TestP7_NoTransferLeavesALockWithoutExpiry(t *testing.T) {
	rdb := redistest.Real(t).Client()
	t.Run("naive: it removes first", func(t *testing.T) {
		c, first, second := newCaller(t, rdb), newField(), newField()
		c.mustHold(first)
		c.naiveTransfer(first, second)
		if s := mustTake(t, rdb, c.keys); s.pttl != -1 {
			t.Fatalf("the naive script left %v: this test no longer shows why", s)
		}
	})
	for _, d := range []time.Duration{math.MinInt64, -time.Hour, -1, 0, 1, time.Millisecond, lease, 876_000 * time.Hour, math.MaxInt64} {
		t.Run("ours: lease "+d.String(), func(t *testing.T) {
			c := newCaller(t, rdb)
			for _, fenced := range []bool{true, false} {
				first, second := newField(), newField()
				pass := Transfer(c.keys, fenced, second, d, first)
				c.mustHold(first)
				_, _ = c.Do(t.Context(), pass) // an error or not: what is left counts
				c.mustExpire("transfer")
				_, _ = c.Do(t.Context(), pass)
				c.mustExpire("a repeat of transfer")
				c.unlock(first)
				c.unlock(second)
				c.hash(map[string]string{})

				c.mustHold(second) // and a repeat with a hold that is there
				_, _ = c.Do(t.Context(), pass)
				c.mustExpire("a repeat of transfer")
				if s := c.inspect(second); d < lease && (s.Count == 0 || s.TTL < lease/2) {
					t.Fatalf("a repeat with a lease of %v shortened one of %v: %+v", d, lease, s)
				}
				c.unlock(second)
			}
		})
	}
	for name, spoil := range map[string]func(c caller){
		"no number":   func(c caller) { rdb.Set(t.Context(), c.keys.Token, spoiltCounter, 0) },
		"a list":      func(c caller) { rdb.LPush(t.Context(), c.keys.Token, "x") },
		"2^53":        func(c caller) { rdb.Set(t.Context(), c.keys.Token, 1<<53, 0) },
		"the largest": func(c caller) { rdb.Set(t.Context(), c.keys.Token, math.MaxInt64, 0) },
	} {
		t.Run("ours: the counter is "+name, func(t *testing.T) {
			c, field := newCaller(t, rdb), newField()
			c.fenced = false
			c.mustHold(field)
			c.level(field, lease, 2, 1)
			spoil(c)
			if _, err := c.Do(t.Context(), Transfer(c.keys, true, newField(), time.Hour, field)); err == nil || Unanswered(err) || Passing(err) {
				t.Fatalf("transfer says %v, which is no lasting error of Redis's", err)
			}
			if hash := mustLock(t, c); len(hash) != 2 || hash[field] != "2" {
				t.Errorf("the refused transfer left %v", hash)
			}
			if s := c.inspect(field); s.TTL < 0 || s.TTL > lease {
				t.Errorf("the refused transfer left %v", s.TTL)
			}
		})
	}
}
