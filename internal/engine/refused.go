package engine

import (
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// wasRefused decides how a waiter goes on whose attempt has not got the lock: it enters the line, or waits to be told, or looks
// again after a while.
func (w *waiter) wasRefused(a scripts.Answer) {
	w.waitStarted()
	p := w.lockState.place.Load()
	if p != nil && w.ticket != "" && a.Before != scripts.NotInLine {
		w.client.lineProven.Store(true)
		p.placeKnown(w.ticket, a.Score, a.Before)
		w.waitForCall(p, a)
		return
	}
	lined := w.client.usesLine()
	if lined && w.ticket == "" && w.lockState.listenForCalls(w.keys) {
		w.on(mayAsk) // enters the line
		return
	}
	pause := w.client.set.Poll
	soon := lined && w.ticket == "" && w.quiet == 0 // it enters the line as soon as it would hear a call
	if !soon && w.lockState.listen(w.keys.Channel()) && a.TTL != scripts.NoExpiry {
		pause = min(pause<<min(w.quiet, 4), 10*pause)
	}
	switch {
	case a.TTL == scripts.NoKey:
		pause = min(pause, calledTimeout)
		if p != nil {
			pause = p.watchUnlessAlive(a.Head, w.lateOne, w.aliveCount)
		}
	case soon:
		pause = min(pause, calledTimeout)
	case a.TTL >= 0 && a.TTL < pause:
		pause = a.TTL + time.Millisecond
	}
	w.watchFor(pause)
}

// endsSoon tells whether the call is to end before it would listen on the lock's own channel, or soon after.
func (w *waiter) endsSoon() bool {
	end, ok := w.waitCtx.Deadline()
	return ok && time.Until(end) < 2*firstListensAfter
}

// waitForCall decides how a waiter goes on whose client is in the line: to what it listens, and when it looks by itself.
func (w *waiter) waitForCall(p *place, a scripts.Answer) {
	vain := w.called && a.TTL != scripts.NoKey
	w.called = false
	if vain {
		p.calledInVain()
	}
	if w.yieldedBefore {
		p.yieldEnded(vain)
	}
	first := a.Before == 0 && a.TTL != scripts.NoKey
	listens := first && (vain || p.firstFor() >= firstListensAfter || w.endsSoon()) || a.Before == 1 && p.secondFor() >= secondListensAfter
	switch {
	case listens:
		w.lockState.listen(w.keys.Channel()) // and tries when that is confirmed
	case !first:
		w.lockState.stopListening()
	}
	switch {
	case a.TTL == scripts.NoKey && a.Before < 2:
		w.watchFor(p.watchUnlessAlive(a.Head, w.lateOne, w.aliveCount))
		return
	case a.TTL == scripts.NoKey && w.quiet > 0: // the look has called the first one, and the second has not taken it out so far
		w.watchFor(p.watchUnlessAlive(a.Head, w.lateOne, w.aliveCount) + calledTimeout)
		return
	case a.TTL == scripts.NoKey:
		w.watchFor(p.watchFromBehind(w.client.set.Poll))
		return
	}
	if a.Before != 1 {
		p.clearCalled()
	}
	w.watchFor(p.nextLook(a, listens, w.quiet, w.client.set.Poll))
}
