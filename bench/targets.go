package main

import (
	"fmt"
	"slices"
	"strings"
)

// A target is a row of the table of what to reach: one figure, or several that belong together.
type target struct {
	what    string
	least   []float64 // what must be reached, by figure
	aim     []float64 // what is wished for
	atMost  bool      // less is better: least and aim are upper bounds
	figures []figure
}

// A figure takes a value out of a report; false: the run had no rounds for it.
type figure func(report) (float64, bool)

// targets are in the order of the table. Held ones are put before the last: see held.
var targets = []target{
	{what: "own keys, g = 1 / 64 / 1024: pairs against rueidislock as it comes",
		least: []float64{1, 1.5, 1.6}, aim: []float64{1.2, 1.75, 1.9},
		figures: rates(ours, baseline, "own/g=1", "own/g=64", "own/g=1024")},
	{what: "own keys, g = 64 / 1024: pairs against rueidislock with MaxFlushDelay 20 us",
		least: []float64{1.1, 1.3}, aim: []float64{1.25, 1.7},
		figures: rates(ours, tuned, "own/g=64", "own/g=1024")},
	{what: "own keys, g = 64 / 1024: pairs against the same scripts over a plain pool",
		least: []float64{2, 3}, aim: []float64{2.7, 4.5},
		figures: rates(ours, "scripts-pool", "own/g=64", "own/g=1024")},
	{what: "own keys, g = 64 / 1024: pairs against redislock",
		least: []float64{2, 3}, aim: []float64{3, 4.5},
		figures: rates(ours, "redislock", "own/g=64", "own/g=1024")},
	{what: "own keys, g = 64 / 1024: pairs against redsync",
		least: []float64{2, 3}, aim: []float64{3, 4.5},
		figures: rates(ours, "redsync", "own/g=64", "own/g=1024")},
	{what: "one key, 4 clients, g = 4 / 64 / 512: pairs against rueidislock",
		least: []float64{1.2, 1.7, 1.7}, aim: []float64{1.5, 2.2, 2.2},
		figures: rates(ours, baseline, "one/g=4/empty", "one/g=64/empty", "one/g=512/empty")},
	{what: "the same, g = 64 / 512: p99 wait against rueidislock", atMost: true,
		least: []float64{0.45, 0.45}, aim: []float64{0.15, 0.3},
		figures: ratios(ours, baseline, func(r result) float64 { return r.WaitP99 }, "one/g=64/empty", "one/g=512/empty")},
	{what: "the same, g = 64 / 512: commands a handoff", atMost: true,
		least: []float64{6.5, 6.5}, aim: []float64{3.5, 3.5},
		figures: []figure{
			ofSummary("one/g=64/empty", func(s summary) float64 { return s.Commands }),
			ofSummary("one/g=512/empty", func(s summary) float64 { return s.Commands }),
		}},
	{what: "the same, g = 64: least / most pairs, of clients / of goroutines",
		least: []float64{0.8, 0.8}, aim: []float64{0.95, 0.95},
		figures: []figure{
			ofSummary("one/g=64/empty", func(s summary) float64 { return s.FairClient }),
			ofSummary("one/g=64/empty", func(s summary) float64 { return s.FairGoroutine }),
		}},
	{what: "token blocks, one key, g = 64, empty / one GET / 1 ms inside: pairs against rueidislock",
		least: []float64{35, 3, 1.35}, aim: []float64{70, 4, 1.45},
		figures: rates(blocks, baseline, "one/g=64/empty", "one/g=64/get", "one/g=64/1ms")},
	{what: "own keys, g = 64 / 1024: pairs against Redisson on the JVM",
		least: []float64{3, 5}, aim: []float64{6, 10},
		figures: rates(ours, "redisson", "own/g=64", "own/g=1024")},
	{what: "one key, 4 clients, g = 64 / 512: pairs against Redisson on the JVM",
		least: []float64{3, 3}, aim: []float64{5, 5},
		figures: rates(ours, "redisson", "one/g=64/empty", "one/g=512/empty")},
	{what: "all modes: hung waiters / overlaps / tokens out of order", atMost: true,
		least: []float64{0, 0, 0}, aim: []float64{0, 0, 0},
		figures: []figure{
			inAll(func(s summary) float64 { return float64(s.Hung) }),
			inAll(func(s summary) float64 { return float64(s.Overlaps) }),
			inAll(func(s summary) float64 { return float64(s.OutOfOrder) }),
		}},
}

// rates are the pairs a second of one contender over another's, a figure for each mode.
func rates(who, than string, modes ...string) []figure {
	return ratios(who, than, func(r result) float64 { return r.PairsPerSec }, modes...)
}

// ratios are medians over the repeats, of rounds in the same one.
func ratios(who, than string, of func(result) float64, modes ...string) []figure {
	var figures []figure
	for _, mode := range modes {
		figures = append(figures, func(r report) (float64, bool) {
			var rounds []result
			base := map[int]result{}
			for _, res := range r.Results {
				switch {
				case res.Mode == mode && res.Contender == who:
					rounds = append(rounds, res)
				case res.Mode == mode && res.Contender == than:
					base[res.Repeat] = res
				}
			}
			s := ratio(rounds, base, of)
			if s == nil {
				return 0, false
			}
			return s.Median, true
		})
	}
	return figures
}

// ofSummary is a figure of ours in one mode.
func ofSummary(mode string, of func(summary) float64) figure {
	return func(r report) (float64, bool) {
		for _, s := range r.Summaries {
			if s.Contender == ours && s.Mode == mode {
				return of(s), true
			}
		}
		return 0, false
	}
}

// inAll is a sum over all modes and all options of ours.
func inAll(of func(summary) float64) figure {
	return func(r report) (sum float64, found bool) {
		for _, s := range r.Summaries {
			if strings.HasPrefix(s.Contender, ours) {
				sum, found = sum+of(s), true
			}
		}
		return sum, found
	}
}

// Verdicts, the best first.
const (
	reachesAim   = "aim"
	reachesLeast = "at least"
	belowLeast   = "below"
	notMeasured  = "not measured"
)

// row is what the table says of the target.
func (t target) row(r report) row {
	var least, aim, measured, verdicts []string
	for i, figure := range t.figures {
		least, aim = append(least, t.bound(t.least[i])), append(aim, t.bound(t.aim[i]))
		value, ok := figure(r)
		measured, verdicts = append(measured, short(value)), append(verdicts, t.verdict(i, value))
		if !ok {
			measured[i], verdicts[i] = "-", notMeasured
		}
	}
	w := row{
		What: t.what, AtLeast: strings.Join(least, " / "), Aim: strings.Join(aim, " / "),
		Measured: strings.Join(measured, " / "), Verdict: strings.Join(verdicts, " / "),
	}
	if all := slices.Compact(verdicts); len(all) == 1 {
		w.Verdict = all[0]
	}
	if w.Verdict != reachesAim && w.Verdict != notMeasured {
		w.Reason = reasons[t.what]
	}
	return w
}

func (t target) verdict(i int, value float64) string {
	reaches := func(bound float64) bool {
		if t.atMost {
			return value <= bound
		}
		return value >= bound
	}
	switch {
	case reaches(t.aim[i]):
		return reachesAim
	case reaches(t.least[i]):
		return reachesLeast
	default:
		return belowLeast
	}
}

func (t target) bound(value float64) string {
	if t.atMost && value > 0 {
		return "<= " + short(value)
	}
	return short(value)
}

// short writes a value with as many decimals as its size deserves.
func short(value float64) string {
	switch {
	case value == float64(int64(value)):
		return fmt.Sprintf("%.0f", value)
	case value < 10:
		return fmt.Sprintf("%.2f", value)
	default:
		return fmt.Sprintf("%.1f", value)
	}
}

// targetRows are the rows of the table: this run's, and before the last of them those that were measured elsewhere.
func (r report) targetRows() []row {
	var rows []row
	for _, t := range targets {
		rows = append(rows, t.row(r))
	}
	return slices.Insert(rows, len(rows)-1, r.Held...)
}

// targetTable is what was to be reached and what was.
func (r report) targetTable(b *strings.Builder) {
	b.WriteString("## To reach\n\nMedians of this run; the ratios are of fencelock with its default options to the other, in the same repeat. Least\n" +
		"and aim are lower bounds, or upper ones where <= says so or they are 0.\n\n" +
		"| what | at least | aim | measured | verdict | why not the aim |\n|---|--:|--:|--:|---|---|\n")
	for _, w := range r.targetRows() {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", w.What, w.AtLeast, w.Aim, w.Measured, w.Verdict, w.Reason)
	}
	b.WriteString("\n")
}
