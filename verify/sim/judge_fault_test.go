package main

import (
	"strings"
	"testing"
)

// called is a fault with this text.
func called(text string, fault []event) []event {
	for i := range fault {
		fault[i].Text = text
	}
	return fault
}

// uncounted is the fault of servers that count nobody, from which all settles in a minute.
func uncounted(from, to float64) []event {
	return called(uncounts+": servers", broken(from, to, 62))
}

// countsAll has the servers count all again from its end.
func countsAll(h []event) []event { return changed(ends, 0, func(e *event) { e.For = 0 })(h) }

// ofLock is a fault of one lock.
func ofLock(lock string, fault []event) []event {
	for i := range fault {
		fault[i].Lock = lock
	}
	return fault
}

// at is a fault of these servers.
func at(fault []event, servers ...int) (all []event) {
	for _, s := range servers {
		for _, e := range fault {
			e.Server = s
			all = append(all, e)
		}
	}
	return all
}

// others has faults concern another client.
func others(client string) step {
	return func(h []event) []event {
		for i := range h {
			if h[i].Kind == begins || h[i].Kind == ends {
				h[i].Client = client
			}
		}
		return h
	}
}

// in1 has the faults concern the lock L1.
func in1(h []event) []event {
	for i := range h {
		if h[i].Kind == begins || h[i].Kind == ends {
			h[i].Lock = "L1"
		}
	}
	return h
}

func TestJudgeFaultsExcuseSleepOfTheirs(t *testing.T) {
	waits := history(redisHas(1, ""), a.asks(1, 99))
	try(t, []twin{
		{"of its client's links", nil, history(waits, brokenOf("c0", 2, 9, 5), until(14)), others("c1"), nobodySleep},
		{"until they have settled", nil, history(waits, brokenOf("c0", 2, 9, 5), until(16)), later(calm, 0), nobodySleep},
		{"of the links of another, which excuse none", nil, history(waits, brokenOf("c1", 1, 2, 60), until(3)), later(calm, 0), nobodySleep},
		{"of the links of two others, behind whom it looks by itself", nil, history(waits, brokenOf("c1", 1, 20, 0)[:1], brokenOf("c2", 1, 20, 0)[:1], until(13)),
			later(calm, 0), nobodySleep},
		{"of the links of two others, until one of them is well", nil, history(waits, brokenOf("c1", 1, 20, 0)[:1], brokenOf("c2", 1, 5, 2), until(9)),
			later(calm, 0), nobodySleep},
		{"of the links of one, behind one that is gone", nil, history(r.asks(0.5, 99), waits, r.dies(1), brokenOf("c1", 1, 20, 0)[:1], until(13)), later(calm, 0), nobodySleep},
		{"of the links of one, behind one that is gone, until it is well", nil, history(r.asks(0.5, 99), waits, r.dies(1), brokenOf("c1", 1, 5, 2), until(9)),
			later(calm, 0), nobodySleep},
		{"of its lock", nil, history(waits, ofLock("L0", broken(2, 9, 5)), until(14)), in1, nobodySleep},
		{"a process that dies", nil, history(waits, called("dies: a process", broken(1, 2, 5)), until(3)), later(calm, 0), nobodySleep},
		{"two that leave", nil, history(waits, called("leaves: a process", at(broken(1, 2, 5), 0, 0)), b.closes(1.1, "Close"), b.closed(1.2), r.closes(1.1, "Close"), r.closed(1.2), until(3)),
			later(calm, 0), nobodySleep},
		{"two that leave, and one cannot say so", nil, history(b.asks(0.5, 99), r.asks(0.5, 99), waits, brokenOf("c1", 1, 3, 0), b.closes(1.1, "Close"), b.no(1.15, "closed"), b.closed(1.2), r.dies(1.3), until(13)),
			later(calm, 0), nobodySleep},
		{"of the links of two that have left", nil, history(waits, b.closes(1, "Close"), b.closed(1.1), r.closes(1, "Close"), r.closed(1.1),
			brokenOf("c1", 1.2, 9, 0)[:1], brokenOf("c2", 1.2, 9, 0)[:1], until(3)), later(calm, 0), nobodySleep},
		{"of three of five nodes", withQuorum, history(waits, at(broken(2, 9, 5), 0, 3, 4), until(16)), later(calm, 0), nobodySleep},
		{"of two of five nodes, where it looks by itself", withQuorum, history(waits, at(broken(1, 20, 0)[:1], 0, 3), until(13)), later(calm, 0), nobodySleep},
		{"of one of five nodes, until it is well", withQuorum, history(waits, at(broken(1, 5, 2), 3), until(9)), later(calm, 0), nobodySleep},
		{"of another client's links to a node", withQuorum, history(waits, at(brokenOf("c1", 1, 20, 0)[:1], 3), until(3)), later(calm, 0), nobodySleep},
		{"of its client's links to three nodes", withQuorum, history(waits, at(brokenOf("c0", 2, 9, 5), 0, 3, 4), until(14)), others("c1"), nobodySleep},
		{"of its lock, on all nodes", withQuorum, history(waits, ofLock("L0", broken(2, 9, 5)), until(16)), later(calm, 0), nobodySleep},
	})
}

func TestJudgeFaultsExcuseLocksOfTheirs(t *testing.T) {
	ghost := redisHas(1, "A:1")
	try(t, []twin{
		{"of its client's links", nil, history(ghost, brokenOf("c0", 2, 9, 5), until(14)), others("c1"), nobodysLock},
		{"until they have settled", nil, history(ghost, brokenOf("c0", 2, 9, 5), until(16)), later(calm, 0), nobodysLock},
		{"of the links of another, which excuse none", nil, history(ghost, brokenOf("c1", 1, 2, 60), until(3)), later(calm, 0), nobodysLock},
		{"of its lock", nil, history(ghost, ofLock("L0", broken(2, 9, 5)), until(14)), in1, nobodysLock},
		{"a process that dies", nil, history(ghost, called("dies: a process", broken(1, 2, 5)), until(3)), later(calm, 0), nobodysLock},
		{"of two of five nodes", withQuorum, history(ghost, at(broken(1, 2, 5), 0, 3), until(3)), later(calm, 0), nobodysLock},
		{"of three of five nodes", withQuorum, history(ghost, at(broken(2, 9, 5), 0, 3, 4), until(16)), later(calm, 0), nobodysLock},
		{"of the links of one that has died", nil, history(brokenOf("c0", 1, 200, 0), a.dies(2), redisHas(200, "A:1"), until(382)), later(calm, 0), nobodysLock},
		{"of the links of another than has died", nil, history(brokenOf("c1", 1, 200, 0)[:1], a.dies(2), redisHas(3, "A:1"), until(184)), later(calm, 0), nobodysLock},
		{"of the links of one that closes", nil, history(ghost, brokenOf("c0", 1.5, 7.001, 0), a.closes(2, "Close"), a.closed(3), until(185)), later(calm, 0), nobodysLock},
		{"of the links of another than closes", nil, history(ghost, brokenOf("c1", 1.5, 2.5, 0), a.closes(2, "Close"), a.closed(3), until(5)), later(calm, 0), nobodysLock},
		{"of the links of one before it closes", nil, history(brokenOf("c0", 0.1, 0.2, 1), ghost, a.closes(2, "Close"), a.closed(3), until(5)), later(calm, 0), nobodysLock},
		{"of all scripts", nil, history(ghost, called("rights: to a command (EVALSHA)", broken(2, 9, 5)), until(14)), says(begins, "rights: to a command (PUBLISH)"), nobodysLock},
		{"of all messages, which excuse none", nil, history(ghost, called("messages: are lost", broken(1, 2, 5)), until(3)), later(calm, 0), nobodysLock},
		{"of a right of those who wait, which excuses none", nil, history(ghost, called("rights: to a command (ZADD)", broken(1, 2, 5)), until(3)), later(calm, 0), nobodysLock},
		{"a process that leaves", nil, history(ghost, called("leaves: a process", brokenOf("c0", 1.5, 2.5, 0)), a.closes(2, "Close"), a.closed(3), until(5)),
			later(calm, 0), nobodysLock},
	})
}

func TestJudgeFaultsExcuseLossesOfTheirs(t *testing.T) {
	hold := history(a.asks(1, 1), a.got(1, 1), redisHas(2, "A:1"))
	loses := a.ended(45, "lost")
	try(t, []twin{
		{"of its client's links", nil, history(hold, brokenOf("c0", 29.999, 34, 6.001), loses), others("c1"), staysHeld},
		{"that leave its renewals no time", nil, history(hold, brokenOf("c0", 29.999, 34, 6.001), loses), later(ended, 0), staysHeld},
		{"of its lock", nil, history(hold, ofLock("L0", broken(29.999, 34, 6.001)), loses), in1, staysHeld},
		{"of all scripts", nil, history(hold, called("rights: to a command (EVALSHA)", broken(29.999, 34, 6.001)), loses), says(begins, "messages: are lost"), staysHeld},
		{"of one after the other", nil, history(hold, broken(29, 32, 0), brokenOf("c0", 31, 41, 0), loses), others("c1"), staysHeld},
		{"of three of five nodes", withQuorum, history(hold, at(broken(29.999, 34, 6.001), 0, 3, 4), loses), func(h []event) []event {
			return history(hold, at(broken(29.999, 34, 6.001), 0, 3), loses)
		}, staysHeld},
		{"its client closes", nil, history(hold, called("leaves: a process", brokenOf("c0", 4, 60, 6)), a.closes(44.95, "Close"), loses, a.closed(45)), without(closes), staysHeld},
	})
}

// Of those that sleep, the first is named.
func TestJudgeNamesWhoSleeps(t *testing.T) {
	for range 20 {
		found := judged(nil, history(redisHas(1, ""), r.asks(1.2, 99), a.asks(1.1, 99), b.asks(1.3, 99), until(4)))
		if len(found) != 1 || !strings.HasPrefix(found[0].Text, "c0.1, call 1,") {
			t.Fatalf("c0.1 is the first; the judge says: %v", found)
		}
	}
}

func TestJudgedShares(t *testing.T) {
	for _, c := range []struct {
		what    string
		history []event
		want    shares
	}{
		{"all of it", history(redisHas(1, "B:1"), b.asks(0, 1), b.got(0, 1), a.asks(1, 99), until(9)),
			shares{Waited: share{8, 8}, Taken: share{8, 8}}},
		{"a fault", history(redisHas(1, "B:1"), b.asks(0, 1), b.got(0, 1), a.asks(1, 99), broken(2, 4, 1), until(5), until(9)),
			shares{Waited: share{8, 5}, Taken: share{8, 5}}},
		{"a fault of the owner's links", history(redisHas(1, "B:1"), b.asks(0, 1), b.got(0, 1), a.asks(1, 99), brokenOf("c1", 2, 4, 1), until(5), until(9)),
			shares{Waited: share{8, 8}, Taken: share{8, 5}}},
		{"calls that do not wait", history(b.asks(0, 1), b.got(0, 1), a.asks(1, 0), until(9)), shares{}},
		{"until callers stop", history(a.asks(1, 9), noMore(3), until(9)), shares{Waited: share{2, 2}}},
	} {
		if _, got := judge(plan{Servers: 1, Locks: 2, Clients: make([]clientPlan, 3)}, begun(c.history)); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestFaultsSettle(t *testing.T) {
	for _, c := range []struct {
		f       fault
		servers int
		want    float64
	}{
		{fault{Kind: "freeze"}, 1, 0},
		{fault{Kind: "freeze"}, 5, 2},
		{fault{Kind: "restart"}, 1, 2},
		{fault{Kind: "restart"}, 5, 182},
		{fault{Kind: "late", X: 100}, 1, 2.1},
		{fault{Kind: "rights", X: 1, For: seconds(2)}, 1, 9},
		{fault{Kind: "rights", X: 1, For: seconds(20)}, 1, 32},
		{fault{Kind: "rights", X: 0, For: seconds(2)}, 1, 32},
	} {
		if got := kindOf(c.f.Kind).settlesAfter(c.f, c.servers); got != seconds(c.want) {
			t.Errorf("%+v with %d servers: %v, want %vs", c.f, c.servers, got, c.want)
		}
	}
}

// A fault says whom it concerns.
func TestFaultsTellWhom(t *testing.T) {
	one, five := &world{plan: plan{Servers: 1, Locks: 3}}, &world{plan: plan{Servers: 5, Locks: 3}}
	for _, c := range []struct {
		w            *world
		f            fault
		whom         string
		client, lock string
	}{
		{one, fault{Kind: "rights", Client: 2, X: 3}, "rights: the user has lost the right to a command (SUBSCRIBE)", "", ""},
		{one, fault{Kind: "flush", Client: 2}, "flush: FLUSHALL", "", ""},
		{five, fault{Kind: "flush", Client: 2, Server: 4}, "flush: FLUSHALL (server 4)", "", ""},
		{five, fault{Kind: "delete", Client: 2, X: 4}, "delete: a lock's key is deleted by hand (L1)", "", "L1"},
		{one, fault{Kind: "cut", Client: 2}, "cut: links are cut (c2)", "c2", ""},
		{five, fault{Kind: "cut", Client: -1, Server: 1}, "cut: links are cut (all clients, server 1)", "", ""},
		{five, fault{Kind: "dies", Client: -1, Server: 1}, "dies: a process dies, and comes back (c0)", "", ""},
	} {
		if e := c.w.tells(*kindOf(c.f.Kind), c.f); e.Text != c.whom || e.Client != c.client || e.Lock != c.lock || e.Server != c.f.Server {
			t.Errorf("%+v, not %+v", e, c)
		}
	}
}
