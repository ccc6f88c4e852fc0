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
	if _, err := c.Do(t.Context(), Reserve(c.keys, field, time.Second, 0)); err != nil {
		t.Fatal(err)
	}
	if s := mustTake(t, rdb, c.keys); s.pttl < 50_000 {
		t.Errorf("a shorter lease made the expiry %d ms", s.pttl)
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

// Inv2, P9: a release gives back tokens that nobody has had, once, and only where nobody has taken others since.
func TestP9_UnlockGivesTokensBack(t *testing.T) {
	rdb := redistest.New(t)
	for name, do := range map[string]func(*Scripts, Op) (Answer, error){
		"alone": func(s *Scripts, op Op) (Answer, error) { return s.Do(t.Context(), op) },
		"in a batch": func(s *Scripts, op Op) (Answer, error) {
			got := together(s, op, Unlock(newKeys(t), newField(), false))
			return got[0].Answer, got[0].err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := caller{t, New(rdb), newKeys(t), true}
			take := func() (field string, first, last int64) {
				t.Helper()
				field = newField()
				first = c.acquire(field, time.Minute).Token
				a, err := c.Do(t.Context(), Reserve(c.keys, field, time.Minute, 5))
				if err != nil {
					t.Fatal(err)
				}
				return field, first, a.Token
			}
			release := func(field string, last, unused, counter int64, held bool) {
				t.Helper()
				a, err := do(c.Scripts, Unlock(c.keys, field, false).Return(last, unused))
				if err != nil || a.Held != held {
					t.Errorf("the release says %+v, %v", a, err)
				}
				if got, err := rdb.Get(t.Context(), c.keys.Token).Int64(); got != counter || err != nil {
					t.Errorf("the counter is %d, %v, want %d", got, err, counter)
				}
			}
			field, first, last := take()
			if first != 1 || last != 6 {
				t.Fatalf("tokens %d to %d", first, last)
			}
			release(field, last, 3, 3, true)
			release(field, last, 3, 3, false) // a copy
			next, _, last := take()           // 4 to 9
			release(field, 6, 3, last, false) // a late one
			if err := rdb.Incr(t.Context(), c.keys.Token).Err(); err != nil {
				t.Fatal(err)
			}
			release(next, last, 5, last+1, true) // somebody took one
		})
	}
}
