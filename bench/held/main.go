package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// settings are what the flags say.
type settings struct {
	holds, waiters int
	lease          time.Duration
	periods        int
	idle           time.Duration
	out, profiles  string
	only           string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "held:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	r := &report{settings: set, progress: progress}
	for _, part := range []struct {
		short, name string
		measure     func(context.Context, *report) error
	}{
		{"held", fmt.Sprintf("%d held locks", set.holds), measureHeld},
		{"one", fmt.Sprintf("%d waiters on one lock", set.waiters), measureWaitersOnOne},
		{"many", fmt.Sprintf("%d waiters on as many locks", set.waiters), measureWaitersOnMany},
	} {
		if set.only != "" && set.only != part.short {
			continue
		}
		r.say("== %s", part.name)
		if err := part.measure(ctx, r); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r.write()
}

func parse(args []string, progress io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("held", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.IntVar(&set.holds, "holds", 100_000, "locks that are held")
	flags.IntVar(&set.waiters, "waiters", 10_000, "calls that wait")
	flags.DurationVar(&set.lease, "lease", 30*time.Second, "lease of the held locks; they are renewed every third of it")
	flags.IntVar(&set.periods, "periods", 2, "periods of renewals that each share of CPU is measured over")
	flags.DurationVar(&set.idle, "idle", 5*time.Second, "for how long the commands are counted while waiters wait")
	flags.StringVar(&set.out, "out", "results", "directory to write to")
	flags.StringVar(&set.only, "only", "", "one part: held, one (many waiters on one lock) or many (on as many locks)")
	flags.StringVar(&set.profiles, "profiles", "", "directory for heap profiles of every allocation (they falsify the CPU shares)")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	switch {
	case flags.NArg() > 0:
		return set, fmt.Errorf("%q is not a flag; -h tells more", flags.Arg(0))
	case set.holds < 1 || set.waiters < 1 || set.periods < 1 || set.lease < time.Second || set.idle < time.Second:
		return set, errors.New("-holds, -waiters and -periods must be positive, -lease and -idle a second or more")
	}
	profileEverything(set.profiles != "")
	return set, nil
}
