package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/fencelock/fencelock/observe/inspect"
)

// defaultLongHold is how old a hold is, or how long somebody waits, where the lock is stuck: the page has the same.
const defaultLongHold = time.Minute

// waited tells whether somebody waits for the lock. A holder has one connection that listens.
func (r *lockRow) waited() bool {
	if r.of != nil {
		return r.of.Waited(r.Listeners)
	}
	return r.Waiting > 0 || r.Listeners > 1 || r.Listeners == 1 && r.Holder == nil
}

// standby tells whether all that wait, as far as that is known, stand by for a hold that is meant to last.
func (r *lockRow) standby() bool {
	lasts := r.lock.Lasts() && r.Listeners <= r.Waiting+1
	if r.of != nil {
		lasts = r.of.Lasts()
	}
	return lasts &&
		!slices.ContainsFunc(r.Line, func(w waitRow) bool { return w.Lasting == "" })
}

// stuck says why a lock that is waited for does not come free, as the page does (package lockui), or why a semaphore has a wait that is long; "" where it may come free by itself.
func (r *lockRow) stuck(longHold time.Duration) string {
	var longest, standby time.Duration
	for _, w := range r.Line {
		if w.Lasting == "" {
			longest = max(longest, time.Duration(w.Age))
		} else {
			standby = max(standby, time.Duration(w.Age))
		}
	}
	switch h := r.lock.Holder; {
	case r.of != nil && r.waited() && r.of.Blocked() != "":
		return r.of.Blocked()
	case r.of != nil && longest >= longHold && !r.of.Lasts():
		return "somebody has waited for a permit for " + span(longest)
	case r.of != nil:
		return ""
	case r.lock.Unknown != "" && r.waited():
		return r.lock.Unknown
	case r.Other != "" || !r.waited():
		return ""
	case h == nil && r.Counter != "":
		return "free, but " + r.Counter
	case h == nil && max(longest, standby) >= longHold:
		return "free, and yet somebody has waited for " + span(max(longest, standby))
	case h == nil:
		return ""
	case r.lock.TTL == inspect.NoExpiry:
		return "it has no lease, and stays until somebody frees it"
	case h.By != nil && h.By.Quiet():
		return fmt.Sprintf("its holder was last heard of %s ago", span(h.By.Silent))
	case r.lock.Lasts():
		return ""
	case r.age() >= longHold:
		return "held for " + span(r.age()) + " while others wait"
	case longest >= longHold:
		return "somebody has waited for " + span(longest)
	}
	return ""
}

// state is the mark of a lock in top.
func (r *lockRow) state() string {
	switch {
	case r.Stuck != "":
		return "STUCK"
	case r.standby():
		return unknown
	case r.Other == "" && r.waited():
		return "waited"
	}
	return unknown
}
