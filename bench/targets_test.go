package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func find(t *testing.T, rows []row, what string) row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r row) bool { return strings.Contains(r.What, what) })
	if i < 0 {
		t.Fatalf("no row has %q", what)
	}
	return rows[i]
}

func TestTargets(t *testing.T) {
	var r report
	add := func(contender, mode string, rates ...float64) {
		for i, rate := range rates {
			r.Results = append(r.Results, result{Contender: contender, Mode: mode, Repeat: i + 1, PairsPerSec: rate, WaitP99: 1e6 / rate})
		}
	}
	add(ours, "own/g=1", 100, 100, 130)
	add(baseline, "own/g=1", 100, 90, 100) // median of 1, 1.11, 1.3
	add(ours, "own/g=64", 200)
	add(baseline, "own/g=64", 100)
	add(ours, "own/g=1024", 50)
	add(baseline, "own/g=1024", 100)
	add(ours, "one/g=64/empty", 300)
	add(baseline, "one/g=64/empty", 100)
	add(ours, "one/g=512/empty", 1000)
	add(baseline, "one/g=512/empty", 100)
	r.Summaries = []summary{
		{Contender: ours, Mode: "one/g=64/empty", Commands: 3, FairClient: 0.96, FairGoroutine: 0.7},
		{Contender: ours, Mode: "one/g=512/empty", Commands: 6.5},
		{Contender: "fencelock-unfenced", Mode: "hot/g=64", Hung: 2},
		{Contender: baseline, Mode: "hot/g=64", Hung: 100},
	}
	r.Held = []row{{What: "memory", Verdict: "aim"}}
	real := reasons
	reasons = map[string]string{"all modes: hung waiters / overlaps / tokens out of order": "because"}
	defer func() { reasons = real }()

	rows := r.targetRows()
	for _, want := range []row{
		{What: "rueidislock as it comes", AtLeast: "1 / 1.60 / 1.60", Aim: "1.25 / 2.20 / 2.20", Measured: "1.11 / 2 / 0.50", Verdict: "at least / at least / below"},
		{What: "MaxFlushDelay", Measured: "- / -", Verdict: "not measured"},
		{What: "p99 wait", AtLeast: "<= 0.45 / <= 0.45", Measured: "0.33 / 0.10", Verdict: "at least / aim"},
		{What: "commands a handoff", Measured: "3 / 6.50", Verdict: "aim / at least"},
		{What: "least / most", Measured: "0.96 / 0.70", Verdict: "aim / below"},
		{What: "hung", AtLeast: "0 / 0 / 0", Measured: "2 / 0 / 0", Verdict: "below / aim / aim", Reason: "because"},
	} {
		got := find(t, rows, want.What)
		if want.AtLeast != "" && got.AtLeast != want.AtLeast || want.Aim != "" && got.Aim != want.Aim ||
			got.Measured != want.Measured || got.Verdict != want.Verdict || got.Reason != want.Reason {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if rows[len(rows)-2].What != "memory" || len(rows) != len(targets)+1 {
		t.Errorf("what was measured elsewhere is not before the last of %d rows", len(rows))
	}
}

// Each figure must be of rounds that a full run has, or the run of another kind.
func TestTargetsAreMeasured(t *testing.T) {
	set, err := parse(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(set)
	if err != nil {
		t.Fatal(err)
	}
	p.modes = append(p.modes, kindModes()...)
	var r report
	for _, round := range p.rounds() {
		r.Results = append(r.Results, result{Contender: round.contender.name, Mode: round.mode.name(), Repeat: round.repeat,
			PairsPerSec: 1, WaitP99: 1, UseP99: 1, Commands: 1, Messages: 1})
	}
	for _, m := range modes() {
		r.Summaries = append(r.Summaries, summarize(r.Results, m)...)
	}
	for _, target := range targets {
		if len(target.least) != len(target.figures) || len(target.aim) != len(target.figures) {
			t.Errorf("%s: %d figures, %d at least, %d aimed for", target.what, len(target.figures), len(target.least), len(target.aim))
			continue
		}
		if got := target.row(r); strings.Contains(got.Verdict, notMeasured) {
			t.Errorf("%s is not measured", got.What)
		}
	}
	for what := range reasons {
		if !slices.ContainsFunc(targets, func(t target) bool { return t.what == what }) {
			t.Errorf("there is a reason for %q, which is no row", what)
		}
	}
}

func TestHeld(t *testing.T) {
	dir := t.TempDir()
	if rows, err := readHeld(dir); err != nil || len(rows) != 1 || rows[0].Verdict != notMeasured {
		t.Errorf("without the file: %+v, %v", rows, err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, heldFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"what":"memory","at_least":"1 KiB","aim":"512 B","measured":"600 B","verdict":"at least","reason":"a map"}]`)
	want := row{"memory", "1 KiB", "512 B", "600 B", "at least", "a map"}
	if rows, err := readHeld(dir); err != nil || len(rows) != 1 || rows[0] != want {
		t.Errorf("got %+v, %v; want %+v", rows, err, want)
	}
	write(`{}`)
	if _, err := readHeld(dir); err == nil || !strings.Contains(err.Error(), "list of rows") {
		t.Errorf("of something else: %v", err)
	}
}

func TestTheBestOfTheOthers(t *testing.T) {
	var r report
	add := func(contender string, repeat int, rate, p99 float64) {
		r.Results = append(r.Results, result{Contender: contender, Mode: "m", Repeat: repeat, PairsPerSec: rate, UseP99: p99})
	}
	add(ours, 1, 100, 10)
	add(baseline, 1, 50, 40)
	add("redislock", 1, 200, 80)
	add("redsync", 1, 10, 20)
	add("redisson", 1, 1000, 1) // not one of them
	add(ours, 2, 100, 10)
	add(baseline, 2, 50, 0) // no use ended
	add("redsync", 2, 10, 20)
	if got, ok := againstBest(pairsOf, more, "m")[0](r); !ok || got != 1.25 { // of 0.5 and 2
		t.Errorf("pairs: %v, %v", got, ok)
	}
	if got, ok := againstBest(useOf, less, "m")[0](r); !ok || got != 0.5 {
		t.Errorf("p99: %v, %v", got, ok)
	}
	if got, ok := againstBest(pairsOf, more, "n")[0](r); ok {
		t.Errorf("of no rounds: %v", got)
	}
}
