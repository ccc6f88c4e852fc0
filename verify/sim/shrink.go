package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// shrink returns the outcome of a smaller plan that violates the same rule: with fewer faults, clients, callers and calls. It tries to leave out
// halves first, then smaller parts, for as long as it may take. A smaller plan counts where it violates the rule once in tries worlds.
func shrink(ctx context.Context, set settings, o outcome, progress io.Writer) outcome {
	s := shrinking{best: o, rule: o.Violations[0].Rule, until: time.Now().Add(set.shrink), w: &worker{program: set.program}, ctx: ctx}
	defer s.w.stop()
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
		s.cutCalls()
	}
	fmt.Fprintf(progress, "shrunk in %d tries, of which %d were kept\n", s.tried, s.kept)
	return s.best
}

const tries = 2

type shrinking struct {
	ctx         context.Context
	best        outcome
	rule        string
	until       time.Time
	w           *worker
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

// cutCalls leaves out what callers do after the violation, then all but the last calls before it: what is left keeps its time.
func (s *shrinking) cutCalls() {
	for i := range s.best.Plan.Clients {
		for k := range s.best.Plan.Clients[i].Callers {
			s.parts(func(p *plan) int { return len(p.Clients[i].Callers[k].Calls) }, func(p *plan, from, to int) {
				c := &p.Clients[i].Callers[k]
				var pause time.Duration
				for _, one := range c.Calls[from:to] {
					pause += one.Pause + one.Hold + one.Nested
				}
				if to < len(c.Calls) {
					c.Calls[to].Pause += pause
				}
				c.Calls = slices.Delete(c.Calls, from, to)
			})
		}
	}
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
		o, err := s.w.do(s.ctx, task{Plan: &p, History: true})
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
