package scripts

import (
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The rules about answers and tokens: P7 and P9, and P14's about batches.

func TestP7_HeldForEverIsNotTakenForAcquired(t *testing.T) {
	rdb := redistest.New(t)
	held := func(t *testing.T) caller {
		c := newCaller(t, rdb)
		c.mustHold(newField())
		if err := rdb.Persist(t.Context(), c.keys.Lock).Err(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	t.Run("naive: -1 is both", func(t *testing.T) {
		c := held(t)
		reply := c.mustNaive("acquire", c.lockAndCounter(), lease.Milliseconds(), newField()).([]any)
		if reply[0] != int64(-1) || reply[1] != int64(-1) {
			t.Fatalf("the naive script says %v: this test no longer shows why", reply)
		}
	})
	t.Run("ours: a verdict first", func(t *testing.T) {
		c := held(t)
		if a := c.acquire("another:1", lease); a != (Answer{TTL: NoExpiry, Before: NotInLine}) {
			t.Errorf("acquire says %+v", a)
		}
		if s := c.inspect(""); !s.Locked || s.TTL != NoExpiry {
			t.Errorf("inspect says %+v", s)
		}
	})
}

// mustLock reads the lock alone, whatever its counter is.
func mustLock(t *testing.T, c caller) map[string]string {
	t.Helper()
	hash, err := c.rdb.HGetAll(t.Context(), c.keys.Lock).Result()
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// mustExpire fails the test if the lock is there and would be for ever.
func (c caller) mustExpire(after string) {
	c.Helper()
	if s := mustTake(c, c.rdb, c.keys); s.pttl == -1 {
		c.Fatalf("%s left a lock without expiry: %v", after, s)
	}
}

// On a real server alone: time stands still in a script there. In miniredis the key of a lease of 1 ms can expire between
// two commands of one script, and the second makes it anew.
func TestP7_NoPathLeavesALockWithoutExpiry(t *testing.T) {
	rdb := redistest.Real(t).Client()
	t.Run("naive: it counts first", func(t *testing.T) {
		c := newCaller(t, rdb)
		rdb.Set(t.Context(), c.keys.Token, "no number", 0)
		if _, err := c.naive("count_first", c.lockAndCounter(), lease.Milliseconds(), newField()); err == nil {
			t.Fatal("the counter is no number, and nobody minds")
		}
		if s := mustTake(t, rdb, c.keys); s.pttl != -1 {
			t.Fatalf("the naive script left %v: this test no longer shows why", s)
		}
	})
	// Whatever lease a caller gives: arguments are a time.Duration, so that PEXPIRE gets a number. What Redis does not
	// keep (a lease below a millisecond ends at once), it does not keep for ever either.
	for _, d := range []time.Duration{math.MinInt64, -time.Hour, -1, 0, 1, time.Millisecond, lease, 876_000 * time.Hour, math.MaxInt64} {
		t.Run("ours: lease "+d.String(), func(t *testing.T) {
			c, field := newCaller(t, rdb), newField()
			for _, fenced := range []bool{true, false} {
				_, _ = c.Do(t.Context(), Acquire(c.keys, fenced, field, d)) // an error or not: what is left counts
				c.mustExpire("acquire")
				_, _ = c.Do(t.Context(), Acquire(c.keys, fenced, field, d))
				c.mustExpire("a repeat of acquire")
				_, _ = c.Do(t.Context(), Level(c.keys, fenced, field, d, 2, 1))
				c.mustExpire("level")
				c.unlock(field)

				c.mustHold(field) // and with a hold that is there
				_, _ = c.Do(t.Context(), Level(c.keys, fenced, field, d, 2, 1))
				c.mustExpire("level")
				_ = c.renew(field, d)
				c.mustExpire("renew")
				if d < lease {
					if s := c.inspect(field); s.Count == 0 || s.TTL < lease/2 {
						t.Fatalf("a lease of %v shortened one of %v: %+v", d, lease, s)
					}
				}
				c.unlock(field)
			}
		})
	}
	for name, spoil := range map[string]func(c caller){
		"no number":   func(c caller) { rdb.Set(t.Context(), c.keys.Token, "no number", 0) },
		"a list":      func(c caller) { rdb.LPush(t.Context(), c.keys.Token, "x") },
		"2^53":        func(c caller) { rdb.Set(t.Context(), c.keys.Token, 1<<53, 0) },
		"the largest": func(c caller) { rdb.Set(t.Context(), c.keys.Token, math.MaxInt64, 0) },
	} {
		t.Run("ours: the counter is "+name, func(t *testing.T) {
			c, field := newCaller(t, rdb), newField()
			spoil(c)
			if _, err := c.Do(t.Context(), Acquire(c.keys, true, field, lease)); err == nil || Unanswered(err) || Passing(err) {
				t.Fatalf("acquire says %v, which is no lasting error of Redis's", err)
			}
			none := mustLock(t, c)
			if len(none) != 0 {
				t.Fatalf("acquire left %v", none)
			}

			c.fenced = false
			c.mustHold(field)
			if _, err := c.Do(t.Context(), Level(c.keys, true, field, time.Hour, 2, 1)); err == nil {
				t.Fatal("a re-entry with a token has worked")
			}
			_, _ = c.Do(t.Context(), Acquire(c.keys, true, field, lease)) // a repeat that asks for a token
			if hash := mustLock(t, c); !maps.Equal(hash, map[string]string{field: "1"}) {
				t.Errorf("the refused re-entry left %v", hash)
			}
			if s := c.inspect(field); s.TTL < 0 || s.TTL > lease {
				t.Errorf("the refused re-entry left %v", s.TTL)
			}
		})
	}
}

func TestP9_ARepeatSaysTheHoldsToken(t *testing.T) {
	c, field := newCaller(t, redistest.New(t)), newField()
	first := c.acquire(field, lease)
	if first.Token < 1 || c.acquire(field, lease) != first {
		t.Fatalf("acquire says %+v, then %+v", first, c.acquire(field, lease))
	}
	if a := c.acquire(newField(), lease); a.Held || a.Token != 0 {
		t.Errorf("a stranger gets %+v", a)
	}
	second := c.level(field, lease, 2, 1)
	if second.Token != first.Token+1 || c.level(field, lease, 2, 1) != second {
		t.Errorf("a re-entry after %d says %+v, then %+v", first.Token, second, c.level(field, lease, 2, 1))
	}
	if inner := c.level(field, 0, 1, 2); inner != (Answer{Held: true}) {
		t.Errorf("an inner unlock says %+v", inner)
	}
	c.fenced = false // an unfenced call moves no token
	if a := c.acquire(field, lease); a != (Answer{Held: true}) {
		t.Errorf("an unfenced repeat says %+v", a)
	}
	if s := mustTake(t, c.rdb, c.keys); s.counter != strconv.FormatInt(second.Token, 10) {
		t.Errorf("the counter is %s after token %d", s.counter, second.Token)
	}
}

func TestP9_AMissingCounterIsIncrementedAnew(t *testing.T) {
	rdb := redistest.New(t)
	c, field, next := newCaller(t, rdb), newField(), newField()
	c.acquire(field, lease)
	for i, repeat := range []func() Answer{
		func() Answer { return c.acquire(field, lease) },
		func() Answer { return c.level(field, lease, 2, 1) },
		func() Answer { return c.transfer(field, next, lease) },
	} {
		what := []string{"acquire", "level", "transfer"}[i]
		repeat()
		rdb.Del(t.Context(), c.keys.Token)
		if a := repeat(); a != (Answer{Held: true, Token: 1}) {
			t.Errorf("%s without a counter says %+v", what, a)
		}
		if a := repeat(); a != (Answer{Held: true, Token: 1}) {
			t.Errorf("%s again says %+v", what, a)
		}
	}
}

// Lua counts in doubles: 2^53+1 reads as 2^53, so 2^53 itself cannot be told from its successor.
func TestP9_TokensEndWhereLuaRounds(t *testing.T) {
	rdb := redistest.New(t)
	const last = 1<<53 - 1
	t.Run("naive: two holds with one token", func(t *testing.T) {
		c, seen := newCaller(t, rdb), map[any]bool{}
		rdb.Set(t.Context(), c.keys.Token, last, 0)
		for range 2 {
			field := newField()
			seen[c.mustNaive("acquire", c.lockAndCounter(), lease.Milliseconds(), field).([]any)[1]] = true
			c.naiveUnlock(field)
		}
		if len(seen) != 1 {
			t.Fatalf("the tokens are %v: this test no longer shows why", seen)
		}
	})
	t.Run("ours: an error", func(t *testing.T) {
		c, field := newCaller(t, rdb), newField()
		rdb.Set(t.Context(), c.keys.Token, last-2, 0)
		if a := c.acquire(field, lease); a.Token != last-1 {
			t.Fatalf("acquire says %+v, want token %d", a, int64(last-1))
		}
		if a := c.level(field, lease, 2, 1); a.Token != last || c.level(field, lease, 2, 1) != a || c.acquire(field, lease).Token != last {
			t.Fatalf("a re-entry says %+v, want token %d, and its repeats the same", a, int64(last))
		}
		for range 3 {
			if a, err := c.Do(t.Context(), Level(c.keys, true, field, lease, 3, 2)); err == nil || !strings.Contains(err.Error(), "2^53") {
				t.Fatalf("a re-entry beyond says %+v, %v", a, err)
			}
			c.hash(map[string]string{field: "2", field + "#": "1"})
		}
		c.unlock(field)
		for range 3 {
			if a, err := c.Do(t.Context(), Acquire(c.keys, true, newField(), lease)); err == nil || !strings.Contains(err.Error(), "2^53") {
				t.Fatalf("an acquire beyond says %+v, %v", a, err)
			}
			c.hash(map[string]string{})
		}
	})
}

func TestP9_ACounterThatIsNoNumberIsAnErrorThatTeaches(t *testing.T) {
	rdb := redistest.New(t)
	c := newCaller(t, rdb)
	rdb.Set(t.Context(), c.keys.Token, "no number", 0)
	_, err := c.Do(t.Context(), Acquire(c.keys, true, newField(), lease))
	if err == nil || !strings.Contains(err.Error(), c.keys.Token) || !strings.Contains(err.Error(), "repair the counter") {
		t.Errorf("the error does not say what to do: %v", err)
	}
	if s := mustTake(t, rdb, c.keys); len(s.hash) != 0 || s.counter != "no number" {
		t.Errorf("left behind: %v", s)
	}
}

func TestP14_AKeyOfAnotherTypeDoesNotFailItsNeighbours(t *testing.T) {
	rdb := redistest.New(t)
	const n, wrong, gone = 100, 30, 60
	c := newCaller(t, rdb)
	holds := make([]Renewal, n)
	for i := range holds {
		holds[i] = Renewal{Keys: newKeys(t), Field: newField(), Lease: time.Hour, Err: errors.New("of the last time")}
		switch i {
		case wrong:
			rdb.Set(t.Context(), holds[i].Keys.Lock, "x", 0)
		case gone:
		default:
			if _, err := c.Do(t.Context(), Acquire(holds[i].Keys, true, holds[i].Field, lease)); err != nil {
				t.Fatal(err)
			}
		}
	}
	extended := func(i int) bool { return mustTake(t, rdb, holds[i].Keys).pttl > time.Minute.Milliseconds() }

	var keys []string
	var args []any
	for _, h := range holds {
		keys, args = append(keys, h.Keys.Lock), append(args, h.Lease.Milliseconds(), h.Field)
	}
	if _, err := c.naive("renew", keys, args...); err == nil || extended(wrong+1) {
		t.Fatalf("the naive batch says %v: this test no longer shows why", err)
	}

	c.Renew(t.Context(), holds)
	for i, h := range holds {
		switch {
		case i == wrong:
			if !redis.HasErrorPrefix(h.Err, "WRONGTYPE") || Unanswered(h.Err) || Passing(h.Err) {
				t.Errorf("the key of another type gets %v", h.Err)
			}
		case i == gone:
			if !errors.Is(h.Err, ErrGone) {
				t.Errorf("the lock that is gone gets %v", h.Err)
			}
			c.keys = h.Keys
			c.hash(map[string]string{})
		case h.Err != nil || !extended(i):
			t.Errorf("lock %d of the batch: %v, %v", i, h.Err, mustTake(t, rdb, h.Keys))
		}
	}
}
