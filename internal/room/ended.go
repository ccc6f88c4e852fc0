package room

import (
	"slices"
	"time"
)

// A try is a call that asks beside the queue.
type try struct {
	field string
	ends  uint32 // Room.ends, when its last attempt was sent
}

// isOver tells whether the hold that has kept an attempt from the lock is one of this client's that
// was over when the attempt was sent, at this count of ends (P38).
func (r *Room) isOver(ends uint32, field string) bool {
	return field != "" && r.ends == ends && !r.Has(field)
}

// Has tells whether a hold of this client, or a call that asks for the lock, has this field.
func (r *Room) Has(field string) bool {
	return field == r.own.field || field == r.others.lost || field == r.asker.claim.field || field == r.asker.passed ||
		slices.ContainsFunc(r.others.tries, func(t try) bool { return t.field == field })
}

// beside is for what happens beside the queue.
func (r *Room) beside(ev *Event) {
	at := slices.IndexFunc(r.others.tries, func(t try) bool { return t.field == ev.Field })
	switch {
	case ev.What == Trying:
		r.contend().tries = append(r.others.tries, try{ev.Field, r.ends})
	case ev.What == Tried && at >= 0:
		r.others.tries = slices.Delete(r.others.tries, at, at+1)
	case ev.What == Asked && at >= 0:
		r.asked(&r.others.tries[at], ev)
	case ev.What == Lost:
		r.contend().lost = ev.Field
	}
}

// asked notes what an attempt of a call that does not wait has come to.
func (r *Room) asked(t *try, ev *Event) {
	switch {
	case ev.Err != nil && ev.Got && len(r.asker.queue) > 0:
		r.said().Failed(r.now, time.Time{}, ev.Err)
	case ev.Err != nil && ev.Got:
		r.said().Failed(r.now, ev.At, ev.Err)
	case ev.Err == nil && ev.Got:
		r.said().Answered(r.now, ev.Answer.Why)
	}
	if ev.Err != nil {
		return
	}
	if r.isOver(t.ends, ev.Answer.Own) {
		r.freeOver(ev.Answer.Own)
	}
	t.ends = r.ends
}
