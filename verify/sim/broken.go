package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// maxWorlds is how many worlds there are to find a bug, where -n says nothing else.
const maxWorlds = 200

// quorumLength is how long the worlds are in which a bug of quorums is looked for: they take five times as long to play.
const quorumLength = 8 * time.Minute

// runBroken builds each bug, and requires that it is found.
func runBroken(ctx context.Context, set settings, out, progress io.Writer) error {
	missed, looked := 0, 0
	for _, b := range bugs {
		if !slices.ContainsFunc(strings.Split(set.only, ","), func(pattern string) bool { ok, _ := path.Match(pattern, b.Short); return ok }) {
			continue
		}
		looked++
		began := time.Now()
		found, worlds, err := b.find(ctx, set)
		if err != nil {
			return fmt.Errorf("%s: %w", b.Short, err)
		}
		how := "NOT FOUND"
		if found != nil {
			v := found.Violations[0]
			how = fmt.Sprintf("seed %d, after %v of virtual time: %s", found.Seed, v.At.Round(time.Second), v.Rule)
		} else {
			missed++
		}
		fmt.Fprintf(out, "%-16s %2d worlds, %5.1f s  %s\n", b.Short, worlds, time.Since(began).Seconds(), how)
		fmt.Fprintf(progress, "%s: %s\n", b.Short, b.Name)
	}
	if looked == 0 {
		return fmt.Errorf("no bug is called %q; -list prints them", set.only)
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bugs were not found: %w", missed, looked, errViolated)
	}
	fmt.Fprintf(out, "all %d bugs were found\n", looked)
	return nil
}

// find plays worlds with the bug until one shows it.
func (b bug) find(ctx context.Context, set settings) (found *outcome, worlds int, err error) {
	program, remove, err := buildWorker(ctx, b.Edits...)
	if err != nil {
		return nil, 0, err
	}
	defer remove()
	set.Servers = b.servers
	if b.servers > 1 {
		set.Length = min(set.Length, quorumLength)
	}
	if b.faults != "" {
		set.Faults = strings.Split(b.faults, ",")
	}
	next, most := set.seed, uint64(maxWorlds)
	if set.n > 0 {
		most = uint64(set.n)
	}
	err = all(ctx, program, set.jobs, func() (task, bool) {
		next++
		return task{Seed: next - 1, Limits: set.limits}, found == nil && next <= set.seed+most
	}, func(o outcome) {
		worlds++
		if len(o.Violations) > 0 && found == nil {
			found = &o
		}
	})
	return found, worlds, err
}
