// Package rlockvet finds misuses of fencelock's locks that compile: a context that is not the one that Lock returned, a hold that
// nobody unlocks, an error that is compared with ==.
//
// Each check is an analyzer of its own; docs/vet.md in the repository says of each what to write instead. What they
// report is a mistake, as far as one package shows it: where a hold is stored, returned, captured or passed along with its lock, they
// say nothing of its Unlock; where a context may come from somewhere else, they are silent. They skip packages that import nothing of fencelock, and
// generated files.
//
// A comment on the line of a finding, or on the line above it, silences one check there. It needs a reason:
//
//	//rlockvet:ignore lostunlock the process ends here, and with it the hold
package rlockvet

import "golang.org/x/tools/go/analysis"

// Analyzers are all checks.
var Analyzers = []*analysis.Analyzer{
	CallerCtx,
	ErrCompare,
	Held,
	Holder,
	LostUnlock,
	WrongCtx,
}
