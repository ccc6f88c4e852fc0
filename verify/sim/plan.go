package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A plan is all that is decided before a world begins. It is what a failing seed is shrunk to.
type plan struct {
	Seed     uint64
	Schedule uint64 // package overlay; 0: goroutines run in the order in which they are ready
	Servers  int    // 1, or the 5 of a quorum
	Floor    bool
	Stable   bool
	Crowd    bool          // many callers want many locks for a moment
	Plain    bool          // locks without tokens, and without the two options above
	Kinds    []kind        // of the locks; all are plain where it is empty
	Distance time.Duration // between clients and servers, beside what the smallest network has
	Locks    int
	Storm    time.Duration // in which callers begin to call, and faults come
	Calm     time.Duration // after it: nothing is broken, and the callers go on
	Clients  []clientPlan
	Faults   []fault
}

// A clientPlan is one process with one client.
type clientPlan struct {
	Redisson bool
	Traced   bool          // it has trace functions
	Lease    time.Duration // of WithLease; 0 for the default
	Handoffs int           // of WithHandoffs; below 0 for the default
	Local    int           // of WithLocalHandoffs
	Presence bool          // it says that it is there
	Callers  []callerPlan
}

// A callerPlan is what one goroutine does, call by call.
type callerPlan struct {
	Calls []call
}

// A call is an acquire with what follows it.
type call struct {
	Pause    time.Duration // before it
	Beat     bool          // and before that until the next multiple of crowdBeat: many callers come at the same moment
	Lock     int
	By       how
	Reads    bool          // of a read-write lock: it takes the side that reads
	Extend   time.Duration // the hold, as it begins; 0 for not at all
	Wait     time.Duration // 0: try once; below 0: as long as its context
	Lease    time.Duration // 0: renewed by the watchdog
	GiveUp   time.Duration // when the context of the call ends; 0 for never
	Hold     time.Duration
	Ends     bool          // the hold's own context is ended at the end of Hold, and Unlock follows
	Nested   time.Duration // nested holds for so long; 0 for none
	Depth    int           // of them, one in the other; 0 for one
	Stranger bool          // a new holder tries the lock within the hold, and must not get it
	Other    int           // another lock that is tried meanwhile; the same for none
	Travels  int           // the process at this place, from 1 on, imports the hold; 0 for none
}

// A fault is something that is broken for a time.
type fault struct {
	Kind   string
	At     time.Duration
	For    time.Duration
	Client int // which one; -1 for all
	Server int
	X      int // what else the kind needs
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// upTo is a time from 1 ms to d, at any nanosecond: times that are equal would be ordered by chance.
func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Millisecond + time.Duration(r.Int64N(int64(max(d, 1))))
}

// limits are what the command line says of plans.
type limits struct {
	Clients  int           // 0: by the seed
	Length   time.Duration // of the storm and the calm
	Faults   []string      // names of kinds, or empty for all
	Servers  int           // 0: by the seed
	Schedule uint64
}

// newPlan is the plan of this seed.
func newPlan(seed uint64, l limits) plan {
	r := rand.New(rand.NewPCG(seed, 1))
	p := plan{Seed: seed, Schedule: l.Schedule, Servers: 1, Floor: r.IntN(2) == 0, Stable: r.IntN(5) == 0}
	if quorum := r.IntN(6) == 0; quorum && l.Servers == 0 || l.Servers > 1 {
		p.Servers = 5
	}
	clients := 8
	if r.IntN(12) == 0 {
		clients = 24
	}
	if l.Clients > 0 {
		clients = l.Clients
	}
	p.Locks = 1 + r.IntN(max(2, clients/4))
	p.Calm = 3 * time.Minute
	p.Storm = max(l.Length-p.Calm, time.Minute)
	foreign := r.IntN(3) == 0 && p.Servers == 1
	for i := range clients {
		c := clientPlan{Redisson: foreign && i == 0}
		for range 1 + r.IntN(3) {
			c.Callers = append(c.Callers, newCaller(r, p))
		}
		p.Clients = append(p.Clients, c)
	}
	other := rand.New(rand.NewPCG(seed, 4))
	p.differ(other, l)
	p.Faults = append(newFaults(rand.New(rand.NewPCG(seed, 2)), p, l.Faults), p.forced(other, l.Faults)...)
	more := rand.New(rand.NewPCG(seed, 5))
	if more.IntN(6) == 0 {
		p.Distance = 15 * time.Millisecond
	}
	p.Plain = more.IntN(8) == 0
	p.mixes(rand.New(rand.NewPCG(seed, 6)))
	for i, r := 0, rand.New(rand.NewPCG(seed, 7)); i < len(p.Clients); i++ {
		p.Clients[i].Local = pick(r, 0, 0, 2, 20)
	}
	p.travels(rand.New(rand.NewPCG(seed, 8)))
	p.Faults = append(p.Faults, p.uncounted(rand.New(rand.NewPCG(seed, 9)), l.Faults)...)
	p.Faults = append(p.Faults, p.changes(rand.New(rand.NewPCG(seed, 10)), l.Faults)...)
	if slices.ContainsFunc(p.Faults, func(f fault) bool { return f.Kind == rolls }) {
		first := &p.Clients[0]
		first.Callers = append(first.Callers, newKeeper(other, p))
	}
	return p
}

func newCaller(r *rand.Rand, p plan) callerPlan {
	var c callerPlan
	longest := pick(r, 100*time.Millisecond, time.Second, 10*time.Second, 2*time.Minute)
	for at := time.Duration(0); at < p.Storm+p.Calm; {
		one := call{
			Pause: upTo(r, pick(r, time.Second, 10*time.Second, time.Minute)),
			Lock:  r.IntN(p.Locks),
			Wait:  pick(r, 0, 0, time.Second, 5*time.Second, 20*time.Second, time.Minute, 10*time.Minute),
			Hold:  upTo(r, min(longest, pick(r, time.Millisecond, 10*time.Millisecond, time.Second, 10*time.Second, 2*time.Minute))),
			Ends:  r.IntN(20) == 0,
		}
		one.Other = one.Lock
		if one.Wait > 0 {
			one.Wait = upTo(r, one.Wait)
			if r.IntN(10) == 0 {
				one.Wait = -1
			}
		}
		if r.IntN(4) == 0 {
			one.Lease = time.Second + upTo(r, 2*time.Minute).Truncate(time.Millisecond)
		}
		if r.IntN(5) == 0 || one.Wait < 0 {
			one.GiveUp = upTo(r, max(one.Wait/2, pick(r, 10*time.Millisecond, time.Second, time.Minute)))
		}
		if r.IntN(4) == 0 {
			one.Nested = upTo(r, min(longest, pick(r, time.Millisecond, time.Second, 30*time.Second)))
		}
		if r.IntN(8) == 0 {
			one.Other = r.IntN(p.Locks)
		}
		c.Calls = append(c.Calls, one)
		at += one.Pause + one.Hold + one.Nested
	}
	return c
}

// newKeeper has locks for minutes, with leases that nobody renews.
func newKeeper(r *rand.Rand, p plan) callerPlan {
	var c callerPlan
	for at := time.Duration(0); at < p.Storm; {
		one := call{Pause: upTo(r, 10*time.Second), Lock: r.IntN(p.Locks), Wait: time.Minute}
		one.Lease = time.Minute + upTo(r, longest-time.Minute-time.Second).Truncate(time.Millisecond)
		one.Hold, one.Other = upTo(r, one.Lease), one.Lock
		c.Calls = append(c.Calls, one)
		at += one.Pause + one.Hold
	}
	return c
}

// newFaults has storms of some faults at once, with calms between them in which all must go well.
func newFaults(r *rand.Rand, p plan, only []string) []fault {
	var of []faultKind
	for _, k := range faultKinds {
		if k.name != forces && k.name != uncounts && k.name != changes && k.fits(p) && (len(only) == 0 || slices.Contains(only, k.name)) {
			of = append(of, k)
		}
	}
	var all []fault
	few := pick(r, 0, 5*time.Minute) // in half of the worlds
	for at := upTo(r, time.Minute); len(of) > 0 && at < p.Storm; {
		longest := pick(r, 2*time.Second, 15*time.Second, time.Minute, 5*time.Minute)
		end := at
		for range 1 + r.IntN(3) {
			f := fault{
				Kind: of[r.IntN(len(of))].name, At: at + upTo(r, min(longest, time.Minute)), For: upTo(r, longest),
				Client: r.IntN(len(p.Clients)), Server: r.IntN(p.Servers), X: r.IntN(1000),
			}
			if most := lastsAtMost[f.Kind]; most > 0 {
				f.For = min(f.For, most)
			}
			if r.IntN(2) == 0 {
				f.Client = -1
			}
			all = append(all, f)
			end = max(end, f.At+f.For)
		}
		at = end + pick(r, time.Second, 20*time.Second, 90*time.Second, 3*time.Minute) + upTo(r, time.Second) + few
	}
	return all
}
