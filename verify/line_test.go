package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is required of a line: gaps are short, everybody gets turns, and a handoff is cheap.
func TestLineRules(t *testing.T) {
	const calm, end = 10_000, 20_000
	mine := func(client int) op {
		return op{ID: int64(client), Client: client, Kind: acquire, Lock: "a", Token: int64(client), Call: ms(9000 + client), Return: ms(13_000 + client), Outcome: done}
	}
	waits := op{ID: 99, Client: 50, Kind: acquire, Lock: "a", Call: ms(9000)}
	pause := event{Name: "pause", From: ms(4000), To: ms(6000), Process: 8}
	after := func(free time.Duration) gap {
		return gap{From: ms(5000), To: ms(5000) + int64(free), Free: free, Line: []string{"a:1", "b:1"}, Processes: []int{7, 8}}
	}
	far := func(free time.Duration) gap {
		g := after(free)
		g.Line = []string{"a:1:400", "b:1:900"}
		return g
	}
	for _, c := range []struct {
		name string
		t    trial
		want []string
	}{
		{"turns", trial{Ops: []op{mine(10), mine(20)}}, nil},
		{"a client without", trial{Ops: []op{mine(10), waits}}, []string{ruleTurns}},
		{"which has not heard", trial{Ops: []op{mine(10), waits}, Faults: []event{{Name: "lose-call", From: ms(9100), To: ms(9200), Process: 6}}}, nil},
		{"which had not, before", trial{Ops: []op{mine(10), waits}, Faults: []event{{Name: "lose-call", From: ms(8100), To: ms(8200), Process: 6}}}, []string{ruleTurns}},
		{"which was killed", trial{Ops: []op{mine(10), waits}, Killed: map[int]int64{5: ms(9500)}}, nil},
		{"a gap that a far first one makes", trial{Line: &seen{Gaps: []gap{far(590 * time.Millisecond)}}}, nil},
		{"a longer one", trial{Line: &seen{Gaps: []gap{far(610 * time.Millisecond)}}}, []string{ruleCalled}},
		{"a short gap", trial{Line: &seen{Gaps: []gap{after(120 * time.Millisecond)}}}, nil},
		{"a long gap", trial{Line: &seen{Gaps: []gap{after(time.Second)}}}, []string{ruleCalled}},
		{"the second stood still too", trial{Line: &seen{Gaps: []gap{after(time.Second)}}, Faults: []event{pause}}, nil},
		{"cheap", trial{Line: &seen{Handoffs: 100, Commands: map[string]int64{"evalsha": 300, "exists": 1800}}}, nil},
		{"dear", trial{Line: &seen{Handoffs: 100, Commands: map[string]int64{"evalsha": 600, "exists": 1800}}}, []string{ruleCost}},
	} {
		c.t.promise, c.t.Calm, c.t.End = promise{line: true}, ms(calm), ms(end)
		if c.t.Line == nil {
			c.t.Line = new(seen)
		}
		if got := c.t.rules().violated(); !slices.Equal(got, c.want) {
			t.Errorf("%s: violated: %q, want %q", c.name, got, c.want)
		}
	}
}

// A process that was killed holds its lock for a lease, and waits for none.
func TestKilledProcessesHoldForALease(t *testing.T) {
	held := hold(1, 11, 1, 10, 20)[:1]
	waiter := op{ID: 2, Client: 21, Kind: acquire, Lock: "a", Value: ms(60_000), Call: ms(40)}
	for name, c := range map[string]struct {
		killed map[int]int64
		want   int
	}{
		"the holder has it":   {nil, 0},
		"the holder is gone":  {map[int]int64{1: ms(100)}, 1},
		"and the waiter, too": {map[int]int64{1: ms(100), 2: ms(100)}, 0},
	} {
		v := trial{Ops: join(held, []op{waiter}), promise: everything, Calm: ms(60), End: ms(20_000), Killed: c.killed}.rules()
		if len(v.Violations) != c.want {
			t.Errorf("%s: %v", name, v.Violations)
		}
	}
}

// What a network loses of a subscription is whole messages, however the bytes come.
func TestLostMessagesAreWhole(t *testing.T) {
	confirmed := "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n"
	message := ">3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$2\r\n\r\n\r\n"
	other := "%1\r\n+a\r\n$-1\r\n*0\r\n+PONG\r\n"
	for step := range 40 {
		l, p := new(link), new(pair)
		l.messages.Store(true)
		var kept strings.Builder
		for text := range slices.Chunk([]byte(message+confirmed+message+other), step+1) {
			kept.Write(p.frames(text, l.keeps))
		}
		if kept.String() != confirmed+other {
			t.Fatalf("%d at a time: %q", step+1, kept.String())
		}
	}
}

// A call of a client in a line is known by its text.
func TestCallsAreSeen(t *testing.T) {
	for _, channel := range []string{"fencelock_line:{a}:id", "fencelock_line_of:" + anySlot + ":id"} {
		for text, want := range map[string]bool{"c id:3 0 5": true, "w id:3 other:1": false, "n id:3": false} {
			seen := false
			ask := func() bool { seen = true; return false }
			l := new(link)
			l.called.Store(&ask)
			kept := l.keeps(fmt.Appendf(nil, "*3\r\n$7\r\nmessage\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(channel), channel, len(text), text))
			if seen != want || kept == want {
				t.Errorf("%s, %q: seen %v, kept %v", channel, text, seen, kept)
			}
		}
	}
}
