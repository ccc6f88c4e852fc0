package scripts

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// homeStand is the home of a lock of a quorum: the server that has the lock's line.
type homeStand struct {
	*stand
	ask func(Op) Answer // alone or in company
}

// homeWays are a lock's home that is asked with each op alone, and one that is asked in company. The clients that are named listen.
func homeWays(t *testing.T, test func(h *homeStand), clients ...string) {
	t.Helper()
	nodeWays(t, func(t *testing.T, rdb *redis.Client, _ caller, do func(Op) Answer) {
		test(&homeStand{newStand(t, rdb, rdb, clients...), do})
	})
}

// has fails the test unless the lock's hash is exactly this.
func (s *stand) has(want map[string]string) {
	s.Helper()
	mustHash(s, s.direct, s.keys, want)
}

func (h *homeStand) votes(field string, turn Turn) Answer {
	h.Helper()
	return h.ask(Vote(h.keys, field, lease).InLine(turn))
}

// vote is the vote in turn of a new hold.
func (h *homeStand) vote(turn Turn) Answer {
	h.Helper()
	return h.votes(newField(), turn)
}

// holds has the hold of this field take the lock, and the tickets enter the line after that.
func (h *homeStand) holds(field string, tickets ...string) {
	h.Helper()
	if a := h.ask(Vote(h.keys, field, lease)); !a.Held {
		h.Fatalf("%s has not got the free lock: %+v", field, a)
	}
	for i, ticket := range tickets {
		if a := h.vote(Turn{Ticket: ticket}); a.Held || a.Before != min(i, 2) {
			h.Fatalf("%s enters, and is told %+v", ticket, a)
		}
	}
}

func (h *homeStand) withdraws(field, again string, known int, token int64) Answer {
	h.Helper()
	return h.ask(Withdraw(h.keys, field, true).CallingInLine(again, known, token))
}

func (h *homeStand) quick(field string, token int64) Answer {
	h.Helper()
	return h.ask(Withdraw(h.keys, field, true).CallingNewcomersInLine(token))
}

// goneKey is the key that says that the hold of this field was dropped.
func (h *homeStand) goneKey(field string) string { return h.keys.Line + ":" + field }

// dropped fails the test unless the key that says that the hold was dropped is there, or not. The key expires within ten seconds.
func (h *homeStand) dropped(field string, want bool) {
	h.Helper()
	left := h.direct.PTTL(h.TB.Context(), h.goneKey(field)).Val()
	if is := left != -2; is != want || is && (left <= 0 || left > 10*time.Second) {
		h.Errorf("the key of the dropped hold has %v left, want it there: %v", left, want)
	}
}

// A client in turn gets a free lock with nobody in the line, with a ticket or without one, and enters no line.
func TestNodeLine_AFreeLock(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		for _, turn := range []Turn{{}, {Ticket: "a:1"}, {Ticket: "a:1", Unproven: true}, {Ticket: "a:2", Look: true, Stale: "b:1"}, {Ticket: "a:3", Called: true, Counter: 7}} {
			field := newField()
			for range 2 { // a repeat confirms it
				a := h.votes(field, turn)
				if r := a.Report; !a.Held || a.Before != NotInLine || a.Score != 0 || a.Head != "" || a.Outside != 0 || r.Holder != field || r.TTL != lease || r.Took || r.Run == "" && redistest.IsReal() {
					t.Errorf("%+v is told %+v %+v", turn, a, a.Report)
				}
			}
			h.has(map[string]string{field: "1"})
			if a := h.quick(field, 0); !a.Held || a.Report.Receivers != 1 || a.More || a.Score != 0 {
				t.Errorf("the release says %+v %+v", a, a.Report)
			}
			h.hears(" 0")
			h.has(nil)
			h.tickets()
		}
	}, "a", "b", "")
}

// A vote in turn does not shorten the lease that the hold has, and extends a shorter one.
func TestNodeLine_ARepeatExtends(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		for _, turn := range []Turn{{}, {Ticket: "a:1"}} {
			field := newField()
			h.votes(field, turn)
			for _, l := range []time.Duration{time.Hour, lease} {
				if a := h.ask(Vote(h.keys, field, l).InLine(turn)); !a.Held || mustTake(t, h.direct, h.keys).pttl < 3500e3 {
					t.Errorf("%+v, a lease of %v: %+v", turn, l, a)
				}
			}
			h.quick(field, 0)
		}
	})
}

// A client that a holder keeps from the lock enters the line, and the hold is told, so that its quick release calls.
func TestNodeLine_WhoIsRefusedEnters(t *testing.T) {
	for _, outsiders := range []bool{true, false} { // whether the release is told on the lock's own channel too
		homeWays(t, func(h *homeStand) {
			holder := withTurn("x", 5, outsiders)
			h.holds(holder)
			if a := h.vote(Turn{}); a.Held || a.Before != NotInLine || a.Score != 0 || a.Head != "" || a.Report.Holder != holder || a.TTL <= 0 || a.TTL > lease {
				t.Errorf("who does not enter is told %+v %+v", a, a.Report)
			}
			h.has(map[string]string{holder: "1"})
			h.tickets()

			var last int64
			for i, ticket := range []string{"a:1", "b:1", "c:1", "d:1"} {
				a := h.vote(Turn{Ticket: ticket, Unproven: i == 2})
				if a.Held || a.Before != min(i, 2) || a.Score <= last || last > 0 && a.Score != last+1 || a.Head != "" || a.Outside != 0 || a.Report.Holder != holder || a.Report.Gone {
					t.Errorf("%s is told %+v %+v", ticket, a, a.Report)
				}
				if a.TTL <= 0 || a.TTL > lease || a.Report.TTL != a.TTL {
					t.Errorf("%s is told that the lock expires in %v, %v", ticket, a.TTL, a.Report.TTL)
				}
				last = a.Score
			}
			h.has(map[string]string{holder: "1", holder + "#": "0"})
			h.tickets("a:1", "b:1", "c:1", "d:1")
			h.hears("c ") // c has proven that it can be called
			if a := h.vote(Turn{Ticket: "a:1"}); a.Held || a.Before != 0 || a.Score != last-3 {
				t.Errorf("the first is told again %+v", a)
			}
			h.hears("b a b:1")
			if a := h.vote(Turn{Ticket: "d:1"}); a.Held || a.Before != 2 || a.Score != last {
				t.Errorf("the fourth is told again %+v", a)
			}
			h.hears()

			a := h.quick(holder, 7)
			if want := map[bool]int{true: 1}[outsiders]; !a.Held || a.Report.Receivers != want || a.More || a.Score != 0 {
				t.Errorf("the release says %+v %+v", a, a.Report)
			}
			if outsiders {
				h.hears(" 0", "a c a:1 1 "+holder+" 7", "b w b:1 a:1 1")
			} else {
				h.hears("a c a:1 0 "+holder+" 7", "b w b:1 a:1 1")
			}
			h.has(nil)
			h.tickets("a:1", "b:1", "c:1", "d:1")
		}, "a", "b", "c", "d", "")
	}
}

// A quick release looks at the line only where the hold has its second field.
func TestNodeLine_AQuickReleaseLooksAtNoLine(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		holder := newField()
		h.holds(holder)
		if err := h.direct.ZAdd(t.Context(), h.keys.Line, redis.Z{Score: 1, Member: "a:1"}).Err(); err != nil {
			t.Fatal(err)
		}
		if a := h.quick(holder, 7); !a.Held || a.Report.Receivers != 1 {
			t.Errorf("the release says %+v %+v", a, a.Report)
		}
		h.hears(" 0")
	}, "a", "")
}

// A free lock waits for the first client in the line. Of the others the second calls the first, and who looks.
func TestNodeLine_AnothersTurn(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		h.holds(newField(), "a:1", "b:1", "c:1")
		h.free()
		turn := func(what string, turn Turn, before int, heard ...string) {
			t.Helper()
			a := h.vote(turn)
			if a.Held || a.TTL != NoKey || a.Report.TTL != NoKey || a.Report.Holder != "" || a.Before != before || (a.Score != 0) != (before != NotInLine) || a.Head != "a:1" || a.Outside != 0 {
				t.Errorf("%s is told %+v %+v", what, a, a.Report)
			}
			h.hears(heard...)
			h.has(nil)
		}
		turn("the third", Turn{Ticket: "c:1"}, 2)
		turn("a newcomer", Turn{Ticket: "d:1"}, 2)
		turn("who does not enter", Turn{}, NotInLine)
		turn("the second", Turn{Ticket: "b:1"}, 1, "a s a:1")
		turn("the third, which looks", Turn{Ticket: "c:1", Look: true}, 2) // the first has time left
		turn("who looks and does not enter", Turn{Look: true}, NotInLine)
		turn("who takes another for stale", Turn{Ticket: "c:1", Stale: "b:1"}, 2)
		h.tickets("a:1", "b:1", "c:1", "d:1")

		first, second := newField(), newField()
		if a := h.votes(first, Turn{Ticket: "a:1", Called: true}); !a.Held || a.Before != NotInLine || a.Report.Holder != first {
			t.Errorf("the first is told %+v %+v", a, a.Report)
		}
		h.tickets("b:1", "c:1", "d:1")
		h.hears()
		h.free()
		if a := h.votes(second, Turn{Ticket: "b:1", Look: true}); !a.Held || a.Report.Holder != second {
			t.Errorf("the next is told %+v %+v", a, a.Report)
		}
		h.tickets("c:1", "d:1")
		h.hears("c n c:1", "d n d:1")
		h.has(map[string]string{second: "1"})
	}, "a", "b", "c", "d")
}

// A client without a ticket is called for nobody, and asks a lone first for a sign of life.
func TestNodeLine_ALoneFirst(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		h.holds(newField(), "a:1")
		h.free()
		if a := h.vote(Turn{}); a.Held || a.TTL != NoKey || a.Head != "a:1" || a.Before != NotInLine {
			t.Errorf("who asks is told %+v", a)
		}
		h.hears("a s a:1")
		h.age(100 * time.Millisecond)
		field := newField()
		p := Proposal{First: h.ask(Look(h.keys, field)).Report.Time + 60e6, Slack: time.Hour}
		if a := h.ask(Vote(h.keys, field, lease).Proposing(p).InLine(Turn{})); !a.Held || a.Report.Holder != field || !a.Report.Took || a.Report.Counter != p.First {
			t.Errorf("who asks then is told %+v", a)
		}
		h.hears("a d a:1")
		h.tickets()
	}, "a")
}

// The first client that was called and has not come is taken out by the next one.
func TestNodeLine_AStaleFirst(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		holder := newField()
		h.holds(holder, "a:1", "b:1", "c:1")
		if a := h.vote(Turn{Ticket: "b:1", Stale: "a:1"}); a.Held || a.Before != 1 {
			t.Errorf("while the lock is held, the second is told %+v", a)
		}
		h.tickets("a:1", "b:1", "c:1")
		h.free()
		field := newField()
		if a := h.votes(field, Turn{Ticket: "b:1", Stale: "a:1"}); !a.Held || a.Report.Holder != field {
			t.Errorf("the second is told %+v", a)
		}
		h.hears("a d a:1")
		h.tickets("c:1")
		h.has(map[string]string{field: "1"})
		h.free()
		if a := h.vote(Turn{Ticket: "c:1", Stale: "c:1"}); !a.Held {
			t.Errorf("who takes itself for stale is told %+v", a)
		}
		h.hears()
		h.tickets()
	}, "a", "b", "c")
}

// A client that was taken out of the line has its old place again, and takes the free lock if that is the first.
func TestNodeLine_AnOldPlace(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		h.holds(newField(), "a:1", "b:1")
		place := mustTake(t, h.direct, h.keys).line[0].Score
		h.direct.ZRem(t.Context(), h.keys.Line, "a:1")
		if a := h.vote(Turn{Ticket: "a:2", Score: place}); a.Held || a.Score != place || a.Before != 0 {
			t.Errorf("it is told %+v, want place %d", a, place)
		}
		h.tickets("a:2", "b:1")
		h.direct.ZRem(t.Context(), h.keys.Line, "a:2")
		h.free()
		if a := h.vote(Turn{Ticket: "a:3", Score: place}); !a.Held {
			t.Errorf("of the free lock it is told %+v", a)
		}
		h.tickets("b:1")
	}, "a", "b")
}

// A hold that has the lock has no ticket in the line, also where only a repeat of its vote has the ticket.
func TestNodeLine_WhoHasTheLockIsNotInTheLine(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		field := newField()
		h.votes(field, Turn{})
		h.vote(Turn{Ticket: "a:1"})
		h.vote(Turn{Ticket: "b:1"})
		if a := h.votes(field, Turn{Ticket: "a:1"}); !a.Held {
			t.Errorf("the repeat is told %+v", a)
		}
		h.tickets("b:1")
		for _, turn := range []Turn{{}, {Ticket: "c:1"}, {Ticket: "c:1", Called: true}} { // b is the first, and has no part in what the hold has
			if a := h.votes(field, turn); !a.Held {
				t.Errorf("a repeat with %+v is told %+v", turn, a)
			}
		}
		h.hears()
		h.tickets("b:1")
		h.has(map[string]string{field: "1", field + "#": "0"})
	}, "b")
}

// A vote in turn takes the token that it proposes, with the lock. A vote that is refused takes none.
func TestNodeLine_Proposals(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		now := h.ask(Look(h.keys, newField())).Report.Time
		p := Proposal{Token: 1, First: now + 60e6, Ahead: time.Second, Slack: time.Hour, Expiry: time.Hour}
		vote := func(turn Turn) (string, Answer) {
			t.Helper()
			field := newField()
			return field, h.ask(Vote(h.keys, field, lease).Proposing(p).InLine(turn))
		}
		counter := func(want int64) {
			t.Helper()
			if is, _ := h.direct.Get(t.Context(), h.keys.Token).Int64(); is != want {
				t.Errorf("the counter is %d, want %d", is-now, want-now)
			}
		}
		latest := now + 60e6
		for _, turn := range []Turn{{}, {Ticket: "a:1"}} {
			field, a := vote(turn)
			if !a.Held || !a.Report.Took || a.Report.Counter != latest {
				t.Errorf("%+v is told %+v %+v, want %d", turn, a, a.Report, latest)
			}
			counter(latest)
			if a := h.ask(Vote(h.keys, field, lease).Proposing(p).InLine(turn)); !a.Held || a.Report.Took || a.Report.Counter != latest {
				t.Errorf("a repeat is told %+v %+v", a, a.Report)
			}
			if ttl := h.direct.PTTL(t.Context(), h.keys.Token).Val(); ttl < time.Hour+30*time.Second || ttl > time.Hour+2*time.Minute {
				t.Errorf("the counter expires in %v", ttl)
			}
			p.Token = latest + 1
			for _, turn := range []Turn{{}, {Ticket: "b:1"}} {
				if _, a := vote(turn); a.Held || a.Report.Took {
					t.Errorf("whom a holder refuses is told %+v %+v", a, a.Report)
				}
			}
			counter(latest)
			h.free()
			for _, turn := range []Turn{{}, {Ticket: "c:1"}} {
				if _, a := vote(turn); a.Held || a.Report.Took {
					t.Errorf("whose turn it is not is told %+v %+v", a, a.Report)
				}
			}
			counter(latest)
			if _, a := vote(Turn{Ticket: "b:1"}); !a.Held || !a.Report.Took || a.Report.Counter != latest+1 {
				t.Errorf("the first is told %+v %+v, want %d", a, a.Report, latest+1)
			}
			latest++
			counter(latest)
			h.free()
			h.ask(LeaveNode(h.keys, "c:1"))
			p.Token, latest = latest+1, latest+1
		}
	}, "b", "c")
}

// The holder's own release names the hold to the client that it calls, and tells it the token. Any other release does not.
func TestNodeLine_TheCall(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		for _, c := range []struct {
			what          string
			client        string
			outsiders     bool
			known         int
			token         int64
			heard         string // FIELD stands for the hold's
			told, waiting int
		}{
			{"the outsiders' turn", "x", true, 0, 7, "a c a:1 1 FIELD 7", 1, 2},
			{"one of those who listen releases", "x", true, 1, 1 << 52, "a c a:1 0 FIELD 4503599627370496", 1, 2},
			{"the called client has released", "a", true, 1, 0, "a c a:1 1 FIELD 0", 1, 2},
			{"not the outsiders' turn", "x", false, 1, 7, "a c a:1 0 FIELD 7", 0, 2},
			{"a lone client in the line", "x", false, 0, 7, "a c a:1 1 FIELD 7", 1, 1},
			{"somebody else", "x", false, NotTheHolder, 7, "a c a:1 1", 1, 2},
			{"somebody else, in the outsiders' turn", "x", true, NotTheHolder, 7, "a c a:1 1", 1, 2},
		} {
			field := withTurn(c.client, c.waiting+1, c.outsiders)
			heard := []string{strings.ReplaceAll(c.heard, "FIELD", field)}
			if c.told == 1 {
				heard = slices.Insert(heard, 0, " 0")
			}
			line := []string{"a:1", "b:1"}[:c.waiting]
			if c.waiting == 2 {
				heard = append(heard, "b w b:1 a:1 1")
			}
			h.holds(field, line...)
			if a := h.withdraws(field, "", c.known, c.token); !a.Held || a.Report.Receivers != c.told || a.More || a.Score != 0 || a.Outside != 0 {
				t.Errorf("%s: the release says %+v %+v", c.what, a, a.Report)
			}
			h.hears(heard...)
			h.tickets(line...)
			h.has(nil)

			// A second copy finds nothing, and calls, as the lock is free. It names nobody.
			if a := h.withdraws(field, "", c.known, c.token); a.Held || a.Report.Receivers != 0 || a.Report.Holder != "" {
				t.Errorf("%s: a copy says %+v %+v", c.what, a, a.Report)
			}
			heard = []string{"a c a:1 0", "b w b:1 a:1"}[:c.waiting]
			h.hears(heard...)
			h.direct.Del(t.Context(), h.keys.Line)
			h.withdraws(field, "", c.known, c.token)
			h.hears(" 0") // nobody is in the line
			other := newField()
			h.holds(other)
			if a := h.withdraws(field, "", c.known, c.token); a.Held || a.Report.Holder != other {
				t.Errorf("%s: a copy while another has the lock says %+v %+v", c.what, a, a.Report)
			}
			h.hears()
			h.has(map[string]string{other: "1"})
			h.quick(other, 0)
			h.hears(" 0")
		}
	}, "a", "b", "")
}

// A release with a ticket enters its client into the line. One that finds nothing enters nobody.
func TestNodeLine_AReleaseThatEnters(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		field := withTurn("a", 3, false)
		h.holds(field, "b:1")
		a := h.withdraws(field, "a:2", 1, 5)
		if !a.Held || a.Score == 0 || a.Report.Receivers != 0 {
			t.Errorf("the release says %+v %+v", a, a.Report)
		}
		h.tickets("b:1", "a:2")
		if line := mustTake(t, h.direct, h.keys).line; len(line) != 2 || line[1].Score != a.Score {
			t.Errorf("the line is %v, and the release says place %d", line, a.Score)
		}
		h.hears("b c b:1 0 "+field+" 5", "a w a:2 b:1 1")
		if a := h.withdraws(field, "a:3", 1, 5); a.Held || a.Score != 0 {
			t.Errorf("a copy says %+v", a)
		}
		h.hears("b c b:1 0", "a w a:2 b:1")
		h.tickets("b:1", "a:2")
		if a := h.vote(Turn{Ticket: "a:2"}); a.Held || a.Before != 1 {
			t.Errorf("the client that has entered is told %+v", a)
		}
	}, "a", "b")
}

// A vote that names the hold that was given up takes the lock from that hold.
func TestNodeLine_Dropping(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		drops := map[string]func(mine, gone string) Op{
			"no line":  func(mine, gone string) Op { return Vote(h.keys, mine, lease).Dropping(gone) },
			"in turn":  func(mine, gone string) Op { return Vote(h.keys, mine, lease).InLine(Turn{Ticket: "a:1", Gone: gone}) },
			"no entry": func(mine, gone string) Op { return Vote(h.keys, mine, lease).InLine(Turn{Gone: gone}) },
		}
		releases := map[string]func(field string) Answer{
			"calling":           func(field string) Answer { return h.withdraws(field, "a:9", 1, 7) },
			"calling newcomers": func(field string) Answer { return h.quick(field, 7) },
		}
		for way, drop := range drops {
			for released, release := range releases {
				gone, mine, third := newField(), newField(), newField()
				h.holds(gone)
				h.ask(Recount(h.keys, gone, lease, 2, 1))
				for _, other := range []string{"", third, gone[:len(gone)-1], "x" + gone} {
					if a := h.ask(drop(mine, other)); a.Held || a.Report.Holder != gone {
						t.Errorf("%s: a vote that names %q is told %+v %+v", way, other, a, a.Report)
					}
					h.dropped(other, false)
				}
				h.has(map[string]string{gone: "2", gone + "#": "1"})
				h.direct.Del(t.Context(), h.keys.Line)
				for range 2 { // a repeat confirms it
					if a := h.ask(drop(mine, gone)); !a.Held || a.Report.Holder != mine || a.TTL != lease {
						t.Errorf("%s: a vote that names the holder is told %+v %+v", way, a, a.Report)
					}
					h.has(map[string]string{mine: "1"})
					h.dropped(gone, true)
				}
				h.tickets()
				if a := h.ask(drop(third, gone)); a.Held || a.Report.Holder != mine {
					t.Errorf("%s: the next vote that names the same is told %+v %+v", way, a, a.Report)
				}
				h.direct.Del(t.Context(), h.keys.Line)

				_, _ = h.ear.heard(h.direct)
				if a := release(gone); !a.Held || a.Report.Receivers != 0 || a.Score != 0 || a.More {
					t.Errorf("%s, %s: the release of the dropped hold says %+v %+v", way, released, a, a.Report)
				}
				h.dropped(gone, false)
				if a := release(gone); a.Held || a.Report.Holder != mine {
					t.Errorf("%s, %s: a second one says %+v %+v", way, released, a, a.Report)
				}
				h.hears()
				h.tickets()
				if got := mustTake(t, h.direct, h.keys).hash; got[mine] != "1" || got[gone] != "" {
					t.Errorf("%s, %s: the hash is %v", way, released, got)
				}
				if a := release(mine); !a.Held {
					t.Errorf("%s, %s: the release says %+v", way, released, a)
				}
				h.direct.Del(t.Context(), h.keys.Line)
				_, _ = h.ear.heard(h.direct)
			}
		}
	}, "a", "")
}

// The hold that was given up is dropped before anybody's turn counts, and the free lock is the first client's.
func TestNodeLine_DroppingInAnothersTurn(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		gone := newField()
		h.holds(gone, "a:1", "b:1")
		if a := h.vote(Turn{Ticket: "b:1", Gone: gone}); a.Held || a.TTL != NoKey || a.Head != "a:1" || a.Before != 1 {
			t.Errorf("the second is told %+v", a)
		}
		h.hears("a s a:1")
		h.has(nil)
		h.dropped(gone, true)
		first := newField()
		if a := h.votes(first, Turn{Ticket: "a:1", Gone: gone}); !a.Held {
			t.Errorf("the first is told %+v", a)
		}
		h.tickets("b:1")
		h.has(map[string]string{first: "1"})
		if a := h.withdraws(gone, "", 0, 7); !a.Held {
			t.Errorf("the release of the dropped hold says %+v", a)
		}
		h.has(map[string]string{first: "1"})
	}, "a", "b")
}

// A hold is dropped only where a key can say so, as its release would find nothing else.
func TestNodeLine_NothingIsDroppedWithoutAWord(t *testing.T) {
	server := redistest.Real(t)
	for name, rights := range map[string][]any{
		"no set":  {"~*", "&*", "+@all", "-set"},
		"no line": {"~lock-*", "~redisson_lock_token:*", "&*", "+@all"},
	} {
		for _, vote := range []func(Op, string) Op{
			func(op Op, gone string) Op { return op.Dropping(gone) },
			func(op Op, gone string) Op { return op.InLine(Turn{Ticket: "a:1", Gone: gone}) },
		} {
			s, gone := newStand(t, server.Client(), as(t, server, "drops-"+strings.ReplaceAll(name, " ", "-"), rights...)), newField()
			s.do(Vote(s.keys, gone, lease))
			if a := s.do(vote(Vote(s.keys, newField(), lease), gone)); a.Held || a.Report.Holder != gone {
				t.Errorf("%s: the vote is told %+v %+v", name, a, a.Report)
			}
			if got := mustTake(t, s.direct, s.keys).hash; got[gone] != "1" {
				t.Errorf("%s: the hash is %v", name, got)
			}
		}
	}
}

// A hold whose token cannot be written has not got the lock.
func TestNodeLine_NoLockWithoutTheToken(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, server.Client())
	limited := New(as(t, server, "no-token", "~*", "&*", "+@all", "-set"))
	for _, turn := range []Turn{{}, {Ticket: "a:1"}} {
		p := Proposal{First: time.Now().UnixMicro() + 60e6, Slack: time.Hour}
		if a, err := limited.Do(t.Context(), Vote(c.keys, newField(), lease).Proposing(p).InLine(turn)); err == nil || Unanswered(err) {
			t.Errorf("%+v is told %+v, %v", turn, a, err)
		}
		c.hash(nil)
	}
}

// LeaveNode takes out the ticket, and calls where the lock is free. It has no Report.
func TestNodeLine_Leave(t *testing.T) {
	homeWays(t, func(h *homeStand) {
		leave := func(ticket string, more bool, heard ...string) {
			t.Helper()
			if a := h.ask(LeaveNode(h.keys, ticket)); a != (Answer{More: more}) {
				t.Errorf("the leave of %q says %+v", ticket, a)
			}
			h.hears(heard...)
		}
		h.holds(newField(), "a:1", "b:1", "c:1")
		leave("a:1", false, "b n b:1", "c n c:1")
		leave("a:1", false)
		leave("", false)
		h.tickets("b:1", "c:1")
		h.free()
		leave("", false, "b c b:1 0", "c w c:1 b:1")
		leave("b:1", false, "c c c:1 0")
		h.tickets("c:1")
		leave("c:1", false, " 0")
		h.tickets()

		h.dead(700)
		leave("", true)
		leave("", false, " 0")
		h.tickets()
		field := newField()
		h.holds(field)
		h.dead(700)
		if a := h.withdraws(field, "", 0, 7); !a.Held || !a.More {
			t.Errorf("a release with 700 tickets before it that nobody listens for says %+v", a)
		}
	}, "a", "b", "c", "")
}

// What is wrong with the keys is an error of the op, which leaves nothing behind and does not end its batch.
func TestNodeLine_WrongData(t *testing.T) {
	rdb := nodeServer(t)
	for name, spoil := range map[string]func(*Keys) error{
		"WRONGTYPE":      func(k *Keys) error { return rdb.Set(t.Context(), k.Lock, "x", 0).Err() },
		"not an integer": func(k *Keys) error { return rdb.Set(t.Context(), k.Token, "x", 0).Err() },
		"'mode'":         func(k *Keys) error { return rdb.HSet(t.Context(), k.Lock, "mode", "read").Err() },
	} {
		c, field := newCaller(t, rdb), newField()
		if err := spoil(c.keys); err != nil {
			t.Fatal(err)
		}
		before := rdb.HGetAll(t.Context(), c.keys.Lock).Val()
		ops := []Op{
			Vote(c.keys, field, lease).InLine(Turn{}), Vote(c.keys, field, lease).InLine(Turn{Ticket: "a:1"}),
			Vote(c.keys, field, lease).InLine(Turn{Ticket: "a:1", Gone: newField()}), Vote(c.keys, field, lease).Dropping(newField()),
		}
		for i, o := range together(c.Scripts, append(ops, Vote(newKeys(t), newField(), lease).InLine(Turn{}))...) {
			if i == len(ops) {
				if o.err != nil || !o.Held {
					t.Errorf("%s: the neighbour hears %+v", name, o)
				}
				continue
			}
			if o.err == nil || !strings.Contains(o.err.Error(), name) || Unanswered(o.err) {
				t.Errorf("%s: op %d hears %+v, %v", name, i, o.Answer, o.err)
			}
		}
		if name != "WRONGTYPE" {
			if after := rdb.HGetAll(t.Context(), c.keys.Lock).Val(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s: the hash was %v, and is %v", name, before, after)
			}
		}
	}
}

// A replica answers READONLY, whatever it is asked of the line (P8), and tells nobody anything.
func TestNodeLine_P8_Replica(t *testing.T) {
	master := redistest.Real(t, "--repl-diskless-sync-delay", "0")
	_, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Real(t, "--replicaof", "127.0.0.1", port)
	rdb := replica.Client(func(o *redis.Options) { o.MaxRetries = -1 })

	held := newStand(t, master.Client(), master.Client())
	holder := held.queue("a:1", "b:1")
	free := newStand(t, master.Client(), master.Client())
	free.queue("a:1", "b:1")
	free.free()
	want := mustTake(t, master.Client(), free.keys)
	redistest.Eventually(t, 20*time.Second, func() bool {
		s, err := take(rdb, free.keys)
		return err == nil && s.sameHash(want) && slices.Equal(s.line, want.line)
	}, "the replica has the lines")

	var ops []Op
	for _, keys := range []*Keys{held.keys, free.keys, newKeys(t)} {
		for _, turn := range []Turn{
			{}, {Ticket: "a:1"}, {Ticket: "b:1"}, {Ticket: "c:1"}, {Ticket: "c:1", Unproven: true}, {Ticket: "b:1", Look: true},
			{Ticket: "b:1", Look: true, Stale: "a:1"}, {Ticket: "c:1", Gone: holder}, {Gone: holder}, {Ticket: "c:1", Score: 1},
		} {
			for _, field := range []string{holder, newField()} {
				vote := Vote(keys, field, lease)
				ops = append(ops, vote.InLine(turn), vote.Proposing(Proposal{Token: 5, First: 5, Slack: time.Hour}).InLine(turn))
			}
		}
		ops = append(ops, Vote(keys, newField(), lease).Dropping(holder), Vote(keys, holder, lease).Dropping(holder))
		for _, field := range []string{holder, newField()} {
			w := Withdraw(keys, field, true)
			ops = append(ops, w.CallingInLine("", 0, 7), w.CallingInLine("c:1", 1, 7), w.CallingInLine("", NotTheHolder, 0), w.CallingNewcomersInLine(7))
		}
		ops = append(ops, LeaveNode(keys, "a:1"), LeaveNode(keys, ""), LeaveNode(keys, "x:1"))
	}
	listener, err := newListener(rdb, free.keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := listener.listen(t.Context(), "a", true); err != nil {
		t.Fatal(err)
	}
	scripts := New(rdb)
	readOnly := func(what string, op *Op, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "READONLY") || !Passing(err) || Unanswered(err) {
			t.Errorf("%s: %v %v says %v", what, op.kind.names[0], op.appendArgs(nil), err)
		}
	}
	for i := range ops {
		_, err := scripts.Do(t.Context(), ops[i])
		readOnly("alone", &ops[i], err)
	}
	for i := range ops { // a batch of one op and its neighbour: one op that is refused refuses all
		for _, o := range together(scripts, ops[i], Look(newKeys(t), holder)) {
			readOnly("in company", &ops[i], o.err)
		}
	}
	heard, err := listener.heard(rdb)
	if err != nil || len(heard) > 0 {
		t.Errorf("the replica has told %q, %v", heard, err)
	}
}

// P30: the user of a node has no right to the line's key, or not to one of the line's commands. Its client votes and releases without the line.
func TestNodeLine_P30_WithoutTheRightToTheLine(t *testing.T) {
	server := redistest.Real(t)
	rights := map[string][]any{"no key": {"~lock-*", "~redisson_lock_token:*", "&*", "+@all"}}
	for _, command := range []string{"zadd", "zcard", "zrange", "zrank", "zrem", "zscore", "publish"} {
		rights["no "+command] = []any{"~*", "&*", "+@all", "-" + command}
	}
	used := func(name string, commands ...string) bool {
		return name == "no key" || slices.Contains(commands, name[3:])
	}
	for name, right := range rights {
		limited := as(t, server, "node-"+strings.ReplaceAll(name, " ", "-"), right...)
		for _, company := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/company %v", name, company), func(t *testing.T) {
				s := newStand(t, server.Client(), limited, "", "b", "c")
				full := &homeStand{&stand{caller: caller{TB: t, Scripts: New(s.direct), keys: s.keys}, direct: s.direct}, nil}
				full.ask = full.do
				do := func(op Op) Answer {
					t.Helper()
					if !company {
						return s.do(op)
					}
					said := together(s.Scripts, Vote(newKeys(t), newField(), lease), op, Look(newKeys(t), newField()))
					if said[0].err != nil || said[0].Outside != 0 || !said[0].Held || said[2].err != nil || said[2].Outside != 0 {
						t.Errorf("the neighbours hear %+v and %+v", said[0], said[2])
					}
					if said[1].err != nil {
						t.Fatal(said[1].err)
					}
					return said[1].Answer
				}
				holder := withTurn("x", 3, false)
				full.holds(holder)
				vote := func(turn Turn) (string, Answer) {
					t.Helper()
					turn.Unproven = true
					field := newField()
					return field, do(Vote(s.keys, field, lease).Proposing(Proposal{First: 5}).InLine(turn))
				}
				if _, a := vote(Turn{Ticket: "a:1"}); a.Held || a.Outside == 0 || a.Before != NotInLine || a.Score != 0 || a.Report == nil || a.Report.Holder != holder || a.TTL <= 0 || a.TTL > lease {
					t.Errorf("whom a holder refuses is told %+v %+v", a, a.Report)
				}
				s.tickets()
				full.vote(Turn{Ticket: "a:1"})
				if _, a := vote(Turn{Ticket: "a:1"}); a.Held || a.Outside == 0 || a.Before != NotInLine {
					t.Errorf("whom a holder refuses who is in the line is told %+v", a)
				}
				if name != "no key" && name != "no zrem" {
					s.tickets() // the client goes without the line from now on
				}
				s.direct.ZRem(t.Context(), s.keys.Line, "a:1")

				for _, ticket := range []string{"b:1", "c:1"} {
					full.vote(Turn{Ticket: ticket})
				}
				_, _ = s.ear.heard(s.direct)
				a := do(Withdraw(s.keys, holder, true).CallingInLine("a:2", 0, 7))
				without := used(name, "zadd", "zcard", "zrange", "publish")
				if !a.Held || (a.Outside != 0) != without || (a.Score == 0) != without {
					t.Errorf("the release says %+v %+v", a, a.Report)
				}
				if told := map[bool]int{true: 1}[without]; name != "no publish" && a.Report.Receivers != told || name == "no publish" && a.Report.Receivers != -1 {
					t.Errorf("the release has told %d", a.Report.Receivers)
				}
				s.has(nil)
				if without {
					s.tickets("b:1", "c:1")
				}
				s.direct.ZRem(t.Context(), s.keys.Line, "a:2")

				field, a := vote(Turn{Ticket: "a:3", Stale: "b:1", Look: true})
				if !a.Held || a.Outside == 0 || a.Report.Holder != field {
					t.Errorf("whoever asks for the free lock is told %+v %+v", a, a.Report)
				}
				s.has(map[string]string{field: "1"})
				if a := do(Withdraw(s.keys, field, true).CallingNewcomersInLine(7)); !a.Held {
					t.Errorf("the quick release says %+v", a)
				}
				s.has(nil)
				if _, err := s.Do(t.Context(), LeaveNode(s.keys, "b:1")); (err != nil) != (name == "no key") || err != nil && (!redis.HasErrorPrefix(err, "NOPERM") || Passing(err)) {
					t.Errorf("a leave says %v", err)
				}
			})
		}
	}
}

// An op says of itself what a store of several servers asks them for.
func TestOp_Order(t *testing.T) {
	k, field := newKeys(t), newField()
	turn := Turn{Ticket: "a:1", Score: 7, Look: true, Stale: "b:1", Sharded: true, Unproven: true, Called: true, Gone: "x:1", Counter: 9}
	for i, c := range []struct {
		op   Op
		want Order
	}{
		{Acquire(k, true, field, lease+time.Microsecond), Order{Verb: ToAcquire, Fenced: true, Lease: lease}},
		{Acquire(k, true, field, lease).InTurn(turn).WithFloor(time.Hour), Order{Verb: ToAcquire, Fenced: true, Lease: lease, Expiry: time.Hour, Lined: true, Turn: turn}},
		{Acquire(k, false, field, lease).InTurn(Turn{}), Order{Verb: ToAcquire, Lease: lease, Lined: true}},
		{Acquire(k, false, field, lease).InTurn(Turn{Sharded: true}), Order{Verb: ToAcquire, Lease: lease, Lined: true, Turn: Turn{Sharded: true}}},
		{Level(k, true, field, lease, 3, 2), Order{Verb: ToLevel, Fenced: true, Lease: lease, Count: 3, Change: 2}},
		{Unlock(k, field, true), Order{Verb: ToUnlock, Turn: Turn{Sharded: true}}},
		{Unlock(k, field, false).Calling("a:2", 1), Order{Verb: ToUnlock, Lined: true, Turn: Turn{Ticket: "a:2"}, Known: 1}},
		{Unlock(k, field, false).Calling("", NotTheHolder), Order{Verb: ToUnlock, Lined: true, Known: NotTheHolder}},
		{Unlock(k, field, true).CallingNewcomers(), Order{Verb: ToUnlock, Lined: true, Newcomers: true, Turn: Turn{Sharded: true}}},
		{Leave(k, "a:1", true), Order{Verb: ToLeave, Lined: true, Turn: Turn{Ticket: "a:1", Sharded: true}}},
		{Leave(k, "", false), Order{Verb: ToLeave, Lined: true}},
		{Transfer(k, true, field, lease, "x:1"), Order{Verb: Other, Fenced: true, Lease: lease}},
	} {
		if c.want.Keys = k; c.want.Verb != ToLeave {
			c.want.Field = field
		}
		if got := c.op.Order(); got != c.want {
			t.Errorf("op %d says %+v, want %+v", i, got, c.want)
		}
	}
}
