package main

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestAFullRunTakesFortyMinutes(t *testing.T) {
	set, err := parse(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(set)
	if err != nil {
		t.Fatal(err)
	}
	rounds := p.rounds()
	if took := estimate(rounds); took > 40*time.Minute || p.repeats < 5 {
		t.Errorf("%d rounds in %d repeats take about %v", len(rounds), p.repeats, took)
	}
}

// No contender always begins, or always follows the same one.
func TestTheOrderChanges(t *testing.T) {
	for n := 2; n <= 5; n++ {
		p := plan{modes: modes()[:1], repeats: 2 * n}
		for i := range n {
			p.contenders = append(p.contenders, contender{name: fmt.Sprint(i)})
		}
		begins, after := map[string]bool{}, map[string]map[string]bool{}
		rounds := p.rounds()
		for i, r := range rounds {
			if i%n == 0 {
				begins[r.contender.name] = true
				continue
			}
			if after[r.contender.name] == nil {
				after[r.contender.name] = map[string]bool{}
			}
			after[r.contender.name][rounds[i-1].contender.name] = true
		}
		if len(begins) != n {
			t.Errorf("of %d contenders %d begin", n, len(begins))
		}
		for name, before := range after {
			if len(before) < min(2, n-1) {
				t.Errorf("of %d contenders %s always comes after the same one", n, name)
			}
		}
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
	if got, want := parts("redsync,postgres", "one/g=4/get"), []string{"redsync"}; !slices.Equal(got, want) {
		t.Errorf("asked for, in one/g=4/get: %v, want %v", got, want)
	}
	for _, m := range modes() {
		got := parts("", m.name())
		with := baseline
		switch {
		case m.nodes > 0:
			with = "redsync"
		case m.kind != "":
			with = "redisson"
			want := []string{ours, "redisson"}
			if m.kind == semaphore {
				want = append(want, "sorted-set")
			}
			if !slices.Equal(got, want) {
				t.Errorf("in %s there are %v, want %v", m.name(), got, want)
			}
		case m.others:
			with = "etcd"
			if want := []string{ours, "etcd", "etcd-nosync", "postgres"}; !slices.Equal(got, want) {
				t.Errorf("in %s there are %v, want %v", m.name(), got, want)
			}
		case m.alone():
			with = ours
			if len(got) != 1 {
				t.Errorf("in %s there are %v", m.name(), got)
			}
		}
		if !slices.Contains(got, ours) || !slices.Contains(got, with) {
			t.Errorf("in %s there are only %v", m.name(), got)
		}
	}
	if got, want := parts("redislock", "clients/n=1000/empty"), []string{"redislock"}; !slices.Equal(got, want) {
		t.Errorf("asked for, with 1,000 clients: %v, want %v", got, want)
	}
	for only, want := range map[string]bool{"": false, ours: false, "etcd": true, "fencelock,postgres": true} {
		p, err := newPlan(settings{only: only, repeats: 1, seconds: 1, grace: 1})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.ContainsFunc(p.modes, func(m mode) bool { return m.others }); got != want {
			t.Errorf("without -modes, asked for %q: the modes others are in: %v", only, got)
		}
	}
	if _, err := newPlan(settings{only: "postgres", modes: "hot"}); err == nil {
		t.Error("a plan without a round is no error")
	}
}
