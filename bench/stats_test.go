package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for _, c := range []struct {
		values []int
		p      float64
		want   int
	}{
		{nil, 50, 0},
		{[]int{7}, 0, 7},
		{[]int{7}, 50, 7},
		{[]int{7}, 100, 7},
		{[]int{1, 2}, 50, 1},
		{[]int{1, 2}, 51, 2},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 99.1, 100},
		{hundred, 100, 100},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile(%v, %v) = %v, want %v", c.values, c.p, got, c.want)
		}
	}
}

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{9, 1}, spread{5, 1, 9}},
		{[]float64{9, 1, 2}, spread{2, 1, 9}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}},
	} {
		before := slices.Clone(c.values)
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("spreadOf(%v) = %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("spreadOf changed its values from %v to %v", before, c.values)
		}
	}
}

func TestFairness(t *testing.T) {
	for _, c := range []struct {
		values []int
		want   float64
	}{
		{nil, 1}, {[]int{5}, 1}, {[]int{0, 0}, 1}, {[]int{0, 3}, 0}, {[]int{4, 2, 3}, 0.5},
	} {
		if got := fairness(c.values); got != c.want {
			t.Errorf("fairness(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestParseInfo(t *testing.T) {
	r := parseInfo("# Clients\r\nconnected_clients:5\r\n# CPU\r\nused_cpu_sys:1.5\r\nused_cpu_user:0.25\r\n" +
		"used_cpu_sys_children:9\r\ntotal_reads_processed:21\r\ncmdstat_get:calls=12,usec=3\r\ncmdstat_config|get:calls=2,usec=1\r\ncmdstat_info:calls=8\r\n")
	if r.connections != 5 || r.cpu != 1750*time.Millisecond {
		t.Errorf("connections %d, CPU %v; want 5 and 1.75s", r.connections, r.cpu)
	}
	if len(r.commands) != 3 || r.commands["get"] != 12 || r.commands["config|get"] != 2 || r.commands["info"] != 8 || r.messages != 21 {
		t.Errorf("commands %v, messages %d; want get 12, config|get 2, info 8, and 21", r.commands, r.messages)
	}
}

func TestMetersGoByRates(t *testing.T) {
	start := time.Now()
	before := reading{at: start, servers: 5, commands: map[string]int{"get": 100, "info": 20}, messages: 10}
	after := reading{at: start.Add(2 * time.Second), servers: 5, commands: map[string]int{"get": 2100, "info": 2025}, messages: 6015, cpu: time.Second} // twice the window
	used := usage{At: 2 * time.Second, CPU: time.Second / 2, Allocs: 8000}
	res := result{Pairs: 1000, PairsPerSec: 1000}
	res.meters(before, after, usage{}, used)
	if res.Commands != 2 || res.CommandsBy["info"] != 1 || res.Messages != 3 || res.ServerCPU != 500 || res.ClientCPU != 250 || res.Allocs != 4 {
		t.Errorf("commands %v (%v), messages %v, server %v, client %v, allocs %v; want 2 (1 of each), 3, 500, 250, 4",
			res.Commands, res.CommandsBy, res.Messages, res.ServerCPU, res.ClientCPU, res.Allocs)
	}
}

func TestSelected(t *testing.T) {
	names := []string{"own/g=1", "own/g=1024", "one/g=4/get"}
	self := func(s string) string { return s }
	for words, want := range map[string][]string{
		"":              names,
		"own":           names[:2],
		"own/g=1":       names[:1], // a whole name
		"get, own/g=10": names[1:],
	} {
		if got, err := selected(names, self, words); err != nil || !slices.Equal(got, want) {
			t.Errorf("selected(%q) = %v, %v; want %v", words, got, err, want)
		}
	}
	for _, words := range []string{"x", "own,", ","} {
		if got, err := selected(names, self, words); err == nil {
			t.Errorf("selected(%q) = %v, want an error", words, got)
		}
	}
}

func TestRatioIsWithinTheRepeat(t *testing.T) {
	m := mode{family: "own", goroutines: 1}
	rate := func(contender string, repeat int, rate float64) result {
		return result{Contender: contender, Mode: m.name(), Repeat: repeat, PairsPerSec: rate, Hung: repeat - 1}
	}
	all := summarize([]result{
		rate("fencelock", 1, 200), rate(baseline, 1, 100),
		rate(baseline, 2, 10), rate("fencelock", 2, 30),
		rate(baseline, 3, 50), rate("fencelock", 3, 50),
	}, m)
	if len(all) != 2 || all[0].Contender != "fencelock" || all[0].Ratio == nil {
		t.Fatalf("summaries are %+v", all)
	}
	if want := (spread{2, 1, 3}); *all[0].Ratio != want {
		t.Errorf("ratio %v, want %v", *all[0].Ratio, want)
	}
	if all[0].Hung != 3 || all[0].HungRounds != 2 {
		t.Errorf("hung %d in %d rounds, want 3 in 2", all[0].Hung, all[0].HungRounds)
	}
}

// What a pair costs is of the rounds that have one, and a contender without any has no figures.
func TestRoundsWithoutAPair(t *testing.T) {
	m := mode{nodes: majority, trouble: dead}.own(1)
	still := result{Contender: "redsync", Mode: m.name(), Repeat: 1, Hung: 1}
	moves := result{Contender: "redsync", Mode: m.name(), Repeat: 5, PairsPerSec: 2, Commands: 20, Messages: 10}
	one, none := summarize([]result{still, moves}, m)[0], summarize([]result{still}, m)[0]
	if one.Still != 1 || one.Commands != 20 || one.Messages != 10 || none.Still != 1 {
		t.Errorf("got %+v and %+v", one, none)
	}
	var b strings.Builder
	rateTable(&b, []summary{one, none})
	costTable(&b, []summary{one, none})
	for _, want := range []string{"redsync: in 1 of 2 rounds no pair ended", "redsync: in 1 of 1 rounds", "| redsync | 20.0 | 10.0 |", "| redsync | - |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, &b)
		}
	}
}
