// Schedules runs the library's tests in virtual time under many schedules (package overlay): other goroutines run first, of several that can. A
// test that fails under one of them shows a fault of the library or of the test, and mostly fails under this schedule again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

const help = `schedules runs the library's tests in virtual time under many schedules, and tells those that fail.

  go run ./schedules                                      64 schedules, all packages
  go run ./schedules -first 1000 -n 500 rlock quorum      500 others, two packages
  go run ./schedules -first 17 -n 1 -run P24_Wakes rlock  one test under one schedule

Exit code 1: a test failed; 2: the tests could not be run.

Flags:
`

// packages have the tests in which many goroutines meet in virtual time.
var packages = []string{"rlock", "quorum", "fenced", "leader", "internal/engine", "internal/releases"}

type settings struct {
	first    uint64
	n, jobs  int
	tests    string
	packages []string
}

var errFailed = errors.New("tests fail")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "schedules:", err)
	stop()
	if errors.Is(err, errFailed) {
		os.Exit(1)
	}
	os.Exit(2)
}

func parse(args []string, progress io.Writer) (settings, error) {
	set := settings{}
	flags := flag.NewFlagSet("schedules", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() { fmt.Fprint(progress, help); flags.PrintDefaults() }
	flags.Uint64Var(&set.first, "first", 1, "the first schedule; 0 for fresh ones")
	flags.IntVar(&set.n, "n", 64, "number of schedules")
	flags.IntVar(&set.jobs, "jobs", runtime.NumCPU()+1, "number of processes at the same time")
	flags.StringVar(&set.tests, "run", "", "the tests whose names match this regular expression (default all)")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if set.n < 1 || set.jobs < 1 {
		return set, errors.New("-n and -jobs are at least 1")
	}
	if set.first == 0 {
		set.first = uint64(time.Now().UnixMilli())
	}
	set.packages = packages
	if flags.NArg() > 0 {
		set.packages = nil
		for _, pkg := range flags.Args() {
			set.packages = append(set.packages, strings.TrimPrefix(pkg, "./"))
		}
	}
	return set, nil
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	began := time.Now()
	programs, remove, err := set.build(ctx, progress)
	defer remove()
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%s built, after %v\n", strings.Join(set.packages, ", "), time.Since(began).Round(time.Second))
	failed, err := set.play(ctx, programs, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "schedules %d to %d of the tests in virtual time of %d packages, in %v: %d runs failed\n",
		set.first, set.first+uint64(set.n)-1, len(set.packages), time.Since(began).Round(time.Second), failed)
	if failed > 0 {
		return errFailed
	}
	return nil
}
