package main

import (
	"fmt"
	"slices"
	"strings"
)

// names returns the contenders that there are figures of, in their order.
func (r report) names() []string {
	var names []string
	for _, c := range contenders {
		if slices.ContainsFunc(r.Summaries, func(s summary) bool { return s.Contender == c.name }) {
			names = append(names, c.name)
		}
	}
	return names
}

func noteOf(name string) string {
	for _, c := range contenders {
		if c.name == name {
			return c.note
		}
	}
	return ""
}

// of returns the summaries of one mode.
func (r report) of(m mode) []summary {
	var rows []summary
	for _, s := range r.Summaries {
		if s.Mode == m.name() {
			rows = append(rows, s)
		}
	}
	return rows
}

// some tells that there are figures of some of the modes.
func (r report) some(of []mode) bool {
	return slices.ContainsFunc(of, func(m mode) bool { return len(r.of(m)) > 0 })
}

// only tells that all figures are of these modes.
func (r report) only(these []mode) bool {
	return !r.some(slices.DeleteFunc(modes(), func(m mode) bool { return slices.Contains(these, m) }))
}

// overview is a table of all modes with the rates as multiples of the baseline's.
func (r report) overview(b *strings.Builder) {
	names := r.names()
	if !slices.ContainsFunc(r.Summaries, func(s summary) bool { return s.Ratio != nil }) {
		return
	}
	of := baseline + "'s, on several servers of redsync's"
	switch {
	case r.only(otherModes()):
		of = ours + "'s"
	case r.only(kindModes()):
		of = "redisson's"
	}
	fmt.Fprintf(b, "\n## Overview\n\nPairs a second, as a multiple of %s.\n\n| mode |", of)
	for _, name := range names {
		fmt.Fprintf(b, " %s |", name)
	}
	fmt.Fprintf(b, "\n|---|%s\n", strings.Repeat("--:|", len(names)))
	for _, m := range modes() {
		rows := r.of(m)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s |", m.name())
		for _, name := range names {
			cell := "-"
			for _, s := range rows {
				if s.Contender == name && s.Ratio != nil {
					cell = fmt.Sprintf("%.2f", s.Ratio.Median)
				}
			}
			fmt.Fprintf(b, " %s |", cell)
		}
		b.WriteString("\n")
	}
}

// rateTable is how fast it was, and what must not be.
func rateTable(b *strings.Builder, rows []summary) {
	b.WriteString("| contender | pairs/s | ratio | wait p50 | p99 | p99 ratio | max | use p50 | p99 | overlaps | out of order | hung | errors |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range rows {
		order := "-"
		if s.Tokens {
			order = fmt.Sprint(s.OutOfOrder)
		}
		hung := fmt.Sprint(s.Hung)
		if s.Hung > 0 {
			hung += fmt.Sprintf(" in %d of %d rounds", s.HungRounds, s.Repeats)
		}
		fmt.Fprintf(b, "| %s | %.0f (%.0f-%.0f) | %s | %s | %s (%s-%s) | %s | %s | %s | %s (%s-%s) | %d | %s | %s | %d |\n",
			s.Contender, s.PairsPerSec.Median, s.PairsPerSec.Min, s.PairsPerSec.Max, ratioCell(s.Ratio),
			duration(s.WaitP50.Median), duration(s.WaitP99.Median), duration(s.WaitP99.Min), duration(s.WaitP99.Max),
			ratioCell(s.RatioP99), duration(s.WaitMax),
			duration(s.UseP50.Median), duration(s.UseP99.Median), duration(s.UseP99.Min), duration(s.UseP99.Max), s.Overlaps, order, hung, s.Errors)
	}
	b.WriteString("\n")
	for _, s := range rows {
		if s.FirstError != "" {
			fmt.Fprintf(b, "%s: the first error was: %s\n\n", s.Contender, strings.ReplaceAll(s.FirstError, "\n", " "))
		}
		if s.Still > 0 {
			fmt.Fprintf(b, "%s: in %d of %d rounds no pair ended within the window.\n\n", s.Contender, s.Still, s.Repeats)
		}
	}
}

// costTable is what a pair costs, and who got how much.
func costTable(b *strings.Builder, rows []summary) {
	b.WriteString("| contender | commands | messages | server CPU | client CPU | allocs | bytes | connections | least/most goroutine | client |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, s := range rows {
		if s.Still == s.Repeats {
			fmt.Fprintf(b, "| %s |%s\n", s.Contender, strings.Repeat(" - |", 9))
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %s | %.1f us | %.1f us | %s | %.0f | %.0f | %.2f | %.2f |\n",
			s.Contender, known("%.1f", s.Commands), known("%.1f", s.Messages), s.ServerCPU, s.ClientCPU, known("%.0f", s.Allocs),
			s.AllocBytes, s.Connections, s.FairGoroutine, s.FairClient)
	}
}

// known is a figure that only some contenders have: those without Redis send it no commands.
func known(format string, figure float64) string {
	if figure == 0 {
		return "-"
	}
	return fmt.Sprintf(format, figure)
}

func ratioCell(s *spread) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max)
}
