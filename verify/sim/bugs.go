package main

import "github.com/fencelock/fencelock/internal/test/breaks"

// A bug is a break of the library that worlds have to find.
type bug struct {
	breaks.Break
	faults  string // of the worlds that look for it, separated by commas; "" for all
	servers int    // of these worlds; 0: by the seed
}

// playedWith says in which worlds each break is looked for.
var playedWith = []struct {
	short, faults string
	servers       int
}{
	{"acquire-held", "cut", 1},
	{"token-read", "cut", 1},
	{"repeat-counts", "replies,dead,late", 1},
	{"number-again", "", 1},
	{"unlock-any", "", 1},
	{"ghost-kept", "", 1},
	{"no-floor", "flush,forgets,failover", 1},
	{"quorum-counters", "flush", 5},
	{"deadline-reply", "late", 1},
	{"release-silent", "cut", 1},
	{"second-sleeps", "away,messages", 1},
	{"renew-any", "delete,failover", 1},
	{"renew-revives", "delete,flush", 1},
	{"freeze-forgotten", "freeze", 1},
	{"no-answer-heard", "freeze,restart", 1},
	{"release-once", "freeze,dead,replies,away", 1},
	{"over-kept", "failover", 1},
	{"over-taken", "", 1},
	{"lately-empty", "failover", 1},
	{"wait-unbounded", "freeze,dead", 1},
	{"watchdog-off", "cut", 1},
	{"no-copies", "dead", 1},
	{"no-poll", "messages", 1},
	{"called-ghost", "replies,dead,away", 1},
	{"ticket-left", "cut", 1},
	{"deaf-for-good", "rights", 1},
	{"called-dead", "dies", 1},
	{"wait-lease", "cut", 1},
	{"newest-first", "cut", 1},
	{"channel-kept", "none", 1},
	{"close-asleep", "leaves", 1},
	{"thaw-slow", "freeze", 1},
	{"node-soon", "rolls", 5},
	{"renews-once", "readonly", 1},
	{"handoff-lost", "replies,dead,late", 1},
	{"unlock-left", "rights", 1},
	{"first-polls", "dies", 1},
	{"slot-many", "none", 1},
	{"read-beside", "none", 1},
	{"extend-undone", "none", 1},
	{"extend-forgotten", "none", 1},
	{"third-fails", "none", 1},
	{"uncounted-in-line", "uncounted", 1},
}

var bugs = func() (all []bug) {
	for _, w := range playedWith {
		all = append(all, bug{breaks.Called(w.short), w.faults, w.servers})
	}
	return all
}()
