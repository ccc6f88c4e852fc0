package main

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// In a clean phase nothing is broken, and what was broken is over for a while. There the judge bounds what users feel.

const (
	soonTaken    = "invariant 8, clean phase: a lock that is waited for is taken as soon as it is free"
	soonEnds     = "clean phase: Unlock and Close end at once"
	waitsLong    = "clean phase: a call waits for as long as it was told to"
	takesFree    = "clean phase: a call that does not wait takes a free lock"
	noFailures   = "clean phase: no call fails without a reason"
	fewOvertaken = "clean phase: few waits are overtaken by later calls"
)

const (
	cleanAfterX   = 0
	cleanStart    = 30 * time.Second       // a clean phase begins so long after the world,
	cleanAfter    = soon                   // and after what was broken has settled
	standsAfter   = 100 * time.Millisecond // who has waited for so long has its place
	handoffMost   = 50 * time.Millisecond  // from an Unlock to the next hold of a lock that is waited for
	endMost       = 100 * time.Millisecond // Unlock, Close
	quorumMost    = 500 * time.Millisecond // both, in a quorum
	idleAfter     = time.Second            // a lock that was released so long ago, and that nobody has asked for since, is free
	overtakenMost = 0.2                    // how often a wait is overtaken, as a mean of many; 0.07 to 0.11 were seen
	enoughTurns   = 1000                   // many
	fewWays       = 10                     // what is over at once may take so many ways to a server or back
)

// turns is what was seen of the order in which clients take a lock, in clean phases.
type turns struct {
	Taken     int // holds of calls that may wait
	Overtaken int // how often holds of later ones, by other clients of the library, came before these
}

func (t *turns) add(o turns) {
	t.Taken += o.Taken
	t.Overtaken += o.Overtaken
}

// mean is how often a wait was overtaken.
func (t turns) mean() float64 { return float64(t.Overtaken) / float64(max(t.Taken, 1)) }

// cleanFrom is when the clean phase of this client and this lock begins: forever while something hurts them on any node.
func (j *judging) cleanFrom(c *judgedClient, lock string) time.Duration {
	return max(cleanStart, max(j.allWellFrom(c, lock), j.wellFrom(c, lock))+cleanAfter)
}

// lineCleanFrom is when that of all clients begins that may be in the line of the lock.
func (j *judging) lineCleanFrom(l *judgedLock, lock string) (from time.Duration) {
	for _, c := range j.clients {
		if wanted, ever := c.wanted[lock]; ever && wanted >= l.empty && c.gone == 0 && !c.closed {
			from = max(from, j.cleanFrom(c, lock))
		}
	}
	for _, w := range l.waits {
		from = max(from, j.cleanFrom(w.client, lock))
	}
	return from
}

// mostOf is the bound where there is one server, and where there is a quorum, at the world's distance.
func (j *judging) mostOf(one time.Duration) time.Duration {
	if j.Servers > 1 {
		one = quorumMost
	}
	return one + fewWays*j.Distance
}

// isFreed notes that the call has released the lock, and nobody has it.
func (j *judging) isFreed(h *judgedHold, l *judgedLock) {
	if len(l.live) == 0 {
		l.idle = j.now
	}
	ghost := l.kind == pages && slices.ContainsFunc(slices.Collect(maps.Keys(l.fields)), func(field string) bool { return j.clientOf(field) != h.client })
	if len(l.live) >= max(int(l.kind), 1) || ghost {
		return
	}
	l.freed, l.freedBy = j.now, h
	if l.firstOf(j.now) != nil {
		j.shares.Released.add(1, j.now >= j.handoffCleanFrom(h.lock, l))
	}
}

// firstOf is who waits for the lock for longest, of those who had their places at this time; nil for nobody.
func (l *judgedLock) firstOf(at time.Duration) (first *judgedHold) {
	for _, h := range l.waits {
		if h.mustTake() && h.asked <= at-standsAfter && (first == nil || h.asked < first.asked) {
			first = h
		}
	}
	return first
}

// handoffCleanFrom is from when on nothing has hurt who released the lock last, or who may be in its line.
func (j *judging) handoffCleanFrom(name string, l *judgedLock) time.Duration {
	return max(j.lineCleanFrom(l, name), j.cleanFrom(l.freedBy.client, name))
}

// handsOver requires that who waits for a lock has it soon after its release.
func (j *judging) handsOver(name string, l *judgedLock) {
	free := j.now - l.freed
	if l.freed == 0 || free <= j.mostOf(handoffMost) && !j.stopped {
		return
	}
	first, among := l.firstOf(l.freed), false
	for _, h := range l.waits {
		among = among || h.all // it may have the lock
	}
	switch {
	case j.stopped, first == nil, among, l.freed < j.handoffCleanFrom(name, l):
	case j.deadLinks && l.deadCalled < j.goneClients(name):
		l.deadCalled++ // the ticket of a client that is gone is called once, where its connection has died without a word before (P24)
	default:
		j.violated(soonTaken, name, "%s, call %d, waits for it since %v, and it has been free for %v", first.client.name, first.call, first.asked, free)
	}
	l.freed = 0
}

// overtakes counts a hold, and the waits of other clients' calls that it has come before. In a crowd the lock passes on within a client, by which
// it overtakes many.
func (j *judging) overtakes(h *judgedHold, l *judgedLock) {
	for _, w := range l.waits {
		if h.most != 0 && !h.redisson && w.client != h.client && w.asked < h.asked-time.Millisecond {
			w.overtaken++
		}
	}
	if h.most != 0 && !h.redisson && !j.Crowd && l.kind == plain && h.asked >= j.lineCleanFrom(l, h.lock) {
		j.turns.Taken++
		j.turns.Overtaken += h.overtaken
	}
}

// meets notes of a call that begins, and of the calls and holds that are there, whether one of them waits beside another.
func (l *judgedLock) meets(h *judgedHold) {
	h.beside = l.left > 0 && h.asked < l.left+idleAfter
	for _, o := range slices.Concat(l.live, slices.Collect(maps.Values(l.waits))) {
		o.beside = o.beside || h.most != 0
		h.beside = h.beside || !o.has && o.most != 0
	}
}

// saysWaited requires that somebody waits, or has waited, where the hold says so. Who is gone may be in the line still.
func (j *judging) saysWaited(h *judgedHold, l *judgedLock) {
	if h.watching = 0; !h.beside && h.asked >= j.lineCleanFrom(l, h.lock) && j.goneClients(h.lock) == 0 {
		j.violated(tellsWaited, h.lock, "%s, call %d, says that somebody waits, and nobody does", h.client.name, h.call)
	}
}

// hearsWaited requires that a hold has said so where somebody has waited for as long as it takes a holder to look.
func (j *judging) hearsWaited(name string, l *judgedLock) {
	for _, h := range l.live {
		for _, w := range l.waits {
			if from := max(h.watching, w.asked); h.watching > 0 && h.lives() && h.client.closes == 0 && w.mustTake() && j.now-from > lookMost && from >= max(j.cleanFrom(h.client, name), j.cleanFrom(w.client, name)) {
				h.watching = 0
				j.violated(tellsWaited, name, "%s, call %d, does not say that somebody waits, and %s, call %d, does since %v", h.client.name, h.call, w.client.name, w.call, w.asked)
			}
		}
	}
}

// answers requires that a call which has not got the lock has a reason.
func (j *judging) answers(h *judgedHold, l *judgedLock, why string) {
	if h.redisson || h.client.closes > 0 || j.stopped || h.asked < j.cleanFrom(h.client, h.lock) {
		return
	}
	took := j.now - h.asked
	switch {
	case why == "gave up", why == "unlocked", why == "lost": // its context, or that of the hold around it, has ended
	case h.most < wayThere && strings.Contains(why, "no answer"): // connections that died long ago are used the first time (P8)
	case why != "another has it":
		j.violated(noFailures, h.lock, "%s, call %d, has not got it: %s", h.client.name, h.call, why)
	case h.most > 0 && took < h.most-time.Millisecond:
		j.violated(waitsLong, h.lock, "%s, call %d, was to wait for %v, and gave up after %v", h.client.name, h.call, h.most, took)
	case h.most == 0 && h.idle && !h.all && len(l.waits) == 1:
		j.violated(takesFree, h.lock, "%s, call %d, has not got it, and nobody has it", h.client.name, h.call)
	}
}

// unlocksSoon requires that an Unlock is over at once, and does not fail.
func (j *judging) unlocksSoon(h *judgedHold, why string) {
	if h.redisson || h.client.closes > 0 || h.unlocks < j.cleanFrom(h.client, h.lock) {
		return
	}
	if took := j.now - h.unlocks; took > j.mostOf(endMost) {
		j.violated(soonEnds, h.lock, "%s, call %d, was unlocked after %v", h.client.name, h.call, took)
	}
	if why != "" && why != "lost" {
		j.violated(noFailures, h.lock, "%s, call %d: Unlock says %s", h.client.name, h.call, why)
	}
}

// closesSoon requires that a Close is over at once.
func (j *judging) closesSoon(c *judgedClient) {
	if took := j.now - c.closes; !c.redisson && c.closeMost == closeMost && c.closes >= j.cleanFrom(c, "") && took > j.mostOf(endMost) {
		j.violated(soonEnds, "", "%s was closed after %v", c.name, took)
	}
}
