package room

import (
	"cmp"
	"slices"
	"time"
)

const (
	// youngAttempt is for how long a next call waits for the answer to an attempt when the call
	// leaves that it was sent for. An older one may get none, which may be why that call leaves.
	youngAttempt = 100 * time.Millisecond
	// lingerTime is how long a client that waits no more still listens for its calls: its callers
	// may come back, and what it has sent may arrive late.
	lingerTime = 2 * time.Second
	// drainPause lets those leave that a shutdown ends before the next one asks.
	drainPause = time.Millisecond
)

func (r *Room) join(c *Call) {
	if r.own.field != "" {
		e := effect(Wanted)
		e.Field = r.own.field
		r.do(e)
	}
	if r.asker == nobody {
		r.asker = askers.Get().(*asker)
	}
	r.asker.queue = append(r.asker.queue, *c)
	if n := len(r.asker.queue); n > 1 {
		r.waits(&r.asker.queue[n-1])
		return
	}
	if r.mayAsk() && !r.health.Known() { // nobody else is known to want the lock
		r.ask()
		return
	}
	r.lead()
}

// waits says, once, that the call waits for others.
func (r *Room) waits(c *Call) {
	if !c.waits {
		c.waits = true
		e := effect(Waits)
		e.Call = c.ID
		r.do(e)
	}
}

// lead is for a call that has become the head. What is under way goes on, for that call.
func (r *Room) lead() {
	head := &r.asker.queue[0]
	if r.others.place != nil {
		r.others.place.Told() // its looks are not those of the one before
	}
	err := r.health.PatienceOver(r.now, head.Began, r.set.Patience)
	switch {
	case r.asker.underWay != 0:
	case err != nil:
		r.fail(err, head.Began)
	case !r.mayAsk(): // the end of the own hold, or a message, is soon enough
		r.waits(head)
		r.listen(Own)
		r.watch(r.set.Poll)
	case r.asker.state == resting || !r.inLine():
		r.takeTurn()
	}
}

// leave takes a call out of the queue. What was begun for it goes on for the next head where that
// asks for the same, and is abandoned otherwise. got: the field of the hold that the call has.
func (r *Room) leave(id uint64, got string) {
	at, found := slices.BinarySearchFunc(r.asker.queue, id, func(c Call, id uint64) int { return cmp.Compare(c.ID, id) })
	if !found {
		return
	}
	if at > 0 {
		r.asker.queue = slices.Delete(r.asker.queue, at, at+1)
		return
	}
	if len(r.asker.queue) == 1 {
		r.asker.queue = r.asker.queue[:0] // its memory is used again
	} else {
		r.asker.queue = r.asker.queue[1:]
	}
	if got != "" && r.kind.Together {
		r.askBeside()
	}
	was := r.asker.state
	if was == granted {
		r.asker.state = resting
	}
	r.keepForNext(was, got)
	switch {
	case len(r.asker.queue) == 0:
		r.rest()
	case r.asker.queue[0].beside && r.asker.underWay == 0: // it leaves, too
		if r.asker.due.IsZero() { // otherwise the look is for the next head
			r.asker.due = r.now.Add(r.set.Poll)
		}
	case r.facts.Draining && r.asker.underWay == 0 && r.mayAsk(): // most calls leave now
		r.watch(drainPause)
	default:
		r.lead()
	}
}

// keepForNext keeps for the next head what it can use of the claim and the attempt of the one
// before.
func (r *Room) keepForNext(was state, got string) {
	a, field := r.asker, r.asker.claim.field
	passed := a.passed
	if a.passed = ""; passed != "" && got != passed { // nobody has it any more
		r.ends++
		r.abandon(passed, false)
	}
	keeps := len(r.asker.queue) > 0 && field != "" && a.claim.terms == r.asker.queue[0].Terms &&
		(was != granted || passed != "") && !(was == asking && r.kind.Once)
	old := was == asking && r.now.Sub(a.sent) >= youngAttempt
	if a.underWay != 0 && (!keeps || old) {
		r.takeBack(a.underWay)
		a.claim.doubt = true
		a.underWay, a.state = 0, resting
	}
	if field != "" && !keeps {
		a.claim = claim{}
		if got != field {
			r.abandon(field, false)
		}
	}
}

// askBeside has all calls leave the queue, and ask beside the one that was granted the lock.
func (r *Room) askBeside() {
	for i := range r.asker.queue {
		r.asker.queue[i].beside = true
	}
	if len(r.asker.queue) > 0 {
		r.emit(Effect{Do: AskBeside})
	}
}

// rest ends the asking, as nobody waits any more.
func (r *Room) rest() {
	r.asker.course = course{}
	askers.Put(r.asker)
	r.asker = nobody
	r.unlistenIfUnused()
	if !r.others.heard[Calls].asked {
		return
	}
	r.leavePlace()
	r.linger(lingerTime)
}

// linger listens for calls for a while after the last one has left.
func (r *Room) linger(d time.Duration) {
	if r.facts.Draining {
		d = 0
	}
	if until := r.now.Add(d); d == 0 || until.After(r.others.lingers) {
		r.contend().lingers = until
	}
}

func (r *Room) lingerOver() {
	r.others.lingers = time.Time{}
	if r.others.heard[Calls].asked {
		r.others.heard[Calls] = hearing{}
		r.emit(Effect{Do: Unlisten, Channel: Calls, Drop: true})
	}
}
