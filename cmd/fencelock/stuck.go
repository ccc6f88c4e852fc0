package main

import (
	"fmt"
	"time"

	"github.com/fencelock/fencelock/observe/inspect"
)

// defaultLongHold is how old a hold is, or how long somebody waits, where the lock is stuck: the page has the same.
const defaultLongHold = time.Minute

// waited tells whether somebody waits for the lock. A holder has one connection that listens.
func (r *lockRow) waited() bool {
	return r.Waiting > 0 || r.Listeners > 1 || r.Listeners == 1 && r.Holder == nil
}

// stuck says why a lock that is waited for does not come free, as the page does (package lockui); "" where it may come free by itself.
func (r *lockRow) stuck(longHold time.Duration) string {
	var longest time.Duration
	for _, w := range r.Line {
		longest = max(longest, time.Duration(w.Age))
	}
	switch h := r.lock.Holder; {
	case r.Other != "" || !r.waited():
		return ""
	case h == nil && longest >= longHold:
		return "free, and yet somebody has waited for " + span(longest)
	case h == nil:
		return ""
	case r.lock.TTL == inspect.NoExpiry:
		return "it has no lease, and stays until somebody frees it"
	case h.By != nil && h.By.Quiet():
		return fmt.Sprintf("its holder was last heard of %s ago", span(h.By.Silent))
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
	case r.Other == "" && r.waited():
		return "waited"
	}
	return unknown
}
