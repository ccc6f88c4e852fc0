package main

import (
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
	cleanAfter    = 30 * time.Second       // a clean phase begins so long after the world, and after what was broken is over
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
	Taken     int           // holds of calls that may wait
	Overtaken int           // how often holds of later ones, by other clients of the library, came before these
	Clean     time.Duration // how long the clean phases were
}

func (t *turns) add(o turns) {
	t.Taken += o.Taken
	t.Overtaken += o.Overtaken
	t.Clean += o.Clean
}

// mean is how often a wait was overtaken.
func (t turns) mean() float64 { return float64(t.Overtaken) / float64(max(t.Taken, 1)) }

// cleanFrom is when the clean phase begins, where nothing is broken until then.
func (j *judging) cleanFrom() time.Duration { return max(j.settled, j.lastLoss) + cleanAfter }

// clean tells whether all from this time to now is in a clean phase.
func (j *judging) clean(from time.Duration) bool { return j.broken == 0 && from >= j.cleanFrom() }

// mostOf is the bound where there is one server, and where there is a quorum, at the world's distance.
func (j *judging) mostOf(one time.Duration) time.Duration {
	if j.Servers > 1 {
		one = quorumMost
	}
	return one + fewWays*j.Distance
}

// isFreed notes that a call has released the lock, and nobody has it.
func (j *judging) isFreed(l *judgedLock) {
	if len(l.live) < max(int(l.kind), 1) {
		l.freed = j.now
	}
	if len(l.live) == 0 {
		l.idle = j.now
	}
}

// handsOver requires that who waits for a lock has it soon after its release.
func (j *judging) handsOver(name string, l *judgedLock) {
	if l.freed == 0 || j.stopped || !j.clean(l.freed) {
		l.freed = 0
		return
	}
	free := j.now - l.freed
	if free <= j.mostOf(handoffMost) {
		return
	}
	var first *judgedHold
	for _, h := range l.waits {
		if h.most != 0 && !h.redisson && h.client.gone == 0 && h.client.closes == 0 && h.asked <= l.freed-standsAfter && (first == nil || h.asked < first.asked) {
			first = h
		}
	}
	if l.freed = 0; first != nil && j.deadLinks && l.deadCalled < j.goneClients(name) {
		l.deadCalled++ // the ticket of a client that is gone is called once, where its connection has died without a word before (P24)
	} else if first != nil {
		j.violated(soonTaken, name, "%s, call %d, waits for it since %v, and it has been free for %v", first.client.name, first.call, first.asked, free)
	}
}

// overtakes counts a hold, and the waits of other clients' calls that it has come before. In a crowd the lock passes on within a client, by which
// it overtakes many.
func (j *judging) overtakes(h *judgedHold, l *judgedLock) {
	for _, w := range l.waits {
		if h.most != 0 && !h.redisson && w.client != h.client && w.asked < h.asked-time.Millisecond {
			w.overtaken++
		}
	}
	if h.most != 0 && !h.redisson && !j.Crowd && l.kind == plain && j.clean(h.asked) {
		j.turns.Taken++
		j.turns.Overtaken += h.overtaken
	}
}

// answers requires that a call which has not got the lock has a reason.
func (j *judging) answers(h *judgedHold, l *judgedLock, why string) {
	if h.redisson || h.client.closes > 0 || j.stopped || !j.clean(h.asked) {
		return
	}
	took := j.now - h.asked
	switch {
	case why == "gave up", why == "unlocked", why == "lost": // its context, or that of the hold around it, has ended
	case h.most < wayThere && strings.Contains(why, "no answer from Redis"): // a connection that died without a word long ago is used the first time (P8)
	case why != "another has it":
		j.violated(noFailures, h.lock, "%s, call %d, has not got it: %s", h.client.name, h.call, why)
	case h.most > 0 && took < h.most-time.Millisecond:
		j.violated(waitsLong, h.lock, "%s, call %d, was to wait for %v, and gave up after %v", h.client.name, h.call, h.most, took)
	case h.most == 0 && h.idle && len(l.waits) == 1:
		j.violated(takesFree, h.lock, "%s, call %d, has not got it, and nobody has it", h.client.name, h.call)
	}
}

// unlocksSoon requires that an Unlock is over at once, and does not fail.
func (j *judging) unlocksSoon(h *judgedHold, why string) {
	if h.redisson || !j.clean(h.unlocks) {
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
	if took := j.now - c.closes; !c.redisson && c.closeMost == closeMost && j.clean(c.closes) && took > j.mostOf(endMost) {
		j.violated(soonEnds, "", "%s was closed after %v", c.name, took)
	}
}
