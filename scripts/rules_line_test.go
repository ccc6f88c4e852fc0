package scripts

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/linemodel"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The rules of the line that are the scripts' business.

// stand is a lock that clients wait for in a line, and what they are told.
type stand struct {
	caller
	direct *redis.Client // of a user who may do everything
	ear    *listener
}

// newStand makes a lock for the clients that are named, which listen; rdb is whose scripts are tried.
func newStand(t *testing.T, direct, rdb *redis.Client, clients ...string) *stand {
	t.Helper()
	s := &stand{caller: newCaller(t, rdb), direct: direct}
	var err error
	if s.ear, err = newListener(direct, s.keys); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.ear.Close() })
	s.listen(true, clients...)
	return s
}

// listen makes the clients listen, or not any more; "" stands for somebody on the lock's own channel.
func (s *stand) listen(begin bool, clients ...string) {
	s.Helper()
	for _, id := range clients {
		if err := s.ear.listen(s.TB.Context(), id, begin); err != nil {
			s.Fatal(err)
		}
	}
}

// wait is the acquire in turn of a new hold.
func (s *stand) wait(t Turn) Answer {
	s.Helper()
	return s.waits(newField(), t)
}

func (s *stand) waits(field string, t Turn) Answer {
	s.Helper()
	return s.do(Acquire(s.keys, true, field, lease).InTurn(t))
}

// enter makes a client enter for each ticket, in this order; the lock is held.
func (s *stand) enter(tickets ...string) {
	s.Helper()
	for i, ticket := range tickets {
		if a := s.wait(Turn{Ticket: ticket}); a.Held || a.Before != min(i, 2) {
			s.Fatalf("%s enters, and is told %+v", ticket, a)
		}
	}
}

// queue is a lock that is held by the hold that it returns, with the tickets in its line.
func (s *stand) queue(tickets ...string) (holder string) {
	s.Helper()
	holder = newField()
	s.mustHold(holder)
	s.enter(tickets...)
	return holder
}

func (s *stand) release(field, again string) Answer {
	s.Helper()
	return s.do(Unlock(s.keys, field, false).Calling(again, 0))
}

func (s *stand) leave(ticket string) Answer {
	s.Helper()
	return s.do(Leave(s.keys, ticket, false))
}

// free makes the lock expire, which nobody is told of.
func (s *stand) free() {
	s.Helper()
	if err := s.direct.Del(s.TB.Context(), s.keys.Lock).Err(); err != nil {
		s.Fatal(err)
	}
}

// hears fails the test unless this is what was said since the last time: client and message.
func (s *stand) hears(want ...string) {
	s.Helper()
	got, err := s.ear.heard(s.direct)
	if err != nil {
		s.Fatal(err)
	}
	if !slices.Equal(got, want) {
		s.Errorf("the clients hear %q, want %q", got, want)
	}
}

// age makes so much time pass for those who were asked for a sign of life.
func (s *stand) age(d time.Duration) {
	s.Helper()
	for _, x := range mustTake(s, s.direct, s.keys).line {
		if x.Score < 0 {
			locktest.NoError(s, s.direct.ZIncrBy(s.Context(), s.keys.Line, -2*float64(d.Milliseconds()), x.Ticket).Err())
		}
	}
}

// tickets fails the test unless these are in the line, which has an expiry then.
func (s *stand) tickets(want ...string) {
	s.Helper()
	got := mustTake(s, s.direct, s.keys)
	var names []string
	for _, x := range got.line {
		names = append(names, x.Ticket)
	}
	if !slices.Equal(names, want) {
		s.Errorf("in the line are %q, want %q", names, want)
	}
	if len(names) > 0 && got.linePTTL <= 0 {
		s.Errorf("the line's expiry is %d ms", got.linePTTL)
	}
}

// dead puts so many tickets into the line of clients that nobody listens for, in front of all others.
func (s *stand) dead(n int) {
	s.Helper()
	members := make([]redis.Z, n)
	for i := range members {
		members[i] = redis.Z{Score: float64(i + 1), Member: fmt.Sprintf("dead%d:1", i)}
	}
	for part := range slices.Chunk(members, 1000) {
		if err := s.direct.ZAdd(s.TB.Context(), s.keys.Line, part...).Err(); err != nil {
			s.Fatal(err)
		}
	}
	s.direct.Expire(s.TB.Context(), s.keys.Line, time.Hour)
}

func newLine(t *testing.T, clients ...string) *stand {
	t.Helper()
	rdb := redistest.New(t)
	return newStand(t, rdb, rdb, clients...)
}

// P18
func TestP18_ALateCopyOfLeaveTakesOutNoOtherStay(t *testing.T) {
	t.Run("naive: a client has one ticket", func(t *testing.T) {
		s := newLine(t, "a")
		s.queue("a:1")
		s.leave("a:1")
		s.enter("a:1")
		s.leave("a:1") // the copy
		s.tickets()
	})
	t.Run("ours: a stay has one", func(t *testing.T) {
		s := newLine(t, "a", "b")
		s.queue("a:1", "b:1")
		s.leave("a:1")
		s.wait(Turn{Ticket: "a:2"})
		s.hears("b n b:1")
		s.leave("a:1")
		s.tickets("b:1", "a:2")
		s.hears() // nobody: nothing has changed
	})
}

// P19
func TestP19_LeaveWithATicketThatIsNotThereCallsTheNext(t *testing.T) {
	s := newLine(t, "a", "b", "c")
	holder := s.queue("a:1", "b:1", "c:1")
	s.leave("a:1")
	s.hears("b n b:1", "c n c:1")
	s.leave("b:1")
	s.wait(Turn{Ticket: "b:1"}) // a late copy: a ghost, which b knows nothing of
	s.leave("c:1")
	s.wait(Turn{Ticket: "c:2"})
	s.tickets("b:1", "c:2")
	_, _ = s.ear.heard(s.direct)

	s.release(holder, "")
	s.hears("b c b:1 0", "c w c:2 b:1 1")
	s.leave("b:1") // what b answers
	s.hears("c c c:2 0")
	s.leave("b:1") // and once more: the lock is free, so it matters more that somebody is called than how often
	s.hears("c c c:2 0")
	if a := s.wait(Turn{Ticket: "c:2"}); !a.Held {
		t.Errorf("who was called is told %+v", a)
	}
	s.leave("b:1")
	s.hears() // the lock is held
	s.tickets()
}

// P21
func TestP21_ANewcomerIsLastWhateverTheClockSays(t *testing.T) {
	s := newLine(t, "a", "b", "c")
	before := serverTime(t, s.direct)
	s.queue()
	first := s.wait(Turn{Ticket: "a:1"})
	if after := serverTime(t, s.direct); first.Score < before || first.Score > after || first.Before != 0 {
		t.Errorf("the first is told %+v, between %d and %d", first, before, after)
	}
	ahead := time.Now().Add(time.Hour).UnixMicro() // the clock is set back by an hour
	if err := s.direct.ZAdd(t.Context(), s.keys.Line, redis.Z{Score: float64(ahead), Member: "a:1"}).Err(); err != nil {
		t.Fatal(err)
	}
	for i, ticket := range []string{"b:1", "c:1", "b:2", "c:2"} {
		if a := s.wait(Turn{Ticket: ticket}); a.Score != ahead+int64(i)+1 || a.Before != min(i+1, 2) {
			t.Errorf("%s is told %+v, want place %d", ticket, a, ahead+int64(i)+1)
		}
	}
	s.tickets("a:1", "b:1", "c:1", "b:2", "c:2")
	for i, ticket := range []string{"a:1", "b:1", "c:1", "b:2", "c:2"} { // a repeat says the same
		if a := s.wait(Turn{Ticket: ticket}); a.Score != ahead+int64(i) || a.Before != min(i, 2) {
			t.Errorf("%s is told again %+v, want place %d", ticket, a, ahead+int64(i))
		}
	}
}

// P22
func TestP22_WhoHadAPlaceHasItAgain(t *testing.T) {
	s := newLine(t, "a", "b", "c")
	s.queue()
	place := make(map[string]int64)
	for _, ticket := range []string{"a:1", "b:1"} {
		place[ticket] = s.wait(Turn{Ticket: ticket}).Score
	}
	s.direct.Del(t.Context(), s.keys.Line) // a failover that has lost it
	s.wait(Turn{Ticket: "c:1"})
	for i, had := range []string{"b:1", "a:1"} {
		ticket := strings.Replace(had, ":1", ":2", 1)
		if a := s.wait(Turn{Ticket: ticket, Score: place[had]}); a.Score != place[had] || a.Before != 0 {
			t.Errorf("%d: %s is told %+v, want place %d", i, ticket, a, place[had])
		}
	}
	s.tickets("a:2", "b:2", "c:1")
	if a := s.wait(Turn{Ticket: "c:1", Score: place["a:1"] - 1}); a.Before != 2 {
		t.Errorf("who is in the line goes to another place: %+v", a)
	}
	if a := s.wait(Turn{Ticket: "d:1", Score: place["a:1"] * 2}); a.Before != 2 || a.Score >= place["a:1"]*2 {
		t.Errorf("a place behind the end of the line is %+v", a)
	}
	s.tickets("a:2", "b:2", "c:1", "d:1")
}

// P23, with as many dead ones before the first as there are places in the parts in which the line is read.
func TestP23_TheSecondIsToldToWatch(t *testing.T) {
	for _, dead := range []int{0, 1, 2, 3, 8, 9, 10, 41, 42} {
		s := newLine(t, "a", "b", "c")
		holder := s.queue("a:1", "b:1", "c:1")
		s.dead(dead)
		if a := s.release(holder, ""); !a.Held || a.More {
			t.Fatalf("%d are dead: the release says %+v", dead, a)
		}
		s.hears("a c a:1 0", "b w b:1 a:1 1")
		s.tickets("a:1", "b:1", "c:1")
	}
	s := newLine(t, "a")
	s.release(s.queue("a:1"), "") // who is alone is watched by nobody
	s.hears("a c a:1 0")
}

// How many strangers, who are in no line, were told is told to the one who is called.
func TestP27_WhoIsCalledIsToldOfStrangers(t *testing.T) {
	s := newLine(t, "a", "b", "")
	holder := withTurn("x", 3, true)
	s.mustHold(holder)
	s.enter("a:1", "b:1")
	if a := s.release(holder, ""); a.Receivers != 1 {
		t.Errorf("the release says %+v", a)
	}
	s.hears(" 0", "a c a:1 1", "b w b:1 a:1 1")

	for _, x := range []struct {
		holder string
		heard  string
	}{
		{withTurn("x", 3, true), " 0|a c a:1 0|b w b:1 a:1 1"}, // the one who listens is the client that releases
		{withTurn("a", 3, true), " 0|a c a:1 1|b w b:1 a:1 1"}, // and who takes it itself for none of the others
	} {
		s.mustHold(x.holder)
		s.do(Unlock(s.keys, x.holder, false).Calling("", 1))
		s.hears(strings.Split(x.heard, "|")...)
	}
	s.listen(false, "") // meanwhile the server has lost that connection
	s.mustHold(holder)
	s.do(Unlock(s.keys, holder, false).Calling("", 1))
	s.hears("a c a:1 0", "b w b:1 a:1 1")
}

// withTurn is a field of the client's for a hold that is released while n-1 clients are in the line: it is the turn of those in no line,
// or it is not.
func withTurn(client string, n int, turn bool) string {
	for i := 100; ; i++ {
		if field := fmt.Sprint(client, ":", i); (linemodel.Choice(field, n) == 0) == turn {
			return field
		}
	}
}

// P37: a release is for those in no line 1 in the number of clients in the line and one more, and otherwise for the line alone.
func TestP37_StrangersHaveTurnsToo(t *testing.T) {
	s := newLine(t, "a", "b", "c", "")
	s.queue("a:1", "b:1", "c:1")
	s.free()
	turns := 0
	for i := range 400 {
		field := fmt.Sprint("x:", i)
		s.mustHold(field)
		if a := s.release(field, ""); a.Receivers == 1 {
			turns++
			s.hears(" 0", "a c a:1 1", "b w b:1 a:1 1")
		} else {
			s.hears("a c a:1 0", "b w b:1 a:1 1")
		}
	}
	if turns < 70 || turns > 130 {
		t.Errorf("beside 3 clients in the line those in no line had %d turns of 400", turns)
	}
}

// P37: a release that no client in the line hears of is told to those in no line, and so is one that calls the only client there, and
// one by force, of which the holder must hear.
func TestP37_NobodyIsLeftAsleep(t *testing.T) {
	field := withTurn("x", 3, false)
	t.Run("the line is dead", func(t *testing.T) {
		s := newLine(t, "")
		s.mustHold(field)
		s.dead(2)
		s.release(field, "")
		s.hears(" 0")
		s.tickets()
	})
	t.Run("one client", func(t *testing.T) {
		s := newLine(t, "a", "")
		field := withTurn("x", 2, false)
		s.mustHold(field)
		s.enter("a:1")
		s.release(field, "")
		s.hears(" 0", "a c a:1 1")
	})
	t.Run("by force", func(t *testing.T) {
		s := newLine(t, "a", "b", "")
		s.mustHold(field)
		s.enter("a:1", "b:1")
		s.do(Unlock(s.keys, field, false).Calling("", NotTheHolder))
		s.hears(" 0", "a c a:1 1", "b w b:1 a:1 1")
	})
	t.Run("all leave", func(t *testing.T) {
		s := newLine(t, "a", "b", "")
		s.mustHold(field)
		s.enter("a:1", "b:1")
		s.release(field, "")
		s.hears("a c a:1 0", "b w b:1 a:1 1")
		s.leave("a:1")
		s.hears("b c b:1 0")
		s.leave("b:1")
		s.hears(" 0")
	})
}

// P24
func TestP24_OnlyTheNamedFirstOfAFreeLockIsDropped(t *testing.T) {
	look := func(ticket, stale string) Turn { return Turn{Ticket: ticket, Look: true, Stale: stale} }
	t.Run("held", func(t *testing.T) {
		s := newLine(t, "a", "b")
		s.queue("a:1", "b:1")
		s.wait(look("b:1", "a:1"))
		s.tickets("a:1", "b:1")
		s.hears()
	})
	t.Run("the second", func(t *testing.T) {
		s := newLine(t, "a", "b", "c")
		s.queue("a:1", "b:1", "c:1")
		s.free()
		if a := s.wait(look("c:1", "b:1")); a.Held || a.Head != "a:1" || a.TTL != NoKey {
			t.Errorf("the third is told %+v", a)
		}
		s.tickets("a:1", "b:1", "c:1")
		s.hears("a s a:1", "b s b:1")
	})
	t.Run("the first", func(t *testing.T) {
		s := newLine(t, "a", "b", "c")
		s.queue("a:1", "b:1", "c:1")
		s.free()
		if a := s.wait(look("c:1", "a:1")); a.Held || a.Head != "b:1" || a.Before != 1 {
			t.Errorf("the third is told %+v", a)
		}
		s.tickets("b:1", "c:1")
		s.hears("a d a:1", "b s b:1")
		if a := s.wait(look("c:1", "b:1")); !a.Held {
			t.Errorf("the last one is told %+v", a)
		}
		s.hears("b d b:1")
		s.tickets()
	})
	t.Run("oneself", func(t *testing.T) {
		s := newLine(t, "a", "b")
		s.queue("a:1", "b:1")
		s.free()
		if a := s.wait(look("a:1", "a:1")); !a.Held {
			t.Errorf("the first is told %+v", a)
		}
		s.hears("b n b:1") // who took the lock by a look tells who is near
		s.tickets("b:1")
	})
	t.Run("where nobody may be taken out, the second goes without the line", func(t *testing.T) {
		server := redistest.Real(t)
		s := newStand(t, server.Client(), as(t, server, "no-zrem", "~*", "&*", "+@all", "-zrem"), "a", "b")
		s.queue("a:1", "b:1")
		s.free()
		if a := s.wait(look("b:1", "a:1")); !a.Held || a.Outside == 0 {
			t.Errorf("the second is told %+v", a)
		}
		s.hears()
		s.tickets("a:1", "b:1")
	})
}

// P28
func TestP28_AGhostKeepsNoFreeLock(t *testing.T) {
	s := newLine(t, "a", "b")
	s.queue("a:1")
	s.free()
	if a := s.wait(Turn{}); a.Held || a.TTL != NoKey || a.Head != "a:1" || a.Before != NotInLine {
		t.Errorf("a newcomer is told %+v", a)
	}
	s.hears("a s a:1")
	if a := s.wait(Turn{Ticket: "b:1"}); a.Held || a.Before != 1 {
		t.Errorf("a newcomer is told %+v", a)
	}
	if a := s.wait(Turn{}); a.Held || a.Head != "a:1" {
		t.Errorf("a newcomer is told %+v", a)
	}
	s.hears() // it has time left

	s.listen(false, "a")
	s.leave("b:1")
	s.tickets()
	s.queue("a:2") // which nobody listens for
	s.free()
	if a := s.wait(Turn{}); !a.Held {
		t.Errorf("who does not wait is told %+v", a)
	}
	s.hears()
	s.tickets()
}

// reach is how many dead clients are passed by one script.
const reach = 2 + 8 + 32 + 128 + 512

// P29
func TestP29_PassingTheDeadIsBounded(t *testing.T) {
	count := func(s *stand) int { return int(s.direct.ZCard(t.Context(), s.keys.Line).Val()) }
	t.Run("a release, and leave", func(t *testing.T) {
		for _, dead := range []int{reach - 1, reach, reach + 1, 3000} {
			s := newLine(t, "a", "b")
			holder := s.queue("a:1", "b:1")
			s.dead(dead)
			more := s.release(holder, "").More
			watch := "b w b:1 a:1 1"
			if more {
				watch = "b w b:1 a:1" // another script goes on
			}
			left := dead + 2
			for n := 1; more; n++ {
				if got := count(s); got != left-reach {
					t.Fatalf("%d are dead: %d of %d are in the line after script %d", dead, got, left, n)
				}
				left -= reach
				s.hears()
				more = s.leave("").More
			}
			if want := dead + 2 - dead/reach*reach; left != want {
				t.Errorf("%d are dead: the last script met %d, want %d", dead, left, want)
			}
			s.hears("a c a:1 0", watch)
			s.tickets("a:1", "b:1")
		}
	})
	t.Run("nobody else", func(t *testing.T) {
		s := newLine(t)
		holder := s.queue()
		s.dead(reach)
		if a := s.release(holder, ""); !a.Held || !a.More {
			t.Errorf("the release says %+v", a)
		}
		if a := s.leave(""); a.More {
			t.Errorf("leave says %+v", a)
		}
		s.tickets()
	})
	t.Run("a look", func(t *testing.T) {
		s := newLine(t, "a", "b")
		s.queue("a:1", "b:1")
		s.free()
		const asked = 86 * 8
		s.dead(2 * asked)
		for n := range 2 {
			a := s.wait(Turn{Ticket: "b:1", Look: true})
			if got := count(s); a.Held || got != (1-n)*asked+2 {
				t.Fatalf("look %d says %+v, %d are in the line", n, a, got)
			}
			s.hears()
		}
		if a := s.wait(Turn{Ticket: "b:1", Look: true}); a.Held || a.Head != "a:1" {
			t.Errorf("the last look says %+v", a)
		}
		s.hears("a s a:1")
	})
	t.Run("in company", func(t *testing.T) {
		s, other := newLine(t, "a"), newKeys(t)
		holder := s.queue("a:1")
		s.dead(reach + 1)
		said := together(s.Scripts, Unlock(s.keys, holder, false).Calling("", 0), Acquire(other, true, newField(), lease),
			Leave(s.keys, "", false))
		if !said[0].More || !said[1].Held || said[2].More || said[0].err != nil || said[2].err != nil {
			t.Errorf("they hear %+v", said)
		}
		s.hears("a c a:1 0")
		s.tickets("a:1")
	})
}

// P30: a user without the right to the key of the line.
func TestP30_WithoutTheRightToTheLine(t *testing.T) {
	server := redistest.Real(t)
	limited := as(t, server, "no-line", "~lock-*", "~redisson_lock_token:*", "&*", "+@all")
	ops := func(s *stand, holder string) []Op {
		free := newStand(t, server.Client(), limited)
		return []Op{
			Acquire(s.keys, true, newField(), lease).InTurn(Turn{Ticket: "a:1", Look: true, Stale: "b:1", Score: 7}),
			Acquire(free.keys, true, newField(), lease).InTurn(Turn{Ticket: "a:1"}).WithFloor(time.Hour),
			Unlock(s.keys, holder, false).Calling("a:2", 0),
			Leave(s.keys, "a:1", false),
		}
	}
	check := func(s *stand, said []outcome) {
		s.Helper()
		for i, o := range said {
			if i == 3 {
				if o.err == nil || !redis.HasErrorPrefix(o.err, "NOPERM") || Unanswered(o.err) || Passing(o.err) {
					s.Errorf("leave hears %+v", o)
				}
				continue
			}
			if o.err != nil || o.Outside == 0 || o.Held != (i > 0) || o.Score != 0 || i == 0 && (o.Before != NotInLine || o.TTL <= 0) {
				s.Errorf("op %d hears %+v", i, o)
			}
		}
		if said[1].Token < time.Now().Add(-time.Hour).UnixMicro() {
			s.Errorf("a token with a floor is %d", said[1].Token)
		}
		mustHash(s, s.direct, s.keys, nil)
		s.tickets()
	}
	t.Run("alone", func(t *testing.T) {
		s, holder := newStand(t, server.Client(), limited), newField()
		s.mustHold(holder)
		var said []outcome
		for _, op := range ops(s, holder) {
			a, err := s.Do(t.Context(), op)
			said = append(said, outcome{a, err})
		}
		check(s, said)
	})
	t.Run("in company", func(t *testing.T) {
		s, holder := newStand(t, server.Client(), limited), newField()
		s.mustHold(holder)
		check(s, together(s.Scripts, ops(s, holder)...))
	})
	t.Run("sent at once", func(t *testing.T) {
		s := newStand(t, server.Client(), limited)
		var all []*passenger
		for range 50 {
			all = append(all, send(s.Scripts, Acquire(newKeys(t), true, newField(), lease).InTurn(Turn{Ticket: "a:1"})))
		}
		for i, x := range all {
			if got := <-x.heard; got.err != nil || !got.Held || got.Outside == 0 {
				t.Errorf("op %d hears %+v", i, got)
			}
		}
	})
	t.Run("confirmed", func(t *testing.T) {
		site := redistest.Replicated(t, 1)
		rdb := as(t, site.Master, "no-line", "~lock-*", "~redisson_lock_token:*", "&*", "+@all")
		s := newStand(t, site.Master.Client(), rdb)
		s.Confirm(Confirmation{Replicas: 1, Timeout: 10 * time.Second})
		one := Acquire(s.keys, true, newField(), lease).InTurn(Turn{Ticket: "a:1"})
		if a, err := s.Do(t.Context(), one); err != nil || !a.Held || a.Outside == 0 {
			t.Errorf("alone it hears %+v, %v", a, err)
		}
		for i, o := range together(s.Scripts, one, Acquire(newKeys(t), true, newField(), lease).InTurn(Turn{Ticket: "a:1"})) {
			if o.err != nil || !o.Held || o.Outside == 0 {
				t.Errorf("in company op %d hears %+v", i, o)
			}
		}
	})
}

// P30: a user with the right to the key of the line, and not to the clients' channels, or not to its commands.
func TestP30_WithoutTheRightToTheCalls(t *testing.T) {
	server := redistest.Real(t)
	mayNotEnter := map[string]bool{"nothing of a line": true, "nobody enters": true}
	for name, rights := range map[string][]any{
		"no channel":             {"resetchannels"},
		"the lock's own channel": {"resetchannels", "&redisson_lock__channel:*"},
		"nothing of a line":      {"&*", "-@sortedset"},
		"nobody enters":          {"&*", "-zadd"},
		"nobody is taken out":    {"&*", "-zrem"},
	} {
		t.Run(name, func(t *testing.T) {
			limited := as(t, server, strings.ReplaceAll(name, " ", "-"), append([]any{"~*", "+@all"}, rights...)...)
			s := newStand(t, server.Client(), limited, "a", "")
			full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
			inLine := 4 // with f:1 and c:1
			if mayNotEnter[name] {
				inLine = 2
			}
			holder := withTurn("x", inLine+1, true)
			full.mustHold(holder)
			full.enter("a:1", "b:1")
			if a := s.wait(Turn{Ticket: "f:1"}); a.Held || a.TTL <= 0 || (a.Before == NotInLine) != mayNotEnter[name] {
				t.Errorf("who waits is told %+v", a)
			}
			told := 1
			if name == "no channel" {
				told = 0
			}
			a, err := s.Do(t.Context(), Unlock(s.keys, holder, false).Calling("c:1", 0))
			if err != nil || !a.Held || a.Receivers != told || a.Untold != (told == 0) {
				t.Fatalf("the release says %+v, %v", a, err)
			}
			mustHash(t, s.direct, s.keys, nil)

			field := newField()
			a = s.waits(field, Turn{Ticket: "d:1", Look: true}) // nobody can be called, or it is another's turn
			if !a.Held && (name == "no channel" || name == "the lock's own channel" || name == "nothing of a line") {
				t.Errorf("a look of a free lock says %+v", a)
			}
			if !a.Held {
				return
			}
			if a := s.waits(newField(), Turn{Ticket: "e:1"}); a.Held || a.TTL <= 0 {
				t.Errorf("another one is told %+v", a)
			}
			if a := s.release(field, ""); !a.Held {
				t.Errorf("the second release says %+v", a)
			}
		})
	}
	// Who was in the line and takes the lock is out of it, also where nobody can be called.
	s := newStand(t, server.Client(), as(t, server, "mute-line", "~*", "+@all", "resetchannels"), "a")
	s.queue("a:1", "b:1")
	s.free()
	if a := s.wait(Turn{Ticket: "b:1", Look: true}); !a.Held {
		t.Errorf("the second is told %+v", a)
	}
	s.tickets("a:1")
}

// P7, for the line: a user who may not make it expire does not begin one.
func TestP7_NoLineWithoutExpiry(t *testing.T) {
	server := redistest.Real(t)
	limited := as(t, server, "no-pexpire", "~*", "&*", "+@all", "-pexpire")
	s := newStand(t, server.Client(), limited, "a")
	full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
	full.queue()
	if a := s.wait(Turn{Ticket: "a:1"}); a.Held || a.TTL <= 0 || a.Before != NotInLine {
		t.Errorf("who would be the first is told %+v", a)
	}
	s.tickets()
	full.enter("b:1")
	if a := s.wait(Turn{Ticket: "a:1", Unproven: true}); a.Held || a.TTL <= 0 || a.Before != NotInLine || a.Outside != Forbidden { // P30
		t.Errorf("who would be the second is told %+v", a)
	}
	s.tickets("b:1")
}

// P33: a client that the server does not count among those who listen does not enter, nor stay, also where the lock is free and others are before it.
func TestP33_WhoIsNotCounted(t *testing.T) {
	s := newLine(t, "a")
	holder := s.queue("b:1")
	for _, c := range []struct {
		ticket string
		counts bool
	}{{"a:1", true}, {"b:1", false}, {"c:1", false}} {
		for range 2 { // a repeat
			a := s.wait(Turn{Ticket: c.ticket, Unproven: true})
			if a.Held || a.TTL <= 0 || (a.Before != NotInLine) != c.counts || (a.Outside == Uncounted) == c.counts {
				t.Errorf("%s is told %+v", c.ticket, a)
			}
		}
	}
	s.tickets("a:1")
	s.do(Unlock(s.keys, holder, false))
	if a := s.wait(Turn{Ticket: "c:2", Unproven: true}); a.Held || a.TTL != NoKey || a.Outside != Uncounted { // a late copy must not come before a
		t.Errorf("who asks for the free lock is told %+v", a)
	}
	if a := s.do(Acquire(s.keys, true, newField(), lease)); !a.Held {
		t.Errorf("who asks for it without the line is told %+v", a)
	}
}

// P31
func TestP31_WhoLeavesAHeldLocksLineIsMissedByTheFirstTwo(t *testing.T) {
	s := newLine(t, "a", "b", "c", "d")
	s.queue("a:1", "b:1", "c:1", "d:1")
	for _, step := range []struct {
		ticket string
		heard  []string
	}{
		{"a:1", []string{"b n b:1", "c n c:1"}},
		{"a:1", nil}, // a copy
		{"c:1", []string{"b n b:1", "d n d:1"}},
		{"b:1", []string{"d n d:1"}},
		{"d:1", nil},
	} {
		s.leave(step.ticket)
		s.hears(step.heard...)
	}
	s.tickets()
	if n := s.direct.Exists(t.Context(), s.keys.Line).Val(); n != 0 {
		t.Error("an empty line has a key")
	}
}

// P36: the release of a hold that took the lock while nobody was in the line calls those who have entered since.
func TestP36_NewcomersAreCalled(t *testing.T) {
	s := newLine(t, "a", "b", "")
	quick := func(field string) Answer { return s.do(Unlock(s.keys, field, false).CallingNewcomers()) }
	nobody, entered, reentered := newField(), withTurn("x", 3, true), newField()

	s.mustHold(nobody)
	s.wait(Turn{}) // does not enter
	mustHash(t, s.direct, s.keys, map[string]string{nobody: "1"})
	if a := quick(nobody); !a.Held || a.Receivers != 1 {
		t.Errorf("the release says %+v", a)
	}
	s.hears(" 0")

	s.mustHold(entered)
	s.enter("a:1", "b:1")
	mustHash(t, s.direct, s.keys, map[string]string{entered: "1", entered + "#": "0"})
	if a := quick(entered); !a.Held || a.Receivers != 1 {
		t.Errorf("the release says %+v", a)
	}
	if a := quick(entered); a.Held {
		t.Errorf("a copy says %+v", a)
	}
	s.hears(" 0", "a c a:1 1", "b w b:1 a:1 1", "a c a:1 0", "b w b:1 a:1")
	mustHash(t, s.direct, s.keys, nil)

	// A change of the count has the same field.
	s.waits(reentered, Turn{Ticket: "a:1"})
	s.do(Level(s.keys, true, reentered, lease, 2, 1))
	s.wait(Turn{Ticket: "b:1"})
	mustHash(t, s.direct, s.keys, map[string]string{reentered: "2", reentered + "#": "1"})
	quick(reentered)
	s.hears(" 0", "b c b:1 1")
}

// P36: who cannot tell the hold that it has entered does not enter.
func TestP36_WhoMayNotWriteTheLock(t *testing.T) {
	server := redistest.Real(t)
	limited := as(t, server, "no-hincrby", "~*", "&*", "+@all", "-hincrby")
	s := newStand(t, server.Client(), limited)
	full := &stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys, fenced: true}, direct: s.direct}
	holder := full.queue()
	if a := s.wait(Turn{Ticket: "a:1"}); a.Held || a.TTL <= 0 || a.Before != NotInLine {
		t.Errorf("who waits is told %+v", a)
	}
	full.tickets()
	full.enter("b:1")
	if a := s.wait(Turn{Ticket: "a:1"}); a.Held || a.Before != 1 {
		t.Errorf("who waits behind another is told %+v", a)
	}
	full.tickets("b:1", "a:1")
	mustHash(t, s.direct, s.keys, map[string]string{holder: "1", holder + "#": "0"})
}

// P34
func TestP34_NoTwoLocksShareALine(t *testing.T) {
	seed, _ := firstSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	all := []string{"a", "{a}", "a:b", "{a}:b", "fencelock_line:{a}", "{"}
	for _, n := range namesOfP16 {
		all = append(all, n.name)
	}
	for range 2000 {
		all = append(all, randomName(rng))
	}
	owner := map[string]string{}
	for _, name := range all {
		k := KeysOf(name)
		calls := k.Calls("0123-45")
		for _, text := range []string{k.Line, calls} {
			if other, is := owner[text]; is && other != name {
				t.Errorf("seed %d: %q is of the locks %q and %q", seed, text, other, name)
			}
			owner[text] = name
		}
		if k.CheckCluster() == nil && (slot(k.Line) != k.Slot || slot(calls) != k.Slot) {
			t.Errorf("seed %d: %q, its line and its calls are in the slots %d, %d and %d", seed, name, k.Slot, slot(k.Line), slot(calls))
		}
	}

	// The lines of "a" and "{a}" know nothing of each other, although these two have one counter and one channel.
	rdb := redistest.New(t)
	plain, braces := newStand(t, rdb, rdb), newStand(t, rdb, rdb)
	braces.keys = KeysOf("{" + plain.keys.Lock + "}")
	holder := plain.queue("a:1")
	other := newField()
	if a := braces.waits(other, Turn{Ticket: "b:1"}); !a.Held {
		t.Errorf("the other lock says %+v", a)
	}
	braces.release(other, "b:2")
	plain.tickets("a:1")
	plain.release(holder, "")
	plain.tickets()
}

// P32: a line in which nobody moves does not expire as long as somebody looks.
func TestP32_ALookRenewsTheLine(t *testing.T) {
	s := newLine(t, "a", "b")
	s.queue("a:1", "b:1")
	age := func() {
		t.Helper()
		if err := s.direct.PExpire(t.Context(), s.keys.Line, aged).Err(); err != nil {
			t.Fatal(err)
		}
	}
	renewed := func(what string) {
		t.Helper()
		if left := s.direct.PTTL(t.Context(), s.keys.Line).Val(); left <= aged || left > 10*time.Minute {
			t.Errorf("after %s the line lives for %v", what, left)
		}
	}
	renewed("the first")
	age()
	s.wait(Turn{Ticket: "b:1", Look: true})
	renewed("a look of a held lock")
	age()
	s.free()
	s.wait(Turn{Ticket: "b:1", Look: true})
	renewed("a look of a free lock")
	age()
	s.wait(Turn{Ticket: "c:1", Score: 17})
	renewed("an old place")
	age()
	for i := range 16 {
		s.wait(Turn{Ticket: fmt.Sprintf("d:%d", i)})
	}
	renewed("sixteen newcomers")
}

// P24: the second that is told that it is the first one's turn has called that one: it may take it out a while later.
func TestP24_TheSecondHasCalledTheFirst(t *testing.T) {
	s := newLine(t, "a", "b", "c")
	s.queue("a:1", "b:1", "c:1")
	s.free()
	if a := s.wait(Turn{Ticket: "c:1"}); a.Held || a.TTL != NoKey || a.Before != 2 {
		t.Errorf("the third is told %+v", a)
	}
	s.hears()
	if a := s.wait(Turn{Ticket: "b:1"}); a.Held || a.TTL != NoKey || a.Before != 1 || a.Head != "a:1" {
		t.Errorf("the second is told %+v", a)
	}
	s.hears("a s a:1")
}

// P22: who comes back to its old place, and is the first again, takes a free lock, and does not wait for the one that has been
// called meanwhile.
func TestP22_TheFirstComesBack(t *testing.T) {
	s := newLine(t, "b", "c")
	holder := s.queue("a:1", "b:1", "c:1")
	place := mustTake(s, s.direct, s.keys).line[0].Score
	s.release(holder, "")
	s.hears("b c b:1 0", "c w c:1 b:1 1") // nobody listens for a
	s.listen(true, "a")
	s.tickets("b:1", "c:1")
	if a := s.wait(Turn{Ticket: "a:1", Score: place}); !a.Held {
		t.Errorf("it is told %+v", a)
	}
	if a := s.wait(Turn{Ticket: "b:1"}); a.Held || a.TTL <= 0 || a.Before != 0 {
		t.Errorf("the one that was called is told %+v", a)
	}
	s.tickets("b:1", "c:1")
}

// P35
func TestP35_AReleaseThatEntersAndItsCopies(t *testing.T) {
	s := newLine(t, "a", "b")
	holder := s.queue("b:1")
	place := s.release(holder, "a:1").Score
	s.hears("b c b:1 0", "a w a:1 b:1 1")
	if a := s.wait(Turn{Ticket: "a:1"}); a.Held || a.Score != place || a.Before != 1 { // as if no answer had come
		t.Errorf("the ordinary acquire with the same ticket says %+v, the release said place %d", a, place)
	}
	s.tickets("b:1", "a:1")
	s.hears("b s b:1") // the second makes sure of it
	if a := s.release(holder, "a:1"); a != (Answer{}) {
		t.Errorf("a copy says %+v", a)
	}
	s.hears("b c b:1 0", "a w a:1 b:1") // the lock is free: it calls, and does not enter
	other := newField()
	s.mustHold(other)
	s.release(holder, "a:2")
	s.hears()
	s.do(Unlock(s.keys, other, false))
	s.leave("a:1")
	s.leave("b:1")
	_, _ = s.ear.heard(s.direct)
	s.release(holder, "a:1")
	s.hears()
	s.tickets()

	if a := s.release(newField(), "a:2"); a != (Answer{}) { // of a hold that is gone: its client enters by an acquire
		t.Errorf("a release that finds nothing says %+v", a)
	}
	s.tickets()
}

// P8, for the line. Who waits may enter it: the server lets a script write that has begun to.
func TestP8_OutOfMemoryStopsNoReleaseThatCalls(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	s := newStand(t, rdb, rdb, "a", "b")
	holder := s.queue("a:1")
	if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	a := s.wait(Turn{Ticket: "b:1"})
	if a.Held || a.TTL <= 0 || a.Before != 1 {
		t.Errorf("who waits is told %+v", a)
	}
	if a := s.release(holder, "c:1"); !a.Held {
		t.Errorf("the release says %+v", a)
	}
	if heard, err := s.ear.heard(rdb); err != nil || !slices.Contains(heard, "a c a:1 0") {
		t.Errorf("the clients hear %q, %v", heard, err)
	}
	for _, turn := range []Turn{{Ticket: "a:1"}, {Ticket: "a:1", Look: true}} {
		if _, err := s.Do(t.Context(), Acquire(s.keys, true, newField(), lease).InTurn(turn)); err == nil || !strings.Contains(err.Error(), "OOM ") || Unanswered(err) {
			t.Errorf("who was called is told %v", err)
		}
	}
	if n := s.direct.ZScore(t.Context(), s.keys.Line, "a:1").Err(); n != nil {
		t.Error("who could not take the lock has lost its place")
	}
	for _, ticket := range []string{"a:1", "b:1", "c:1", ""} {
		s.leave(ticket)
	}
	s.tickets()
}

// P14, for the line: somebody else's data in its place stops no acquire and no release.
func TestP14_AnotherTypeInPlaceOfTheLine(t *testing.T) {
	rdb := redistest.New(t)
	s := newStand(t, rdb, rdb)
	if err := rdb.Set(t.Context(), s.keys.Line, "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, turn := range []Turn{{}, {Ticket: "a:1"}, {Ticket: "a:1", Look: true, Stale: "b:1", Score: 5}} {
		field := newField()
		if a := s.waits(field, turn); !a.Held {
			t.Errorf("%+v of a free lock says %+v", turn, a)
		}
		if a := s.waits(field, turn); !a.Held {
			t.Errorf("its repeat says %+v", a)
		}
		if a := s.wait(turn); a.Held || a.TTL <= 0 || a.Before != NotInLine || a.Score != 0 {
			t.Errorf("%+v of a held lock says %+v", turn, a)
		}
		if a := s.release(field, turn.Ticket); !a.Held || a.Score != 0 || a.More {
			t.Errorf("the release says %+v", a)
		}
		if left := mustLock(t, s.caller); len(left) > 0 {
			t.Errorf("the release has left %v", left)
		}
	}
	_, err := s.Do(t.Context(), Leave(s.keys, "a:1", false))
	if judge(t, err, false, false); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("leave says %v", err)
	}
	if v := rdb.Get(t.Context(), s.keys.Line).Val(); v != "x" {
		t.Errorf("the other data is now %q", v)
	}
}

// A replica gives no answer about a line either: not that it is another's turn, nor that nobody is in it.
func TestP8_AReplicaGivesNoAnswerAboutTheLine(t *testing.T) {
	master := redistest.Real(t, "--repl-diskless-sync-delay", "0")
	_, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Real(t, "--replicaof", "127.0.0.1", port)
	rdb := replica.Client(func(o *redis.Options) { o.MaxRetries = -1 })

	held := newStand(t, master.Client(), master.Client())
	holder := held.queue("a:1", "b:1")
	free := newStand(t, master.Client(), master.Client(), "a")
	free.queue("a:1", "b:1")
	name := newKeys(t).Lock
	read, write := ReadWriteOf(name, Reads), ReadWriteOf(name, Writes)
	onMaster := New(master.Client())
	for _, op := range []Op{
		Acquire(write, true, "x:1:write", lease), Acquire(read, true, "x:2", lease).InTurn(Turn{Ticket: "ar:1"}), Acquire(read, true, "x:3", lease).InTurn(Turn{Ticket: "br:1"}),
	} {
		_, err := onMaster.Do(t.Context(), op)
		locktest.NoError(t, err)
	}
	locktest.NoError(t, master.Client().Del(t.Context(), name).Err())
	free.free()
	want := mustTake(t, master.Client(), free.keys)
	redistest.Eventually(t, 20*time.Second, func() bool {
		s, err := take(rdb, free.keys)
		return err == nil && s.sameHash(want) && slices.Equal(s.line, want.line)
	}, "the replica has the lines")

	empty := newKeys(t)
	turns := []Turn{{}, {Ticket: "a:1"}, {Ticket: "b:1"}, {Ticket: "c:1"}, {Ticket: "b:1", Look: true}, {Ticket: "b:1", Look: true, Stale: "a:1"}}
	var ops []Op
	for _, keys := range []*Keys{held.keys, free.keys, empty} {
		for _, turn := range turns {
			ops = append(ops, Acquire(keys, true, newField(), lease).InTurn(turn), Acquire(keys, false, newField(), lease).InTurn(turn),
				Acquire(keys, true, holder, lease).InTurn(turn))
		}
		ops = append(ops, Unlock(keys, holder, false).Calling("", 0), Unlock(keys, holder, false).Calling("c:1", 0),
			Unlock(keys, newField(), false).Calling("c:1", 0), Leave(keys, "a:1", false), Leave(keys, "", false), Leave(keys, "x:1", false))
	}
	ops = append(ops, Acquire(read, true, "x:3", lease).InTurn(Turn{Ticket: "br:1", Look: true}), Acquire(read, true, "x:3", lease).InTurn(Turn{Ticket: "br:1", Look: true, Stale: "ar:1"}))
	scripts := New(rdb)
	readOnly := func(what string, op *Op, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "READONLY") || !Passing(err) || Unanswered(err) {
			t.Errorf("%s: %v %v says %v", what, op.kind.names[0], op.appendArgs(nil), err)
		}
	}
	listener, err := newListener(rdb, free.keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := listener.listen(context.Background(), "a", true); err != nil {
		t.Fatal(err)
	}
	locktest.NoError(t, listener.change(t.Context(), listener.Subscribe, read.Calls("a")))
	for i := range ops {
		_, err := scripts.Do(t.Context(), ops[i])
		readOnly("alone", &ops[i], err)
	}
	for i, o := range together(scripts, ops...) {
		readOnly("in company", &ops[i], o.err)
	}
	heard, err := listener.heard(rdb)
	if err != nil || len(heard) > 0 {
		t.Errorf("a replica has told %q, %v: it calls nobody, and drops nobody", heard, err)
	}
}
