package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// shrink returns the outcome of a smaller plan that violates the same rule: with fewer faults, clients, callers and calls, and
// with less in each (smaller.go). It leaves out halves first, then smaller parts, in so many tries as it may have.
func shrink(ctx context.Context, set settings, o outcome, progress io.Writer) outcome {
	s := shrinking{best: o, rule: o.Violations[0].Rule, left: set.shrink, played: make(map[string]bool), play: func(p plan) (outcome, error) {
		return do(ctx, set.program, task{Plan: &p, History: true})
	}}
	s.shrinks()
	fmt.Fprintf(progress, "seed %d: shrunk in %d tries, of which %d were kept\n", o.Seed, set.shrink-s.left, s.kept)
	return s.best
}

type shrinking struct {
	play   func(plan) (outcome, error)
	best   outcome
	rule   string
	left   int             // so many tries are left
	played map[string]bool // plans: the same one has the same history
	kept   int
}

// shrinks tries what makes the plan smaller, until nothing does. What can be left out is made no simpler one by one.
func (s *shrinking) shrinks() {
	s.later()
	s.simpler(true)
	for before := -1; before != s.kept && s.left > 0; {
		before = s.kept
		if s.leavesOut(); before != s.kept {
			continue
		}
		s.simpler(false)
		s.idle()
	}
}

// leavesOut leaves out what it can.
func (s *shrinking) leavesOut() {
	s.later()
	s.parts(func(p *plan) int { return len(p.Faults) }, func(p *plan, from, to int) { p.Faults = slices.Delete(p.Faults, from, to) })
	s.locks()
	s.parts(func(p *plan) int { return len(p.Clients) }, func(p *plan, from, to int) {
		for i := from; i < to; i++ { // faults name clients by their place
			p.Clients[i].Callers = nil
		}
	})
	s.parts(callers, leaveOutCallers)
	s.parts(calls, leaveOutCalls)
}

// parts leaves out parts of a list: halves, quarters, and so on down to single elements.
func (s *shrinking) parts(size func(*plan) int, leaveOut func(p *plan, from, to int)) {
	for part := (size(&s.best.Plan) + 1) / 2; part > 0 && s.left > 0; part /= 2 {
		for from := 0; from < size(&s.best.Plan) && s.left > 0; {
			p := s.best.Plan.clone()
			leaveOut(&p, from, min(from+part, size(&p)))
			before := size(&s.best.Plan)
			if !s.try(p) || size(&s.best.Plan) == before {
				from += part
			}
		}
	}
}

// try plays a plan, and keeps it where the rule is violated. A plan that was played is not played again.
func (s *shrinking) try(p plan) bool {
	if v := s.best.Violations[0]; v.Rule != nothingLeft && p.Storm+p.Calm > v.At+time.Minute {
		p.Calm = max(v.At+time.Minute-p.Storm, time.Second)
		p.Storm = min(p.Storm, v.At+time.Minute)
	}
	text, err := json.Marshal(p)
	if err != nil || s.left == 0 || s.played[string(text)] {
		return false
	}
	s.left--
	s.played[string(text)] = true
	o, err := s.play(p)
	if err != nil {
		s.left = 0
		return false
	}
	i := slices.IndexFunc(o.Violations, func(v violation) bool { return v.Rule == s.rule })
	if i < 0 {
		return false
	}
	o.Violations = o.Violations[i:]
	s.best = o
	s.kept++
	return true
}
