package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const help = `sim runs clients of fencelock in virtual time, with leases and outages as long as users have them, breaks things, and judges what they saw.

  go run ./sim                        three minutes of it, with fresh seeds
  go run ./sim -for 1h                an hour
  go run ./sim -seed 17 -n 1          one seed
  go run ./sim -seed 17 -n 1 -story   and all that happened in it
  go run ./sim -seed 17 -n 1 -schedule 3  and with other goroutines first, of several that can run
  go run ./sim -tests                 the library's tests in virtual time, under 64 schedules
  go run ./sim -tests -seed 17 -n 1 -only P24_Wakes rlock  one test of one package under one schedule
  go run ./sim -faults freeze,dies    with these faults alone; -list prints them
  go run ./sim -broken                with bugs on purpose, each of which must be found

Progress goes to standard error, the table and the stories of what was violated to standard output. A seed that fails is shrunk: its story has
as few clients, calls, locks and faults as it takes, as short as they may be. Exit code 1: a violation was found, or with -covers something was
never done; 2: it could not be run.

Flags:
`

type settings struct {
	limits
	seed                uint64
	n, jobs             int
	shrink              int
	time                time.Duration
	story, list, broken bool
	covers, tests       bool
	only, program       string
	packages            []string
}

var errViolated = errors.New("what was promised was not kept")

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerFlag {
		work()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "sim:", err)
	stop()
	if errors.Is(err, errViolated) || errors.Is(err, errNever) {
		os.Exit(1)
	}
	os.Exit(2)
}

func parse(args []string, progress io.Writer) (settings, error) {
	set := settings{}
	var faults string
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() { fmt.Fprint(progress, help); flags.PrintDefaults() }
	flags.Uint64Var(&set.seed, "seed", 0, "the first seed; each further world has the next (default by the clock)")
	flags.IntVar(&set.n, "n", 0, "number of worlds, with -broken for each bug (default: see -for; 100 for each bug)")
	flags.DurationVar(&set.time, "for", 3*time.Minute, "begin no world after this real time")
	flags.DurationVar(&set.Length, "length", 30*time.Minute, "virtual time of a world")
	flags.IntVar(&set.Clients, "clients", 0, "number of clients (default mostly 8, sometimes 24)")
	flags.IntVar(&set.Servers, "servers", 0, "1, or 5 for a quorum (default by the seed)")
	flags.StringVar(&faults, "faults", "", "names of faults, separated by commas (default all); none for none")
	flags.Uint64Var(&set.Schedule, "schedule", 0, "which goroutine runs next, of several that can: another schedule for each number")
	flags.IntVar(&set.jobs, "jobs", runtime.NumCPU(), "number of worlds at the same time")
	flags.IntVar(&set.shrink, "shrink", 300, "how many smaller plans are tried to shrink a seed that fails; 0 for not at all")
	flags.BoolVar(&set.story, "story", false, "print all that happened")
	flags.BoolVar(&set.broken, "broken", false, "build with bugs on purpose, one at a time, and require that each is found")
	flags.BoolVar(&set.tests, "tests", false, "run the tests in virtual time, of all packages or of those named behind the flags, in place of worlds, under -n schedules, -seed the first")
	flags.StringVar(&set.only, "only", "*", "with -broken: names of bugs, separated by commas; * stands for anything. With -tests: see go test -run")
	flags.BoolVar(&set.covers, "covers", false, "require that all was done that the gate's worlds do (-seed 1 -n 60), and tell how often")
	flags.BoolVar(&set.list, "list", false, "print the names of faults and bugs, and end")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if set.packages = packages; set.tests && flags.NArg() > 0 {
		set.packages = flags.Args()
	} else if flags.NArg() > 0 {
		return set, fmt.Errorf("%q is not a flag; -h tells more", flags.Arg(0))
	}
	if set.Length < 4*time.Minute || set.n < 0 || set.shrink < 0 || set.time < 0 || set.jobs < 1 || set.Clients < 0 {
		return set, errors.New("-length is at least 4m, -jobs at least 1, and nothing is negative")
	}
	if set.Servers != 0 && set.Servers != 1 && set.Servers != 5 {
		return set, errors.New("-servers is 1, or 5 for a quorum")
	}
	if set.seed == 0 {
		set.seed = uint64(time.Now().UnixMilli())
	}
	if faults != "" {
		set.Faults = strings.Split(faults, ",")
		for _, name := range set.Faults {
			if name != "none" && !isFault(name) {
				return set, fmt.Errorf("no fault is called %q; -list prints them", name)
			}
		}
	}
	return set, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	if set.list {
		list(out)
		return nil
	}
	if set.tests {
		return runTests(ctx, set, out, progress)
	}
	if set.broken {
		return runBroken(ctx, set, out, progress)
	}
	var remove func()
	if set.program, remove, err = buildWorker(ctx); err != nil {
		return err
	}
	defer remove()
	t := newTotal(set)
	next, began := set.seed, time.Now()
	err = all(ctx, set.program, set.jobs, func() (task, bool) {
		if set.n > 0 && next >= set.seed+uint64(set.n) || set.n == 0 && time.Since(began) > set.time {
			return task{}, false
		}
		next++
		return task{Seed: next - 1, Limits: set.limits, History: set.story}, true
	}, func(o outcome) {
		t.add(o)
		fmt.Fprintf(progress, "%s seed %d: %v in %v, %d holds, %s\n", time.Since(began).Round(time.Second), o.Seed, o.Virtual.Round(time.Second), o.Took.Round(time.Millisecond), o.Holds, o.verdict())
		if set.story {
			tell(out, o.Plan, o.History, nil)
		}
	})
	if err != nil {
		return err
	}
	t.print(out)
	if set.covers {
		t.printCounts(progress)
	}
	return t.stories(ctx, set, out, progress)
}

// hashOf tells whether two histories are the same.
func hashOf(history []event) uint64 {
	h := fnv.New64a()
	for _, e := range history {
		fmt.Fprintln(h, e)
	}
	return h.Sum64()
}
