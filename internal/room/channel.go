package room

import (
	"time"

	"github.com/fencelock/fencelock/internal/line"
)

// makePlace returns the client's place, made if need be.
func (r *Room) makePlace() *line.Place {
	o := r.contend()
	if o.place == nil {
		o.place = new(line.Place)
	}
	return o.place
}

// listen listens on a channel, and tells whether messages arrive.
func (r *Room) listen(c Channel) (live bool) {
	h := &r.contend().heard[c]
	if !h.asked {
		h.asked = true
		r.emit(Effect{Do: Listen, Channel: c})
		return false // Changed follows
	}
	if c == Calls {
		return r.facts.Hears
	}
	return h.live
}

// hearsCalls tells whether the client would hear its call.
func (r *Room) hearsCalls() bool { return r.others.heard[Calls].asked && r.facts.Hears }

// unlisten ends listening on the lock's own channel, unless a hold is listened for: the client is
// called, and is to be no outsider to the others in the line.
func (r *Room) unlisten() {
	if r.others.heard[Own].asked && !r.own.kept {
		r.others.heard[Own] = hearing{}
		r.emit(Effect{Do: Unlisten, Channel: Own, Drop: true})
	}
}

// unlistenIfUnused ends listening on the lock's own channel where nobody is there for whom it is.
func (r *Room) unlistenIfUnused() {
	if r.others.heard[Own].asked && len(r.asker.queue) == 0 && !r.own.kept {
		r.others.heard[Own] = hearing{}
		r.emit(Effect{Do: Unlisten, Channel: Own, Drop: r.facts.Line})
	}
}

// changed is for a channel on which messages arrive again, or no longer: some may have been missed.
func (r *Room) changed(c Channel, live bool) {
	if !r.others.heard[c].asked {
		return
	}
	r.others.heard[c].live = live
	if c == Calls && r.others.place != nil {
		r.others.place.ChannelLost()
	}
	r.mayBeFree(true)
}

// told is for a release. It is nothing to a client that leaves it to others in the line (P26).
func (r *Room) told() {
	if r.others.place == nil || !r.others.place.Behind(r.now) {
		r.mayBeFree(true)
	}
}

// hear is for a message about the client's place. A call for a place that the client has not got is
// passed on (P19).
func (r *Room) hear(text string) {
	if ghost := r.makePlace().Hear(r.now, text); ghost != "" {
		r.emit(Effect{Do: LeaveLine, Ticket: ghost})
	}
}

// mayBeFree notes whether the lock may be free, by what was heard last. Who joins an empty queue
// asks anyway.
func (r *Room) mayBeFree(may bool) {
	if len(r.asker.queue) > 0 {
		r.asker.freed = may
	}
}

// inLine tells whether the client is in the line, as far as Redis has said.
func (r *Room) inLine() bool { return r.others.place != nil && r.others.place.InLine() }

// ownListeners is how many of those who hear of a release are this client: 1 or 0.
func (r *Room) ownListeners() int {
	if r.facts.Listens {
		return 1
	}
	return 0
}

// leavePlace takes the client out of the line. An attempt that may enter it again was taken back.
func (r *Room) leavePlace() {
	if r.others.place == nil {
		return
	}
	stood := r.others.place.Stood()
	if ticket := r.others.place.GiveUp(r.now); ticket != "" {
		r.emit(Effect{Do: LeaveLine, Ticket: ticket, Stood: stood})
	}
}

// leftLine notes that an attempt with this ticket has taken the lock, or was refused a right to the
// line. refused: Redis may not have taken the ticket out.
func (r *Room) leftLine(ticket string, refused bool) {
	switch {
	case r.others.place == nil:
	case refused && r.others.place.Stood(), r.asker.overtakes && r.others.place.Has(ticket):
		r.leavePlace()
	default:
		r.others.place.Leave(r.now, ticket)
	}
}

// othersFirst leaves the lock for d to others, where there is no line.
func (r *Room) othersFirst(d time.Duration) {
	r.contend().yields = r.now.Add(d)
	r.linger(d)
}
