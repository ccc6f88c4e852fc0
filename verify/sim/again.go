package main

import (
	"context"
	"fmt"
	"slices"
)

// failsAgain plays the plan of a world that has failed again, as often as set says, and tells how often the same rule is violated, and how often
// the history is the same.
func failsAgain(ctx context.Context, set settings, program string, o outcome) (string, error) {
	left, failed, same := set.again, 0, 0
	err := all(ctx, program, set.jobs, func() (task, bool) {
		left--
		return task{Plan: &o.Plan}, left >= 0
	}, func(again outcome) {
		if slices.ContainsFunc(again.Violations, func(v violation) bool { return v.Rule == o.Violations[0].Rule }) {
			failed++
		}
		if again.Hash == o.Hash {
			same++
		}
	})
	return fmt.Sprintf("fails again in %d of %d runs, %d with the same history", failed, set.again, same), err
}
