package scripts

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/redistest"
)

// P9: more tokens for a hold that is there; each answer has tokens of its own, a copy's too, and the next acquire's are
// larger than all of them.
func TestP9_ReserveTakesTokensOfItsOwn(t *testing.T) {
	rdb := redistest.New(t)
	c := caller{t, New(rdb), newKeys(t), true}
	field := newField()
	first := c.acquire(field, 5*time.Second)
	do := func(field string, tokens int) Answer {
		t.Helper()
		a, err := c.Do(t.Context(), Reserve(c.keys, field, time.Minute, tokens))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := do(field, 3); !a.Held || a.Token != first.Token+3 {
		t.Errorf("it says %+v after token %d", a, first.Token)
	}
	if a := do(field, 3); !a.Held || a.Token != first.Token+6 {
		t.Errorf("a copy says %+v after token %d", a, first.Token)
	}
	if s := mustTake(t, rdb, c.keys); s.hash[field] != "1" || len(s.hash) != 1 || s.pttl < 50_000 {
		t.Errorf("the lock is %v: the count stays, the lease is extended", s)
	}
	c.unlock(field)
	before := mustTake(t, rdb, c.keys)
	if a := do(field, 3); a.Held {
		t.Errorf("a late copy says %+v", a)
	}
	if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
		t.Errorf("a late copy made %v of %v", after, before)
	}
	next := newField()
	if a := c.acquire(next, time.Minute); a.Token != first.Token+7 {
		t.Errorf("the next acquire has token %d after %d and six reserved", a.Token, first.Token)
	}
	if a := do(field, 3); a.Held {
		t.Errorf("beside another hold it says %+v", a)
	}
}

// P8, P14: in a batch with others, each answers for itself.
func TestP14_ReserveInABatch(t *testing.T) {
	rdb := redistest.New(t)
	c, bad := caller{t, New(rdb), newKeys(t), true}, newKeys(t)
	if err := rdb.Set(t.Context(), bad.Lock, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	field := newField()
	c.acquire(field, time.Minute)
	got := together(c.Scripts, Reserve(bad, field, time.Minute, 2), Reserve(c.keys, field, time.Minute, 2), Unlock(c.keys, field, false))
	if got[0].err == nil || got[1].err != nil || got[1].Token != 3 || got[2].err != nil || !got[2].Held {
		t.Errorf("the batch says %+v", got)
	}
}
