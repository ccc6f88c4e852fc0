package lockui

import "github.com/fencelock/fencelock/observe/inspect"

// maxCycles is how many circles of clients are on a page.
const maxCycles = 5

// shownCycle is clients that wait in a circle: each waits for what the next one holds, and the last one for what the first one holds.
type shownCycle []shownLink

type shownLink struct {
	Client   string       `json:"client"`
	By       *process     `json:"by"`
	Holds    string       `json:"holds"`
	Held     milliseconds `json:"held_ms"`
	WaitsFor string       `json:"waits_for"`
	Waited   milliseconds `json:"waited_ms"`
}

func newCycles(s *survey) (all []shownCycle) {
	for _, cycle := range s.cycles[:min(len(s.cycles), maxCycles)] {
		all = append(all, newCycle(s, cycle))
	}
	return all
}

func newCycle(s *survey, cycle inspect.Cycle) (shown shownCycle) {
	for _, l := range cycle {
		ago := s.since(l.Client)
		shown = append(shown, shownLink{l.Client.ID, newProcess(l.Client), l.Hold.Lock, milliseconds(l.Hold.For + ago), l.Wait.Lock, milliseconds(l.Wait.For + ago)})
	}
	return shown
}
