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
	fewOvertaken = "clean phase: few later calls come before one that waits"
)

const (
	cleanStart    = 30 * time.Second       // a clean phase begins so long after the world,
	cleanAfter    = soon                   // and after what was broken has settled
	standsAfter   = 100 * time.Millisecond // who has waited for so long has its place
	deadMost      = 3 * time.Second        // where its connections may be dead
	runMost       = 25 * time.Millisecond  // in which a client passes the lock on among its calls (P15)
	handoffMost   = 50 * time.Millisecond  // from an Unlock to the next hold of a lock that is waited for
	endMost       = 100 * time.Millisecond // Unlock, Close
	quorumMost    = 500 * time.Millisecond // both, in a quorum
	idleAfter     = time.Second            // a lock that was released so long ago, and that nobody has asked for since, is free
	overtakenMost = 8                      // how often a wait is overtaken: 8 were seen, and in 99 of 100 waits none
	fewWays       = 10                     // what is over at once may take so many ways to a server or back
)

// cleanFrom is when the clean phase of this client and this lock begins: forever while something hurts them on any node.
func (j *judging) cleanFrom(c *judgedClient, lock string) time.Duration {
	return max(cleanStart, max(j.allWellFrom(c, lock), j.wellFrom(c, lock))+cleanAfter)
}

// lineCleanFrom is when that of the client begins, and of all clients that may be in the line of the lock.
func (j *judging) lineCleanFrom(l *judgedLock, lock string, of *judgedClient) time.Duration {
	from := j.cleanFrom(of, lock)
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
	ghost := l.kind == pages && slices.ContainsFunc(slices.Collect(maps.Keys(l.fields)), func(field string) bool { return j.clientOf(field) != h.client })
	if len(l.live) == 0 && !ghost {
		l.idle = j.now
	}
	if len(l.live) >= max(int(l.kind), 1) || ghost {
		return
	}
	l.freed, l.freedBy = j.now, h
	if j.firstOf(l) != nil {
		j.shares.Released.add(1, j.now >= j.lineCleanFrom(l, h.lock, h.client))
	}
}

// firstOf is who waits for the lock for longest, of those who had their places as it was released; nil for nobody.
func (j *judging) firstOf(l *judgedLock) (first *judgedHold) {
	stands := standsAfter
	if j.deadLinks { // connections that died long ago are used the first time (P8)
		stands = deadMost
	}
	for _, h := range l.waits {
		if h.mustTake() && h.asked <= l.freed-stands && (first == nil || h.asked < first.asked) {
			first = h
		}
	}
	return first
}

// handsOver requires that who waits for a lock has it soon after its release.
func (j *judging) handsOver(name string, l *judgedLock) {
	free := j.now - l.freed
	if l.freed == 0 || free <= j.mostOf(handoffMost) && !j.stopped {
		return
	}
	first, among := j.firstOf(l), false
	for _, h := range l.waits {
		among = among || h.all // it may have the lock
	}
	switch {
	case j.stopped, first == nil, among, l.freed < j.lineCleanFrom(l, name, l.freedBy.client), j.Servers > 1 && l.freed < j.unlined:
	case j.deadLinks && l.deadCalled < j.goneClients(name):
		l.deadCalled++ // the ticket of a client that is gone is called once, where its connection has died without a word before (P24)
	default:
		j.violated(soonTaken, name, "%s, call %d, waits for it since %v, and it has been free for %v", first.client.name, first.call, first.asked, free)
	}
	l.freed = 0
}

// heads notes since when each call that waits is the first of its client, which has a place in the line for those who read, and one for the others.
func (l *judgedLock) heads(now time.Duration) {
	for _, w := range l.waits {
		if w.headed == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(l.waits)), func(o *judgedHold) bool {
			return o.client == w.client && o.reads == w.reads && o.call < w.call && o.most != 0
		}) {
			w.headed = now
		}
	}
}

// standsAnew is for calls that wait beside a hold of their client. Where that is exported they enter the line after it. Where it reads they have asked
// beside it, and stand in the queue of the client, and in the line, anew.
func (l *judgedLock) standsAnew(h *judgedHold, now time.Duration) {
	for _, w := range l.waits {
		if w.client == h.client && w.reads == h.reads && w.headed > 0 {
			w.headed, w.overtaken = now, 0
		}
	}
}

// overtakes requires that few later calls of other clients come before one that has its place in the line. A client that has the lock may pass it
// on among its calls, and who reads keeps nobody from reading.
func (j *judging) overtakes(h *judgedHold, l *judgedLock) {
	if l.run == h.client && j.now <= l.runs+runMost {
		return
	}
	if l.run, l.runs = h.client, j.now; h.most == 0 || h.redisson || h.all {
		return
	}
	for _, w := range l.waits {
		if w.client == h.client || !w.mustTake() || w.headed < max(j.unlined, 1) || h.asked <= w.headed+standsAfter || h.reads && w.reads ||
			w.headed < j.lineCleanFrom(l, h.lock, h.client) {
			continue
		}
		if w.overtaken++; w.overtaken == overtakenMost+1 {
			j.violated(fewOvertaken, h.lock, "%s, call %d, waits since %v, and %d calls that began later have come before it", w.client.name, w.call, w.asked, w.overtaken)
		}
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
	if h.watching = 0; !h.beside && h.asked >= j.lineCleanFrom(l, h.lock, h.client) && j.goneClients(h.lock) == 0 {
		j.violated(tellsWaited, h.lock, "%s, call %d, says that somebody waits, and nobody does", h.client.name, h.call)
	}
}

// hearsWaited requires that a hold has said so where somebody has waited for as long as it takes a holder to look.
func (j *judging) hearsWaited(name string, l *judgedLock) {
	for _, h := range l.live {
		for _, w := range l.waits {
			if from := max(h.watching, w.asked); h.watching > 0 && h.lives() && h.client.closes == 0 && w.mustTake() && j.now-from > lookMost && from >= max(j.unlined, j.cleanFrom(h.client, name), j.cleanFrom(w.client, name)) {
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
	case why == "not held" && h.imports != nil && !h.imports.lives():
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
	if why != "" && why != "lost" && !(h.exported && why == "unlocked") {
		j.violated(noFailures, h.lock, "%s, call %d: Unlock says %s", h.client.name, h.call, why)
	}
}

// closesSoon requires that a Close is over at once.
func (j *judging) closesSoon(c *judgedClient) {
	if took := j.now - c.closes; !c.redisson && c.closeMost == closeMost && c.closes >= j.cleanFrom(c, "") && took > j.mostOf(endMost) {
		j.violated(soonEnds, "", "%s was closed after %v", c.name, took)
	}
}
