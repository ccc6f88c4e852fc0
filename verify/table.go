package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A sum is what rounds came to.
type sum struct {
	rounds, ops, holds, lost, unknown, stale, faults, violations, unchecked int
	wakes                                                                   []time.Duration
	stall                                                                   time.Duration
	line                                                                    string // what was seen of the line, or of permits, in one round
}

func summarize(t trial, v verdict) sum {
	s := sum{rounds: 1, ops: len(t.Ops) + int(t.churned), faults: len(t.Faults), violations: len(v.Violations), unchecked: len(v.Unchecked), wakes: v.wakes, stall: t.Stall}
	if t.Line != nil {
		s.line = t.lineSeen()
	}
	s.line += t.permitsSeen() + t.readersSeen()
	for _, o := range t.Ops {
		switch {
		case o.Kind == acquire && o.Outcome == done:
			s.holds++
		case o.Kind == unlock && o.Outcome == refused:
			s.lost++
		case (o.Kind == read || o.Kind == write) && o.Outcome == refused:
			s.stale++
		}
		if o.Outcome == unknown || o.Outcome == open {
			s.unknown++
		}
	}
	return s
}

func (s *sum) add(o sum) {
	s.rounds += o.rounds
	s.ops += o.ops
	s.holds += o.holds
	s.lost += o.lost
	s.unknown += o.unknown
	s.stale += o.stale
	s.faults += o.faults
	s.violations += o.violations
	s.unchecked += o.unchecked
	s.wakes = append(s.wakes, o.wakes...)
	s.stall = max(s.stall, o.stall)
}

func (s sum) String() string {
	return fmt.Sprintf("%6d calls, %5d holds, %3d lost, %3d unknown, %3d stale, %2d faults, wake %v/%v%s",
		s.ops, s.holds, s.lost, s.unknown, s.stale, s.faults, quantile(s.wakes, 0.5), quantile(s.wakes, 1), s.line)
}

func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[int(q*float64(len(d)-1))].Round(100 * time.Microsecond)
}

// tableOf is the summary, in Markdown.
func tableOf(all []scenario, sums map[string]*sum) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| scenario | rounds | faults | calls | holds | lost | unknown | stale writes refused | wake, median / longest | not checked | violations |")
	fmt.Fprintln(&b, "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
	line := func(name string, s sum) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %v / %v | %d | %d |\n", name, s.rounds, s.faults, s.ops, s.holds, s.lost,
			s.unknown, s.stale, quantile(s.wakes, 0.5), quantile(s.wakes, 1), s.unchecked, s.violations)
	}
	var total sum
	for _, sc := range all {
		if s := sums[sc.name]; s != nil {
			line(sc.name, *s)
			total.add(*s)
		}
	}
	line("all", total)
	return b.String()
}
