package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// ms makes a time of a history.
func ms(n int) int64 { return int64(n) * int64(time.Millisecond) }

// A hold that is alive from one time to the other, and is unlocked then.
func hold(id int64, client int, token int64, from, to int) []op {
	o := op{Client: client, Lock: "a", Hold: id, Token: token, Outcome: done}
	got, lives, unlocks := o, o, o
	got.ID, got.Hold, got.Kind, got.Call, got.Return = id, 0, acquire, ms(from-1), ms(from)
	lives.ID, lives.Kind, lives.Call, lives.Return = -id, alive, ms(from), ms(to)
	unlocks.ID, unlocks.Kind, unlocks.Call, unlocks.Return = id+1000, unlock, ms(to), ms(to+1)
	return []op{got, lives, unlocks}
}

func guarded(id int64, kind string, token, value int64, from, to int, outcome string) op {
	return op{ID: id, Client: int(id), Lock: "a", Kind: kind, Token: token, Value: value, Call: ms(from), Return: ms(to), Outcome: outcome}
}

func join(parts ...[]op) []op { return slices.Concat(parts...) }

// Porcupine finds the order of many calls that waited at the same time, and that there is none.
func TestManyWaiters(t *testing.T) {
	const n = 40
	var ops []op
	for i := range n { // who called last has the lock first
		ops = append(ops, hold(int64(i+1), i, int64(n-i), 1000*(n-i), 1000*(n-i)+500)...)
		ops[len(ops)-3].Call = ms(i)
	}
	again := op{ID: n + 1, Client: n, Lock: "a", Kind: acquire, Token: 1, Call: ms(2500), Return: ms(1000 * n), Outcome: done}
	for _, c := range []struct {
		model   porcupine.Model
		history func([]op) []porcupine.Operation
	}{{lockModel, lockHistory}, {counterModel, counterHistory}} {
		if got := porcupine.CheckOperationsTimeout(c.model, c.history(ops), checkTime); got != porcupine.Ok {
			t.Errorf("%d waiters: %v", n, got)
		}
		if got := porcupine.CheckOperationsTimeout(c.model, c.history(join(ops, []op{again})), checkTime); got != porcupine.Illegal {
			t.Errorf("with a token again: %v", got)
		}
	}
}

var everything = promise{exclusive: true, tokens: true, forced: true}

// Each rule has a history that violates it and nothing else, and each has a near one that is right.
func TestRules(t *testing.T) {
	nested := append(hold(1, 1, 1, 10, 50), op{ID: 7, Client: 1, Kind: reenter, Lock: "a", Hold: 1, Token: 2, Call: ms(20), Return: ms(21), Outcome: done})
	counts := func(value int64) op {
		return op{ID: 8, Client: 1, Kind: count, Lock: "a", Hold: 1, Token: 1, Value: value, Want: 1, Call: ms(22), Return: ms(23), Outcome: done}
	}
	late := func(to int) op {
		return op{ID: 9, Client: 1, Kind: acquire, Lock: "a", Call: ms(1000), Return: ms(1000 + to), Outcome: refused}
	}
	waiter := op{ID: 10, Client: 2, Kind: acquire, Lock: "a", Value: ms(60_000), Call: ms(40), Return: ms(20_000), Outcome: refused}
	for _, c := range []struct {
		name string
		ops  []op
		want []string
	}{
		{"one after the other", join(hold(1, 1, 1, 10, 20), hold(2, 2, 2, 30, 40)), nil},
		{"both alive", join(hold(1, 1, 1, 10, 30), hold(2, 2, 2, 20, 40)), []string{ruleExclusive, ruleLock}},
		{"alive behind two others", join(hold(1, 1, 1, 10, 90), hold(2, 2, 2, 20, 30), hold(3, 3, 3, 40, 50)), []string{ruleExclusive, ruleLock}},
		{"alive for very long after it was taken by another", join(hold(1, 1, 1, 10, 20_000), hold(2, 2, 2, 20, 10_000)), []string{ruleExclusive, ruleForced, ruleLock}},
		{"a token again", join(hold(1, 1, 1, 10, 20), hold(2, 2, 1, 30, 40)), []string{ruleTokens, ruleLock}},
		{"an older token", join(hold(1, 1, 5, 10, 20), hold(2, 2, 4, 30, 40)), []string{ruleTokens, ruleLock}},
		{"nested", nested, nil},
		{"nested in another's", join(nested, hold(2, 2, 3, 15, 17)), []string{ruleExclusive, ruleTokens, ruleLock}},
		{"the count is right", append(hold(1, 1, 1, 10, 50), counts(1)), nil},
		{"the count is wrong", append(hold(1, 1, 1, 10, 50), counts(2)), []string{ruleCount}},
		{"a call in time", []op{late(3000)}, nil},
		{"a call that is late", []op{late(8000)}, []string{ruleBound}},
		{"a waiter in a free lock", append(hold(1, 1, 1, 10, 50), waiter), []string{ruleWake}},
		{"a waiter, and an unlock without an answer", append(hold(1, 1, 1, 10, 50)[:2], waiter, op{ID: 11, Client: 1, Kind: unlock, Lock: "a", Hold: 1, Call: ms(50), Return: ms(51), Outcome: unknown}), []string{ruleWake}},
		{"a guard", []op{guarded(1, read, 1, 0, 10, 11, done), guarded(2, write, 1, 1, 12, 13, done), guarded(3, read, 2, 1, 14, 15, done), guarded(4, write, 1, 2, 16, 17, refused)}, nil},
		{"a stale write", []op{guarded(1, write, 2, 1, 10, 11, done), guarded(2, write, 1, 2, 12, 13, done)}, []string{ruleGuard, ruleRegister}},
		{"a lost update", []op{guarded(1, write, 1, 1, 10, 11, done), guarded(2, write, 2, 1, 12, 13, done)}, []string{ruleRegister}},
		{"refused without reason", []op{guarded(1, write, 1, 1, 10, 11, done), guarded(2, write, 1, 2, 12, 13, refused)}, []string{ruleRegister}},
		{"a write that came later", []op{guarded(1, write, 1, 1, 10, 11, unknown), guarded(2, read, 1, 0, 12, 13, done), guarded(3, read, 2, 1, 14, 15, done)}, nil},
		{"a write that never came", []op{guarded(1, write, 1, 1, 10, 11, open), guarded(2, read, 2, 0, 12, 13, done)}, nil},
		{"an error that was none", []op{guarded(1, write, 1, 1, 10, 11, failed), guarded(2, read, 2, 1, 12, 13, done)}, []string{ruleRegister}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(trial{Ops: c.ops, promise: everything, Calm: ms(60), End: ms(20_000)})
			got := slices.Sorted(slices.Values(v.violated()))
			want := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, want) {
				t.Errorf("violated: %q, want %q: %v", got, want, v.Violations)
			}
		})
	}
}

// Where tokens begin again, two holds may have the same one at the same time. A guard cannot tell their writes apart, and
// one of them may be lost; all else is to be right, and that too where one came after the other, or tokens were to grow.
func TestTokensThatBeginAgain(t *testing.T) {
	by := func(hold int64, o op) op {
		o.Hold = hold
		return o
	}
	lost := []op{by(1, guarded(1, read, 14, 0, 10, 11, done)), by(2, guarded(2, read, 14, 0, 12, 13, done)),
		by(1, guarded(3, write, 14, 1, 14, 15, done)), by(2, guarded(4, write, 14, 1, 16, 17, done))}
	after := []op{by(1, guarded(1, read, 14, 0, 10, 11, done)), by(1, guarded(2, write, 14, 1, 12, 13, done)),
		by(2, guarded(3, read, 14, 0, 14, 15, done)), by(2, guarded(4, write, 14, 1, 16, 17, done))}
	for _, c := range []struct {
		name    string
		promise promise
		ops     []op
		want    []string
	}{
		{"at the same time", promise{}, lost, nil},
		{"and another update is lost", promise{}, join(lost, []op{by(3, guarded(5, write, 15, 1, 18, 19, done))}), []string{ruleRegister}},
		{"and a read is of no time", promise{}, join(lost, []op{by(2, guarded(5, read, 14, 0, 18, 19, done))}), []string{ruleRegister}},
		{"one after the other", promise{}, after, []string{ruleRegister}},
		{"where tokens grow", promise{tokens: true}, lost, []string{ruleRegister}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(trial{Ops: c.ops, promise: c.promise, Calm: ms(60), End: ms(20_000)})
			if got := v.violated(); !slices.Equal(got, c.want) || len(v.Unchecked) > 0 {
				t.Errorf("violated: %q, want %q: %v", got, c.want, v.Violations)
			}
		})
	}
}

// A process that stood still is given that time, and no other one is.
func TestStoppedProcessesHaveTime(t *testing.T) {
	o := op{ID: 1, Client: 11, Kind: unlock, Lock: "a", Call: ms(0), Return: ms(10_000), Outcome: unknown}
	for process, want := range map[int]int{0: 1, 1: 1, 2: 0, 3: 1} {
		v := judge(trial{Ops: []op{o}, Faults: []event{{From: ms(1000), To: ms(9000), Process: process}}})
		if len(v.Violations) != want {
			t.Errorf("process %d stands still: %v", process, v.Violations)
		}
	}
}

func TestWakes(t *testing.T) {
	for wake, want := range map[int]int{5: 0, 500: 1} {
		// The first client takes the lock, again and again; the second waits for it all the time, and gets it in the end.
		waiter := hold(100, 2, 100, 10_000, 10_010)
		waiter[0].Call, waiter[0].Value = ms(5), ms(20_000)
		history := waiter
		for i := range minWakes {
			from := 10 + i*(wake+10)
			history = join(history, hold(int64(i+1), 1, int64(i+1), from, from+9))
		}
		v := judge(trial{Ops: history, promise: promise{wakes: true}, Calm: ms(6), End: ms(9000)})
		if len(v.Violations) != want {
			t.Errorf("free for %d ms: %v", wake, v.Violations)
		}
	}
}

// A violation leaves what it takes to look into it.
func TestSave(t *testing.T) {
	trial := trial{Scenario: "test", Seed: 7, Ops: join(hold(1, 1, 1, 10, 30), hold(2, 2, 2, 20, 40)), promise: everything, End: ms(50)}
	v := judge(trial)
	dir, err := v.save(t.TempDir(), trial)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "history.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &trial); err != nil || len(trial.Ops) != 6 || trial.Ops[3].Token != 2 {
		t.Errorf("the history is not there: %v, %v", err, trial.Ops)
	}
	if raw, err = os.ReadFile(filepath.Join(dir, "verdict.json")); err != nil || !strings.Contains(string(raw), ruleExclusive) {
		t.Errorf("the verdict is not there: %v\n%s", err, raw)
	}
	pictures, err := filepath.Glob(filepath.Join(dir, "*.html"))
	if err != nil || len(pictures) != 1 {
		t.Fatalf("pictures: %v, %v", pictures, err)
	}
	if raw, err = os.ReadFile(pictures[0]); err != nil || !strings.Contains(string(raw), "acquire: token 2") {
		t.Errorf("the picture does not show the history: %v", err)
	}
}
