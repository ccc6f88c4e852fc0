package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

const help = `verify runs clients of fencelock in many processes against real Redis servers, breaks things, and checks what they saw.

  go run .                            all scenarios once, two to three minutes
  go run . -for 2h                    again and again, with other seeds
  go run . -only freeze,pause         two scenarios; * stands for anything
  go run . -only mixed -seed 17 -n 1  one round again, with the faults of this seed
  go run . -broken                    with bugs on purpose, each of which must be found
  go run . -list                      scenarios, faults and bugs

The server is redis-server from the PATH, or what the environment variable REDIS_SERVER names. Progress goes to standard
error, the table to standard output, and what a violation leaves into the directory of -out. A seed decides which faults
come when and what each client wants; how that meets is decided by the machine, so that a round repeated is like the
first, not the same. Exit code 1: a violation was found; 2: it could not be run.

Flags:
`

type settings struct {
	only, out    string
	seed         uint64
	n, jobs      int
	time         time.Duration
	load, calm   time.Duration
	broken, list bool
}

var errViolated = errors.New("what was promised was not kept")

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerFlag {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || err == flag.ErrHelp {
		return
	}
	fmt.Fprintln(os.Stderr, "verify:", err)
	stop()
	if errors.Is(err, errViolated) {
		os.Exit(1)
	}
	os.Exit(2)
}

func parse(args []string, progress io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() { fmt.Fprint(progress, help); flags.PrintDefaults() }
	flags.StringVar(&set.only, "only", "*", "scenarios (with -broken: bugs), separated by commas")
	flags.Uint64Var(&set.seed, "seed", 1, "of the first round; each further one has the next")
	flags.IntVar(&set.n, "n", 0, "number of rounds (default each scenario once)")
	flags.DurationVar(&set.time, "for", 0, "begin no round after this time (default: see -n)")
	flags.DurationVar(&set.load, "load", 5*time.Second, "length of the part of a round that has faults")
	flags.DurationVar(&set.calm, "calm", 5*time.Second, "length of the part of a round that has none")
	flags.IntVar(&set.jobs, "jobs", 3, "number of rounds, or of bugs, at the same time")
	flags.StringVar(&set.out, "out", "failures", "directory for what violations leave")
	flags.BoolVar(&set.broken, "broken", false, "build with bugs on purpose, one at a time, and require that each is found")
	flags.BoolVar(&set.list, "list", false, "print the names of scenarios, faults and bugs, and end")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("%q is not a flag; -h tells more", flags.Arg(0))
	}
	if set.load <= 0 || set.calm <= 0 || set.n < 0 || set.time < 0 || set.jobs < 1 {
		return set, errors.New("-load, -calm and -jobs must be positive, -n and -for not negative")
	}
	return set, nil
}

// chosen tells whether the pattern of -only names it.
func (set settings) chosen(name string) bool {
	return slices.ContainsFunc(strings.Split(set.only, ","), func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	logging.Disable() // of go-redis, which tells of each connection that is cut here
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	if set.list {
		list(out)
		return nil
	}
	if set.broken {
		return runBroken(ctx, set, progress)
	}
	var all []scenario
	for _, sc := range scenarios {
		if set.chosen(sc.name) {
			all = append(all, sc)
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("no scenario is called %q; -list shows the names", set.only)
	}
	program, remove, err := workerProgram(ctx, all, progress)
	if err != nil {
		return err
	}
	defer remove()
	p := plan{program: program, load: set.load, calm: set.calm}
	if slices.ContainsFunc(all, func(sc scenario) bool { return sc.line }) {
		if p.classes, err = redissonClasses(ctx, progress); err != nil {
			fmt.Fprintln(progress, "NO CLIENT OF REDISSON'S IS IN THE LINE:", err)
		}
	}
	began := time.Now()
	sums, versions, err := rounds(ctx, all, set, p, progress)
	fmt.Fprintf(out, "`go run . %s`: %v on %s, %s, %s/%s with %d CPUs, first seed %d\n\n%s", strings.Join(args, " "),
		time.Since(began).Round(time.Second), versions, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), set.seed, tableOf(all, sums))
	return err
}

// rounds plays all rounds and returns what each scenario came to, and the server's version.
func rounds(ctx context.Context, all []scenario, set settings, p plan, progress io.Writer) (sums map[string]*sum, versions string, err error) {
	sums = make(map[string]*sum)
	began := time.Now()
	n := set.n
	if n == 0 && set.time == 0 {
		n = len(all)
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	var players sync.WaitGroup
	var mu sync.Mutex
	begun, ended, violated := 0, 0, 0
	next := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		begun++
		return begun - 1, run.Err() == nil && (n == 0 || begun <= n) && (set.time == 0 || time.Since(began) < set.time)
	}
	for range set.jobs {
		players.Go(func() {
			for i, more := next(); more; i, more = next() {
				sc, seed := all[i%len(all)], set.seed+uint64(i)
				from := time.Now()
				t, failed := play(run, sc, seed, p)
				// On a busy machine a topology may change by itself in the middle of a fault. That says nothing about locks.
				for again := 0; again < 2 && errors.As(failed, new(stageError)) && run.Err() == nil; again++ {
					mu.Lock()
					fmt.Fprintf(progress, "THE SERVERS DID NOT GET THERE, the round begins again: %v\n", failed)
					mu.Unlock()
					t, failed = play(run, sc, seed, p)
				}
				var v verdict
				if failed == nil {
					v = judge(t)
				}
				mu.Lock()
				if failed == nil {
					ended++
					one := summarize(t, v)
					if sums[sc.name] == nil {
						sums[sc.name] = new(sum)
					}
					sums[sc.name].add(one)
					versions = t.Versions
					fmt.Fprintf(progress, "[%d, %v] %-12s seed %-4d %s  %.1f s: ", ended, time.Since(began).Round(time.Second), sc.name, seed, one, time.Since(from).Seconds())
					if len(v.Violations) > 0 {
						violated++
					}
					failed = v.tell(progress, set.out, t)
				}
				if failed != nil && err == nil {
					err = failed
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	players.Wait()
	switch {
	case ctx.Err() != nil:
		err = errors.New("interrupted")
	case err == nil && violated > 0:
		err = fmt.Errorf("%w, in %d rounds", errViolated, violated)
	}
	return sums, versions, err
}

// tell says what came of a trial, and saves what a violation leaves.
func (v verdict) tell(progress io.Writer, out string, t trial) error {
	if len(v.Violations) == 0 {
		fmt.Fprintln(progress, "ok")
		return nil
	}
	fmt.Fprintf(progress, "%d VIOLATIONS\n", len(v.Violations))
	for _, one := range v.Violations[:min(len(v.Violations), 5)] {
		text, _, more := strings.Cut(one.String(), "\n")
		if more {
			text += " ..."
		}
		fmt.Fprintln(progress, "   ", text)
	}
	dir, err := v.save(out, t)
	if err == nil {
		fmt.Fprintln(progress, "    the history is in", dir)
	}
	return err
}

func list(out io.Writer) {
	fmt.Fprintln(out, "scenarios:")
	for _, sc := range scenarios {
		fmt.Fprintf(out, "  %-12s %s\n", sc.name, sc.text)
		if sc.faults != "" {
			fmt.Fprintf(out, "  %-12s   faults: %s\n", "", sc.faults)
		}
	}
	fmt.Fprintln(out, "\nfaults:")
	for _, f := range faults {
		fmt.Fprintf(out, "  %-14s %s\n", f.name, f.text)
	}
	fmt.Fprintln(out, "\nbugs:")
	for _, b := range bugs {
		fmt.Fprintf(out, "  %-22s %s\n", b.Short, b.Name)
	}
}
