package inspect

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Cycle is clients that wait in a circle: each waits for a lock that the next one holds, and the last one for a lock of the first one.
type Cycle []Link

// Link is one client of a Cycle.
type Link struct {
	Client *Client
	Hold   Hold // what the client before waits for
	Wait   Wait // for what the next client holds
}

const (
	// minWait is how long a wait of a circle has lasted at least when its client said it.
	minWait = 3 * time.Second
	// maxWaiters bounds the waits that Cycles looks at: the longest ones.
	maxWaiters = 200
)

// Cycles finds clients that wait in a circle, as two processes do that take two locks in opposite orders. Of clients that wait in
// several circles which touch each other it returns one of the shortest, the same one each time.
//
// It goes by clients, which say not which of their calls holds what: the call that waits may be another one than that which holds, and
// then the circle ends by itself. So it returns only what lasts: each wait began 13 s ago or earlier, and after the client had got the
// hold that another one waits for. As clients write every 10 s, a circle that is over may be returned for so long still.
//
// Readers do not wait for readers, nor a client for a lock that it holds itself. Left out are semaphores, of which any permit will do;
// waits with rlock.Lasting, which stand by; and clients that are Quiet, whose leases end.
func Cycles(clients []Client) []Cycle {
	g := newWaitGraph(clients)
	var cycles []Cycle
	var firsts []int // of the waits of each group
	var reached [][]bool
	for i := range g.waiters {
		cycle, reaches := g.shortest(i)
		reached = append(reached, reaches)
		if cycle == nil {
			continue
		}
		group := slices.IndexFunc(firsts, func(first int) bool { return reached[first][i] && reaches[first] })
		switch {
		case group < 0:
			firsts, cycles = append(firsts, i), append(cycles, cycle)
		case len(cycle) < len(cycles[group]):
			cycles[group] = cycle
		}
	}
	return cycles
}

// A waitGraph is who waits for whom.
type waitGraph struct {
	waiters []waiter
	of      map[*Client][]int  // the waiters of each client
	holders map[string][]owner // of the locks that somebody waits for
}

type waiter struct {
	client *Client
	*Wait
}

// owner is the oldest hold of a client on one lock, or on one side of it.
type owner struct {
	client *Client
	*Hold
}

func newWaitGraph(clients []Client) *waitGraph {
	g := &waitGraph{of: map[*Client][]int{}, holders: map[string][]owner{}}
	for i := range clients {
		c := &clients[i]
		for k := range c.Waits {
			w := &c.Waits[k]
			if w.Lasting == "" && w.Semaphore == "" && w.For >= minWait && c.Silent+w.For >= quiet {
				g.waiters = append(g.waiters, waiter{c, w})
				g.holders[w.Lock] = nil
			}
		}
	}
	holding := map[*Client]bool{}
	for i := range clients {
		c := &clients[i]
		for k := range c.Holds {
			if _, waited := g.holders[c.Holds[k].Lock]; waited && !c.Quiet() && c.Holds[k].Semaphore == "" {
				g.addHold(owner{c, &c.Holds[k]})
				holding[c] = true
			}
		}
	}
	g.waiters = slices.DeleteFunc(g.waiters, func(w waiter) bool {
		return !holding[w.client] || !slices.ContainsFunc(g.holders[w.Lock], func(o owner) bool { return o.client != w.client })
	})
	slices.SortStableFunc(g.waiters, func(a, b waiter) int { return cmp.Compare(b.For, a.For) })
	g.waiters = g.waiters[:min(len(g.waiters), maxWaiters)]
	slices.SortFunc(g.waiters, func(a, b waiter) int {
		return cmp.Or(strings.Compare(a.client.Name, b.client.Name), strings.Compare(a.client.Host, b.client.Host), a.client.PID-b.client.PID,
			strings.Compare(a.client.ID, b.client.ID), strings.Compare(a.Lock, b.Lock), strings.Compare(a.Mode, b.Mode))
	})
	for i, w := range g.waiters {
		g.of[w.client] = append(g.of[w.client], i)
	}
	for lock, owners := range g.holders {
		g.holders[lock] = slices.DeleteFunc(owners, func(o owner) bool { return g.of[o.client] == nil })
	}
	return g
}

// addHold adds a hold. The holds of one client are added one after the other.
func (g *waitGraph) addHold(added owner) {
	all := g.holders[added.Lock]
	for i := len(all) - 1; i >= 0 && all[i].client == added.client; i-- {
		if all[i].Mode == added.Mode {
			if added.For > all[i].For {
				all[i] = added
			}
			return
		}
	}
	g.holders[added.Lock] = append(all, added)
}

// blocks tells whether w waits for the hold, whose client waits meanwhile as next does.
func (o owner) blocks(w, next waiter) bool {
	return o.client != w.client && o.client == next.client && (o.Mode != reads || w.Mode != reads) && o.Lock != next.Lock && o.For > next.For
}

// shortest is a shortest circle from the wait i on, nil where there is none, and which waits are reached from there.
func (g *waitGraph) shortest(i int) (cycle Cycle, reached []bool) {
	reached = make([]bool, len(g.waiters))
	type step struct {
		at     int
		by     *Hold // that the one before waits for
		before *step
	}
	for queue := []*step{{at: i}}; len(queue) > 0; queue = queue[1:] {
		w := g.waiters[queue[0].at]
		for _, o := range g.holders[w.Lock] {
			for _, next := range g.of[o.client] {
				if reached[next] || !o.blocks(w, g.waiters[next]) {
					continue
				}
				reached[next] = true
				s := &step{next, o.Hold, queue[0]}
				queue = append(queue, s)
				if next != i {
					continue
				}
				for ; s.before != nil; s = s.before {
					at := g.waiters[s.at]
					cycle = append(cycle, Link{at.client, *s.by, *at.Wait})
				}
				slices.Reverse(cycle)
				cycle = append(cycle[len(cycle)-1:len(cycle):len(cycle)], cycle[:len(cycle)-1]...) // i first
			}
		}
	}
	return cycle, reached
}
