package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// A plan is all rounds of a run.
type plan struct {
	contenders []contender
	asked      bool // contenders were asked for, and take part in all modes that they can
	modes      []mode
	repeats    int
	timing     timing
}

func newPlan(set settings) (plan, error) {
	p := plan{repeats: set.repeats, timing: set.timing(), asked: set.only != ""}
	var err error
	if p.contenders, err = selected(contenders, func(c contender) string { return c.name }, set.only); err != nil {
		return p, err
	}
	if p.modes, err = selected(modes(), mode.name, set.modes); err != nil {
		return p, err
	}
	if set.modes == "" {
		p.modes = usualModes()
		if p.asked && slices.ContainsFunc(p.contenders, func(c contender) bool { return c.server != nil }) {
			p.modes = append(p.modes, otherModes()...)
		}
	}
	if len(p.rounds()) == 0 {
		return p, fmt.Errorf("none of these contenders takes part in these modes")
	}
	return p, nil
}

// rounds returns the rounds in their order: all modes, one after the other, repeat by repeat; in a mode all contenders,
// every other time in reverse, so that none always comes after the same one, and beginning with another one in between.
func (p plan) rounds() []round {
	var all []round
	for repeat := range p.repeats {
		for number, m := range p.modes {
			if repeat%m.every() != 0 {
				continue
			}
			part, turn := p.takePart(m), repeat/m.every()
			if turn%2 == 1 {
				slices.Reverse(part)
			}
			for i := range part {
				c := part[(i+turn/2+number)%len(part)]
				all = append(all, round{id: len(all), contender: c, mode: m, repeat: repeat + 1, timing: p.timing.of(m)})
			}
		}
	}
	return all
}

func (p plan) takePart(m mode) []contender {
	var part []contender
	for _, c := range p.contenders {
		if c.takesPart(m, p.asked) {
			part = append(part, c)
		}
	}
	return part
}

// around is about what a round takes beside its warm-up and its window: the clients' start, the last waiters, tidying.
const around = 250 * time.Millisecond

// aroundClient is about what each client takes beside that: its start and its end.
const aroundClient = time.Millisecond

// estimate is about how long the rounds take, if no waiter hangs.
func estimate(rounds []round) time.Duration {
	var all time.Duration
	for _, r := range rounds {
		all += r.timing.warm + r.timing.window + around + time.Duration(r.mode.clients)*aroundClient
	}
	return all.Round(time.Second)
}

// prepare makes ready what needs it, leaves out what cannot be made ready, and returns what is to be done in the end.
func (p *plan) prepare(ctx context.Context, r round, env *environment, progress io.Writer) (finish func()) {
	var ready []contender
	var finishes []func()
	for _, c := range p.contenders {
		takesPart := slices.ContainsFunc(p.modes, func(m mode) bool { return c.takesPart(m, p.asked) })
		if c.prepare == nil || !takesPart {
			ready = append(ready, c)
			continue
		}
		versions, err := c.prepare(ctx, r, progress)
		if err != nil {
			fmt.Fprintf(progress, "\n!!! %s is LEFT OUT: %v\n\n", c.name, err)
			env.LeftOut = append(env.LeftOut, fmt.Sprintf("%s: %v", c.name, err))
			continue
		}
		maps.Copy(env.Modules, versions)
		ready, finishes = append(ready, c), append(finishes, c.finish)
	}
	p.contenders = ready
	return func() {
		for _, f := range finishes {
			f()
		}
	}
}

// run runs all rounds on a server of its own. On an error, and when ctx ends, it returns what there is until then.
func (p plan) run(ctx context.Context, progress io.Writer) ([]result, environment, error) {
	s, err := redisserver.StartApart()
	if err != nil {
		return nil, environment{}, err
	}
	defer s.Close()
	rdb := open(s.Addr())
	defer func() { _ = rdb.Close() }()
	env, err := p.environment(ctx, rdb)
	if err != nil {
		return nil, env, err
	}
	var quorum *nodes
	if slices.ContainsFunc(p.modes, func(m mode) bool { return m.nodes > 0 }) {
		if quorum, err = startNodes(majority); err != nil {
			return nil, env, err
		}
		defer quorum.stop()
	}

	defer p.prepare(ctx, round{addr: s.Addr(), rdb: rdb, timing: p.timing}, &env, progress)()
	if ctx.Err() != nil {
		return nil, env, context.Cause(ctx)
	}
	rounds := p.rounds()
	if len(rounds) == 0 {
		return nil, env, fmt.Errorf("no contender is left")
	}
	fmt.Fprintf(progress, "%d rounds, about %v, and %v or more for each where waiters hang\n",
		len(rounds), estimate(rounds), p.timing.grace)
	begin, others := time.Now(), cpuOfOthers()
	var results []result
	for i, r := range rounds {
		runtime.GC() // what the round before left is not this one's cost
		r.addr, r.rdb, r.nodes = s.Addr(), rdb, quorum
		res, err := r.run(ctx)
		if ctx.Err() != nil {
			err = fmt.Errorf("ended after %d of %d rounds: %w", i, len(rounds), context.Cause(ctx))
		}
		if err != nil {
			return results, env, err
		}
		results = append(results, res)
		if others != 0 { // below 0 by what the meters, which count ticks, are wrong
			share := max(0, float64(cpuOfOthers()-others)/float64(time.Since(begin))/float64(runtime.NumCPU()))
			env.Others = &share
		}
		left := time.Since(begin) / time.Duration(i+1) * time.Duration(len(rounds)-i-1)
		fmt.Fprintf(progress, "%3d/%d  %-22s %-27s %8.0f pairs/s  p99 %8s  %s(%v left)\n", i+1, len(rounds),
			res.Mode, res.Contender, res.PairsPerSec, duration(res.WaitP99), res.trouble(), left.Round(time.Second))
	}
	return results, env, nil
}
