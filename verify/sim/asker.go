package main

import (
	"fmt"
	_ "unsafe" // for go:linkname

	"github.com/fencelock/fencelock/verify/overlay"
)

// The library does not count what its askers do. Workers are built with these edits, which do: the states are drawn in
// `go doc ./internal/engine`. A build with a bug on purpose goes without, as its edits may be of the same lines.
var askerEdits = []overlay.Edit{
	{File: "internal/engine/asker.go", Old: "type askerState uint8\n", New: "type askerState uint8\n\nvar (\n\tsimPasses [6][6]int\n\tsimJudged [2][4]int\n)\n"},
	{File: "internal/engine/asker.go", Old: "\tls.command, ls.state, ls.sentAt = f, state, time.Now()\n",
		New: "\tsimPasses[ls.state][state]++\n\tls.command, ls.state, ls.sentAt = f, state, time.Now()\n"},
	{File: "internal/engine/asker.go", Old: "\t\t\tls.state = yielding\n", New: "\t\t\tsimPasses[ls.state][yielding]++\n\t\t\tls.state = yielding\n"},
	{File: "internal/engine/asker.go", Old: "\to, a, again := ls.verdict(w, c, f)\n", New: `	o, a, again := ls.verdict(w, c, f)
	from, to := 0, 0
	if handedOver {
		from = 1
	}
	switch {
	case o.hold != nil:
	case o.err == nil:
		to = 1
	case again:
		to = 2
	default:
		to = 3
	}
	simJudged[from][to]++
`},
	{File: "internal/engine/queue.go", Old: "\t\tls.command, ls.state = nil, resting\n", New: "\t\tsimPasses[ls.state][resting]++\n\t\tls.command, ls.state = nil, resting\n"},
}

// What the askers of a worker have done: how often one has come from a state to another, and, by an attempt or by a handoff, to an outcome.
// Without the edits they stay 0.
var (
	//go:linkname simPasses github.com/fencelock/fencelock/internal/engine.simPasses
	simPasses [6][6]int
	//go:linkname simJudged github.com/fencelock/fencelock/internal/engine.simJudged
	simJudged [2][4]int
)

var (
	askerStates   = [6]string{"resting", "watching", "yielding", "asking", "receiving", "decided"}
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
