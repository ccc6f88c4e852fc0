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
		least: []float64{1, 1.6, 1.6}, aim: []float64{1.25, 2.2, 2.2},
		figures: rates(ours, baseline, "own/g=1", "own/g=64", "own/g=1024")},
	{what: "own keys, g = 64 / 1024: pairs against rueidislock with MaxFlushDelay 20 us",
		least: []float64{1.1, 1.3}, aim: []float64{1.4, 1.7},
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
	{what: "one key, 4 clients, g = 64 / 512: pairs against rueidislock",
		least: []float64{1.7, 1.7}, aim: []float64{2.2, 2.4},
		figures: rates(ours, baseline, "one/g=64/empty", "one/g=512/empty")},
	{what: "the same, g = 64 / 512: p99 wait against rueidislock", atMost: true,
		least: []float64{0.45, 0.45}, aim: []float64{0.15, 0.15},
		figures: ratios(ours, baseline, waitOf, "one/g=64/empty", "one/g=512/empty")},
	{what: "the same, g = 64 / 512: commands a handoff", atMost: true,
		least: []float64{7, 7}, aim: []float64{3.5, 3.5},
		figures: ofSummaries(commandsOf, "one/g=64/empty", "one/g=512/empty")},
	{what: "the same, g = 64: least / most pairs, of clients / of goroutines",
		least: []float64{0.8, 0.8}, aim: []float64{0.95, 0.95},
		figures: []figure{
			ofSummary("one/g=64/empty", func(s summary) float64 { return s.FairClient }),
			ofSummary("one/g=64/empty", func(s summary) float64 { return s.FairGoroutine }),
		}},
	{what: "own keys, g = 64 / 1024: pairs against Redisson on the JVM",
		least: []float64{5, 6}, aim: []float64{8, 10},
		figures: rates(ours, "redisson", "own/g=64", "own/g=1024")},
	{what: "one key, 4 clients, g = 64 / 512: pairs against Redisson on the JVM",
		least: []float64{4, 4}, aim: []float64{6, 6},
		figures: rates(ours, "redisson", "one/g=64/empty", "one/g=512/empty")},
	{what: "n clients with a caller each, empty, n = 4 / 16 / 64 / 256: pairs against the best of three",
		least: []float64{0.5, 0.5, 0.7, 4}, aim: []float64{1.1, 1, 1, 8},
		figures: againstBest(pairsOf, more, clientsOf("empty")...)},
	{what: "the same: p99 of a use against the best", atMost: true,
		least: []float64{1, 0.3, 0.2, 0.1}, aim: []float64{1, 0.3, 0.2, 0.1},
		figures: againstBest(useOf, less, clientsOf("empty")...)},
	{what: "the same, n = 1,000 against n = 16: pairs",
		least: []float64{0.7}, aim: []float64{0.7},
		figures: []figure{across(pairsOf, "clients/n=1000/empty", "clients/n=16/empty")}},
	{what: "the same, n = 1,000: p99 of a use against clients / rate", atMost: true,
		least: []float64{4}, aim: []float64{4},
		figures: []figure{ofSummary("clients/n=1000/empty", func(s summary) float64 {
			return s.UseP99.Median * s.PairsPerSec.Median / 1e6 / 1000
		})}},
	{what: "the same, n = 4 / 16 / 64 / 256 / 1,000: least / most pairs of clients",
		least: []float64{0.9, 0.9, 0.9, 0.8, 0.7}, aim: []float64{0.9, 0.9, 0.9, 0.8, 0.7},
		figures: ofSummaries(func(s summary) float64 { return s.FairClient }, append(clientsOf("empty"), "clients/n=1000/empty")...)},
	{what: "n clients, 2 ms inside, taken for 70% of the time, n = 4 / 16 / 64 / 256: p99 wait against the best", atMost: true,
		least: []float64{1, 0.6, 0.5, 0.4}, aim: []float64{1, 0.4, 0.3, 0.2},
		figures: againstBest(waitOf, less, clientsOf("2ms-70")...)},
	{what: "n clients, 2 ms inside, always wanted, n = 4 / 16 / 64 / 256: pairs against the best",
		least: []float64{1, 1, 1.05, 1.5}, aim: []float64{1, 1, 1.05, 1.5},
		figures: againstBest(pairsOf, more, clientsOf("2ms")...)},
	{what: "the same with 2 ms always wanted: p99 of a use against the best", atMost: true,
		least: []float64{1, 0.5, 0.2, 0.15}, aim: []float64{1, 0.5, 0.2, 0.15},
		figures: againstBest(useOf, less, clientsOf("2ms")...)},
	{what: "n clients, empty, n = 4 / 16 / 64 / 256: commands a handoff", atMost: true,
		least: []float64{22, 22, 22, 22}, aim: []float64{17, 17, 17, 17},
		figures: ofSummaries(commandsOf, clientsOf("empty")...)},
	{what: "the same with 2 ms inside", atMost: true,
		least: []float64{22, 22, 22, 22}, aim: []float64{17, 17, 17, 17},
		figures: ofSummaries(commandsOf, clientsOf("2ms")...)},
	{what: "the same with 2 ms inside, taken for 70% of the time", atMost: true,
		least: []float64{22, 22, 22, 22}, aim: []float64{17, 17, 17, 17},
		figures: ofSummaries(commandsOf, clientsOf("2ms-70")...)},
	{what: "the same, empty / 2 ms / 70%, n = 1,000 against n = 16: commands a handoff", atMost: true,
		least: []float64{1.1, 1.1, 1.1}, aim: []float64{1.1, 1.1, 1.1},
		figures: []figure{
			across(func(r result) float64 { return r.Commands }, "clients/n=1000/empty", "clients/n=16/empty"),
			across(func(r result) float64 { return r.Commands }, "clients/n=1000/2ms", "clients/n=16/2ms"),
			across(func(r result) float64 { return r.Commands }, "clients/n=1000/2ms-70", "clients/n=16/2ms-70"),
		}},
	{what: "64 clients with 8 callers each, empty: pairs against rueidislock",
		least: []float64{1.7}, aim: []float64{1.7},
		figures: rates(ours, baseline, "clients/n=64x8/empty")},
	{what: "the same: p99 wait against rueidislock", atMost: true,
		least: []float64{0.45}, aim: []float64{0.45},
		figures: ratios(ours, baseline, waitOf, "clients/n=64x8/empty")},
	{what: "quorum of 5 servers, one key, a caller in each client, empty, 64 clients against 4: pairs",
		least: []float64{0.5}, aim: []float64{0.8},
		figures: []figure{across(pairsOf, "quorum/n=64/empty", "quorum/n=4/empty")}},
	{what: "the same, n = 4 / 16 / 64: pairs against redsync",
		least: []float64{0.85, 1, 1}, aim: []float64{1.1, 1.1, 1.1},
		figures: rates(ours, "redsync", quorumOf("empty")...)},
	{what: "the same, n = 4 / 16 / 64: least / most pairs of clients",
		least: []float64{0.9, 0.9, 0.9}, aim: []float64{0.95, 0.95, 0.95},
		figures: ofSummaries(func(s summary) float64 { return s.FairClient }, quorumOf("empty")...)},
	{what: "the same, n = 16 / 64: p99 of a use against redsync", atMost: true,
		least: []float64{0.1, 0.1}, aim: []float64{0.05, 0.05},
		figures: ratios(ours, "redsync", useOf, quorumOf("empty")[1:]...)},
	{what: "the same, n = 4 / 16 / 64: commands a handoff", atMost: true,
		least: []float64{50, 50, 50}, aim: []float64{44, 44, 44},
		figures: ofSummaries(commandsOf, quorumOf("empty")...)},
	{what: "the same, n = 4 / 16 / 64: messages a handoff", atMost: true,
		least: []float64{8, 8, 8}, aim: []float64{7, 7, 7},
		figures: ofSummaries(messagesOf, quorumOf("empty")...)},
	{what: "quorum of 5 servers, one key, 2 ms inside, taken for 70% of the time, n = 4 / 16 / 64: pairs against redsync",
		least: []float64{2.2, 2, 1.7}, aim: []float64{2.5, 2.3, 1.9},
		figures: rates(ours, "redsync", quorumOf("2ms-70")...)},
	{what: "the same with 2 ms inside, taken for 70% of the time: p99 of a use against redsync", atMost: true,
		least: []float64{0.1, 0.1, 0.1}, aim: []float64{0.05, 0.05, 0.05},
		figures: ratios(ours, "redsync", useOf, quorumOf("2ms-70")...)},
	{what: "quorum of 5 servers, own keys, g = 1 / 16 / 128: pairs against redsync",
		least: []float64{1, 1.6, 2}, aim: []float64{1.2, 2.1, 3},
		figures: rates(ours, "redsync", quorumOwn...)},
	{what: "the same with own keys: commands a pair", atMost: true,
		least: []float64{36, 36, 36}, aim: []float64{34, 34, 34},
		figures: ofSummaries(commandsOf, quorumOwn...)},
	{what: "the same with own keys: messages a pair", atMost: true,
		least: []float64{6, 6, 6}, aim: []float64{6, 6, 6},
		figures: ofSummaries(messagesOf, quorumOwn...)},
	{what: "semaphore of 5 permits, a caller in each client, empty, n = 64: permits against Redisson on the JVM",
		least: []float64{3}, aim: []float64{3},
		figures: rates(ours, "redisson", "semaphore/n=64/empty")},
	{what: "the same, empty / 2 ms, n = 64: p99 wait against Redisson on the JVM", atMost: true,
		least: []float64{0.33, 0.33}, aim: []float64{0.33, 0.33},
		figures: ratios(ours, "redisson", waitOf, "semaphore/n=64/empty", "semaphore/n=64/2ms")},
	{what: "read-write lock, a caller in each client, empty, n = 64, which all read / which 9 of 10 uses read: pairs against Redisson on the JVM",
		least: []float64{3, 3}, aim: []float64{3, 3},
		figures: rates(ours, "redisson", "rwlock-readers/n=64/empty", "rwlock-mixed/n=64/empty")},
	{what: "the same, which 9 of 10 uses read, empty / 2 ms: p99 wait against Redisson on the JVM", atMost: true,
		least: []float64{0.33, 0.33}, aim: []float64{0.33, 0.33},
		figures: ratios(ours, "redisson", waitOf, "rwlock-mixed/n=64/empty", "rwlock-mixed/n=64/2ms")},
	{what: "the same: longest wait of one writer beside 64 that read, empty / 2 ms, in milliseconds", atMost: true,
		least: []float64{50, 50}, aim: []float64{50, 50},
		figures: ofSummaries(func(s summary) float64 { return s.WaitMax / 1000 }, "rwlock-lone/n=65/empty", "rwlock-lone/n=65/2ms")},
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
	return ratios(who, than, pairsOf, modes...)
}

func pairsOf(r result) float64     { return r.PairsPerSec }
func waitOf(r result) float64      { return r.WaitP99 }
func useOf(r result) float64       { return r.UseP99 }
func commandsOf(s summary) float64 { return s.Commands }
func messagesOf(s summary) float64 { return s.Messages }

var quorumOwn = []string{"quorum-own/g=1", "quorum-own/g=16", "quorum-own/g=128"}

// quorumOf are the modes of a load of one key on several servers.
func quorumOf(load string) []string {
	return []string{"quorum/n=4/" + load, "quorum/n=16/" + load, "quorum/n=64/" + load}
}

// clientsOf are the modes of a load with all numbers of clients that others take part in.
func clientsOf(load string) []string {
	var names []string
	for _, m := range clientModes() {
		if m.nodes == 0 && m.callers == 1 && !m.alone() && m.load() == load {
			names = append(names, m.name())
		}
	}
	return names
}

// ratios are medians over the repeats, of rounds in the same one.
func ratios(who, than string, of func(result) float64, modes ...string) []figure {
	var figures []figure
	for _, mode := range modes {
		figures = append(figures, func(r report) (float64, bool) {
			return medianRatio(r.rounds(who, mode), byRepeat(r.rounds(than, mode)), of)
		})
	}
	return figures
}

// peers are those of whom the best is what is compared with.
var peers = []string{baseline, "redislock", "redsync"}

// againstBest are ratios of ours to the peer whose figure is the best in the same repeat.
func againstBest(of func(result) float64, better func(a, b float64) bool, modes ...string) []figure {
	var figures []figure
	for _, mode := range modes {
		figures = append(figures, func(r report) (float64, bool) {
			best := map[int]result{}
			for _, peer := range peers {
				for _, res := range r.rounds(peer, mode) {
					if was := of(best[res.Repeat]); of(res) > 0 && (was == 0 || better(of(res), was)) {
						best[res.Repeat] = res
					}
				}
			}
			return medianRatio(r.rounds(ours, mode), best, of)
		})
	}
	return figures
}

func more(a, b float64) bool { return a > b }
func less(a, b float64) bool { return a < b }

// across is a ratio of ours in one mode to ours in another.
func across(of func(result) float64, mode, than string) figure {
	return func(r report) (float64, bool) {
		return medianRatio(r.rounds(ours, mode), byRepeat(r.rounds(ours, than)), of)
	}
}

// rounds are those of a contender in a mode.
func (r report) rounds(who, mode string) []result {
	var rounds []result
	for _, res := range r.Results {
		if res.Contender == who && res.Mode == mode {
			rounds = append(rounds, res)
		}
	}
	return rounds
}

func byRepeat(rounds []result) map[int]result {
	all := map[int]result{}
	for _, res := range rounds {
		all[res.Repeat] = res
	}
	return all
}

func medianRatio(rounds []result, base map[int]result, of func(result) float64) (float64, bool) {
	s := ratio(rounds, base, of)
	if s == nil {
		return 0, false
	}
	return s.Median, true
}

// ofSummaries is a figure of ours for each mode.
func ofSummaries(of func(summary) float64, modes ...string) []figure {
	var figures []figure
	for _, mode := range modes {
		figures = append(figures, ofSummary(mode, of))
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
	left := 0
	for _, w := range r.targetRows() {
		if w.Verdict == notMeasured {
			left++
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", w.What, w.AtLeast, w.Aim, w.Measured, w.Verdict, w.Reason)
	}
	if left > 0 {
		fmt.Fprintf(b, "\n%d rows are left out, for which this run has no figure.\n", left)
	}
	b.WriteString("\n")
}
