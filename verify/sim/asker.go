package main

import (
	"fmt"
	_ "unsafe" // for go:linkname

	"github.com/fencelock/fencelock/verify/overlay"
)

// The library does not count what its askers do. Workers are built with these edits, which do: the states are drawn in
// `go doc ./internal/room`. A build with a bug on purpose goes without, as its edits may be of the same lines.
var askerEdits = []overlay.Edit{
	{File: "internal/room/room.go", Old: "type state uint8\n", New: "type state uint8\n\nvar (\n\tsimPasses [6][6]int\n\tsimJudged [2][4]int\n)\n"},
	{File: "internal/room/asker.go", Old: "\ta.underWay, a.state, a.sent = r.attempts, s, r.now\n",
		New: "\tsimPasses[a.state][s]++\n\ta.underWay, a.state, a.sent = r.attempts, s, r.now\n"},
	{File: "internal/room/asker.go", Old: "\t\t\tr.asker.state = yielding\n", New: "\t\t\tsimPasses[watching][yielding]++\n\t\t\tr.asker.state = yielding\n"},
	{File: "internal/room/asker.go", Old: "\thanded, c := r.asker.state == passing, &r.asker.claim\n", New: `	handed, c := r.asker.state == passing, &r.asker.claim
	from, to := 0, 3
	if handed {
		from = 1
	}
	switch {
	case ev.Err == nil && ev.Answer.Held && !ev.Late:
		to = 0
	case ev.Err == nil && !ev.Answer.Held:
		to = 1
	case ev.Err == nil || scripts.Passing(ev.Err):
		to = 2
	}
	simJudged[from][to]++
`},
	{File: "internal/room/queue.go", Old: "\t\ta.underWay, a.state = 0, resting\n", New: "\t\tsimPasses[was][resting]++\n\t\ta.underWay, a.state = 0, resting\n"},
}

// What the askers of a worker have done: how often one has come from a state to another, and, by an attempt or by a handoff, to an outcome.
// Without the edits they stay 0.
var (
	//go:linkname simPasses github.com/fencelock/fencelock/internal/room.simPasses
	simPasses [6][6]int
	//go:linkname simJudged github.com/fencelock/fencelock/internal/room.simJudged
	simJudged [2][4]int
)

var (
	askerStates   = [6]string{"resting", "watching", "yielding", "asking", "passing", "granted"}
	askerOutcomes = [4]string{"the lock", "refused", "an error that passes", "an error"}
)

// asked counts what the askers have done.
func (t *tally) asked() {
	for from, row := range simPasses {
		for to, n := range row {
			t.add(fmt.Sprintf("asker from %s to %s", askerStates[from], askerStates[to]), n)
		}
	}
	for by, row := range simJudged {
		for to, n := range row {
			t.add(fmt.Sprintf("asker by %s to %s", askerStates[3+by], askerOutcomes[to]), n)
		}
	}
}
