package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Faults excuse only whom they can hurt, while they are there, and for as long after that as they take to settle.

// A harm is what a fault does.
type harm struct {
	client string // whose links it breaks, by the place in the plan; "" where it is not one client's
	lock   string // of which it deletes the key; "" where it is not one lock's
	server int    // -1: several
	text   string
	mild   bool // it hurts those who wait alone: what is to be released is released
	from   time.Duration
	heard  time.Duration // when servers answer again as before, but for a vote
	until  time.Duration // when it has settled
}

const forever = time.Duration(1 << 62)

// harms takes in the beginning of a fault. A process that dies or leaves hurts nobody else: what it leaves is judged by its end.
func (j *judging) harms(e event) {
	if k := kindOf(e.Text); k == nil || k.of != aProcess {
		h := harmOf(e)
		if h.from = e.At; k != nil && k.name == uncounts { // all goes on then, but for the line
			h.heard, h.until, j.unlined = e.At+soon, e.At+soon, forever
		}
		j.harmed = append(j.harmed, h)
	}
}

// settles takes in the end of a fault.
func (j *judging) settles(e event) {
	if k := kindOf(e.Text); k != nil && k.name == uncounts {
		j.unlined = e.At + e.For
	}
	over := harmOf(e)
	if i := slices.IndexFunc(j.harmed, func(h harm) bool { h.from = 0; return h == over }); i >= 0 {
		j.harmed[i].until, j.harmed[i].heard = e.At+e.For, e.At+e.For
		if k := kindOf(e.Text); k != nil && k.young {
			j.harmed[i].heard = e.At + min(e.For, max(k.settles, soon))
		}
	}
}

// harmOf is what the fault does that this event tells of. Messages are for those who wait, and so are all commands that the user may lose the
// right to but for the one that runs scripts (P30).
func harmOf(e event) harm {
	mild := strings.HasPrefix(e.Text, "messages:") || strings.HasPrefix(e.Text, "rights:") && !strings.Contains(e.Text, "("+scriptsRight)
	return harm{client: e.Client, lock: e.Lock, server: e.Server, text: e.Text, mild: mild, heard: forever, until: forever}
}

// kindOf is the kind of the fault that the story calls so; nil for none.
func kindOf(text string) *faultKind {
	name, _, _ := strings.Cut(text, ":")
	if i := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name }); i >= 0 {
		return &faultKinds[i]
	}
	return nil
}

// hurts tells whether the harm is one to this client and this lock.
func (h harm) hurts(c *judgedClient, lock string) bool {
	return (h.client == "" || c.isAt(h.client)) && (h.lock == "" || h.lock == lockOfKey(lock))
}

// on tells whether the harm is on this server.
func (h harm) on(server int) bool { return server == h.server || h.server < 0 || h.lock != "" }

// wellFrom is from when on nothing hurts this client's waits for this lock: forever while something does.
func (j *judging) wellFrom(c *judgedClient, lock string) time.Duration {
	return j.harmedUntil(c, lock, true)
}

// harmedUntil is until when something hurts this client and this lock; mild harms count where that is asked for. In a quorum nothing does that
// hurts fewer than half of the nodes.
func (j *judging) harmedUntil(c *judgedClient, lock string, mild bool) time.Duration {
	return j.harmedByNode(c, lock, mild, func(h harm) time.Duration { return h.until })[j.Servers/2]
}

// allWellFrom is from when on no node is hurt. A line is on one server of a quorum (P40): who does not hear that one looks by itself.
func (j *judging) allWellFrom(c *judgedClient, lock string) time.Duration {
	return j.harmedByNode(c, lock, true, func(h harm) time.Duration { return h.heard })[0]
}

// harmedByNode is until when each node is hurt, the last one first.
func (j *judging) harmedByNode(c *judgedClient, lock string, mild bool, end func(harm) time.Duration) []time.Duration {
	until := make([]time.Duration, j.Servers)
	for _, h := range j.harmed {
		if !h.hurts(c, lock) || h.mild && !mild {
			continue
		}
		for s := range until {
			if h.on(s) {
				until[s] = max(until[s], end(h))
			}
		}
	}
	slices.SortFunc(until, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	return until
}

// wellFor is the longest time without a pause in which nothing hurt the client and the lock, from one time to another.
func (j *judging) wellFor(c *judgedClient, lock string, from, to time.Duration) (longest time.Duration) {
	begin := []time.Duration{from}
	for _, h := range j.harmed {
		if h.until > from && h.until < to {
			begin = append(begin, h.until)
		}
	}
	for _, at := range begin {
		if j.hurtAt(c, lock, at) {
			continue
		}
		end := to
		for _, h := range j.harmed {
			if h.from > at && h.from < end && j.hurtAt(c, lock, h.from) {
				end = h.from
			}
		}
		longest = max(longest, end-at)
	}
	return longest
}

// hurtAt tells whether something hurt the client and the lock at this time, which is over.
func (j *judging) hurtAt(c *judgedClient, lock string, at time.Duration) bool {
	nodes := make(map[int]bool)
	for _, h := range j.harmed {
		if h.hurts(c, lock) && !h.mild && h.from <= at && at < h.until {
			for s := range j.Servers {
				if h.on(s) {
					nodes[s] = true
				}
			}
		}
	}
	return 2*len(nodes) > j.Servers
}

// hinders tells whether something may keep the client's words from a server.
func (j *judging) hinders(c *judgedClient) bool {
	return slices.ContainsFunc(j.harmed, func(h harm) bool { return h.until > j.now && (h.client == "" || c.isAt(h.client)) })
}

// loneFrom is from when on at most one client may be in the line of the lock that does not answer.
func (j *judging) loneFrom(lock string) time.Duration {
	var until []time.Duration
	for _, c := range j.clients {
		switch {
		case j.leftPlace(c, lock):
			until = append(until, forever)
		case !c.closed && c.gone == 0:
			until = append(until, j.wellFrom(c, lock))
		}
	}
	if len(until) < 2 {
		return 0
	}
	slices.Sort(until)
	return until[len(until)-2]
}

// A share is how much there was, and how much of it was judged.
type share struct{ All, Judged float64 }

func (s *share) add(all float64, judged bool) {
	if s.All += all; judged {
		s.Judged += all
	}
}

// over adds the time from one moment to another, which was judged from a third one on.
func (s *share) over(from, to, judged time.Duration) {
	s.All += (to - from).Seconds()
	s.Judged += max(0, to-max(judged, from)).Seconds()
}

func (s share) String() string { return fmt.Sprintf("%.0f%%", 100*s.Judged/max(s.All, 1)) }

// shares are of the times that locks are waited for, by nobodySleep; that clients have them, by nobodysLock; that contexts live, by losesInTime; and
// of the releases of locks that are waited for, by soonTaken.
type shares struct{ Waited, Taken, Lived, Released share }

func (s *shares) add(o shares) {
	for mine, its := range map[*share]share{&s.Waited: o.Waited, &s.Taken: o.Taken, &s.Lived: o.Lived, &s.Released: o.Released} {
		mine.All += its.All
		mine.Judged += its.Judged
	}
}

// counts adds the time until this moment to what was judged of the lock, or not.
func (j *judging) counts(name string, l *judgedLock, to time.Duration) {
	waited, from := false, forever
	for _, h := range l.waits {
		if h.mustTake() {
			waited, from = true, min(from, j.wellFrom(h.client, name))
		}
	}
	if waited {
		j.shares.Waited.over(j.now, to, from)
	}
	for _, key := range j.keysOf(name) {
		for field, f := range j.lock(key).fields {
			c := j.clientOf(field)
			if c == nil || c.redisson {
				continue
			}
			from, is := j.nobodysFrom(c, key, f)
			if !is {
				from = forever
			}
			j.shares.Taken.over(j.now, to, from)
		}
	}
}
