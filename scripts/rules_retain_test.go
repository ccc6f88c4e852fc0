package scripts

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
)

// The rules about retaining a lock: P2, P6, P7, P8 and P15 for retain, which is a transfer where others listen, and an
// unlock where nobody does.

// mustListen makes l listen, or go away.
func mustListen(t *testing.T, l *listener, begin bool) {
	t.Helper()
	if err := l.listen(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
}

func newOther(t *testing.T, c caller) *listener {
	t.Helper()
	l := newListener(c.rdb, c.keys)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// P10 too: who listens is told of a release, once, and of nothing else.
func TestP7_RetainSaysWhatItDid(t *testing.T) {
	rdb := redistest.New(t)
	for listening := range 3 {
		for known := range 3 {
			for _, fenced := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d listen, %d are known, fenced %v", listening, known, fenced), func(t *testing.T) {
					c, old, next := newCaller(t, rdb), newField(), newField()
					c.mustHold(old)
					c.level(old, lease, 2, 7) // the number of its change goes with it
					c.fenced = fenced
					var heard []func() string
					for range listening {
						heard = append(heard, listen(t, rdb, c.keys.Channel(), false))
					}
					want, left, counter := Answer{Released: true, Receivers: listening}, map[string]string{}, int64(2)
					again, told := Answer{}, "0"
					if listening > known {
						want, left, told = Answer{Held: true}, map[string]string{next: "1"}, "the end"
						if fenced {
							want.Token, counter = 3, 3
						}
						again = want
					}
					if a := c.retain(old, next, known); a != want {
						t.Errorf("it says %+v, want %+v", a, want)
					}
					if a := c.retain(old, next, known); a != again {
						t.Errorf("a copy says %+v, want %+v", a, again)
					}
					c.hash(left)
					if s := mustTake(t, rdb, c.keys); s.counter != strconv.FormatInt(counter, 10) {
						t.Errorf("it left %v, want counter %d", s, counter)
					}
					rdb.Publish(t.Context(), c.keys.Channel(), "the end")
					for _, hear := range heard {
						if first := hear(); first != told {
							t.Errorf("the channel says %q, want %q", first, told)
						} else if first == "0" && hear() != "the end" {
							t.Error("the release is told twice")
						}
					}
				})
			}
		}
	}
}

// Others come and go between a command and its copy.
func TestP2_ACopyOfRetainDoesNotUndoTheFirst(t *testing.T) {
	rdb := redistest.New(t)
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprint("others listen at first: ", there), func(t *testing.T) {
			c, old, next := newCaller(t, rdb), newField(), newField()
			other := newOther(t, c)
			c.mustHold(old)
			mustListen(t, other, there)
			want := c.retain(old, next, 0)
			if want.Held != there || want.Released == there {
				t.Fatalf("it says %+v", want)
			}
			if want.Released {
				want = Answer{} // as of any release
			}
			before := mustTake(t, rdb, c.keys)
			for _, now := range []bool{!there, there} {
				mustListen(t, other, now)
				if a := c.retain(old, next, 0); a != want {
					t.Errorf("a copy, others listen: %v, says %+v, want %+v", now, a, want)
				}
				if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
					t.Errorf("a copy has left %v, before it there was %v", after, before)
				}
			}
		})
	}
}

func TestP2_ALateRetainDoesNotTouchTheNextHold(t *testing.T) {
	rdb := redistest.New(t)
	for name, next := range map[string]func(c caller, second, third string){
		"is free":         func(c caller, second, _ string) { c.unlock(second) },
		"is a stranger's": func(c caller, second, third string) { c.unlock(second); c.mustHold(third) },
		"was passed on":   func(c caller, second, third string) { c.mustGet(second, third); c.level(third, lease, 2, 1) },
		"was retained":    func(c caller, second, third string) { c.retain(second, third, others) },
	} {
		for _, known := range []int{0, others} { // at first, and of the copies
			t.Run(fmt.Sprintf("the lock %s, known %d", name, known), func(t *testing.T) {
				c, first, second, third := newCaller(t, rdb), newField(), newField(), newField()
				c.mustHold(first)
				if c.retain(first, second, known).Released {
					c.mustHold(second)
				}
				next(c, second, third)
				before := mustTake(t, rdb, c.keys)
				for _, known := range []int{0, others} {
					if a := c.retain(first, second, known); a != (Answer{}) {
						t.Errorf("the late copy, known %d, says %+v", known, a)
					}
				}
				if after := mustTake(t, rdb, c.keys); !after.sameHash(before) || before.pttl > 0 && after.pttl > before.pttl {
					t.Errorf("the late copies have left %v, before them there was %v", after, before)
				}
			})
		}
	}
}

// P15: what has had no answer is sent again in another form, and may come in any order.
func TestP15_RetainMeetsUnlockAndAcquireInAnyOrder(t *testing.T) {
	rdb := redistest.New(t)
	for _, known := range []int{0, others} {
		hold := func(t *testing.T) (c caller, first, second string) {
			c, first, second = newCaller(t, rdb), newField(), newField()
			c.mustHold(first)
			c.level(first, lease, 2, 7)
			return c, first, second
		}
		t.Run(fmt.Sprintf("unlock of the old comes first, known %d", known), func(t *testing.T) {
			c, first, second := hold(t)
			c.unlock(first)
			if a := c.retain(first, second, known); a != (Answer{}) {
				t.Errorf("retain says %+v", a)
			}
			c.hash(map[string]string{})
		})
		t.Run(fmt.Sprintf("acquire of the new comes first, known %d", known), func(t *testing.T) {
			c, first, second := hold(t)
			c.unlock(first)
			token := c.acquire(second, lease).Token
			if a := c.retain(first, second, known); a != (Answer{Held: true, Token: token}) {
				t.Errorf("the late retain says %+v, the acquire said token %d", a, token)
			}
			c.hash(map[string]string{second: "1"})
		})
		t.Run(fmt.Sprintf("unlock of the new comes first, known %d", known), func(t *testing.T) {
			c, first, second := hold(t)
			if c.unlock(second) {
				t.Error("it has released something")
			}
			a := c.retain(first, second, known)             // a ghost, or nothing
			if again := c.unlock(second); again != a.Held { // sent again (P3)
				t.Errorf("retain says %+v, the unlock that was sent again found something: %v", a, again)
			}
			c.hash(map[string]string{})
		})
		t.Run(fmt.Sprintf("the old hold is its own heir, known %d", known), func(t *testing.T) {
			c, first, _ := hold(t)
			before := mustTake(t, rdb, c.keys)
			if a := c.retain(first, first, known); !a.Held {
				t.Errorf("retain says %+v", a)
			}
			if after := mustTake(t, rdb, c.keys); !after.sameHash(before) {
				t.Errorf("it has left %v, before it there was %v", after, before)
			}
		})
	}
}

// P6 counts the lease from the attempt that was answered: so must Redis.
func TestP6_ARepeatedRetainExtends(t *testing.T) {
	rdb := redistest.New(t)
	c, first, second := newCaller(t, rdb), newField(), newField()
	c.acquire(first, time.Hour)
	c.retain(first, second, others)
	if s := c.inspect(second); s.TTL <= 0 || s.TTL > lease {
		t.Errorf("the lease of %v lasts %v", lease, s.TTL)
	}
	for _, known := range []int{0, others} {
		rdb.PExpire(t.Context(), c.keys.Lock, aged) // time passes until the repeat
		c.retain(first, second, known)
		if s := c.inspect(second); s.TTL < lease/2 {
			t.Errorf("%v are left of the lease after the repeat that was answered", s.TTL)
		}
		c.renew(second, time.Hour)
		c.retain(first, second, known)
		if s := c.inspect(second); s.TTL < time.Hour/2 {
			t.Errorf("a late copy has shortened the expiry to %v", s.TTL)
		}
	}
}

// A user who may not ask who listens releases, and is told that.
func TestP8_WithoutTheRightToAskWhoListensRetainReleases(t *testing.T) {
	server := redistest.Real(t)
	direct, limited := server.Client(), as(t, server, "no-pubsub", "~*", "&*", "+@all", "-pubsub")
	for name, do := range map[string]func(redis.UniversalClient, Op) outcome{
		"alone": func(rdb redis.UniversalClient, op Op) outcome {
			a, err := New(rdb).Do(t.Context(), op)
			return outcome{a, err}
		},
		"in a batch": func(rdb redis.UniversalClient, op Op) outcome {
			said := together(New(rdb), op, Acquire(newKeys(t), true, newField(), lease, 1))
			if said[1].err != nil || !said[1].Held {
				t.Errorf("its neighbour hears %+v", said[1])
			}
			return said[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, first, second, third := newCaller(t, direct), newField(), newField(), newField()
			mustListen(t, newOther(t, c), true)
			c.mustHold(first)
			if got := do(direct, Retain(c.keys, true, second, lease, first, 0)); got != (outcome{Answer: Answer{Held: true, Token: 2}}) {
				t.Fatalf("with the right it hears %+v", got)
			}
			if got := do(limited, Retain(c.keys, true, second, lease, first, 0)); got != (outcome{Answer: Answer{Held: true, Token: 2}}) {
				t.Errorf("a repeat hears %+v", got)
			}
			if got := do(limited, Retain(c.keys, true, third, lease, second, 0)); got != (outcome{Answer: Answer{Released: true, Receivers: 1}}) {
				t.Errorf("it hears %+v", got)
			}
			c.hash(map[string]string{})
		})
	}
}

// A user who may not release is told so, and nothing has changed.
func TestP14_ARetainThatMayNotRelease(t *testing.T) {
	server := redistest.Real(t)
	limited := New(as(t, server, "no-hdel", "~*", "&*", "+@all", "-hdel"))
	c, field := newCaller(t, server.Client()), newField()
	c.mustHold(field)
	op := Retain(c.keys, true, newField(), lease, field, 0)
	_, alone := limited.Do(t.Context(), op)
	said := together(limited, op, Acquire(newKeys(t), true, newField(), lease, 1))
	for _, err := range []error{alone, said[0].err} {
		judge(t, err, false, false)
		if words(err) == "" || !strings.Contains(err.Error(), "the Redis user needs") {
			t.Errorf("it hears %v", err)
		}
	}
	if said[1].err != nil || !said[1].Held {
		t.Errorf("its neighbour hears %+v", said[1])
	}
	c.hash(map[string]string{field: "1"})
}
