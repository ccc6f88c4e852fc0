// Quickstart shows a fenced lock at work, as a timeline: two clients want the same account, a call locks again what its
// caller has locked, a job runs longer than its lease, and a holder that was paused is kept from writing.
//
//	go run ./examples/quickstart                        on a Redis of its own, inside the program
//	go run ./examples/quickstart -addr localhost:6379   on yours
//	go run ./examples/quickstart -unchecked             a deposit gets lost: no token is checked
//	go run ./examples/quickstart -slow 20 -addr localhost:6379   slowly, to be watched by fencelock top or fencelock ui
//
// Every step is checked: the program exits with 1 and says why if something did not happen as told.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

const usage = `Quickstart shows a fenced lock at work, in a few seconds.

  go run ./examples/quickstart                        on a Redis of its own, inside the program
  go run ./examples/quickstart -addr localhost:6379   on yours: under key names of its own, deleted at the end
  go run ./examples/quickstart -unchecked             a deposit gets lost: no token is checked
  go run ./examples/quickstart -slow 20 -addr localhost:6379   slowly, to be watched meanwhile in another terminal:
  cd cmd/fencelock && go run . top                             or go run . ui, in a browser

Flags:
`

func main() {
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what it would print is printed below, once, and where it belongs
	addr := flags.String("addr", "", "`host:port` of a Redis server; without it, one inside the program")
	unchecked := flags.Bool("unchecked", false, "check no token: a deposit gets lost, the exit code is 1")
	slow := flags.Int("slow", 1, "take so many `times` as long")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintf(errs, "quickstart: %v (see -h)\n", err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "quickstart: unexpected argument %q: the server is given with -addr (see -h)\n", flags.Arg(0))
		return 2
	case *slow < 1 || *slow > 1000:
		fmt.Fprintf(errs, "quickstart: -slow %d: use 1 to 1000 (see -h)\n", *slow)
		return 2
	}
	rdb, done, err := connect(ctx, *addr)
	if err != nil {
		fmt.Fprintln(errs, "quickstart:", err)
		return 1
	}
	defer done()

	name := "account:42"
	if *addr != "" {
		name = "fencelock-quickstart:" + rand.Text()[:10] + ":account:42" // nobody else's
		defer cleanUp(ctx, rdb, name)
	}
	storeScript := checkedStore
	if *unchecked {
		storeScript = uncheckedStore
	}
	summary, err := tell(ctx, rdb, name, storeScript, *slow, out)
	if err != nil {
		fmt.Fprintf(errs, "quickstart: not as told: %v\n", err)
		return 1
	}
	fmt.Fprintf(out, "\nok: %s\n", summary)
	return 0
}

// connect returns a client of the Redis at addr, or of one inside this process, and what closes it.
func connect(ctx context.Context, addr string) (*redis.Client, func(), error) {
	if addr == "" {
		server := miniredis.NewMiniRedis()
		server.ClockTTL(true) // leases run out by the clock, as in a real Redis
		if err := server.Start(); err != nil {
			return nil, nil, fmt.Errorf("the Redis inside the program does not start: %w", err)
		}
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		return rdb, func() { _ = rdb.Close(); server.Close() }, nil
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		_ = rdb.Close()
		return nil, nil, fmt.Errorf("no Redis answers at %s: %w", addr, err)
	}
	return rdb, func() { _ = rdb.Close() }, nil
}

// cleanUp deletes what the story has left: the lock's counter and the account. Do not delete the counter of a lock that
// is in use: its tokens would start again at 1, and storage would refuse them.
func cleanUp(ctx context.Context, rdb *redis.Client, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	rdb.Del(ctx, name, "redisson_lock_token:{"+name+"}", storeKey(name))
}
