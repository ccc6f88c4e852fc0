package main

import (
	"slices"
	"time"
)

// What makes a plan smaller.

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

// callers is how many callers the clients have.
func callers(p *plan) (n int) {
	for _, c := range p.Clients {
		n += len(c.Callers)
	}
	return n
}

// leaveOutCallers leaves out these of the callers of all clients.
func leaveOutCallers(p *plan, from, to int) {
	at := 0
	for i := range p.Clients {
		c := &p.Clients[i]
		c.Callers = slices.DeleteFunc(c.Callers, func(callerPlan) bool { at++; return at > from && at <= to })
	}
}

// calls is how many calls the callers make.
func calls(p *plan) (n int) {
	p.eachCaller(func(c *callerPlan) { n += len(c.Calls) })
	return n
}

// leaveOutCalls leaves out these of the calls of all callers. Those that are left keep their times.
func leaveOutCalls(p *plan, from, to int) {
	p.leaveOut(func(at int, _ call) bool { return at >= from && at < to })
}

// leaveOut leaves out the calls that match.
func (p *plan) leaveOut(match func(at int, one call) bool) {
	at := 0
	p.eachCaller(func(c *callerPlan) {
		var left []call
		past := time.Duration(0) // of the calls that are left out
		for _, one := range c.Calls {
			if match(at, one) {
				past += one.takes()
			} else {
				one.Pause += past
				left, past = append(left, one), 0
			}
			at++
		}
		c.Calls = left
	})
}

// takes is how long the call and the pause before it take, but for its wait.
func (one call) takes() time.Duration { return one.Pause + one.Hold + one.Nested }

func (p *plan) eachCaller(do func(*callerPlan)) {
	for i := range p.Clients {
		for k := range p.Clients[i].Callers {
			do(&p.Clients[i].Callers[k])
		}
	}
}

// later leaves out the calls and faults that had not begun before the violation.
func (s *shrinking) later() {
	p := s.best.Plan.clone()
	p.Faults = slices.DeleteFunc(p.Faults, func(f fault) bool { return f.At > s.best.Violations[0].At })
	began := s.began()
	for i := range p.Clients {
		for k := range p.Clients[i].Callers {
			c := &p.Clients[i].Callers[k]
			c.Calls = c.Calls[:min(len(c.Calls), began[[2]int{i, k}])]
		}
	}
	s.try(p)
}

// began is how many of its calls each caller had begun before the violation: the most that a run of its process has.
func (s *shrinking) began() map[[2]int]int {
	most, now := make(map[[2]int]int), make(map[[2]int]int)
	for _, e := range s.best.History {
		place, ok := placeOf(e.Client)
		if !ok || e.At > s.best.Violations[0].At {
			continue
		}
		switch {
		case e.Kind == started: // a process that comes back begins with the first call
			for k := range s.best.Plan.Clients[place].Callers {
				now[[2]int{place, k}] = 0
			}
		case e.Kind == asks && e.Levels == 1:
			of := [2]int{place, e.Caller}
			now[of]++
			most[of] = max(most[of], now[of])
		}
	}
	return most
}

// locks leaves out locks, with all calls of them.
func (s *shrinking) locks() {
	for which := 0; which < s.best.Plan.Locks && s.best.Plan.Locks > 1; {
		p := s.best.Plan.clone()
		p.leaveOut(func(_ int, one call) bool { return one.Lock == which })
		p.eachCaller(func(c *callerPlan) {
			for i := range c.Calls {
				one := &c.Calls[i]
				if one.Other == which {
					one.Other = one.Lock
				}
				one.Lock, one.Other = renumbered(one.Lock, which), renumbered(one.Other, which)
			}
		})
		for i := range p.Faults {
			p.Faults[i].X = s.sameLock(p.Faults[i], which)
		}
		if p.Locks--; which < len(p.Kinds) {
			p.Kinds = slices.Delete(slices.Clone(p.Kinds), which, which+1)
		}
		if !s.try(p) {
			which++
		}
	}
}

// renumbered is the number of a lock where the one before it is left out.
func renumbered(lock, without int) int {
	if lock > without {
		return lock - 1
	}
	return lock
}

// sameLock is the number by which the fault names the same lock where one is left out.
func (s *shrinking) sameLock(f fault, without int) int {
	if f.Kind != "delete" && f.Kind != forces {
		return f.X
	}
	return renumbered(f.X%s.best.Plan.Locks, without)
}

// simpler makes calls, faults and the options of the world as simple as they may be; all at once, or also one by one.
func (s *shrinking) simpler(atOnce bool) {
	for _, off := range []func(*plan){
		func(p *plan) { p.Floor = false },
		func(p *plan) { p.Stable = false },
		func(p *plan) { p.Distance = 0 },
		func(p *plan) { p.Plain = false },
		func(p *plan) { p.Kinds = nil },
		func(p *plan) {
			for i := range p.Clients {
				c := &p.Clients[i]
				c.Traced, c.Presence, c.Handoffs, c.Local = false, false, -1, 0
			}
		},
	} {
		p := s.best.Plan.clone()
		off(&p)
		s.try(p)
	}
	for _, simplify := range []func(*call){
		func(c *call) { c.Ends = false },
		func(c *call) { c.Other = c.Lock },
		func(c *call) { c.GiveUp = 0 },
		func(c *call) { c.By = byContext },
		func(c *call) { c.Extend = 0 },
		func(c *call) { c.Lease = 0 },
		func(c *call) { c.Stranger = false },
		func(c *call) { c.Travels = 0 },
		func(c *call) { c.Depth = 0 },
		func(c *call) { c.Nested = 0 },
		func(c *call) { c.Wait = 0 },
		func(c *call) { c.Hold = half(c.Hold) },
		func(c *call) { c.Nested = half(c.Nested) },
		func(c *call) { c.Wait = half(c.Wait) },
		func(c *call) {
			if c.Lease >= 2*time.Second { // the library refuses what is too short
				c.Lease /= 2
			}
		},
	} {
		s.changes(calls, atOnce, func(p *plan, from, to int) {
			at := 0
			p.eachCaller(func(c *callerPlan) {
				past := time.Duration(0) // by which the call before has become shorter
				for i := range c.Calls {
					one := &c.Calls[i]
					one.Pause += past
					past = 0
					if at >= from && at < to {
						before := one.takes()
						simplify(one)
						past = before - one.takes()
					}
					at++
				}
			})
		})
	}
	s.changes(func(p *plan) int { return len(p.Faults) }, atOnce, func(p *plan, from, to int) {
		for i := from; i < to; i++ {
			p.Faults[i].For = half(p.Faults[i].For)
		}
	})
}

// changes changes all elements of a list at once, and then halves, quarters, and so on; those that it has changed again, while that is kept.
func (s *shrinking) changes(size func(*plan) int, atOnce bool, change func(p *plan, from, to int)) {
	for part := size(&s.best.Plan); part > 0 && s.left > 0; part /= 2 {
		if atOnce && part < size(&s.best.Plan) {
			return
		}
		for from := 0; from < size(&s.best.Plan) && s.left > 0; {
			p := s.best.Plan.clone()
			if change(&p, from, min(from+part, size(&p))); !s.try(p) {
				from += part
			}
		}
	}
}

// half is half of a time; what is below 2 ms stays as it is.
func half(d time.Duration) time.Duration {
	if d < 2*time.Millisecond {
		return d
	}
	return d / 2
}

// idle leaves out clients that make no calls. The others keep their order, and have other names.
func (s *shrinking) idle() {
	for place := len(s.best.Plan.Clients) - 1; place >= 0; place-- {
		if len(s.best.Plan.Clients[place].Callers) > 0 {
			continue
		}
		p := s.best.Plan.clone()
		p.Clients = slices.Delete(p.Clients, place, place+1)
		p.Faults = slices.DeleteFunc(p.Faults, func(f fault) bool { return f.Client == place })
		for i := range p.Faults {
			p.Faults[i].Client = renumbered(p.Faults[i].Client, place)
		}
		s.try(p)
	}
}
