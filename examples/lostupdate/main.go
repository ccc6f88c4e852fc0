// Lostupdate shows what the library is for. Three workers make deposits to one account; one of them is paused between
// its read and its write, for longer than the lease of its lock. The same is done four times: without a lock, with a
// plain expiring lock, with a fenced lock, and with a fenced lock and an account whose guard checks the token. All but the
// last one lose money.
//
//	go run ./examples/lostupdate                        on a Redis of its own, inside the program
//	go run ./examples/lostupdate -addr localhost:6379   on yours
//
// The exit code is 1 if the guarded run is not exact, or if the others do not lose what they must.
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

const usage = `Lostupdate pauses a worker between its read and its write, and shows what becomes of the account: without a
lock, with a plain expiring lock, with a fenced lock, and with a fenced lock and a guard. It takes about a second.

  go run ./examples/lostupdate                        on a Redis of its own, inside the program
  go run ./examples/lostupdate -addr localhost:6379   on yours: under key names of its own, deleted at the end

Flags:
`

func main() {
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], newAccount, os.Stdout, os.Stderr))
}

// run is main with its exit code. The account is an argument so that a test can show that one without its guard is found
// out.
func run(ctx context.Context, args []string, open func(guarded bool) *account, out, errs io.Writer) int {
	flags := flag.NewFlagSet("lostupdate", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what it would print is printed below, once, and where it belongs
	addr := flags.String("addr", "", "`host:port` of a Redis server; without it, one inside the program")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintf(errs, "lostupdate: %v (see -h)\n", err)
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errs, "lostupdate: unexpected argument %q: the server is given with -addr (see -h)\n", flags.Arg(0))
		return 2
	}
	rdb, done, err := connect(ctx, *addr)
	if err != nil {
		fmt.Fprintln(errs, "lostupdate:", err)
		return 1
	}
	defer done()

	if err := compare(ctx, rdb, open, out); err != nil {
		fmt.Fprintln(errs, "lostupdate:", err)
		return 1
	}
	return 0
}

// compare does the same work in four ways and shows what became of the money.
func compare(ctx context.Context, rdb *redis.Client, open func(guarded bool) *account, out io.Writer) error {
	name := "fencelock-lostupdate:" + rand.Text()[:10] + ":account" // nobody else's
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		rdb.Del(ctx, name, "redisson_lock_token:{"+name+"}", name+":plain")
	}()
	fenced, err := newFencedTeller(rdb, name)
	if err != nil {
		return err
	}
	defer fenced.close()

	fmt.Fprintf(out, "%d deposits of %d by 3 workers; ann is paused between the read and the write of her deposit number %d,\n",
		len(workers)*deposits, amount, pausedAt)
	fmt.Fprintf(out, "until the others have made theirs. A lease is %v.\n\n", lease)
	fmt.Fprintf(out, "%-32s %9s %9s %9s\n", "", "expected", "balance", "lost")
	const expected = len(workers) * deposits * amount
	for _, way := range []struct {
		title string
		teller
		guarded bool
	}{
		{"no lock", unlocked{}, false},
		{"SET NX PX, compare-and-delete", plain{rdb, name + ":plain"}, false},
		{"fenced lock, no guard", fenced, false},
		{"fenced lock, guard", fenced, true},
	} {
		account := open(way.guarded)
		if err := work(ctx, way.teller, account); err != nil {
			return fmt.Errorf("%s: %w", way.title, err)
		}
		lost := expected - account.balance
		fmt.Fprintf(out, "%-32s %9d %9d %9d\n", way.title, expected, account.balance, lost)
		switch {
		case !way.guarded && lost != overwritten:
			return fmt.Errorf("%s: %d is lost, not %d as this program is made to show", way.title, lost, overwritten)
		case way.guarded && lost != 0:
			return fmt.Errorf("%s: the balance is %d, not %d", way.title, account.balance, expected)
		case way.guarded && account.refused == 0:
			return fmt.Errorf("%s: no late write was refused: the pause did not outlast the lease", way.title)
		}
		if way.guarded {
			fmt.Fprintf(out, "\nok: stale tokens refused: %d; the deposit was made again under a new one, and no money is lost\n", account.refused)
		}
	}
	return nil
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
