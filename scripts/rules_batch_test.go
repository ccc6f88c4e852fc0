package scripts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// P14: what is wrong with one op of a batch is no other's business, and reads as it does alone. TestSequences tries it
// with ops that work.

// sound is an op on a lock of its own, and what it must be told and leave behind.
type sound struct {
	op   Op
	want Answer
	left map[string]string
}

// sounds are ops that work, one of each kind.
func sounds(t *testing.T, rdb redis.UniversalClient) []sound {
	t.Helper()
	c := func() (caller, string, string) {
		c, held, field := newCaller(t, rdb), newField(), newField()
		c.mustHold(held)
		return c, held, field
	}
	free, field := newKeys(t), newField()
	re, reentered, _ := c()
	un, unlocked, _ := c()
	tr, old, next := c()
	return []sound{
		{Acquire(free, true, field, lease), Answer{Held: true, Token: 1}, map[string]string{field: "1"}},
		{Level(re.keys, true, reentered, lease, 2, 4), Answer{Held: true, Token: 2}, map[string]string{reentered: "2", reentered + "#": "4"}},
		{Unlock(un.keys, unlocked, false), Answer{Held: true}, nil},
		{Transfer(tr.keys, true, next, lease, old), Answer{Held: true, Token: 2}, map[string]string{next: "1"}},
	}
}

// failing are ops on a lock that somebody else's data is in the way of; each leaves everything as it was.
func failing(t *testing.T, rdb redis.UniversalClient) map[string]Op {
	t.Helper()
	all := map[string]Op{}
	add := func(name string, spoil func(keys *Keys) error, ops func(c caller, holder, stranger string) map[string]Op) {
		c, holder := newCaller(t, rdb), newField()
		c.fenced = false
		if name != "WRONGTYPE" {
			c.mustHold(holder)
			c.level(holder, lease, 2, 5)
		}
		if err := spoil(c.keys); err != nil {
			t.Fatal(err)
		}
		for what, op := range ops(c, holder, newField()) {
			all[name+", "+what] = op
		}
		free := newKeys(t)
		if err := spoil(free); err != nil {
			t.Fatal(err)
		}
		all[name+", acquire"] = Acquire(free, true, newField(), lease)
	}
	ctx := t.Context()
	token := func(value any) func(*Keys) error {
		return func(keys *Keys) error { return rdb.Set(ctx, keys.Token, value, 0).Err() }
	}
	takes := func(c caller, holder, stranger string) map[string]Op {
		return map[string]Op{
			"level":    Level(c.keys, true, holder, lease, 3, 6),
			"transfer": Transfer(c.keys, true, stranger, lease, holder),
		}
	}
	asks := func(c caller, holder, stranger string) map[string]Op {
		ops := takes(c, holder, stranger)
		ops["repeat of acquire"] = Acquire(c.keys, true, holder, lease)
		ops["repeat of level"] = Level(c.keys, true, holder, lease, 2, 5)
		ops["repeat of transfer"] = Transfer(c.keys, true, holder, lease, stranger)
		return ops
	}
	add("WRONGTYPE", func(keys *Keys) error { return rdb.Set(ctx, keys.Lock, "x", 0).Err() }, func(c caller, holder, stranger string) map[string]Op {
		ops := asks(c, holder, stranger)
		ops["unlock"] = Unlock(c.keys, holder, false)
		return ops
	})
	add("no number", token(spoiltCounter), asks)
	add("a list", func(keys *Keys) error { return rdb.LPush(ctx, keys.Token, "x").Err() }, asks)
	add("2^53", token(int64(1)<<53), takes)
	return all
}

// words are an error's own, without what explain adds.
func words(err error) string {
	var said redis.Error
	if !errors.As(err, &said) {
		return ""
	}
	return said.Error()
}

func TestP14_OneBadOpDoesNotFailItsNeighbours(t *testing.T) {
	rdb := redistest.New(t)
	hints := map[string]string{"WRONGTYPE": "choose a name", "no number": "repair the counter", "a list": "choose a name", "2^53": "2^53"}
	bad := failing(t, rdb)
	if len(bad) != 7+6+6+3 {
		t.Fatalf("%d ops", len(bad))
	}
	for name, op := range bad {
		t.Run(name, func(t *testing.T) {
			_, alone := New(rdb).Do(t.Context(), op)
			judge(t, alone, false, false)
			kind, _, _ := strings.Cut(name, ",")
			if words(alone) == "" || !strings.Contains(alone.Error(), hints[kind]) {
				t.Fatalf("alone it hears %v", alone)
			}
			before := mustLockOf(t, rdb, op.keys)
			for place := range 5 {
				good := sounds(t, rdb)
				var ops []Op
				for _, g := range good {
					ops = append(ops, g.op)
				}
				said := together(New(rdb), slices.Insert(ops, place, op)...)
				judge(t, said[place].err, false, false)
				if got := said[place]; got.Answer != (Answer{}) || got.err == nil || got.err.Error() != alone.Error() || words(got.err) != words(alone) {
					t.Errorf("in a batch it hears %+v, alone it heard %v", got, alone)
				}
				for i, o := range slices.Delete(said, place, place+1) {
					if o.Answer != good[i].want || o.err != nil {
						t.Errorf("at place %d: its neighbour, %s, hears %+v, want %+v", place, good[i].op.kind.names[0], o, good[i].want)
					}
					mustHash(t, rdb, good[i].op.keys, good[i].left)
				}
			}
			if after := mustLockOf(t, rdb, op.keys); after != before {
				t.Errorf("it left %s, before it there was %s", after, before)
			}
		})
	}
}

// mustLockOf is the lock's key, whatever its type.
func mustLockOf(t *testing.T, rdb redis.UniversalClient, keys *Keys) string {
	t.Helper()
	hash, err := rdb.HGetAll(t.Context(), keys.Lock).Result()
	return fmt.Sprint(hash, err)
}

// What a user may not do is an error of its own for each op, and leaves no lock without expiry and none with two holds.
func TestP14_AUserWithoutRights(t *testing.T) {
	server := redistest.Real(t)
	direct := server.Client()
	for what, right := range map[string][]any{"PEXPIRE": {"-pexpire"}, "PUBLISH": {"-publish"}, "INCRBY": {"-incrby"}} {
		t.Run(what, func(t *testing.T) {
			limited := New(as(t, server, "no-"+strings.ToLower(what), append([]any{"~*", "&*", "+@all"}, right...)...))
			for _, company := range []bool{false, true} {
				for name, may := range map[string]bool{
					"acquire": what == "PUBLISH", "level": what == "PUBLISH", "transfer": what == "PUBLISH", "unlock": true,
					"repeat of acquire": what != "PEXPIRE", "repeat of transfer": what != "PEXPIRE", "inner unlock": true,
				} {
					c, holder, stranger := newCaller(t, direct), newField(), newField()
					if name != "acquire" {
						c.mustHold(holder)
					}
					op := map[string]Op{
						"acquire": Acquire(c.keys, true, stranger, lease), "level": Level(c.keys, true, holder, lease, 2, 1),
						"transfer": Transfer(c.keys, true, stranger, lease, holder), "unlock": Unlock(c.keys, holder, false),
						"repeat of acquire":  Acquire(c.keys, true, holder, lease),
						"repeat of transfer": Transfer(c.keys, true, holder, lease, stranger),
						"inner unlock":       Level(c.keys, false, holder, 0, 1, 1),
					}[name]
					before := mustTake(t, direct, c.keys)
					var got outcome
					if company {
						mine, theirs := newCaller(t, direct), newField()
						mine.mustHold(theirs)
						said := together(limited, op, Unlock(mine.keys, theirs, false))
						got = said[0]
						if said[1].err != nil || !said[1].Held {
							t.Errorf("the neighbour of %s hears %+v", name, said[1])
						}
					} else {
						got.Answer, got.err = limited.Do(t.Context(), op)
					}
					if may {
						if got.err != nil || !got.Held {
							t.Errorf("%s, in company %v: %+v", name, company, got)
						}
						continue
					}
					judge(t, got.err, false, false)
					if words(got.err) == "" || !strings.Contains(got.err.Error(), "the Redis user needs") {
						t.Errorf("%s, in company %v, hears %v", name, company, got.err)
					}
					if after := mustTake(t, direct, c.keys); fmt.Sprint(after.hash) != fmt.Sprint(before.hash) || after.pttl == -1 {
						t.Errorf("%s, in company %v, left %v, before it there was %v", name, company, after, before)
					}
				}
			}
		})
	}
}

// Redis refuses a whole command for one key that the user has no right to.
func TestP14_AForbiddenKeyDoesNotFailItsNeighbours(t *testing.T) {
	server := redistest.Real(t)
	direct := server.Client()
	prefix := newKeys(t).Lock
	s := New(as(t, server, "some-keys", "~"+prefix+"*", "~*{"+prefix+"*", "&*", "+@all"))
	forbidden := Acquire(newKeys(t), true, newField(), lease)
	_, alone := s.Do(t.Context(), forbidden)
	judge(t, alone, false, false)
	for place := range 3 {
		field := newField()
		one, two := KeysOf(fmt.Sprint(prefix, "-one-", place)), KeysOf(fmt.Sprint(prefix, "-two-", place))
		if _, err := New(direct).Do(t.Context(), Acquire(one, true, field, lease)); err != nil {
			t.Fatal(err)
		}
		ops := slices.Insert([]Op{Unlock(one, field, false), Acquire(two, true, field, lease)}, place, forbidden)
		said := together(s, ops...)
		if got := said[place]; got.err == nil || got.err.Error() != alone.Error() {
			t.Errorf("the op with the forbidden key hears %+v, alone it heard %v", got, alone)
		}
		rest := slices.Delete(said, place, place+1)
		if rest[0] != (outcome{Answer: Answer{Held: true}}) || rest[1] != (outcome{Answer: Answer{Held: true, Token: 1}}) {
			t.Errorf("its neighbours hear %+v", rest)
		}
		mustHash(t, direct, one, nil)
		mustHash(t, direct, two, map[string]string{field: "1"})
	}
}

// A batch of ops on the same lock does them in the order in which they were sent.
func TestP14_ABatchKeepsItsOrder(t *testing.T) {
	c, first, second, third := newCaller(t, redistest.New(t)), newField(), newField(), newField()
	said := together(c.Scripts,
		Acquire(c.keys, true, first, lease),
		Level(c.keys, true, first, lease, 2, 1),
		Acquire(c.keys, true, second, lease),
		Unlock(c.keys, first, false),
		Acquire(c.keys, true, second, lease),
		Transfer(c.keys, true, third, time.Hour, second),
		Unlock(c.keys, second, false))
	for i, want := range []Answer{
		{Held: true, Token: 1}, {Held: true, Token: 2}, {TTL: said[2].TTL, Before: NotInLine, Own: first}, {Held: true}, {Held: true, Token: 3}, {Held: true, Token: 4}, {Own: third},
	} {
		if said[i].err != nil || said[i].Answer != want {
			t.Errorf("op %d hears %+v, want %+v", i, said[i], want)
		}
	}
	if left := said[2].TTL; left <= 0 || left > lease {
		t.Errorf("the one that was too early is told %v", left)
	}
	c.hash(map[string]string{third: "1"})
}

// A user who may not ask for the expiry is told what right is missing, and no expiry is shortened.
func TestP14_RenewWithoutTheRightToPTTL(t *testing.T) {
	server := redistest.Real(t)
	rdb := as(t, server, "no-pttl", "~*", "&*", "+@all", "-pttl")
	a, b := newCaller(t, rdb), newCaller(t, rdb)
	long, short := newField(), newField()
	a.acquire(long, time.Hour)
	b.acquire(short, time.Minute)
	holds := []Renewal{{Keys: a.keys, Field: long, Lease: time.Second}, {Keys: b.keys, Field: short, Lease: time.Hour}}
	a.Renew(t.Context(), holds)
	for i, least := range []time.Duration{50 * time.Minute, 30 * time.Second} {
		if err := holds[i].Err; err == nil || !strings.Contains(err.Error(), "needs EVALSHA") || !strings.Contains(err.Error(), "PTTL") {
			t.Errorf("the renewal says %v", err)
		}
		if ttl := server.Client().PTTL(t.Context(), holds[i].Keys.Lock).Val(); ttl < least {
			t.Errorf("the lock lives for %v, want %v and more", ttl, least)
		}
	}
}
