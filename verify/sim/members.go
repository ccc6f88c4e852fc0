package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
)

// changes is the fault of which plans know: there is a server more.
const changes = "changes"

// changes has a quorum's last server replaced, in half of the worlds.
func (p *plan) changes(r *rand.Rand, only []string) []fault {
	if p.Servers == 1 || r.IntN(2) == 0 && len(only) == 0 || len(only) > 0 && !slices.Contains(only, changes) {
		return nil
	}
	return []fault{{Kind: changes, At: time.Minute + upTo(r, max(p.Storm-2*time.Minute, time.Second)), For: upTo(r, time.Minute), Client: -1}}
}

// spares is how many servers there are besides the first members of a quorum.
func (p *plan) spares() int {
	if slices.ContainsFunc(p.Faults, func(f fault) bool { return f.Kind == changes }) {
		return 1
	}
	return 0
}

// members are the numbers of a quorum's servers, before or after it has changed: its last one is replaced by the spare one.
func (p *plan) members(later bool) []int {
	all := make([]int, p.Servers)
	for i := range all {
		all[i] = i
	}
	if later {
		all[len(all)-1]++
	}
	return all
}

// nodesOf are the servers that the process which starts at this place knows.
func (w *world) nodesOf(place int) []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.members(w.moved[place])
}

// changes replaces a server of a quorum. Half of the processes get to know the other server before, and the others afterwards. The one that leaves goes on.
func (w *world) changes(f fault) func() {
	w.moves(func(place int) bool { return place%2 == 0 })
	c := &quorums.Change{Servers: map[string]redis.UniversalClient{}, Longest: longest, Tell: func(string) {}}
	for i, s := range w.servers {
		one := &way{net: w.net, server: s, number: 1<<48 | uint64(i)}
		rdb := redis.NewClient(one.options())
		defer rdb.Close()
		c.Servers[rdb.Options().Addr] = rdb
		if slices.Contains(w.members(false), i) {
			c.Now = append(c.Now, rdb.Options().Addr)
		}
		if slices.Contains(w.members(true), i) {
			c.To = append(c.To, rdb.Options().Addr)
		}
	}
	for c.Run(context.Background()) != nil { // a server is away, or no client has written the first record yet
		time.Sleep(5 * time.Second)
	}
	return func() { w.moves(func(int) bool { return true }) }
}

// moves shuts down the processes at these places, and starts them with the quorum's later members.
func (w *world) moves(these func(place int) bool) {
	var all sync.WaitGroup
	for place := range w.Clients {
		w.mu.Lock()
		moves := these(place) && !w.moved[place]
		w.moved[place] = w.moved[place] || moves
		w.mu.Unlock()
		if !moves {
			continue
		}
		if c := w.takes(fault{Client: place}); c != nil { // otherwise another fault starts it again
			all.Go(func() {
				c.close(true)
				c.ending(false)
				w.start(place)
			})
		}
	}
	all.Wait()
}
