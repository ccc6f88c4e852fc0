package main

import (
	"slices"
	"testing"
	"time"
)

func TestAFullRunTakesTwentyMinutes(t *testing.T) {
	set, err := parse(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(set)
	if err != nil {
		t.Fatal(err)
	}
	rounds := p.rounds()
	if took := p.estimate(len(rounds)); took > 20*time.Minute || p.repeats < 5 {
		t.Errorf("%d rounds in %d repeats take about %v", len(rounds), p.repeats, took)
	}
}

func TestWhoTakesPart(t *testing.T) {
	parts := func(only, modes string) []string {
		t.Helper()
		p, err := newPlan(settings{only: only, modes: modes, repeats: 1, seconds: 1, grace: 1})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range p.takePart(p.modes[0]) {
			names = append(names, c.name)
		}
		return names
	}
	if got := parts("", "one/g=4/get"); !slices.Contains(got, ours) || !slices.Contains(got, baseline) || slices.Contains(got, "redsync") {
		t.Errorf("in one/g=4/get by default: %v", got)
	}
	if got, want := parts("redsync,scripts-pool", "one/g=4/get"), []string{"redsync"}; !slices.Equal(got, want) {
		t.Errorf("asked for, in one/g=4/get: %v, want %v", got, want)
	}
	for _, m := range modes() {
		if got := parts("", m.name()); !slices.Contains(got, ours) || !slices.Contains(got, baseline) {
			t.Errorf("in %s there are only %v", m.name(), got)
		}
	}
	if _, err := newPlan(settings{only: "scripts-pool", modes: "hot"}); err == nil {
		t.Error("a plan without a round is no error")
	}
}
