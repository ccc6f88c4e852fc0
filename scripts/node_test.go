package scripts

import (
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// nodeServer is a server that says since when it runs.
func nodeServer(t *testing.T) *redis.Client {
	t.Helper()
	if redistest.IsReal() {
		return redistest.New(t)
	}
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	redistest.TellUptime(m, "0123456789abcdef", time.Now().Add(-time.Hour))
	return redistest.Client(t, m.Addr(), func(o *redis.Options) { o.ReadTimeout = time.Minute }) // as New does
}

// nodeWays are an op alone, and one in company.
func nodeWays(t *testing.T, test func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer)) {
	t.Run("alone", func(t *testing.T) {
		rdb := nodeServer(t)
		c := newCaller(t, rdb)
		test(t, rdb, c, c.do)
	})
	t.Run("in company", func(t *testing.T) {
		rdb := nodeServer(t)
		c := newCaller(t, rdb)
		other, field := newKeys(t), newField()
		test(t, rdb, c, func(op Op) Answer {
			t.Helper()
			got := together(c.Scripts, Vote(other, field, lease), op, Look(other, field), Withdraw(newKeys(t), newField(), true))
			for _, o := range got {
				if o.err != nil {
					t.Fatal(o.err)
				}
			}
			if !got[0].Held || got[2].Report.Holder != field || got[3].Held {
				t.Fatalf("the company hears %+v", got)
			}
			return got[1].Answer
		})
	})
}

// A batch, which runs in one step, asks the server once how it is.
func TestNode_ABatchAsksOnce(t *testing.T) {
	c := newCaller(t, nodeServer(t))
	got := together(c.Scripts, Vote(newKeys(t), newField(), lease), Vote(newKeys(t), newField(), lease), Look(newKeys(t), newField()))
	for _, o := range got {
		if o.err != nil || o.Report.Time != got[0].Report.Time || o.Report.Run != got[0].Report.Run {
			t.Errorf("%+v %+v %v", o.Answer, o.Report, o.err)
		}
	}
}

// One hold on one node of a quorum, from its vote to its release, and what a stranger hears meanwhile.
func TestNode_OneHold(t *testing.T) {
	nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
		mine, other := newField(), newField()
		if a := do(Look(c.keys, mine)); !a.Held || a.Report.Holder != "" || a.Report.TTL != NoKey || a.Report.Count != 0 {
			t.Errorf("a look at a free lock: %+v %+v", a, a.Report)
		}
		for range 2 { // a repeat confirms it
			a := do(Vote(c.keys, mine, lease))
			if r := a.Report; !a.Held || r.Holder != mine || r.TTL != lease || r.Counter != 0 || r.Run == "" || r.Uptime < 0 {
				t.Errorf("a vote: %+v %+v", a, r)
			}
			if now := time.Now().UnixMicro(); a.Report.Time < now-60e6 || a.Report.Time > now+60e6 {
				t.Errorf("the server's time is %d, ours %d", a.Report.Time, now)
			}
		}
		c.hash(map[string]string{mine: "1"})
		if a := do(Vote(c.keys, other, time.Hour)); a.Held || a.Report.Holder != mine || a.Report.TTL > lease || a.Report.TTL <= 0 {
			t.Errorf("another's vote: %+v %+v", a, a.Report)
		}

		for _, step := range []struct {
			field    string
			token    int64
			accepted bool
			gone     bool
			counter  int64
		}{{other, 9, false, true, 0}, {mine, 7, true, false, 7}, {mine, 7, false, false, 7}, {mine, 3, false, false, 7}, {mine, 1 << 52, true, false, 1 << 52}} {
			a := do(Raise(c.keys, step.field, step.token, true, 0))
			if a.Held != step.accepted || a.Report.Gone != step.gone || a.Report.Counter != step.counter {
				t.Errorf("%+v: %+v %+v", step, a, a.Report)
			}
		}

		if a := do(Recount(c.keys, mine, 2*lease, 2, 1)); !a.Held {
			t.Errorf("a re-entry: %+v", a)
		}
		if a := do(Recount(c.keys, mine, 0, 5, 1)); !a.Held {
			t.Errorf("a repeat of its number: %+v", a)
		}
		if a := do(Look(c.keys, mine)); a.Report.Count != 2 || a.Report.Change != 1 || a.Report.TTL <= lease {
			t.Errorf("a look: %+v", a.Report)
		}
		if a := do(Recount(c.keys, other, lease, 2, 1)); a.Held || !a.Report.Gone {
			t.Errorf("another's re-entry: %+v", a)
		}

		if a := do(Extend(c.keys, mine, time.Hour)); !a.Held || mustTake(t, rdb, c.keys).pttl < 3500e3 {
			t.Errorf("an extension: %+v", a)
		}
		for _, shorter := range []time.Duration{0, lease} {
			if a := do(Extend(c.keys, mine, shorter)); !a.Held || mustTake(t, rdb, c.keys).pttl < 3500e3 {
				t.Errorf("a shorter extension: %+v", a)
			}
		}
		if a := do(Extend(c.keys, other, lease)); a.Held || !a.Report.Gone || a.Report.Holder != mine {
			t.Errorf("another's extension: %+v %+v", a, a.Report)
		}

		if a := do(Withdraw(c.keys, other, true)); a.Held || a.Report.Holder != mine {
			t.Errorf("another's release: %+v %+v", a, a.Report)
		}
		if a := do(Withdraw(c.keys, mine, true)); !a.Held || a.Report.Holder != "" {
			t.Errorf("the release: %+v %+v", a, a.Report)
		}
		c.hash(nil)
		if a := do(Withdraw(c.keys, mine, true)); a.Held {
			t.Errorf("a repeat of the release: %+v", a)
		}
		if a := do(Vote(c.keys, other, lease)); !a.Held || a.Report.Counter != 1<<52 {
			t.Errorf("the next hold: %+v %+v", a, a.Report)
		}
	})
}

// The release of a hold that never had the lock tells nobody.
func TestNode_Messages(t *testing.T) {
	nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
		sub := rdb.Subscribe(t.Context(), c.keys.Channel())
		defer func() { _ = sub.Close() }()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tell := range []bool{false, true} {
			field := newField()
			do(Vote(c.keys, field, lease))
			want := 0
			if tell {
				want = 1
			}
			if a := do(Withdraw(c.keys, field, tell)); !a.Held || a.Report.Receivers != want {
				t.Errorf("told %v: %d", tell, a.Report.Receivers)
			}
		}
		if m, err := sub.ReceiveMessage(t.Context()); err != nil || m.Payload != "0" {
			t.Errorf("the message: %v, %v", m, err)
		}
	})
}

// A counter that expires does so from when the time has caught up with it.
func TestNode_RaiseWithExpiry(t *testing.T) {
	nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
		field := newField()
		now := do(Vote(c.keys, field, lease)).Report.Time
		if a := do(Raise(c.keys, field, now+60e6, true, time.Hour)); !a.Held {
			t.Fatalf("%+v", a.Report)
		}
		if ttl := rdb.PTTL(t.Context(), c.keys.Token).Val(); ttl < time.Hour+30*time.Second || ttl > time.Hour+time.Minute {
			t.Errorf("the counter expires in %v", ttl)
		}
		if a := do(Raise(c.keys, field, now+60e6+1, true, 0)); !a.Held || rdb.PTTL(t.Context(), c.keys.Token).Val() != -1 {
			t.Errorf("without an expiry: %+v", a.Report)
		}
	})
}

// What is wrong with the keys is an error of each op, which leaves nothing behind and does not end its batch.
func TestNode_WrongData(t *testing.T) {
	rdb := nodeServer(t)
	for name, spoil := range map[string]func(*Keys) error{
		"WRONGTYPE":      func(k *Keys) error { return rdb.Set(t.Context(), k.Lock, "x", 0).Err() },
		"not an integer": func(k *Keys) error { return rdb.Set(t.Context(), k.Token, "x", 0).Err() },
	} {
		c, field := newCaller(t, rdb), newField()
		if err := spoil(c.keys); err != nil {
			t.Fatal(err)
		}
		ops := []Op{Vote(c.keys, field, lease), Extend(c.keys, field, lease), Recount(c.keys, field, lease, 2, 1), Raise(c.keys, field, 5, true, 0), Look(c.keys, field)}
		for i, o := range together(c.Scripts, append(ops, Vote(newKeys(t), newField(), lease))...) {
			if i == len(ops) {
				if o.err != nil || !o.Held {
					t.Errorf("%s: the neighbour hears %+v", name, o)
				}
				continue
			}
			gone := o.Report != nil && o.Report.Gone
			if o.err == nil && !gone || o.err != nil && (!strings.Contains(o.err.Error(), name) || Unanswered(o.err)) {
				t.Errorf("%s: op %d hears %+v, %v", name, i, o.Answer, o.err)
			}
		}
		if name != "WRONGTYPE" {
			c.hash(nil)
		}
	}
}

// A replica answers READONLY, whatever it is asked (P8).
func TestNode_P8_Replica(t *testing.T) {
	r := redistest.Replicated(t, 1)
	c, field := newCaller(t, r.Master.Client()), newField()
	c.do(Vote(c.keys, field, lease))
	rdb := r.Replicas[0].Client()
	redistest.Eventually(t, 20*time.Second, func() bool { return rdb.Exists(t.Context(), c.keys.Lock).Val() == 1 }, "the replica has the lock")
	there := New(rdb)
	for i, op := range []Op{
		Vote(c.keys, field, lease), Vote(c.keys, newField(), lease), Extend(c.keys, field, lease), Extend(c.keys, newField(), 0),
		Recount(c.keys, field, lease, 2, 1), Recount(c.keys, newField(), 0, 2, 1), Raise(c.keys, field, 5, true, 0), Raise(c.keys, newField(), 5, true, 0),
		Withdraw(c.keys, field, true), Withdraw(c.keys, newField(), true), Look(c.keys, field),
	} {
		_, err := there.Do(t.Context(), op)
		if err == nil || !strings.Contains(err.Error(), "READONLY") || !Passing(err) || Unanswered(err) {
			t.Errorf("op %d says %v", i, err)
		}
	}
}
