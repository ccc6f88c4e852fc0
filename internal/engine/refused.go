package engine

import (
	"time"

	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/scripts"
)

// wasRefused decides how a waiter goes on whose attempt has not got the lock: it enters the line, or waits to be told, or looks again after
// a while.
func (w *waiter) wasRefused(a scripts.Answer) {
	w.waitStarted()
	ls, poll := w.lockState, w.client.set.Poll
	ls.mayWaitInLine()
	var after time.Duration
	if w.ticket != "" && a.Before != scripts.NotInLine {
		w.client.lineProven.Store(true)
		listening, soon := line.AsBefore, w.endsSoon()
		ls.inPlace(func(p *line.Place, now time.Time) bool {
			after, listening = p.Refused(now, a, poll, soon)
			return true
		})
		switch listening {
		case line.Listens:
			ls.listen(w.keys.Channel()) // and tries when that is confirmed
		case line.Ignores:
			ls.stopListening()
		}
		w.watchFor(after)
		return
	}
	enters := w.client.usesLine() && w.ticket == ""
	if enters && ls.listenForCalls(w.keys) {
		w.on(mayAsk) // enters the line
		return
	}
	enters = enters && !ls.inPlace(func(p *line.Place, _ time.Time) bool { return p.Quiet() })
	listens := !enters && ls.listen(w.keys.Channel())
	ls.inPlace(func(p *line.Place, now time.Time) bool {
		after = p.RefusedOutside(now, a, poll, enters, listens)
		return true
	})
	w.watchFor(after)
}

// endsSoon tells whether the call is to end before it would listen on the lock's own channel, or soon after.
func (w *waiter) endsSoon() bool {
	end, ok := w.waitCtx.Deadline()
	return ok && time.Until(end) < 2*line.FirstListensAfter
}
