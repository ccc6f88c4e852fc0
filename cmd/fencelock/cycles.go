package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
)

// linkRow is a client of a circle, as JSON has it.
type linkRow struct {
	Client   *clientRow `json:"client"`
	Holds    string     `json:"holds"` // what the client before waits for
	Held     seconds    `json:"held"`
	WaitsFor string     `json:"waits_for"` // what the next client holds
	Waited   seconds    `json:"waited"`
}

// addCycles adds to the rows of locks in which circle their holders are.
func addCycles(rows []lockRow, cycles []inspect.Cycle) {
	for _, cycle := range cycles {
		links, holds := make([]linkRow, len(cycle)), make([]string, len(cycle))
		for i, l := range cycle {
			holds[i] = l.Hold.Lock
			links[i] = linkRow{clientOf(l.Client), l.Hold.Lock, age(l.Hold.For, l.Client), l.Wait.Lock, age(l.Wait.For, l.Client)}
		}
		for i := range rows {
			if rows[i].of == nil && slices.Contains(holds, rows[i].Name) {
				rows[i].Cycle, rows[i].Stuck = links, "its holder waits in a circle of clients"
			}
		}
	}
}

const (
	// textWidth is the width of what is printed about a circle where no screen has one.
	textWidth = 80
	// maxLinks is how many clients of a circle are named.
	maxLinks = 4
	// maxPart is how many letters of a client, or of a lock, a line about a circle has.
	maxPart = 40
	// deeper is in front of what goes on from the line before.
	deeper = "    "
)

// cycleText says who waits in the first of the circles, and how to get out, in lines of this width.
func cycleText(cycles []inspect.Cycle, width int) (lines []string) {
	if len(cycles) == 0 {
		return nil
	}
	add := func(format string, args ...any) {
		for i, line := range strings.Split(lipgloss.NewStyle().Width(width-len(deeper)).Render(fmt.Sprintf(format, args...)), "\n") {
			if i > 0 {
				line = deeper + line
			}
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	others := ""
	if n := len(cycles) - 1; n > 0 {
		others = fmt.Sprintf(" (and %d more such)", n)
	}
	first := cycles[0]
	add("%d clients wait in a circle%s, each for what the next one holds:", len(first), others)
	name := func(text string) string { return plain.Brief(text, maxPart) }
	for i, l := range first {
		if i == maxLinks {
			add("  and %d more", len(first)-i)
			break
		}
		add("  %s holds %s, waits %s for %s", name(process(l.Client, l.Client.ID)), name(plain.Name(l.Hold.Lock)), span(time.Duration(age(l.Wait.For, l.Client))), name(plain.Name(l.Wait.Lock)))
	}
	add("Take them by one call, DoAll or AcquireAll; or bound the wait: rlock.Wait.")
	add("Where other calls hold than those that wait, it ends by itself.")
	return lines
}
