package quorums

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A game is two clients that take one lock while the members change, with every order of steps. One has the old servers, the other the new ones.
type game struct {
	way     []Members // the generations, from the first one on
	servers []string
	lists   [2][]int // the servers of each client

	noWait    bool // the change does not wait between two generations
	ownWord   bool // a client takes each server's word, and not the newest record that it has seen
	ownServer bool // a client counts all its servers, and needs a majority of these
	early     bool // a client that has seen no record does not ask each of its servers
}

// A table is the state of a game.
type table struct {
	record [7]int8 // the place of each server's generation in the way, and one more; 0 for none
	holder [7]int8 // whose hold each server has: 1 and 2; 0 for nobody's
	who    [2]player
	at     int8 // the generation that is written, as in record,
	left   int8 // and how many of its members have not got it yet
	waits  bool // the change waits
}

// A player is a client.
type player struct {
	seen  int8    // the newest generation that it has seen, as in record
	heard [7]bool // the servers that it has heard of
	said  [7]int8 // the generation that each server has told with its vote, and one more; 0 for no vote
	old   bool    // the attempt began before the change began to wait
	holds bool    // it trusts its hold,
	stale bool    // which rests on votes of before the change began to wait
}

// moves calls yield with each state that may follow.
func (g *game) moves(t table, yield func(table)) {
	for c := range 2 {
		me := int8(c + 1)
		for _, s := range g.lists[c] {
			if next := t; t.holder[s] == 0 || t.holder[s] == me && t.who[c].said[s] == 0 { // a vote, or a renewal
				p := &next.who[c]
				if p.said == [7]int8{} {
					p.old = false
				}
				next.holder[s], p.said[s] = me, t.record[s]+1
				p.seen, p.heard[s] = max(p.seen, t.record[s]), true
				if g.majority(p, c) {
					p.holds, p.stale, p.said = true, p.old, [7]int8{}
				}
				yield(next)
			} else if p := &t.who[c]; t.holder[s] != me && (p.seen < t.record[s] || !p.heard[s]) { // a refusal
				next := t
				p := &next.who[c]
				p.seen, p.heard[s] = max(p.seen, t.record[s]), true
				yield(next)
			}
		}
		next := t // the client gives up, or unlocks
		next.drop(c)
		yield(next)
	}
	switch next := t; {
	case t.waits: // all leases of before have run out
		for c := range 2 {
			p := &next.who[c]
			if p.holds && p.stale || !p.holds && p.old {
				next.drop(c)
			}
			if p.old {
				p.said = [7]int8{}
			}
		}
		next.waits = false
		yield(next)
	case t.left > 0:
		for s, name := range g.servers {
			if t.record[s] < t.at && g.way[t.at-1].Has(name) {
				next := t
				next.record[s] = t.at
				if next.left--; next.left == 0 && !g.noWait {
					next.wait()
				}
				yield(next)
			}
		}
	case int(t.at) < len(g.way):
		next.at++
		next.left = g.missing(&next)
		yield(next)
	}
}

// wait begins to wait for the end of what is now.
func (t *table) wait() {
	t.waits = true
	for c := range t.who {
		t.who[c].old, t.who[c].stale = true, true
	}
}

// missing is how many members have not got the generation that is written.
func (g *game) missing(t *table) (n int8) {
	for s, name := range g.servers {
		if g.way[t.at-1].Has(name) && t.record[s] < t.at {
			n++
		}
	}
	return n
}

// drop ends what a client has.
func (t *table) drop(c int) {
	for s := range t.holder {
		if t.holder[s] == int8(c+1) {
			t.holder[s] = 0
		}
	}
	t.who[c] = player{seen: t.who[c].seen, heard: t.who[c].heard}
}

// majority tells whether a client's votes are a majority.
func (g *game) majority(p *player, c int) bool {
	own := g.ownServer || p.seen == 0
	n, need := 0, len(g.lists[c])/2+1
	if !own {
		need = g.way[p.seen-1].Majority()
	}
	if p.seen == 0 && !g.early && slices.ContainsFunc(g.lists[c], func(s int) bool { return !p.heard[s] }) {
		return false
	}
	for s, said := range p.said {
		if said == 0 {
			continue
		}
		newest := p.seen
		if g.ownWord {
			newest = said - 1
		}
		if own || newest > 0 && g.way[newest-1].Has(g.servers[s]) {
			n++
		}
	}
	return n >= need
}

func newGame(t *testing.T, from, to string) *game {
	t.Helper()
	first, err := NewMembers(names(from))
	if err != nil {
		t.Fatal(err)
	}
	way, err := first.Way(names(from), names(to))
	if err != nil {
		t.Fatal(err)
	}
	g := &game{way: append([]Members{first}, way...)}
	for _, name := range names(from + to) {
		if !slices.Contains(g.servers, name) {
			g.servers = append(g.servers, name)
		}
	}
	for c, list := range []string{from, to} {
		for _, name := range names(list) {
			g.lists[c] = append(g.lists[c], slices.Index(g.servers, name))
		}
	}
	return g
}

// play searches, and tells whether two clients trust their holds at once in some state: in all states that it finds, up to a number, and then along walks.
func (g *game) play(states, walks int) bool {
	start := table{at: 1}
	for s, name := range g.servers {
		if g.way[0].Has(name) {
			start.record[s] = 1
		}
	}
	wrong := func(t table) bool { return t.who[0].holds && t.who[1].holds }
	seen, queue := map[table]bool{start: true}, []table{start}
	for i := 0; i < len(queue) && i < states; i++ {
		g.moves(queue[i], func(next table) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		})
		if wrong(queue[i]) {
			return true
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range walks {
		at := start
		for range 60 {
			var all []table
			g.moves(at, func(next table) { all = append(all, next) })
			if at = all[rng.IntN(len(all))]; wrong(at) {
				return true
			}
		}
	}
	return false
}

// Two clients do not trust their holds at once while members change; each rule that is left out is refuted.
func TestChangeOfMembers(t *testing.T) {
	for _, c := range [][2]string{{"abc", "abd"}, {"abcde", "abcdf"}, {"abcde", "abcfg"}, {"abc", "abcde"}, {"abcde", "abc"}, {"abcd", "abce"}} {
		states := 20_000
		if c == [2]string{"abc", "abd"} {
			states = 1_000_000 // all that there are
		}
		if newGame(t, c[0], c[1]).play(states, 4_000) {
			t.Errorf("from %s to %s: two holders", c[0], c[1])
		}
	}
	stranger := func(g *game) { // one of the clients has mostly servers that are none of the quorum's
		g.servers = append(g.servers, "e")
		g.lists[1] = []int{2, 3, 4}
	}
	g := newGame(t, "abc", "abd")
	if stranger(g); g.play(20_000, 4_000) {
		t.Error("with a wrong list: two holders")
	}
	for name, leaveOut := range map[string]func(*game){
		"all are asked before any record":      func(g *game) { stranger(g); g.early = true },
		"the wait between two generations":     func(g *game) { g.noWait = true },
		"the newest record goes before others": func(g *game) { g.ownWord = true },
		"members are who counts":               func(g *game) { g.ownServer = true },
		"majorities that overlap":              func(g *game) { g.way = slices.Delete(g.way, 1, 2) },
	} {
		g := newGame(t, "abc", "abd")
		leaveOut(g)
		if !g.play(300_000, 0) {
			t.Errorf("left out, and not refuted: %s", name)
		}
	}
}
