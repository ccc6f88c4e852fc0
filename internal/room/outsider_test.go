package room

import (
	"fmt"
	"time"
)

// An outsider is a client of another kind, such as Redisson's: it stands in no line, and asks when
// it hears of a release, or when the lease is over that it was told of.
type outsider struct {
	n          int
	field      string // that it asks for, or has; "" for nothing
	waits      bool
	holds      bool
	unlocking  bool
	listens    bool
	subscribed bool // as the server has it
	told       bool // of a release since it has asked
	down       int  // so many messages are under way
	due        time.Time
}

// wants has an outsider want the lock.
func (w *world) wants(i int) {
	o := &w.outs[i]
	o.n++
	o.field = fmt.Sprint(10+i, ":", o.n)
	w.outsiderAsks(i)
}

func (w *world) outsiderAsks(i int) {
	o := &w.outs[i]
	o.waits, o.told = false, false
	w.send(op{client: 10 + i, kind: "redisson lock", field: o.field, lease: lease})
}

// listens has the server note that an outsider listens on the lock's own channel, or not any more.
func (w *world) listens(i int, listen bool) {
	w.outs[i-10].subscribed = listen
	w.line().Listened[""] += 2*bit(listen) - 1
}

// outsiderHears is for an answer to an outsider.
func (w *world) outsiderHears(i int, r reply) {
	o := &w.outs[i]
	switch {
	case r.op.kind == "redisson lock" && r.answer.Held:
		o.holds = true
	case r.op.kind == "redisson lock" && !o.listens:
		o.listens = true
		w.send(op{client: 10 + i, kind: "listen"})
	case r.op.kind == "listen", r.op.kind == "redisson lock" && o.told:
		w.outsiderAsks(i)
	case r.op.kind == "redisson lock":
		o.waits, o.due = true, w.now.Add(max(r.answer.TTL, time.Millisecond))
	case r.op.kind == "redisson unlock" && o.listens:
		w.send(op{client: 10 + i, kind: "turn away"})
	default: // it wants the lock no longer
		*o = outsider{n: o.n, down: o.down}
	}
}

// outsiderIsTold is for a message on the lock's own channel.
func (w *world) outsiderIsTold(i int) {
	o := &w.outs[i]
	o.down--
	if o.told = true; o.waits {
		w.outsiderAsks(i)
	}
}
