package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/verify/overlay"
)

// A program is the tests of one package.
type program struct{ pkg, path string }

func (p program) dir() string { return filepath.Join(overlay.Root(), p.pkg) }

// build builds the tests of each package. remove removes what there is, also after an error.
func (set settings) build(ctx context.Context, progress io.Writer) (programs []program, remove func(), err error) {
	var removes []func()
	remove = func() {
		for _, f := range removes {
			f()
		}
	}
	files := make(overlay.Files)
	if err := files.OneSchedule(ctx); err != nil {
		return nil, remove, err
	}
	for _, pkg := range set.packages {
		fmt.Fprintf(progress, "building the tests of %s\n", pkg)
		p := program{pkg: pkg}
		var removeOne func()
		p.path, removeOne, err = files.Build(ctx, overlay.Program{
			Dir: p.dir(), Tests: true, Env: []string{"GOEXPERIMENT=norandomizedheapbase64"},
			Modules: []overlay.Module{overlay.Miniredis},
		})
		if err != nil {
			return nil, remove, fmt.Errorf("%s: %w", pkg, err)
		}
		removes, programs = append(removes, removeOne), append(programs, p)
	}
	return programs, remove, nil
}

// play runs the programs under all schedules, several at a time, and returns how many runs failed.
func (set settings) play(ctx context.Context, programs []program, out io.Writer) (failures int, err error) {
	var mu sync.Mutex
	var players sync.WaitGroup
	next := 0
	for range set.jobs {
		players.Go(func() {
			for {
				mu.Lock()
				p, schedule := programs[next%len(programs)], set.first+uint64(next/len(programs))
				next++
				over := next > set.n*len(programs)
				mu.Unlock()
				if over || ctx.Err() != nil {
					return
				}
				said, err := set.playOne(ctx, p, schedule)
				if err == nil || ctx.Err() != nil {
					continue
				}
				mu.Lock()
				failures++
				fmt.Fprintf(out, "%s fails under schedule %d: %v\n%s\n", p.pkg, schedule, err, said)
				mu.Unlock()
			}
		})
	}
	players.Wait()
	return failures, context.Cause(ctx)
}

// runTime bounds one run in real time.
const runTime = 5 * time.Minute

// playOne runs the tests of a package under one schedule, and returns what the failed ones have said.
func (set settings) playOne(ctx context.Context, p program, schedule uint64) (said string, err error) {
	bounded, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	args := []string{"-test.short", "-test.parallel=1", "-test.skip=^Example", fmt.Sprintf("-test.timeout=%v", runTime)}
	if set.tests != "" {
		args = append(args, "-test.run="+set.tests)
	}
	cmd := exec.CommandContext(bounded, p.path, args...)
	cmd.Dir = p.dir()
	cmd.Env = append(os.Environ(), "REDIS_VIRTUAL=only", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=off", "GOMEMLIMIT=1GiB", fmt.Sprintf("%s=%d", overlay.ScheduleVariable, schedule))
	all, err := cmd.CombinedOutput()
	if said = string(all); strings.Contains(said, "testing: warning: no tests to run") {
		return "", errors.New("no test has such a name")
	}
	return failure(said), err
}

// mostLines is how much is told of a run that failed.
const mostLines = 40

var (
	failed = regexp.MustCompile(`(?m)^\s*(--- FAIL|panic: |fatal error: )`)
	logged = regexp.MustCompile(`(?m)^(redis: )?\d{4}/\d\d/\d\d .*\n`)
)

// failure leaves out what tests that pass have said before, and logs.
func failure(said string) string {
	said = logged.ReplaceAllString(said, "")
	if at := failed.FindStringIndex(said); at != nil {
		said = said[at[0]:]
	}
	lines := strings.SplitAfter(said, "\n")
	return strings.Join(lines[:min(len(lines), mostLines)], "")
}
