package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// batched are the operations that a batch can have, by the names that stand there: of one server, and of the servers of a quorum.
var batched = []string{
	"acquire", "wait", "try", "level", "unlock", "release", "quick", "leave", "transfer",
	"vote", "turn", "outside", "extend", "recount", "raise", "withdraw", "calling", "newcomers", "look",
}

// known has all that is counted, in groups. The gate's worlds do each of it, but for what is rare.
var known = []struct {
	group      string
	done, rare []string
}{
	{"script ", []string{
		"acquire", "wait", "try", "level", "unlock", "release", "leave", "transfer", "renew", "inspect", "write", "index",
		"vote", "voteInTurn", "voteOutside", "extend", "recount", "raise", "withdraw", "withdrawInLine", "look",
	}, nil},
	{"batch of ", []string{"acquire", "wait", "try", "level", "unlock", "release", "quick", "leave", "transfer", "vote", "calling", "newcomers", "look"},
		[]string{"turn", "outside", "extend", "recount", "raise", "withdraw"}},
	{"message ", []string{"a", "c", "d", "n", "w", "empty", "of a release"}, nil},
	{"asker from ", []string{"resting to asking", "watching to asking", "watching to receiving", "watching to yielding", "yielding to asking", "asking to resting"},
		[]string{"asking to asking", "yielding to receiving", "receiving to resting"}},
	{"asker by ", []string{"asking to the lock", "asking to refused", "asking to an error that passes", "asking to an error", "receiving to the lock"},
		[]string{"receiving to refused", "receiving to an error that passes", "receiving to an error"}},
	{"acquire ", []string{"by redis", "by redis after a wait", "by handoff", "by reentry", "by not acquired", "after a long wait"}, []string{"by handoff after attempts"}},
	{"acquire: ", []string{"well", "another has it", "gave up", "closed", "connection refused", "no answer", "no right"},
		[]string{"lost", "unlocked", "no majority", "a young node", "the votes are split", "connection ended", "not sent"}},
	{"re-entry: ", []string{"well", "lost", "gave up", "no answer", "connection refused"},
		[]string{"another has it", "closed", "unlocked", "not held", "no right", "no majority", "a young node", "the votes are split", "connection ended", "not sent"}},
	{"Unlock: ", []string{"well", "lost", "no answer", "connection refused", "no right"}, []string{"not held", "closed", "gave up", "no majority", "a young node", "connection ended", "client of Redis closed", "not sent"}},
	{"Unlock of a level: ", []string{"well", "lost", "no answer", "connection refused"},
		[]string{"not held", "closed", "gave up", "no right", "no majority", "a young node", "connection ended", "client of Redis closed", "not sent"}},
	{"HoldCount: ", []string{"well", "lost", "no answer", "gave up", "connection refused", "no right"},
		[]string{"not held", "closed", "unlocked", "no majority", "a young node", "connection ended", "client of Redis closed", "not sent"}},
	{"the end of a context: ", []string{"lost", "gave up", "closed", "connection refused"},
		[]string{"unlocked", "no right", "no answer", "no majority", "a young node", "not confirmed", "connection ended", "not sent"}},
	{"Close: ", []string{"well"}, []string{"no answer"}},
	{"Shutdown: ", []string{"well"}, []string{"no answer"}},
	{"hold ", []string{"unlocked", "lost", "closed"}, []string{"dropped", "forced"}},
	{"ForceUnlock", []string{": well", " of a hold"}, []string{": no answer", ": closed", ": connection refused", ": connection ended", ": no right", ": no majority", ": a young node", ": client of Redis closed", ": not sent", ": not held"}},
	{"renewal ", []string{"that is well", "of a hold that is gone", "that fails", "of several leases", "of many leases"}, nil},
	{"", []string{"wait", "subscription up", "subscription down", "release in the background", "its confirmation", "its end without one"}, nil},
}

// covers lists the names that are known, and whether the gate's worlds do what they name.
func covers() map[string]bool {
	all := make(map[string]bool)
	for _, k := range known {
		for _, name := range k.done {
			all[k.group+name] = true
		}
		for _, name := range k.rare {
			all[k.group+name] = false
		}
	}
	for _, k := range faultKinds {
		all["fault "+k.name] = true
	}
	return all
}

var errNever = errors.New("what worlds can do was not done")

// never returns what is known and was never done, but for what is rare; and what was counted and is not known.
func (t *total) never() (missed, strange []string) {
	all := covers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] && t.done[name] == 0 {
			missed = append(missed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.done)) {
		if _, is := all[name]; !is {
			strange = append(strange, name)
		}
	}
	return missed, strange
}

// printNever says what was never done, and what one of many worlds alone has done.
func (t *total) printNever(out io.Writer) {
	missed, strange := t.never()
	var once []string
	for _, name := range slices.Sorted(maps.Keys(t.done)) {
		if t.worldsThat[name] == 1 && t.worlds > 1 {
			once = append(once, name)
		}
	}
	if len(missed) > fewNames && !t.set.covers {
		fmt.Fprintf(out, "never: %d of %d things; -covers names them\n", len(missed), len(covers()))
		return
	}
	fmt.Fprintf(out, "never: %s; in one world alone: %s\n", listed(missed), listed(once))
	if len(strange) > 0 {
		fmt.Fprintf(out, "counted, and not known: %s\n", listed(strange))
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

func listed(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
