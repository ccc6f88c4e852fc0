package main

import (
	"strings"
	"time"
)

// leftover requires that nothing is left.
func (j *judging) leftover(e event) {
	switch {
	case e.Client != "":
		j.clientLeft(e)
		return
	case e.Lock == "" && strings.HasPrefix(e.Text, leftChannel) && j.deadLinks: // a server is never told of a link that has died
		return
	case e.Lock == "":
		j.violated(nothingLeft, "", "%s", e.Text)
		return
	}
	id, _, _ := strings.Cut(e.Text, ":")
	c := j.byID[id]
	if c == nil {
		j.violated(nothingLeft, e.Lock, "%s has it, and is no client's", e.Text)
		return
	}
	if c.redisson || c.gone > 0 && j.now < c.gone+longest || c.closed && j.now < c.closedAt+longest || j.lostSince(e.Lock, c.asked) {
		return
	}
	j.violated(nothingLeft, e.Lock, "%s has it by %s after the last Unlock", c.name, e.Text)
}

// clientLeft requires that the client has nothing in memory. What got no answer is released for as long after all is well again (P3).
func (j *judging) clientLeft(e event) {
	if e.Text == owedReleases && j.settled > 0 && j.now < j.settled+j.owedFor() {
		return
	}
	j.violated(nothingLeft, "", "%s has %d %s after the last Unlock", e.Client, e.Count, e.Text)
}

// longestLease is the longest lease of all calls.
func (p plan) longestLease() time.Duration {
	most := renewed
	for _, c := range p.Clients {
		for _, caller := range c.Callers {
			for _, one := range caller.Calls {
				most = max(most, one.Lease, one.Extend)
			}
		}
	}
	return most
}
