package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/test/breaks"
)

// A bug is a break of the library that this program has to find: in the scenario, and as a violation of the rule.
type bug struct {
	breaks.Break
	scenario string
	rules    []string // any of them
}

// seenIn says in which scenario, and as a violation of which rule, each break is to be found.
var seenIn = []struct {
	short, scenario string
	rules           []string
}{
	{"acquire-held", "calm", []string{ruleExclusive, ruleLock}},
	{"token-read", "calm", []string{ruleTokens}},
	{"release-silent", "wake", []string{ruleWake}},
	{"channel-kept", "calm", []string{ruleLeft}},
	{"deadline-reply", "late", []string{ruleExclusive, ruleLock}},
	{"repeat-counts", "replies", []string{ruleCount}},
	{"number-again", "replies", []string{ruleExclusive, ruleLock}},
	{"unlock-any", "replies", []string{ruleExclusive, ruleLock}},
	{"ghost-kept", "ghosts", []string{ruleWake, ruleLeft}},
	{"no-poll", "silence", []string{ruleWake}},
	{"clock-unseen", "pause", []string{ruleExclusive, ruleLock}},
	{"guard-open", "pause", []string{ruleGuard, ruleRegister}},
	{"wall-clock", "clocks", []string{ruleExclusive, ruleLock}},
	{"no-floor", "loss", []string{ruleTokens}},
	{"quorum-counters", "quorum-loss", []string{ruleTokens}},
	{"quorum-young", "quorum", []string{ruleExclusive, ruleLock}},
	{"quorum-minority", "quorum", []string{ruleExclusive, ruleLock}},
	{"second-sleeps", "line", []string{ruleCalled}},
	{"newest-first", "line", []string{ruleTurns}},
	{"line-asks", "line", []string{ruleCost}},
	{"permit-kept", "ghosts", []string{ruleWake, ruleLeft}},
	{"permit-elsewhere", "wake", []string{ruleWake}},
	{"permit-more", "permits", []string{rulePermits}},
	{"read-beside", "readwrite", []string{ruleReaders}},
	{"read-released", "readwrite", []string{ruleReaders}},
	{"read-token", "readwrite", []string{ruleTokens}},
	{"renew-any", "deleted", []string{ruleForced}},
	{"renew-revives", "deleted", []string{ruleForced, ruleLeft}},
}

var bugs = func() (all []bug) {
	for _, s := range seenIn {
		all = append(all, bug{breaks.Called(s.short), s.scenario, s.rules})
	}
	return all
}()

// soonest are those faults of the scenario that show a bug soonest, of those bugs that all of them would show after minutes.
var soonest = map[string]string{
	"ghost-kept":   "lose-taken",
	"quorum-young": "node-restart node-restart node-cut node-cut",
}

// tries is how many rounds there are to find a bug, and brokenLoad and brokenCalm how long they are, where nothing is
// found sooner.
const (
	tries      = 30
	brokenLoad = 6 * time.Second
	brokenCalm = 2 * time.Second
)

// runBroken builds the bugs and requires that each is found.
func runBroken(ctx context.Context, set settings, progress io.Writer) error {
	var chosen []bug
	for _, b := range bugs {
		if set.chosen(b.Short) {
			chosen = append(chosen, b)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("no bug is called %q; -list shows the names", set.only)
	}
	var classes string
	if slices.ContainsFunc(chosen, bug.inLine) {
		var err error
		if classes, err = redissonClasses(ctx, progress); err != nil {
			return fmt.Errorf("some bugs are seen only with a client of Redisson's: %w", err)
		}
	}
	together := slices.DeleteFunc(slices.Clone(chosen), bug.needsClock)
	program, numbers, remove, err := buildWoven(ctx, together)
	if err != nil {
		return err
	}
	defer remove()
	slices.SortStableFunc(chosen, func(a, b bug) int { return cmp.Compare(b.roundTime(), a.roundTime()) }) // the last one to begin is a short one
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		missed int
		room   = make(chan struct{}, set.jobs)
	)
	for _, b := range chosen {
		places := 1
		if strings.HasPrefix(b.scenario, "quorum") { // its clients keep the machine busy: others beside it would see nothing
			places = set.jobs
		}
		for range places {
			room <- struct{}{}
		}
		all.Go(func() {
			defer func() {
				for range places {
					<-room
				}
			}()
			if ctx.Err() != nil {
				return
			}
			began := time.Now()
			how, err := b.find(ctx, set, plan{program: program, bug: numbers[b.Short], classes: classes})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				cancel(fmt.Errorf("%s: %w", b.Short, err))
				return
			case strings.HasPrefix(how, notFound):
				missed++
			}
			fmt.Fprintf(progress, "%-15s %5.1f s  %-8s %s\n", b.Short, time.Since(began).Seconds(), b.scenario, how)
		})
	}
	all.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case missed > 0:
		return fmt.Errorf("%d of %d bugs were not found: %w", missed, len(chosen), errViolated)
	}
	fmt.Fprintf(progress, "all %d bugs were found\n", len(chosen))
	return nil
}

const notFound = "NOT FOUND"

// find plays rounds with the bug until one shows it. The plan is for the program that has many bugs, and p.bug is this one there; 0: it is not. It returns
// how, or notFound.
func (b bug) find(ctx context.Context, set settings, p plan) (string, error) {
	sc, ok := scenarioCalled(b.scenario)
	if !ok {
		return "", errors.New("its scenario is not there")
	}
	sc.faults = cmp.Or(soonest[b.Short], sc.faults)
	if p.bug == 0 { // its program has to be one of its own
		program, remove, err := build(ctx, b.needsClock(), b.Edits)
		if err != nil {
			return "", err
		}
		defer remove()
		p.program = program
	}
	p.load, p.calm, p.enough = brokenLoad, brokenCalm, func(t trial) bool { return b.shown(t.rules()) }
	switch b.rules[0] {
	case ruleWake: // seen when nothing is broken any more
		p.load, p.calm = 3*time.Second, 6*time.Second
	case ruleLeft: // seen in the end
		p.load, p.calm = time.Second, time.Second
	}
	var last sum
	for try := range tries {
		seed := set.seed + uint64(try)
		t, err := play(ctx, sc, seed, p)
		if err != nil {
			return "", err
		}
		v := t.rules()
		if !b.shown(v) {
			v = judge(t)
		}
		if b.shown(v) {
			return fmt.Sprintf("seed %d: %s", seed, strings.Join(v.violated(), "; ")), nil
		}
		last = summarize(t, v)
	}
	return notFound + "; the last round: " + last.String(), nil
}

// needsClock tells whether its scenario needs a program whose clock can be set.
func (b bug) needsClock() bool {
	sc, _ := scenarioCalled(b.scenario)
	return sc.has("clock")
}

// inLine tells whether its scenario has the clients of a line.
func (b bug) inLine() bool {
	sc, _ := scenarioCalled(b.scenario)
	return sc.line
}

// roundTime is how long a round of its scenario has to be at least, 0 for no bound of its own.
func (b bug) roundTime() time.Duration {
	sc, _ := scenarioCalled(b.scenario)
	return sc.load + sc.calm
}

// shown tells whether the verdict is about what the bug breaks.
func (b bug) shown(v verdict) bool {
	return slices.ContainsFunc(v.violated(), func(rule string) bool { return slices.Contains(b.rules, rule) })
}
