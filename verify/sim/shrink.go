package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// shrink returns the outcome of a smaller plan that violates the same rule: that begins later, with fewer faults, clients, callers and calls. It
// leaves out halves first, then smaller parts, for as long as it may take.
func shrink(ctx context.Context, set settings, o outcome, progress io.Writer) outcome {
	s := shrinking{ctx: ctx, best: o, rule: o.Violations[0].Rule, until: time.Now().Add(set.shrink), program: set.program}
	for _, before := range []time.Duration{2 * time.Minute, 5 * time.Minute, 10 * time.Minute} {
		if s.begin(before) {
			break
		}
	}
	for before := -1; before != s.kept && s.more(); {
		before = s.kept
		s.parts(func(p *plan) int { return len(p.Faults) }, func(p *plan, from, to int) { p.Faults = slices.Delete(p.Faults, from, to) })
		s.parts(func(p *plan) int { return len(p.Clients) }, func(p *plan, from, to int) {
			for i := from; i < to; i++ { // faults name clients by their place
				p.Clients[i].Callers = nil
			}
		})
		for i := range s.best.Plan.Clients {
			s.parts(func(p *plan) int { return len(p.Clients[i].Callers) }, func(p *plan, from, to int) {
				p.Clients[i].Callers = slices.Delete(p.Clients[i].Callers, from, to)
			})
		}
		for i := range s.best.Plan.Clients {
			for k := range s.best.Plan.Clients[i].Callers {
				s.calls(i, k)
			}
		}
	}
	fmt.Fprintf(progress, "seed %d: shrunk in %d tries, of which %d were kept\n", o.Seed, s.tried, s.kept)
	return s.best
}

// tries is how often a smaller plan is played before it is given up: what happens in a world hangs on its plan, and a little on chance.
const tries = 2

type shrinking struct {
	ctx         context.Context
	best        outcome
	rule        string
	until       time.Time
	program     string
	tried, kept int
}

func (s *shrinking) more() bool { return time.Now().Before(s.until) && s.ctx.Err() == nil }

// parts leaves out parts of a list: halves, quarters, and so on down to single elements.
func (s *shrinking) parts(size func(*plan) int, leaveOut func(p *plan, from, to int)) {
	for part := (size(&s.best.Plan) + 1) / 2; part > 0 && s.more(); part /= 2 {
		for from := 0; from < size(&s.best.Plan) && s.more(); {
			p := s.best.Plan.clone()
			leaveOut(&p, from, min(from+part, size(&p)))
			before := size(&s.best.Plan)
			if !s.try(p) || size(&s.best.Plan) == before {
				from += part
			}
		}
	}
}

// calls leaves out calls of a caller. Those that are left keep their times.
func (s *shrinking) calls(client, caller int) {
	s.parts(func(p *plan) int { return len(p.Clients[client].Callers[caller].Calls) }, func(p *plan, from, to int) {
		c := &p.Clients[client].Callers[caller]
		if to < len(c.Calls) {
			for _, one := range c.Calls[from:to] {
				c.Calls[to].Pause += one.Pause + one.Hold + one.Nested
			}
		}
		c.Calls = slices.Delete(c.Calls, from, to)
	})
}

// begin leaves out what was before the last time so long before the violation, and tells whether the rule is violated all the same.
func (s *shrinking) begin(before time.Duration) bool {
	from := s.best.Violations[0].At - before
	if from <= 0 {
		return true
	}
	p := s.best.Plan.clone()
	p.Storm = max(p.Storm-from, time.Second)
	p.Faults = slices.DeleteFunc(p.Faults, func(f fault) bool { return f.At+f.For < from })
	for i := range p.Faults {
		f := &p.Faults[i]
		f.For += min(f.At-from, 0)
		f.At = max(f.At-from, 0)
	}
	for i := range p.Clients {
		for k := range p.Clients[i].Callers {
			p.Clients[i].Callers[k] = s.callerFrom(from, i, k)
		}
	}
	return s.try(p)
}

// callerFrom is the plan of a caller without the calls that began before this time, as the history has it.
func (s *shrinking) callerFrom(from time.Duration, client, caller int) callerPlan {
	c := s.best.Plan.Clients[client].Callers[caller]
	made := 0
	for _, e := range s.best.History {
		var place, run int
		if _, err := fmt.Sscanf(e.Client, "c%d.%d", &place, &run); err != nil || place != client {
			continue
		}
		if e.Kind == started {
			made = 0 // a process that comes back begins with the first call
		}
		if e.Kind != asks || e.Caller != caller || e.Levels != 1 {
			continue
		}
		if made++; e.At >= from && made <= len(c.Calls) {
			calls := slices.Clone(c.Calls[made-1:])
			calls[0].Pause = e.At - from
			return callerPlan{calls}
		}
	}
	return callerPlan{}
}

// try plays a plan, and keeps it where the rule is violated.
func (s *shrinking) try(p plan) bool {
	if v := s.best.Violations[0]; v.Rule != nothingLeft && p.Storm+p.Calm > v.At+time.Minute {
		p.Calm = max(v.At+time.Minute-p.Storm, time.Second)
		p.Storm = min(p.Storm, v.At+time.Minute)
	}
	for range tries {
		if !s.more() {
			return false
		}
		s.tried++
		o, err := do(s.ctx, s.program, task{Plan: &p, History: true})
		if err != nil {
			return false
		}
		if i := slices.IndexFunc(o.Violations, func(v violation) bool { return v.Rule == s.rule }); i >= 0 {
			o.Violations = o.Violations[i:]
			s.best = o
			s.kept++
			return true
		}
	}
	return false
}

// clone copies the lists of the plan.
func (p plan) clone() plan {
	p.Faults = slices.Clone(p.Faults)
	p.Clients = slices.Clone(p.Clients)
	for i := range p.Clients {
		callers := slices.Clone(p.Clients[i].Callers)
		for k := range callers {
			callers[k].Calls = slices.Clone(callers[k].Calls)
		}
		p.Clients[i].Callers = callers
	}
	return p
}
