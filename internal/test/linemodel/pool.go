package linemodel

import (
	"slices"
	"time"
)

// A Pool is a semaphore, as slots.lua, permit.lua and vacate.lua have it, by the line of [Model]. No sequence compares it
// with them. To "redisson lock" all slots are one lock, as those who read are to one who writes.
type Pool struct {
	Slots int
	Taken []Permit
	Line  Line
}

// A Permit is a slot that is taken.
type Permit struct {
	Field string
	Until time.Time
}

// Apply does what the op does at this time: wait, release, vacate, leave, and what another kind of client does.
func (p *Pool) Apply(o Op, now time.Time) (r Reply) {
	at, free := Span{now, now}, len(p.Taken) < p.Slots
	p.Line.Said = nil
	switch o.Kind {
	case "wait":
		return p.wait(o, at)
	case "leave":
		if removed := p.Line.remove(o.Again); !free && removed {
			p.Line.near()
		} else if free && !p.Line.call(0, "", 0) {
			p.Line.tell("", "0")
		}
	case "release":
		if r.Released = p.remove(o.Field); !r.Released {
			if !p.Line.call(0, "", 0) {
				p.Line.tell("", "0")
			}
		} else if forLine := p.Line.forLine(o.Field); !forLine || !p.Line.call(0, o.Field, 0) {
			if r.Told = p.Line.tell("", "0"); !forLine {
				p.Line.call(r.Told, o.Field, o.Known)
			}
		}
	case "vacate":
		r.Released = p.remove(o.Field)
		if called := len(p.Taken) < p.Slots && p.Line.call(0, "", 0); r.Released && !called {
			r.Told = p.Line.tell("", "0")
		}
	case "redisson lock":
		if r.TTL = len(p.Taken) > 0; !r.TTL {
			r.Held = true
			p.Taken = slices.Repeat([]Permit{{o.Field, now.Add(o.Lease)}}, p.Slots)
		}
	case "redisson unlock":
		if r.Released = p.remove(o.Field); r.Released {
			p.Line.tell("", "0")
		}
	default:
		panic("no such op: " + o.Kind)
	}
	return r
}

func (p *Pool) wait(o Op, at Span) Reply {
	t, r := o.Turn, Reply{TTL: true, Before: notInLine}
	full, waited := len(p.Taken) >= p.Slots, false
	if !full {
		r.Head, waited = p.Line.before(t, at)
	}
	if !full && r.Head == "" {
		p.Taken = append(slices.Clone(p.Taken), Permit{o.Field, at.Lo.Add(o.Lease)})
		p.Line.taken(t, waited)
		if len(p.Taken) < p.Slots {
			p.Line.call(0, "", 0) // several slots may have come free at once
		}
		return Reply{Held: true}
	}
	if t.Ticket != "" {
		r.Place, r.Before = p.Line.stand(t, at, full)
	}
	return r
}

// remove takes a hold out of all slots that it has.
func (p *Pool) remove(field string) bool {
	n := len(p.Taken)
	p.Taken = slices.DeleteFunc(slices.Clone(p.Taken), func(x Permit) bool { return x.Field == field })
	return len(p.Taken) < n
}
