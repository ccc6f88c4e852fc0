package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/fencelock/fencelock/verify/overlay"
)

// packages have tests in virtual time.
var packages = []string{
	"rlock", "quorum", "fenced", "leader", "scripts", "pubsub", "watchdog", "rlocktest", "guard", "guard/httpguard", "observe/inspect", "observe/lockmetrics",
	"observe/lockprom", "adapters/lockgocron", "adapters/locktusd", "adapters/lockcertmagic", "cmd/fencelock", "internal/engine", "internal/releases",
	"internal/holder", "internal/tell", "internal/command",
}

// maxSchedules is how many schedules there are where -n says nothing else.
const maxSchedules = 64

// A testRun is the tests of one package under one schedule.
type testRun struct {
	pkg, program string
	schedule     uint64
}

// runTests runs the tests in virtual time of these packages under other schedules (package overlay). A test that fails under one of them shows a
// fault of the library or of the test, and mostly fails under this schedule again.
func runTests(ctx context.Context, set settings, out, progress io.Writer) error {
	began := time.Now()
	files := make(overlay.Files)
	if err := files.OneSchedule(ctx); err != nil {
		return err
	}
	programs := make([]testRun, len(set.packages))
	for i, pkg := range set.packages {
		fmt.Fprintf(progress, "building the tests of %s\n", pkg)
		program, remove, err := files.Build(ctx, overlay.Program{
			Dir: filepath.Join(overlay.Root(), pkg), Tests: true, Env: oneHeap, Modules: []overlay.Module{overlay.Miniredis},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		defer remove()
		programs[i] = testRun{pkg: pkg, program: program}
	}
	if set.n == 0 {
		set.n = maxSchedules
	}
	next, failures, ran := 0, 0, false
	err := parallel(ctx, set.jobs, func() (testRun, bool) {
		r := programs[next%len(programs)]
		r.schedule = set.seed + uint64(next/len(programs))
		next++
		return r, next <= set.n*len(programs)
	}, func(ctx context.Context, r testRun) (string, error) { return r.do(ctx, set.only) }, func(failure string) {
		ran = ran || failure != noTests
		if failure != "" && failure != noTests {
			failures++
			fmt.Fprint(out, failure)
		}
	})
	switch {
	case err != nil:
		return err
	case !ran:
		return fmt.Errorf("no test in virtual time has a name like %q", set.only)
	}
	fmt.Fprintf(out, "tests in virtual time of %d packages under schedules %d to %d, in %v: %d runs failed\n",
		len(programs), set.seed, set.seed+uint64(set.n)-1, time.Since(began).Round(time.Second), failures)
	if failures > 0 {
		return errViolated
	}
	return nil
}

const noTests = "testing: warning: no tests to run"

// do runs the tests whose names match, and returns what the failed ones have said, or noTests.
func (r testRun) do(ctx context.Context, tests string) (failure string, err error) {
	bounded, cancel := context.WithTimeout(ctx, taskTime)
	defer cancel()
	args := []string{"-test.short", "-test.parallel=1", "-test.skip=^Example", fmt.Sprintf("-test.timeout=%v", taskTime)}
	if tests != "*" {
		args = append(args, "-test.run="+tests)
	}
	cmd := exec.CommandContext(bounded, r.program, args...)
	cmd.Dir = filepath.Join(overlay.Root(), r.pkg)
	cmd.Env = append(append(os.Environ(), oneProcessor...), "REDIS_VIRTUAL=only", "GOMEMLIMIT=1GiB", fmt.Sprintf("%s=%d", overlay.ScheduleVariable, r.schedule))
	said, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case strings.Contains(string(said), noTests):
		return noTests, nil
	case err != nil:
		return fmt.Sprintf("%s fails under schedule %d: %v\n%s\n", r.pkg, r.schedule, err, ofTheFailed(string(said))), nil
	}
	return "", nil
}

// mostLines is how much is told of a run that failed.
const mostLines = 40

var (
	failing = regexp.MustCompile(`(?m)^\s*(--- FAIL|panic: |fatal error: )`)
	logged  = regexp.MustCompile(`(?m)^(redis: )?\d{4}/\d\d/\d\d .*\n`)
)

// ofTheFailed leaves out what tests that pass have said before, and logs.
func ofTheFailed(said string) string {
	said = logged.ReplaceAllString(said, "")
	if at := failing.FindStringIndex(said); at != nil {
		said = said[at[0]:]
	}
	lines := strings.SplitAfter(said, "\n")
	return strings.Join(lines[:min(len(lines), mostLines)], "")
}
