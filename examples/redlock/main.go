// Redlock shows a lock on five servers that know nothing of each other, three of which are a majority: two of them are cut
// off, then one of the other three restarts and has forgotten everything. A Redlock that does not look at that gives the
// lock to two holders; package quorum does not. The servers are inside the program.
//
//	go run ./examples/redlock
//
// Every step is checked: the program exits with 1 and says why if something did not happen as told.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/redis/go-redis/v9/logging"
)

const usage = `Redlock takes a lock on five servers, cuts off two of them, restarts one empty, and shows what becomes of the lock:
with a plain Redlock, and with package quorum. The servers are inside the program. It takes about five seconds.

  go run ./examples/redlock

`

func main() {
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], true, os.Stdout, os.Stderr))
}

// run is main with its exit code. Servers that are not honest say that they have been up for long: a test shows that the
// story needs them to be.
func run(ctx context.Context, args []string, honest bool, out, errs io.Writer) int {
	flags := flag.NewFlagSet("redlock", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what it would print is printed below, once, and where it belongs
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintf(errs, "redlock: %v (see -h)\n", err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "redlock: unexpected argument %q (see -h)\n", flags.Arg(0))
		return 2
	}
	servers, err := startServers(5, honest)
	if err != nil {
		fmt.Fprintln(errs, "redlock:", err)
		return 1
	}
	defer servers.close()
	if err := tell(ctx, servers, out); err != nil {
		fmt.Fprintf(errs, "redlock: not as told: %v\n", err)
		return 1
	}
	return 0
}
