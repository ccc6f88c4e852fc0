package handover

import "fmt"

// A step is one thing that happens, to the field of an attempt and maybe at a node.
type step struct {
	what    what
	attempt uint8
	node    uint8
}

// what happens.
type what uint8

const (
	begins what = iota
	votes
	votesAgain
	hears
	proposes
	accepts
	acceptsUnheard
	givesUp
	unlocksNow
	releases
	releasesUnheard
	releasesCalling
	releasesCallingUnheard
	says
	looks
	forces
	renews
	answersRenewal
	judgesRenewal
	withdraws
	settles
	asksLate
)

// texts tell what happens to attempt 1 at node 2.
var texts = [...]string{
	begins:                 "%[1]s begins",
	votes:                  "%[1]s's vote comes to %[2]s",
	votesAgain:             "%[1]s's vote comes to %[2]s once more",
	hears:                  "%[1]s hears the yes of %[2]s",
	proposes:               "%[1]s proposes a token",
	accepts:                "%[1]s's proposal comes to %[2]s",
	acceptsUnheard:         "%[1]s's proposal comes to %[2]s, and the answer is lost",
	givesUp:                "%[1]s gives up",
	unlocksNow:             "%[1]s begins Unlock",
	releases:               "%[1]s's release comes to %[2]s",
	releasesUnheard:        "%[1]s's release comes to %[2]s, and the answer is lost",
	releasesCalling:        "%[1]s's release comes to %[2]s, which calls somebody and names %[1]s",
	releasesCallingUnheard: "%[1]s's release comes to %[2]s, which calls somebody and names %[1]s, and the answer is lost",
	says:                   "%[1]s's Unlock ends",
	looks:                  "a ForceUnlock sees %[1]s",
	forces:                 "the ForceUnlock's release of %[1]s comes to %[2]s",
	renews:                 "%[1]s begins a renewal",
	answersRenewal:         "%[2]s answers the renewal of %[1]s",
	judgesRenewal:          "%[1]s's renewal ends",
	withdraws:              "the release of %[1]s for %[2]s alone comes there",
	settles:                "%[1]s owes no release any more",
	asksLate:               "%[1]s's renewal asks %[2]s for its vote",
}

func (st step) String() string {
	return fmt.Sprintf(texts[st.what], letter(int(st.attempt)), place(int(st.node)))
}

// begin begins an attempt. Attempts are alike, so that they may as well begin in their order. The client was called with the name of any field
// that the line named, or comes by itself.
func (x *search) begin(s State, i int, st step) {
	if i > 0 && s.attempts[i-1].phase == waits {
		return
	}
	a := &s.attempts[i]
	a.phase = asks
	for n := range s.nodes {
		if x.OneRound {
			a.number = max(a.number, s.nodes[n].counter+1)
		}
	}
	for j := range s.attempts {
		a.least = max(a.least, s.attempts[j].done)
	}
	x.add(s, st)
	for j := range i {
		if x.mayName(&s, j) {
			t := s
			t.attempts[i].prev = uint8(j + 1)
			x.add(t, st)
		}
	}
}

// vote is the command that takes the lock, at a node. A node that votes no changes nothing, and its client may go on or give up at any time.
func (x *search) vote(s State, i, n int, st step) {
	node, a := &s.nodes[n], &s.attempts[i]
	d := &node.of[i]
	first := d.vote != anew
	d.vote = came
	if !x.free(&s, i, n) {
		x.add(s, st)
		return
	}
	took := false
	if h := node.holder; h != uint8(i+1) {
		node.holder, d.forced = uint8(i+1), false
		if h > 0 && x.NodesTell && !s.attempts[h-1].isOver() {
			node.of[h-1].dropped = true
		}
		if first && a.number > 0 && (a.number > node.counter || h > 0 && x.TakesUnchecked) { // T1, T2
			node.counter, took = a.number, true
		}
	}
	if a.phase < unlocks && !d.yes && !d.pending {
		d.pending, d.told, d.took = true, node.counter, took
	}
	if a.phase == settled {
		x.refute(s, st, Nothing, fmt.Sprintf("nothing is left: %s took the lock for %s, which owes no release", place(n), letter(i)))
	}
	x.add(s, st)
}

// hear is a yes that comes to the client. The yes of an attempt that won joins the hold (R8).
func (x *search) hear(s State, i, n int, st step) {
	a, d := &s.attempts[i], &s.nodes[n].of[i]
	d.pending = false
	if (x.WithdrawsLate || x.WithdrawsUnnamed) && a.believes() {
		d.told, d.took, d.back = 0, false, true
		x.add(s, st)
		return
	}
	d.yes = true
	if a.phase == complete || a.token > 0 || !x.Tokens {
		d.told, d.took = 0, false
	}
	a.largest = max(a.largest, d.told)
	d.told = 0
	yes, took := 0, 0
	for k := range s.nodes {
		yes += int(bit(s.nodes[k].of[i].yes))
		took += int(bit(s.nodes[k].of[i].took))
	}
	if a.phase == asks && yes >= majority {
		if x.win(&s, i, st); x.out.Refuted != "" {
			return
		}
	}
	switch {
	case a.phase == won && !x.Tokens:
		x.complete(s, i, 0, st)
	case a.phase == won && a.token == 0 && took >= majority:
		x.complete(s, i, a.number, st)
	default:
		x.add(s, st)
	}
}

// win makes a hold of an attempt that has a majority: here exclusion has to hold.
func (x *search) win(s *State, i int, st step) {
	a := &s.attempts[i]
	a.phase = won
	if a.givenUp {
		x.refute(*s, st, GivenUp, fmt.Sprintf("a field that was given up never becomes a hold: %s", letter(i)))
	}
	for j := range x.Attempts {
		b := &s.attempts[j]
		if j != i && b.believes() && !x.exempt(a) && !x.exempt(b) {
			x.refute(*s, st, Exclusion, fmt.Sprintf("exclusion: %s and %s have the lock", letter(i), letter(j)))
		}
	}
}

// accept is the proposal of the second round, at a node (T7).
func (x *search) accept(s State, i, n int, st step) {
	node, a := &s.nodes[n], &s.attempts[i]
	d := &node.of[i]
	d.proposed = true
	if node.holder != uint8(i+1) || a.token <= node.counter {
		x.add(s, st)
		return
	}
	node.counter = a.token
	x.add(s, step{acceptsUnheard, st.attempt, st.node})
	d.accepted = true
	accepted := 0
	for k := range s.nodes {
		accepted += int(bit(s.nodes[k].of[i].accepted))
	}
	if accepted >= majority {
		x.complete(s, i, a.token, st)
		return
	}
	x.add(s, st)
}

// complete is the end of an acquire: here the order of the tokens has to hold.
func (x *search) complete(s State, i int, token uint8, st step) {
	a := &s.attempts[i]
	for j := range s.attempts {
		if x.Tokens && s.attempts[j].done == token {
			x.refute(s, st, Order, fmt.Sprintf("tokens are unique: %s and %s have %d", letter(i), letter(j), token))
		}
	}
	if x.Tokens && token <= a.least {
		x.refute(s, st, Order, fmt.Sprintf("tokens grow: %s has %d after %d", letter(i), token, a.least))
	}
	a.phase, a.done, a.largest, a.token, a.least = complete, token, 0, 0, 0
	for n := range s.nodes {
		d := &s.nodes[n].of[i]
		d.told, d.took, d.proposed, d.accepted = 0, false, false, false
	}
	x.add(s, st)
}

// giveUp gives up an attempt, at any time: nodes refused, or did not answer, or its call has ended.
func (x *search) giveUp(s State, i int, st step) {
	if a := &s.attempts[i]; !x.CountsAfterGiveUp || a.phase != asks {
		a.phase = over
	} else if !a.givenUp {
		a.givenUp = true
	} else {
		return
	}
	x.add(s, st)
}

// unlock is the beginning of an Unlock: from here on the owner asks for no vote, and does not take the lock for its own.
func (x *search) unlock(s State, i int, st step) {
	a := &s.attempts[i]
	forced := 0
	for n := range s.nodes {
		d := &s.nodes[n].of[i]
		forced += int(bit(d.forced && d.yes && d.vote == came))
		d.forced, d.pending, d.extended, d.told, d.took = false, false, noAnswer, 0, false
	}
	a.phase, a.off, a.renews = unlocks, forced >= majority, false
	if x.ignores(verdicts) {
		a.phase = over
	}
	x.add(s, st)
}

// release is a release by the owner, at a node. It goes to all nodes when the field was given up, and may come at any time, and again.
func (x *search) release(s State, i, n int) {
	node, a := &s.nodes[n], &s.attempts[i]
	d := &node.of[i]
	first := a.phase == unlocks && d.released == notCome
	if a.phase != unlocks && a.phase != over && !a.givenUp || a.phase == unlocks && !first && !x.Again {
		return
	}
	found := node.holder == uint8(i+1)
	if found {
		node.holder = 0
	}
	calls := x.calls(n) && node.holder == 0 && (found || x.CallsUnfound)
	if !first {
		if found {
			x.add(s, step{releases, uint8(i), uint8(n)})
		}
		if calls {
			a.named = true
			x.add(s, step{releasesCalling, uint8(i), uint8(n)})
		}
		return
	}
	put := func(what what, r Released) {
		d.released = r
		x.add(s, step{what, uint8(i), uint8(n)})
	}
	put(releasesUnheard, unheard)
	answer := gone
	switch {
	case found:
		answer = removed
	case d.dropped:
		answer = dropped
	}
	put(releases, answer)
	if calls {
		a.named = true
		put(releasesCallingUnheard, unheard)
		if answer != dropped {
			answer++
		}
		put(releasesCalling, answer)
	}
}

// say is the end of an Unlock. It has the answers that it has: the other nodes are silent, or come too late.
func (x *search) say(s State, i int, st step) {
	a := &s.attempts[i]
	said := x.verdict(&s, i)
	switch {
	case said == isLost && !a.forced:
		x.refute(s, st, SaysLost, fmt.Sprintf("Unlock of %s says lost, and nobody has forced the hold open", letter(i)))
	case said == isNil && a.off && (x.NamedToo || !a.named):
		x.refute(s, st, SaysNil, fmt.Sprintf("Unlock of %s says nil, and the hold was forced open on a majority", letter(i)))
	}
	a.phase = over
	x.add(s, st)
}

// force is a ForceUnlock by another client: the client looks at who has the lock, and then a release of that field comes to each node, or does not.
func (x *search) force(s State, i, n int) {
	a, node := &s.attempts[i], &s.nodes[n]
	if node.holder != uint8(i+1) {
		return
	}
	if !a.force {
		if s.forces > 0 && !a.isOver() {
			s.forces--
			a.force = true
			x.add(s, step{looks, uint8(i), 0})
		}
		return
	}
	node.holder, node.of[i].forced, a.forced = 0, a.phase < unlocks, true
	a.open = a.open || s.has(i) < majority
	st := step{forces, uint8(i), uint8(n)}
	x.add(s, st)
	if x.ForceNames && x.calls(n) {
		a.named = true
		x.add(s, st)
	}
}

// renew begins or ends a renewal. It ends with the answers that it has.
func (x *search) renew(s State, i int) {
	a := &s.attempts[i]
	if !a.renews {
		if s.renewals > 0 {
			s.renewals--
			a.renews = true
			x.add(s, step{renews, uint8(i), 0})
		}
		return
	}
	lost, repairs := x.renewal(&s, i)
	st := step{judgesRenewal, uint8(i), 0}
	if lost && !a.forced {
		x.refute(s, st, SaysLost, fmt.Sprintf("a renewal of %s says lost, and nobody has forced the hold open", letter(i)))
	}
	a.renews = false
	for n := range s.nodes {
		d := &s.nodes[n].of[i]
		if repairs && d.extended == away && d.vote == came {
			d.vote = anew
		}
		d.extended = noAnswer
	}
	if lost {
		a.phase = over
	}
	x.add(s, st)
}

// extend is the question of a renewal, at a node, and the answer to it.
func (x *search) extend(s State, i, n int, st step) {
	d := &s.nodes[n].of[i]
	if d.extended = away; s.nodes[n].holder == uint8(i+1) {
		d.extended, d.yes, d.pending = there, true, false
	}
	x.add(s, st)
}

// withdraw is a release for one node alone, at that node (WithdrawsLate, WithdrawsUnnamed).
func (x *search) withdraw(s State, i, n int, st step) {
	node := &s.nodes[n]
	node.of[i].back = false
	found := node.holder == uint8(i+1)
	if found {
		node.holder = 0
	}
	x.add(s, st)
	if found && !x.WithdrawsUnnamed && x.calls(n) {
		s.attempts[i].named = true
		x.add(s, st)
	}
}
