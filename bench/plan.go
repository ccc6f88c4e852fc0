package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"
)

// A plan is all rounds of a run.
type plan struct {
	contenders []contender
	modes      []mode
	repeats    int
	timing     timing
}

func newPlan(set settings) (plan, error) {
	p := plan{repeats: set.repeats, timing: set.timing()}
	var err error
	if p.contenders, err = selected(contenders, func(c contender) string { return c.name }, set.only); err != nil {
		return p, err
	}
	p.modes, err = selected(modes(), mode.name, set.modes)
	return p, err
}

// rounds returns the rounds in their order: all modes, one after the other, repeat by repeat; in a mode all contenders,
// beginning with another one each time.
func (p plan) rounds() []round {
	var all []round
	for repeat := range p.repeats {
		for number, m := range p.modes {
			for i := range p.contenders {
				c := p.contenders[(i+repeat+number)%len(p.contenders)]
				if c.only == "" || c.only == m.family {
					all = append(all, round{id: len(all), contender: c, mode: m, repeat: repeat + 1, timing: p.timing})
				}
			}
		}
	}
	return all
}

// around is about what a round takes beside its warm-up and its window: the clients' start, the last waiters, tidying.
const around = 150 * time.Millisecond

// estimate is about how long that many rounds take, if no waiter hangs.
func (p plan) estimate(rounds int) time.Duration {
	return (time.Duration(rounds) * (p.timing.warm + p.timing.window + around)).Round(time.Second)
}

// run runs all rounds on a server of its own. On an error, and when ctx ends, it returns what there is until then.
func (p plan) run(ctx context.Context, progress io.Writer) ([]result, environment, error) {
	s, err := startServer()
	if err != nil {
		return nil, environment{}, err
	}
	defer s.stop()
	rdb := open(s.addr)
	defer func() { _ = rdb.Close() }()
	env, err := p.environment(ctx, rdb)
	if err != nil {
		return nil, env, err
	}

	rounds := p.rounds()
	fmt.Fprintf(progress, "%d rounds of %v, about %v\n", len(rounds), p.timing.window, p.estimate(len(rounds)))
	begin := time.Now()
	var results []result
	for i, r := range rounds {
		runtime.GC() // what the round before left is not this one's cost
		r.addr, r.rdb = s.addr, rdb
		res, err := r.run(ctx)
		if ctx.Err() != nil {
			err = fmt.Errorf("ended after %d of %d rounds: %w", i, len(rounds), context.Cause(ctx))
		}
		if err != nil {
			return results, env, err
		}
		results = append(results, res)
		left := time.Since(begin) / time.Duration(i+1) * time.Duration(len(rounds)-i-1)
		fmt.Fprintf(progress, "%3d/%d  %-15s %-20s %8.0f pairs/s  p99 %8s  %s(%v left)\n", i+1, len(rounds),
			res.Mode, res.Contender, res.PairsPerSec, duration(res.WaitP99), res.trouble(), left.Round(time.Second))
	}
	return results, env, nil
}
