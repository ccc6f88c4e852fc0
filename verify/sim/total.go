package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A total is what all worlds have shown.
type total struct {
	set                    settings
	began                  time.Time
	worlds                 int
	calls, holds, commands int
	virtual, clientTime    time.Duration
	shares                 shares
	failed                 []outcome
	done                   map[string]int // how often each thing was done
	worldsThat             map[string]int // and by how many worlds
}

func newTotal(set settings) *total {
	return &total{set: set, began: time.Now(), done: make(map[string]int), worldsThat: make(map[string]int)}
}

func (t *total) add(o outcome) {
	t.worlds++
	t.calls += o.Calls
	t.holds += o.Holds
	t.commands += o.Commands
	t.virtual += o.Virtual
	t.shares.add(o.Shares)
	for what, n := range o.Done {
		t.done[what] += n
		t.worldsThat[what]++
	}
	t.clientTime += o.Virtual * time.Duration(len(o.Plan.Clients))
	if len(o.Violations) > 0 {
		t.failed = append(t.failed, o)
	}
}

// verdict says what is wrong, in a line.
func (o outcome) verdict() string {
	if len(o.Violations) == 0 {
		return "nothing is wrong"
	}
	var rules []string
	for _, v := range o.Violations {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	return "VIOLATED: " + strings.Join(rules, "; ")
}

func (t *total) print(out io.Writer) {
	real := time.Since(t.began)
	fmt.Fprintf(out, "%d worlds, seeds %d to %d: %.1f virtual hours, %.0f client-hours, in %v: %.0f client-hours a minute, with %d at a time\n",
		t.worlds, t.set.seed, t.set.seed+uint64(t.worlds)-1, t.virtual.Hours(), t.clientTime.Hours(), real.Round(time.Second), t.clientTime.Hours()/real.Minutes(), t.set.jobs)
	fmt.Fprintf(out, "judged: %v of the time that locks are waited for, by the rule that nobody sleeps; %v of the time that clients have them, by the rule that none is nobody's; %v of that of contexts, by the rule that what Redis has not got ends; %v of the releases behind which somebody waits\n",
		t.shares.Waited, t.shares.Taken, t.shares.Lived, t.shares.Released)
	fmt.Fprintf(out, "%d calls, %d holds, %d commands; %d worlds in which something was violated\n", t.calls, t.holds, t.commands, len(t.failed))
	t.printNever(out)
}

// stories shrinks the worlds that failed, one for each rule, and tells what happened in them.
func (t *total) stories(ctx context.Context, set settings, out, progress io.Writer) error {
	told := make(map[string]bool)
	for _, o := range t.failed {
		rule := o.Violations[0].Rule
		if told[rule] {
			continue
		}
		told[rule] = true
		fmt.Fprintf(out, "\nseed %d: %s\n", o.Seed, o.verdict())
		if set.shrink > 0 && rule != itEnds {
			o = shrink(ctx, set, o, progress)
		}
		tell(out, o.Plan, o.History, o.Violations)
	}
	if len(t.failed) > 0 {
		return fmt.Errorf("%d of %d worlds: %w", len(t.failed), t.worlds, errViolated)
	}
	if missed := t.never(); set.covers && len(missed) > 0 {
		return fmt.Errorf("%d things: %w", len(missed), errNever)
	}
	return nil
}

func list(out io.Writer) {
	fmt.Fprintln(out, "faults:")
	for _, k := range faultKinds {
		fmt.Fprintf(out, "  %-16s %s\n", k.name, k.text)
	}
	fmt.Fprintln(out, "bugs, for -broken:")
	for _, b := range bugs {
		fmt.Fprintf(out, "  %-16s %s\n", b.Short, b.Name)
	}
}

func isFault(name string) bool {
	return slices.ContainsFunc(faultKinds, func(k faultKind) bool { return k.name == name })
}
