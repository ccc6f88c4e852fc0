package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A faultKind is something that can be broken.
type faultKind struct {
	name    string
	text    string
	settles time.Duration // how long after the end of the fault all is well again, as the rules have it
	single  bool          // for plans with one server alone
	young   bool          // a node of a quorum does not count for as long as the longest lease
	of      whom          // what it breaks
	do      func(*world, fault) (ends func())
}

// whom says what a fault breaks.
type whom int

const (
	theServer   whom = iota
	someServers      // of a quorum
	itsLinks         // of one client, or of all
	aProcess
	aLock
)

const (
	atOnce   = 0                             // what has only stood still
	soon     = 2 * time.Second               // what Redis answers again
	unheard  = 10*time.Second + time.Second  // what was published and not heard: the look of P10 and a second
	silently = 3*time.Second + 2*time.Second // what was lost without a word: go-redis's ReadTimeout, and two seconds
	dialing  = 5*time.Second + soon          // what was dialed in vain: go-redis's DialTimeout, and the pauses between dials
	rights   = 30*time.Second + soon         // what was refused for want of a right: the releaser's longest pause
)

// rolls is the fault of which plans know: somebody has locks with long leases meanwhile.
const rolls = "rolls"

// restarts begins what is told of a server that has started anew without its data.
const restarts = "a restart: "

var faultKinds = append([]faultKind{
	{"freeze", "a server stands still; what was sent to it runs when it goes on", atOnce, false, false, theServer, func(w *world, f fault) func() {
		g := &w.servers[f.Server].frozen
		w.net.close(g)
		return func() { w.net.open(g) }
	}},
	{"restart", "a server is away, and comes back with its data", soon, false, true, theServer, func(w *world, f fault) func() {
		return w.away(f, func(*server) {})
	}},
	{"forgets", "a server is away, and comes back without its data", unheard, false, true, theServer, (*world).forgets},
	{"flush", "FLUSHALL", unheard, false, false, theServer, func(w *world, f fault) func() {
		w.servers[f.Server].m.FlushAll()
		w.note(event{Kind: lost, Text: "all data of a server"})
		return nil
	}},
	{"failover", "a replica that lags is promoted: what was confirmed within the last seconds is forgotten", unheard, true, false, theServer, func(w *world, f fault) func() {
		s := w.servers[f.Server]
		snap := s.snapshot()
		time.Sleep(time.Duration(f.X) * 5 * time.Millisecond) // the lag
		return w.away(f, func(s *server) {
			s.restore(snap)
			w.note(event{Kind: lost, Text: fmt.Sprintf("what a server was told in the %v before", time.Duration(f.X)*5*time.Millisecond)})
		})
	}},
	{"clock", "a server's wall clock jumps", unheard + time.Minute, false, false, theServer, func(w *world, f fault) func() {
		by := time.Duration(f.X-500) * 100 * time.Millisecond
		w.servers[f.Server].jump(by)
		w.note(event{Kind: lost, Text: fmt.Sprintf("time: %v", by)})
		return nil
	}},
	{"drift", "a server's clock runs faster or slower by almost a hundredth", soon, false, false, theServer, (*world).drifts},
	{"delete", "a lock's key is deleted by hand", unheard, false, false, aLock, func(w *world, f fault) func() {
		lock := w.lockOf(f)
		for _, s := range w.servers {
			for _, key := range w.keysOf(lock) {
				s.m.Del(key)
			}
		}
		w.note(event{Kind: lost, Lock: lock, Text: "the key of " + lock})
		return nil
	}},
	{forces, "a client forces a lock open", unheard, false, false, aLock, func(w *world, f fault) func() {
		w.forcesOpen(f)
		return nil
	}},
	{"rights", "the user has lost the right to a command", rights, false, false, theServer, func(w *world, f fault) func() {
		s := w.servers[f.Server]
		w.set(func() { s.denied = f.denies() })
		return func() { w.set(func() { s.denied = "" }) }
	}},
	{"cut", "links are cut", soon, false, false, itsLinks, func(w *world, f fault) func() {
		w.net.each(w.of(f), (*link).cut)
		return nil
	}},
	{"dials", "dials get no answer, and mostly links are cut", dialing, false, false, itsLinks, (*world).noDials},
	{"dead", "links die without a word", silently, false, false, itsLinks, func(w *world, f fault) func() {
		w.net.each(w.of(f), func(l *link) { l.dead = true })
		return nil
	}},
	{"replies", "some replies are lost, with their links", silently, false, false, itsLinks, meanwhile(
		func(one *way, f fault) { one.loses = uint64(2 + f.X%20) }, func(one *way) { one.loses = 0 },
	)},
	{"tears", "links end in the middle of some commands and replies", soon, false, false, itsLinks, meanwhile(
		func(one *way, f fault) { one.tears = uint64(2 + f.X%50) }, func(one *way) { one.tears = 0 },
	)},
	{"messages", "messages are lost", unheard, false, false, itsLinks, meanwhile(
		func(one *way, _ fault) { one.silent = true }, func(one *way) { one.silent = false },
	)},
	{"late", "replies are late, by up to ten seconds", soon, false, false, itsLinks, meanwhile(
		func(one *way, f fault) { one.late = f.late() }, func(one *way) { one.late = 0 },
	)},
	{"away", "clients are cut off; what they have sent arrives later", soon, false, false, itsLinks, func(w *world, f fault) func() {
		ways := w.waysOf(f)
		for _, one := range ways {
			w.net.close(&one.away)
		}
		return func() {
			for _, one := range ways {
				w.net.open(&one.away)
			}
		}
	}},
	{rolls, "most nodes of a quorum restart, one after the other, and come back without their data", unheard, false, true, someServers, func(w *world, f fault) func() {
		for i := range w.Servers/2 + 1 + f.X%2 {
			one := f
			one.Server = (f.Server + i) % w.Servers
			back := w.forgets(one)
			time.Sleep(f.For / 10)
			back()
		}
		return nil
	}},
	{changes, "a server of a quorum is replaced by another one; processes get to know it one after the other", unheard, false, false, someServers, (*world).changes},
	{uncounts, "a failover to servers that count nobody who listens", time.Minute + soon, false, false, someServers, (*world).uncounts},
	{"dies", "a process dies, and comes back", soon, false, false, aProcess, func(w *world, f fault) func() {
		c := w.takes(f)
		if c == nil {
			return nil
		}
		c.note(event{Kind: died})
		c.mu.Lock()
		c.gone.Store(true)
		c.mu.Unlock()
		w.net.each(func(l *link) bool { return slices.Contains(c.ways, l.way) }, (*link).cut)
		w.set(func() {
			for _, one := range c.ways {
				one.gone = true
			}
		})
		go c.ending(false)
		return func() { w.start(c.place) }
	}},
	{"leaves", "a process shuts its client down, or closes it in the middle, and comes back", soon, false, false, aProcess, func(w *world, f fault) func() {
		c := w.takes(f)
		if c == nil {
			return nil
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			if f.X%2 == 0 {
				c.close(f.X%4 == 0)
			}
			c.ending(f.X%4 != 0)
		}()
		return func() { <-over; w.start(c.place) }
	}},
}, refusals...)

func (k faultKind) fits(p plan) bool {
	return (!k.single || p.Servers == 1) && (k.name != rolls && k.name != changes || p.Servers > 1)
}

// breaks plays one fault.
func (w *world) breaks(f fault) {
	i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == f.Kind })
	if i < 0 {
		return
	}
	k := faultKinds[i]
	time.Sleep(f.At)
	e := w.tells(k, f)
	e.Kind = begins
	w.note(e)
	w.tally.did("fault " + k.name)
	end := k.do(w, f)
	if end != nil {
		time.Sleep(f.For)
		end()
	}
	e.Kind, e.For = ends, k.settlesAfter(f, w.Servers)
	w.note(e)
}

// settlesAfter is how long after its end the fault may be felt, with so many servers.
func (k faultKind) settlesAfter(f fault, servers int) time.Duration {
	settles := k.settles
	switch {
	case k.name == "rights" && f.denies() == scriptsRight:
		settles = min(settles, 3*f.For+soon+time.Second) // the releaser's pauses grow: none is three times as long as all before it, and a second
	case k.name == "late":
		settles += f.late()
	}
	switch {
	case servers == 1:
		return settles
	case k.young:
		return longest + soon
	}
	return max(settles, soon)
}

// tells returns an event that says what the fault breaks, and whom it concerns.
func (w *world) tells(k faultKind, f fault) event {
	e := event{Server: f.Server}
	var whom []string
	switch k.of {
	case someServers:
		e.Server = -1
	case itsLinks:
		if whom = []string{"all clients"}; f.Client >= 0 {
			e.Client = fmt.Sprintf("c%d", f.Client)
			whom = []string{e.Client}
		}
	case aProcess:
		whom = []string{fmt.Sprintf("c%d", w.placeOf(f))}
	case aLock:
		e.Lock = w.lockOf(f)
		whom = []string{e.Lock}
	}
	if k.name == "rights" {
		whom = append(whom, f.denies())
	}
	if w.Servers > 1 && (k.of == theServer || k.of == itsLinks) {
		whom = append(whom, fmt.Sprintf("server %d", f.Server))
	}
	e.Text = k.name + ": " + k.text
	if len(whom) > 0 {
		e.Text += " (" + strings.Join(whom, ", ") + ")"
	}
	return e
}

// scriptsRight is the command that runs scripts.
const scriptsRight = "EVALSHA"

// denies is the command to which the user has lost the right.
func (f fault) denies() string {
	return []string{"PUBLISH", scriptsRight, "ZADD", "SUBSCRIBE", "ZREM"}[f.X%5]
}

// late is by how much replies are late at most.
func (f fault) late() time.Duration { return time.Duration(f.X*f.X) * 10 * time.Microsecond }

// lockOf is the lock of which the fault deletes the key.
func (w *world) lockOf(f fault) string { return w.lockNames()[f.X%w.Locks] }

// placeOf is the place of the process that the fault ends.
func (w *world) placeOf(f fault) int { return max(f.Client, 0) }

const forces = "forces"

// forcesOpen forces a lock open. Whoever has it has lost it from then on, and whoever gets it meanwhile may have.
func (w *world) forcesOpen(f fault) {
	w.mu.Lock()
	c, n := w.clients[f.Client], f.X%w.Locks
	w.mu.Unlock()
	if c == nil {
		return
	}
	l := c.locks[n]
	if c.reads[n] != nil && f.X%2 == 0 {
		l = c.reads[n]
	}
	lock, can := l.(interface {
		ForceUnlock(ctx context.Context) (bool, error)
	})
	if !can {
		return
	}
	gone := event{Kind: lost, Lock: w.lockNames()[n], Text: "the hold of " + w.lockNames()[n] + ", which is forced open"}
	w.note(gone)
	freed, err := lock.ForceUnlock(context.Background())
	if w.tally.ends("ForceUnlock", err); freed {
		w.tally.did("ForceUnlock of a hold")
	}
	w.note(gone)
}

// meanwhile is a fault of ways.
func meanwhile(begin func(*way, fault), end func(*way)) func(*world, fault) func() {
	return func(w *world, f fault) func() {
		ways := w.waysOf(f)
		each := func(do func(*way)) func() {
			return func() {
				w.set(func() {
					for _, one := range ways {
						do(one)
					}
				})
			}
		}
		each(func(one *way) { begin(one, f) })()
		return each(end)
	}
}

// set changes what is wrong.
func (w *world) set(change func()) {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	change()
}

// of matches the links of the fault's client, or of all, to its server.
func (w *world) of(f fault) func(*link) bool {
	ways := w.waysOf(f)
	return func(l *link) bool { return slices.Contains(ways, l.way) }
}

// waysOf returns the ways of the clients that are there to the fault's server.
func (w *world) waysOf(f fault) (ways []*way) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range w.clients {
		if c != nil && (f.Client < 0 || f.Client == i) {
			ways = append(ways, c.ways[f.Server])
		}
	}
	return ways
}

// away takes a server away, and brings it back after a change.
func (w *world) away(f fault, change func(*server)) func() {
	s := w.servers[f.Server]
	w.set(func() { s.down = true })
	w.net.each(func(l *link) bool { return l.way.server == s }, (*link).drop)
	s.settle()
	return func() {
		change(s)
		w.set(func() { s.down = false })
	}
}

// forgets takes a server away, and brings it back without its data.
func (w *world) forgets(f fault) func() {
	return w.away(f, func(s *server) {
		s.m.FlushAll()
		s.newRun()
		w.note(event{Kind: lost, Text: restarts + "all data of a server"})
	})
}

// takes takes the fault's client out of the world; nil where it is gone already.
func (w *world) takes(f fault) *client {
	place := w.placeOf(f)
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.clients[place]
	w.clients[place] = nil
	return c
}

// ending ends a process: its callers stop, and its client is closed if it is not yet.
func (c *client) ending(closes bool) {
	c.stop()
	c.callers.Wait()
	if closes || c.gone.Load() {
		c.close(false)
	}
}
