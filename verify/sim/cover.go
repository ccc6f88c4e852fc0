package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// expected is what the gate's worlds do, in groups: each several times, so that another version of the library does it too. What is rarer is counted,
// and not required.
var expected = []struct {
	group string
	names []string
}{
	{"script ", []string{
		"acquire", "wait", "try", "level", "unlock", "release", "leave", "transfer", "renew", "inspect", "write", "index",
		"vote", "voteInTurn", "voteOutside", "extend", "recount", "raise", "withdraw", "withdrawInLine", "look",
	}},
	{"batch of ", []string{"acquire", "wait", "try", "level", "unlock", "release", "quick", "leave", "vote", "calling", "newcomers", "look"}},
	{"message ", []string{"a", "c", "d", "n", "w", "empty", "of a release"}},
	{"acquire ", []string{"by redis", "by redis after a wait", "by handoff", "by local", "by import", "by reentry", "by not acquired", "after a long wait"}},
	{"acquire: ", []string{"well", "another has it", "gave up", "closed", "connection refused", "no answer", "no right", "the server refuses"}},
	{"re-entry: ", []string{"well", "lost", "gave up", "no answer", "connection refused"}},
	{"Unlock: ", []string{"well", "lost", "no answer", "connection refused", "the server refuses"}},
	{"Unlock of a level: ", []string{"well", "lost", "no answer", "connection refused"}},
	{"HoldCount: ", []string{"well", "lost", "no answer", "gave up", "connection refused", "the server refuses"}},
	{"the end of a context: ", []string{"lost", "gave up", "connection refused", "no answer"}},
	{"", []string{"Close: well", "Shutdown: well", "ForceUnlock: well", "ForceUnlock of a hold"}},
	{"hold ", []string{"unlocked", "lost", "imported"}},
	{"hold of ", []string{
		"a lock", "a lock by Acquire", "a lock by Do", "a lock by a leader", "a lock by DoAll", "a semaphore", "a semaphore by Acquire", "a semaphore by Do",
		"what is read", "what is read by Acquire", "what is read by Do", "what is written", "what is written by Acquire", "what is written by Do",
	}},
	{"Extend: ", []string{"well", "lost", "no answer", "connection refused"}},
	{"writing while it reads: ", []string{"an upgrade"}},
	{"renewal ", []string{"that is well", "of a hold that is gone", "that fails", "of several leases", "of many leases"}},
	{"", []string{"wait", "Waited", "subscription up", "subscription down", "release in the background", "its confirmation", "its end without one"}},
}

// expects lists the names of what is expected, with all faults.
func expects() (all []string) {
	for _, e := range expected {
		for _, name := range e.names {
			all = append(all, e.group+name)
		}
	}
	for _, k := range faultKinds {
		all = append(all, "fault "+k.name)
	}
	return all
}

var errNever = errors.New("what worlds can do was not done")

// never returns what is expected and was never done.
func (t *total) never() (missed []string) {
	for _, name := range expects() {
		if t.done[name] == 0 {
			missed = append(missed, name)
		}
	}
	return missed
}

// printNever says what was never done, and with -covers how often all else was, and in how many worlds.
func (t *total) printNever(out io.Writer) {
	switch missed := t.never(); {
	case len(missed) == 0:
		fmt.Fprintln(out, "never: nothing of what worlds can do")
	case len(missed) > fewNames && !t.set.covers:
		fmt.Fprintf(out, "never: %d of %d things; -covers names them\n", len(missed), len(expects()))
	default:
		fmt.Fprintf(out, "never: %s\n", strings.Join(missed, ", "))
	}
}

// printCounts says of all that is counted how often it was done, and in how many worlds.
func (t *total) printCounts(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(t.done)) {
		fmt.Fprintf(out, "%8d in %2d worlds: %s\n", t.done[name], t.worldsThat[name], name)
	}
}

// fewNames are so few that they are named.
const fewNames = 20
