// Package breaks is the list of breaks: the code, broken on purpose, each in one way that a test, or a program that plays worlds, has to notice.
// It has three users. Program internal/test/mutants runs the tests of each break, verify/sim plays worlds in virtual time with those that have a
// short name, and verify plays rounds on real servers.
//
// The list has what shows that a rule of docs/protocol.md is kept: one break for most rules, and more for those that have several sides. Two
// breaks that the same test notices for the same reason are one too many.
package breaks

import "slices"

// A Break is the code with one thing wrong.
type Break struct {
	Name  string // the invariant (Inv) or the rule (P) of docs/protocol.md that it violates, if any, and what is wrong
	Short string // its name for verify and verify/sim; "" where they do not play it
	Edits []Edit
	Pkg   string // the package of the tests that have to notice it; "" where none has
	Run   string // these tests' names, as for go test -run
	Says  string // a part of what the tests have to say, "" for anything
}

// An Edit changes one place of the code. Spaces, line breaks and comments do not count, and it does not matter which file of a package has the
// function.
type Edit struct {
	In string // the function: "quorum node.young", "guard New"; the script: "scripts/renew.lua"; or a function of it: "scripts/line.lua call"
	Of string // what is replaced, which is there once. … stands for anything between brackets
	To string // what stands there instead
}

// All are the breaks.
var All = slices.Concat(ofHolds, ofReleases, ofWaiters, ofTokens, ofLine, ofServers, ofQuorum, ofKinds, ofGuards, ofScripts, ofRoom)

// Called returns the break with the short name, which has to be there.
func Called(short string) Break {
	i := slices.IndexFunc(All, func(b Break) bool { return b.Short == short })
	if i < 0 {
		panic("breaks: no break is called " + short)
	}
	return All[i]
}
