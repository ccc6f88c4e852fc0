package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// differ makes a plan whose clients and callers differ from each other.
func (p *plan) differ(r *rand.Rand, l limits) {
	if r.IntN(8) == 0 {
		p.crowd(r, l)
	}
	for i := range p.Clients {
		c := &p.Clients[i]
		c.Traced = r.IntN(2) == 0 || p.Crowd && i == 0
		if p.Crowd || r.IntN(8) == 0 {
			c.Lease = pick(r, 2*time.Second, 6*time.Second) // waits are longer
		}
		c.Handoffs = pick(r, -1, -1, -1, 0, 2)
		c.Presence = r.IntN(4) == 0
		for k := range c.Callers {
			for n := range c.Callers[k].Calls {
				if one := &c.Callers[k].Calls[n]; one.Nested > 0 {
					one.Depth = pick(r, 1, 1, 2, 3)
					one.Stranger = r.IntN(2) == 0
				}
			}
		}
	}
}

// travels has some holds go on in another process. Of a quorum none can.
func (p *plan) travels(r *rand.Rand) {
	p.eachCaller(func(c *callerPlan) {
		for i := range c.Calls {
			if one := &c.Calls[i]; p.Servers == 1 && one.By == byHold && r.IntN(4) == 0 {
				one.Travels = 1 + r.IntN(len(p.Clients))
			}
		}
	})
}

// mixes has locks be of several kinds, and calls take them in several ways.
func (p *plan) mixes(r *rand.Rand) {
	for range p.Locks {
		if p.Servers == 1 {
			p.Kinds = append(p.Kinds, pick(r, plain, plain, pages, pages, kind(1+r.IntN(3))))
		}
	}
	most := 100 * time.Second
	if p.Crowd {
		most = 10 * time.Second
	}
	p.eachCaller(func(c *callerPlan) {
		for i := range c.Calls {
			one := &c.Calls[i]
			one.By, one.Reads = pick(r, byContext, byContext, byHold, byHold, byDo), r.IntN(3) > 0
			if one.Wait < 0 && one.Lease == 0 && r.IntN(3) == 0 {
				one.By = byTerm
			}
			if one.By == byHold && r.IntN(3) == 0 {
				one.Extend = time.Second + upTo(r, most).Truncate(time.Millisecond)
			}
			for other := one.Lock + 1; one.By == byDo && other < p.Locks && p.kind(allLocks[one.Lock]) == plain; other++ {
				if p.kind(allLocks[other]) != plain || r.IntN(2) == 0 {
					continue
				}
				if one.By, one.Other = byAll, other; one.Wait < 0 {
					one.Lease = 0
				}
			}
		}
	})
}

// forced has locks forced open, at any time of the storm.
func (p *plan) forced(r *rand.Rand, only []string) (all []fault) {
	if len(only) > 0 && !slices.Contains(only, forces) {
		return nil
	}
	for range pick(r, 0, 0, 0, 1, 3) {
		all = append(all, fault{Kind: forces, At: upTo(r, p.Storm), Client: r.IntN(len(p.Clients)), X: r.IntN(1000)})
	}
	return all
}

// crowd is how large a crowd is.
const (
	crowdLocks   = 30
	crowdClients = 8
	crowdCallers = 10 // of each client, and half as many of a quorum's
	crowdStorm   = time.Minute
	crowdCalm    = time.Minute
	crowdBeat    = 5 * time.Second
)

// crowd makes the plan one of many callers that want many locks for a moment: a client has many holds at a time, and more than one caller for a
// lock. Its time is shorter, as more happens in it.
func (p *plan) crowd(r *rand.Rand, l limits) {
	p.Crowd, p.Locks = true, crowdLocks
	p.Storm, p.Calm = crowdStorm, crowdCalm
	if l.Clients == 0 {
		p.Clients = p.Clients[:min(len(p.Clients), crowdClients)]
	}
	for i := range p.Clients {
		c := &p.Clients[i]
		c.Callers = nil
		for range crowdCallers / min(p.Servers, 2) { // a quorum takes longer to play
			c.Callers = append(c.Callers, newCrowdCaller(r, p, i == 0))
		}
	}
}

// newCrowdCaller makes a caller in a crowd. One that keeps has each fourth lock, which others take at the same moment, for
// so long that its lease is renewed.
func newCrowdCaller(r *rand.Rand, p *plan, keeps bool) callerPlan {
	var c callerPlan
	for at := time.Duration(0); at < p.Storm+p.Calm; {
		one := call{
			Pause: upTo(r, 10*time.Millisecond),
			Beat:  len(c.Calls)%4 == 0,
			Lock:  r.IntN(pick(r, 2, p.Locks)), // two of them many callers want
			Wait:  upTo(r, pick(r, time.Second, 20*time.Second)),
			Hold:  time.Duration(r.Int64N(int64(5 * time.Millisecond))),
		}
		one.Other = one.Lock
		if keeps && one.Beat {
			one.Lock = 2 + r.IntN(p.Locks-2)
			one.Other, one.Hold = one.Lock, upTo(r, 10*time.Second)
		}
		if r.IntN(16) == 0 {
			one.Nested = upTo(r, 5*time.Millisecond)
		}
		c.Calls = append(c.Calls, one)
		at += one.Pause + one.Hold + one.Nested
		if one.Beat {
			at = (at/crowdBeat + 1) * crowdBeat
		}
	}
	return c
}
