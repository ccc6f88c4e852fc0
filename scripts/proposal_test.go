package scripts

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Inv2: which token a node takes with its vote, by its counter and its clock: T2, T3 and T8 of quorum/doc.go. Every time is from the node's.
func TestNode_Proposals(t *testing.T) {
	const (
		minute = int64(60e6)
		ahead  = 10 * minute
		slack  = 2 * minute
		none   = int64(-1 << 40)
	)
	for _, p := range []struct {
		what         string
		counter      int64 // none: there is none
		token, first int64
		takes        int64 // none: no token
		tokens       int64 // of which that is the last; 0 for one
	}{
		{"no counter", none, minute, ahead + minute, ahead + minute, 0},
		{"no counter, and too little", none, minute, ahead - minute, none, 0},
		{"no counter, and too much", none, minute, ahead + slack + minute, none, 0},
		{"a counter that is passed", -minute, minute, ahead + minute, minute, 0},
		{"a counter, and too little for the clock", -5 * minute, -minute, ahead + minute, none, 0},
		{"a counter, and too much for the clock", -minute, slack + minute, ahead + minute, none, 0},
		{"a counter that is ahead", 5 * minute, minute, ahead + minute, none, 0},
		{"the next number of a counter that is ahead", 5 * minute, 5*minute + 1, ahead + minute, 5*minute + 1, 0},
		{"the number after that", 5 * minute, 5*minute + 2, ahead + minute, none, 0},
		{"an equal number", minute, minute, ahead + minute, none, 0},
		{"the next number of a counter behind the clock", -5 * minute, -5*minute + 1, ahead + minute, none, 0},
		{"several", -minute, minute, ahead + minute, minute, 33},
		{"several, and the first is too little for the clock", -5 * minute, minute, ahead + minute, none, 2 * minute},
		{"several, and the last is too much for the clock", -minute, slack + minute, ahead + minute, none, 2 * minute},
		{"several next to a counter", minute, minute + 33, ahead + minute, minute + 33, 33},
		{"several, of which the first is equal", minute, minute + 32, ahead + minute, none, 33},
		{"33 next to a counter that is ahead", 5 * minute, 5*minute + 33, ahead + minute, 5*minute + 33, 33},
		{"34 next to a counter that is ahead", 5 * minute, 5*minute + 34, ahead + minute, none, 34},
		{"several where there is no counter", none, minute, ahead + 3*minute/2, ahead + 3*minute/2, minute},
		{"several where there is no counter, and the first is too little", none, minute, ahead + minute, none, 2 * minute},
	} {
		t.Run(p.what, func(t *testing.T) {
			nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
				now := do(Look(c.keys, newField())).Report.Time
				if p.counter != none {
					rdb.Set(t.Context(), c.keys.Token, now+p.counter, 0)
				}
				field := newField()
				vote := Vote(c.keys, field, lease).Proposing(Proposal{
					Token: now + p.token, First: now + p.first, Ahead: time.Duration(ahead) * time.Microsecond, Slack: time.Duration(slack) * time.Microsecond,
				}).TakingTokens(int(p.tokens))
				want := now + p.takes
				if p.takes == none {
					want = max(now+p.counter, 0)
					if p.counter == none {
						want = 0
					}
				}
				a := do(vote)
				if !a.Held || a.Report.Took != (p.takes != none) || a.Report.Counter != want {
					t.Errorf("took %v, and has the counter %d; want %d", a.Report.Took, a.Report.Counter-now, want-now)
				}
				kept, _ := rdb.Get(t.Context(), c.keys.Token).Int64()
				if kept != want {
					t.Errorf("the counter is %d, want %d", kept-now, want-now)
				}
				if a := do(vote); !a.Held || a.Report.Took || a.Report.Counter != want {
					t.Errorf("a second copy took %v, and has the counter %d", a.Report.Took, a.Report.Counter-now)
				}
				rdb.Del(t.Context(), c.keys.Token)
				if a := do(vote); !a.Held || a.Report.Took || a.Report.Counter != 0 {
					t.Errorf("a second copy, where the counter is gone, took %v, and has the counter %d", a.Report.Took, a.Report.Counter-now)
				}
			})
		})
	}
}

// A token that is taken with the vote has its counter expire as one that is raised, and a vote that is refused takes none.
func TestNode_ProposalWithExpiry(t *testing.T) {
	nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
		field := newField()
		now := do(Look(c.keys, field)).Report.Time
		p := Proposal{First: now + 60e6, Ahead: time.Second, Slack: time.Hour, Expiry: time.Hour}
		if a := do(Vote(c.keys, field, lease).Proposing(p)); !a.Report.Took {
			t.Fatalf("%+v", a.Report)
		}
		if ttl := rdb.PTTL(t.Context(), c.keys.Token).Val(); ttl < time.Hour+30*time.Second || ttl > time.Hour+time.Minute {
			t.Errorf("the counter expires in %v", ttl)
		}
		p.Token = now + 60e6 + 1
		if a := do(Vote(c.keys, newField(), lease).Proposing(p)); a.Held || a.Report.Took || a.Report.Counter != now+60e6 {
			t.Errorf("a vote that is refused: %+v", a.Report)
		}
	})
}

// Inv2: a node without a counter, which may have forgotten it, accepts in the second round only a token that was made for one: T7.
func TestNode_RaiseWithoutACounter(t *testing.T) {
	nodeWays(t, func(t *testing.T, rdb *redis.Client, c caller, do func(Op) Answer) {
		field := newField()
		do(Vote(c.keys, field, lease))
		if a := do(Raise(c.keys, field, 7, false, 0)); a.Held || a.Report.Gone || a.Report.Counter != 0 {
			t.Errorf("not one for a node without a counter: %+v", a.Report)
		}
		if a := do(Raise(c.keys, field, 7, true, 0)); !a.Held || a.Report.Counter != 7 {
			t.Errorf("one for a node without a counter: %+v", a.Report)
		}
		if a := do(Raise(c.keys, field, 8, false, 0)); !a.Held || a.Report.Counter != 8 {
			t.Errorf("the next: %+v", a.Report)
		}
	})
}
