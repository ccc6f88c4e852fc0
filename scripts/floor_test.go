package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// serverTime is the server's time in microseconds.
func serverTime(t *testing.T, rdb redis.UniversalClient) int64 {
	t.Helper()
	now, err := rdb.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.UnixMicro()
}

// floored are the ops that take tokens, for a lock that is held by holder: what they are called, and for whom they are.
func floored(keys *Keys, holder, next string, expiry time.Duration) map[string]Op {
	return map[string]Op{
		"acquire":  Acquire(keys, true, next, lease).WithFloor(expiry),
		"level":    Level(keys, true, holder, lease, 2, 1).WithFloor(expiry),
		"transfer": Transfer(keys, true, next, lease, holder).WithFloor(expiry),
	}
}

// The tokens of a counter with a floor are at least the server's time, and never the same twice; also where the counter is ahead of
// the clock. Alone and in a batch; one token, and five in a row.
func TestFloor_TokensAreAtLeastTheTime(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	for _, name := range []string{"acquire", "level", "transfer"} {
		for _, company := range []bool{false, true} {
			for _, counter := range []string{"absent", "small", "ahead"} {
				tokens := map[bool]int{true: 5, false: 1}[counter != "small"]
				t.Run(fmt.Sprintf("%s %v %s", name, company, counter), func(t *testing.T) {
					c, holder, next := newCaller(t, rdb), newField(), newField()
					if name != "acquire" {
						c.mustHold(holder)
					}
					before := serverTime(t, rdb)
					least := before
					switch counter {
					case "absent":
						rdb.Del(t.Context(), c.keys.Token)
					case "small":
						rdb.Set(t.Context(), c.keys.Token, 41, 0)
					case "ahead":
						least = before + time.Hour.Microseconds()
						rdb.Set(t.Context(), c.keys.Token, least-1, 0)
					}
					op := floored(c.keys, holder, next, 0)[name].TakingTokens(tokens)
					var got outcome
					if company {
						got = together(s, Acquire(newKeys(t), true, newField(), lease), op)[1]
					} else {
						got.Answer, got.err = s.Do(t.Context(), op)
					}
					if got.err != nil || !got.Held {
						t.Fatalf("%+v", got)
					}
					first := got.Token - int64(tokens) + 1
					if counter == "ahead" && first != least {
						t.Errorf("the first token is %d, want %d", first, least)
					}
					if first < least || counter != "ahead" && first > serverTime(t, rdb)+1 {
						t.Errorf("the first token is %d, asked for at %d", first, before)
					}
					if kept := rdb.Get(t.Context(), c.keys.Token).Val(); kept != strconv.FormatInt(got.Token, 10) {
						t.Errorf("the counter is %s, the token %d", kept, got.Token)
					}
					if ttl := rdb.PTTL(t.Context(), c.keys.Token).Val(); ttl != -1 {
						t.Errorf("the counter expires in %v", ttl)
					}
				})
			}
		}
	}
}

// A repeat gets the token it had (P9); one whose counter has gone meanwhile gets one that is not smaller.
func TestFloor_P9_ARepeatHasItsToken(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	for _, name := range []string{"acquire", "level", "transfer"} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " lost ", lost), func(t *testing.T) {
				c, holder, next := newCaller(t, rdb), newField(), newField()
				if name != "acquire" {
					c.mustHold(holder)
				}
				op := floored(c.keys, holder, next, 0)[name]
				first, err := s.Do(t.Context(), op)
				if err != nil || !first.Held {
					t.Fatal(first, err)
				}
				if lost {
					rdb.Del(t.Context(), c.keys.Token)
				}
				again, err := s.Do(t.Context(), op)
				if err != nil || !again.Held {
					t.Fatal(again, err)
				}
				if !lost && again.Token != first.Token || lost && again.Token <= first.Token {
					t.Errorf("token %d, and %d when it was repeated", first.Token, again.Token)
				}
			})
		}
	}
}

// Tokens grow although everything in Redis was lost, and beside clients that only increment: Redisson, and locks without
// the floor.
func TestFloor_Inv2_TokensGrowAcrossALoss(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	keys := newKeys(t)
	var last int64
	for round := range 20 {
		field := newField()
		op := Acquire(keys, true, field, lease)
		if round%3 == 0 {
			op = op.WithFloor(0)
		}
		got, err := s.Do(t.Context(), op)
		if err != nil || got.Token <= last {
			t.Fatalf("Inv2: round %d: token %d after %d: %v", round, got.Token, last, err)
		}
		last = got.Token
		if round%3 == 1 { // Redisson
			last = rdb.Incr(t.Context(), keys.Token).Val()
		}
		if round%3 == 2 {
			rdb.FlushAll(t.Context())
			continue
		}
		if _, err := s.Do(t.Context(), Unlock(keys, field, false)); err != nil {
			t.Fatal(err)
		}
	}
}

// The expiry of the counter counts from each token on; without one it is taken off.
func TestFloor_TheCounterExpires(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	for _, name := range []string{"acquire", "level", "transfer"} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []time.Duration{0, time.Minute, 100 * time.Hour} {
				for _, expiry := range []time.Duration{time.Hour, 0} {
					c, holder, next := newCaller(t, rdb), newField(), newField()
					if name != "acquire" {
						c.mustHold(holder)
					}
					rdb.Set(t.Context(), c.keys.Token, 1, before)
					if got, err := s.Do(t.Context(), floored(c.keys, holder, next, expiry)[name]); err != nil || !got.Held {
						t.Fatal(got, err)
					}
					ttl := rdb.PTTL(t.Context(), c.keys.Token).Val()
					if expiry == 0 && ttl != -1 || expiry > 0 && (ttl > expiry || ttl < expiry-time.Minute) {
						t.Errorf("from %v on the counter lives for %v, want %v", before, ttl, expiry)
					}
				}
			}
		})
	}
}

// A counter that cannot be counted with is refused before anything is written.
func TestFloor_ASpoiltCounterLeavesNothing(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	for _, name := range []string{"acquire", "level", "transfer"} {
		for what, spoil := range map[string]func(key string){
			"text":  func(key string) { rdb.Set(t.Context(), key, "x", 0) },
			"nan":   func(key string) { rdb.Set(t.Context(), key, "nan", 0) },
			"real":  func(key string) { rdb.Set(t.Context(), key, "1.5", 0) },
			"hex":   func(key string) { rdb.Set(t.Context(), key, "0x10", 0) },
			"type":  func(key string) { rdb.Del(t.Context(), key); rdb.RPush(t.Context(), key, "x") },
			"limit": func(key string) { rdb.Set(t.Context(), key, int64(1)<<53-1, 0) },
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				c, holder, next := newCaller(t, rdb), newField(), newField()
				if name != "acquire" {
					c.mustHold(holder)
				}
				spoil(c.keys.Token)
				before := mustLockOf(t, rdb, c.keys)
				got, err := s.Do(t.Context(), floored(c.keys, holder, next, 0)[name])
				if err == nil || Unanswered(err) {
					t.Errorf("%+v, %v", got, err)
				}
				if what == "text" && !strings.Contains(fmt.Sprint(err), "not a number") {
					t.Errorf("the error does not say what to do: %v", err)
				}
				if after := mustLockOf(t, rdb, c.keys); after != before {
					t.Errorf("it left %s, before it there was %s", after, before)
				}
			})
		}
	}
}

// P14: an op with a floor of a user who may not ask for the time fails alone.
func TestFloor_P14_WithoutTheRightToTheTime(t *testing.T) {
	server := redistest.Real(t)
	rdb := as(t, server, "no-time", "~*", "&*", "+@all", "-time")
	s := New(rdb)
	plain, held := newCaller(t, rdb), newCaller(t, rdb)
	theirs := newField()
	held.mustHold(theirs)
	got := together(s, Acquire(plain.keys, true, newField(), lease), Unlock(held.keys, theirs, false),
		Acquire(newKeys(t), true, newField(), lease).WithFloor(0))
	if got[0].err != nil || !got[0].Held || got[1].err != nil || !got[1].Held {
		t.Errorf("the neighbours hear %+v and %+v", got[0], got[1])
	}
	if got[2].err == nil || Unanswered(got[2].err) || !strings.Contains(got[2].err.Error(), "the Redis user needs") {
		t.Errorf("it hears %+v", got[2])
	}
}

// The counter of tokens that have run ahead of the clock lives on until that has caught up.
func TestFloor_TheExpiryWaitsForTheClock(t *testing.T) {
	rdb := redistest.New(t)
	keys := newKeys(t)
	ahead := serverTime(t, rdb) + time.Hour.Microseconds()
	rdb.Set(t.Context(), keys.Token, ahead, 0)
	if _, err := New(rdb).Do(t.Context(), Acquire(keys, true, newField(), lease).WithFloor(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if ttl := rdb.PTTL(t.Context(), keys.Token).Val(); ttl < time.Hour || ttl > time.Hour+time.Minute {
		t.Errorf("the counter is an hour ahead, and lives for %v", ttl)
	}
}
