package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"
)

const help = `bench measures fencelock beside other locks for Go, on a Redis server of its own.

  go run . -quick                                   a first look, about three minutes
  go run .                                          everything; it says first how long that takes
  go run . -only fencelock,rueidislock -modes own   two contenders, the modes with own keys
  go run . -only redsync                            one contender, all modes, also those it is usually not in
  go run . -modes one/g=64/empty -seconds 5         one mode, longer windows
  go run . -modes others                            beside etcd and PostgreSQL, which no other run has
  go run . -modes semaphore                         permits of semaphores, which no other run has; so with rwlock
  go run . -render                                  no rounds: results.md and the plots again, from results.json
  go run . -list                                    the names of contenders and modes

The server is redis-server from the PATH, or what the environment variable REDIS_SERVER names. Progress goes to
standard error; results.md, results.json and the plots into the directory of -out. redisson needs a JDK (17 or later) and Maven,
and postgres the server that POSTGRES_SERVER names, or one where systems have it. What is missing is left out, and said; where CI is
set that fails. Ctrl-C ends early and writes what there is.

Flags:
`

// quick is what -quick sets, where no flag says otherwise.
const (
	quickModes   = plainOwn + ",one/g=64/empty"
	quickSeconds = 0.25
)

type settings struct {
	only, modes, out string
	repeats          int
	seconds, grace   float64
	quick            bool
	list, render     bool
}

func main() {
	logging.Disable() // go-redis would write a line for each connection that a dead server refuses, and the writing would be measured
	if isHost() {
		if err := (&hosted{name: os.Args[2]}).work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if err != flag.ErrHelp {
			fmt.Fprintln(os.Stderr, "bench:", err)
			stop()
			os.Exit(1)
		}
	}
}

// isHost tells whether this program is the process of another one of it: see hosted.
func isHost() bool { return len(os.Args) == 3 && os.Args[1] == hostFlag }

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	set, err := parse(args, progress)
	if err != nil {
		return err
	}
	p, err := newPlan(set)
	if err != nil {
		return fmt.Errorf("%w; -list shows the names", err)
	}
	if set.list {
		p.print(out)
		return nil
	}
	if set.render {
		return render(set.out)
	}
	results, env, err := p.run(ctx, progress)
	if len(results) == 0 {
		return err
	}
	env.Command = strings.TrimSpace("go run . " + strings.Join(withoutOut(args), " "))
	if writeErr := write(set.out, report{Environment: env, Results: results}); writeErr != nil {
		return writeErr
	}
	if err == nil {
		fmt.Fprintln(progress, "written to", set.out)
	}
	if err == nil && len(env.LeftOut) > 0 && os.Getenv("CI") != "" {
		return fmt.Errorf("left out: %s", strings.Join(env.LeftOut, "; "))
	}
	return err
}

func parse(args []string, progress io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Usage = func() { fmt.Fprint(progress, help); flags.PrintDefaults() }
	flags.StringVar(&set.only, "only", "", "contenders, whole names or parts of them, separated by commas (default all)")
	flags.StringVar(&set.modes, "modes", "", "modes, in the same way (default all)")
	flags.IntVar(&set.repeats, "repeats", 7, "rounds of each contender in each mode")
	flags.Float64Var(&set.seconds, "seconds", 1, "length of the window that a round measures")
	flags.Float64Var(&set.grace, "grace", 6, "seconds after the end of the load after which a waiter hangs")
	flags.StringVar(&set.out, "out", "results", "directory to write to")
	flags.BoolVar(&set.quick, "quick", false, fmt.Sprintf("the same as -modes %s -seconds %v", quickModes, quickSeconds))
	flags.BoolVar(&set.list, "list", false, "print the names of contenders and modes, and end")
	flags.BoolVar(&set.render, "render", false, "write everything again from the results.json of -out, and end")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("%q is not a flag; -h tells more", flags.Arg(0))
	}
	if set.repeats < 1 || set.seconds <= 0 || set.grace <= 0 {
		return set, fmt.Errorf("-repeats, -seconds and -grace must be positive")
	}
	if set.quick {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		if !given["modes"] {
			set.modes = quickModes
		}
		if !given["seconds"] {
			set.seconds = quickSeconds
		}
	}
	return set, nil
}

func (set settings) timing() timing {
	window := time.Duration(set.seconds * float64(time.Second))
	return timing{
		warm:   min(max(window/4, 100*time.Millisecond), time.Second),
		window: window,
		grace:  time.Duration(set.grace * float64(time.Second)),
	}
}

// withoutOut leaves -out away: where the files went says nothing about them.
func withoutOut(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name := strings.TrimLeft(args[i], "-")
		switch {
		case name == "out":
			i++
		case !strings.HasPrefix(name, "out="):
			kept = append(kept, args[i])
		}
	}
	return kept
}

// print lists the names, and which contenders take part in a mode.
func (p plan) print(out io.Writer) {
	for _, c := range p.contenders {
		fmt.Fprintf(out, "%-28s %s\n", c.name, c.note)
	}
	for _, m := range p.modes {
		fmt.Fprintf(out, "\n%-22s %s\n", m.name(), m.title())
		for _, c := range p.takePart(m) {
			fmt.Fprintf(out, "%-22s   %s\n", "", c.name)
		}
	}
	if len(p.modes) == len(usualModes()) {
		fmt.Fprint(out, "\nonly if -modes asks for them, or -only for others:\n")
		for _, m := range slices.Concat(kindModes(), otherModes()) {
			fmt.Fprintf(out, "%-22s %s\n", m.name(), m.title())
		}
	}
	rounds := p.rounds()
	fmt.Fprintf(out, "\n%d rounds, about %v\n", len(rounds), estimate(rounds))
}
