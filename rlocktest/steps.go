package rlocktest

import (
	"testing"
	"testing/synctest"
)

// Steps are the steps of a piece of code that [AtEachStep] runs.
type Steps struct {
	server *Server
	name   string
	names  []string // of the steps so far

	at        int // before which step the lock is stolen; -1 for none
	unnoticed bool
	stolen    bool
	thief     func(*Other)
}

// Step says that the code comes to its next step. Call it from the code under test, before each write, for example by a function
// that the code gets and that does nothing in production, or from the storage that the test hands to the code.
func (st *Steps) Step(name string) {
	st.names = append(st.names, name)
	if len(st.names)-1 != st.at {
		return
	}
	st.stolen = true
	s := st.server
	var o *Other
	switch {
	case s.field(st.name) == "":
		o = s.Hold(st.name)
	case st.unnoticed:
		o = s.StealUnnoticed(st.name)
	default:
		o = s.Steal(st.name)
	}
	if st.thief != nil {
		st.thief(o)
	}
	if o.Held() { // the thief may have unlocked itself
		o.Unlock()
	}
}

// OnSteal sets what the thief does with the lock: usually a write of its own, with its token. It has the lock while fn runs, and unlocks
// it then.
func (st *Steps) OnSteal(fn func(thief *Other)) { st.thief = fn }

// Stolen tells whether the lock was stolen in this run.
func (st *Steps) Stolen() bool { return st.stolen }

// AtEachStep runs a piece of code that works under the lock with this name once as it is, and then twice for each of its steps, with the
// lock stolen right before that step: once so that the code's context has ended, and once so that the code does not know of it, as after
// a pause. So it shows that no step writes what comes too late, and that the caller gets an error. At a step outside of the lock,
// before Lock or after Unlock, the thief takes a free lock: the code loses nothing there, and returns no error.
//
// Each run is a subtest, in a testing/synctest bubble of its own, with a Server of its own. Where go test -run leaves out the first one
// the code runs undisturbed outside of it. It must come to the same steps each time
// until the lock is stolen. Its steps are numbered by their calls of [Steps.Step], which must come from one goroutine at a time.
func AtEachStep(t *testing.T, name string, run func(t *testing.T, s *Server, steps *Steps)) {
	t.Helper()
	var all []string
	began := false
	ok := t.Run("undisturbed", func(t *testing.T) {
		began = true
		all = runSteps(t, name, run, &Steps{at: -1})
	})
	if !ok {
		return
	}
	if !began { // go test -run has chosen one of the other subtests: they need the steps all the same
		all = runSteps(t, name, run, &Steps{at: -1})
	}
	if len(all) == 0 {
		t.Fatal("rlocktest: AtEachStep: the code has no step: call Step before each write")
	}
	for i, step := range all {
		for _, unnoticed := range []bool{false, true} {
			title := "stolen before " + step
			if unnoticed {
				title += ", unnoticed"
			}
			t.Run(title, func(t *testing.T) {
				runSteps(t, name, run, &Steps{at: i, unnoticed: unnoticed})
			})
		}
	}
}

// runSteps runs the code once, and returns the steps that it has come to.
func runSteps(t *testing.T, name string, run func(*testing.T, *Server, *Steps), steps *Steps) []string {
	synctest.Test(t, func(t *testing.T) {
		steps.server, steps.name = New(t), name
		run(t, steps.server, steps)
		if steps.at >= 0 && !steps.stolen && !t.Failed() {
			t.Errorf("rlocktest: AtEachStep: the code has come to %q, and not to step %d as in the run before", steps.names, steps.at+1)
		}
	})
	return steps.names
}
