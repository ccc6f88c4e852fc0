// Orders is an HTTP service that adds items to orders in a SQL database, under a fenced lock for each order. A request can
// be paused between its read and its write for longer than the lease of its lock; the guard in the database then refuses
// its write, and the answer is 409 with a problem document.
//
//	go run ./examples/orders          the service; its help has the curl lines for two terminals
//	go run ./examples/orders -demo    plays both terminals by itself, and checks what happens
//
// Redis and SQLite are inside the program, or yours are given by flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencelock/fencelock/rlock"
)

const usage = `Orders is an HTTP service that adds items to orders under a fenced lock. What a holder writes that was paused for
longer than its lease is refused by the guard in the database. Start it, and then:

  terminal 1:  curl -i -X POST 'http://localhost:8080/orders/7/items?item=tea&pause=10s'
  terminal 2:  curl -i -X POST 'http://localhost:8080/orders/7/items?item=jam'       within these 10 s
  either:      curl 'http://localhost:8080/orders/7'

Terminal 2 waits until the lease of terminal 1 runs out (-lease, 3 s), and is answered with 200. Terminal 1 wakes with what
it has read before that, and is answered with 409; the order has the jam, and its request can be sent again. With
-guard=false it is answered with 200, and the jam is gone.

  go run ./examples/orders -demo                            both terminals by itself, on a port of its own
  go run ./examples/orders -redis localhost:6379 -postgres 'postgres://user@localhost/db'

In a database of yours the tables are fencelock_orders and fencelock_guard. They stay, and so do the orders of the demo.

Flags:
`

// config is what the flags say.
type config struct {
	listen, redis, postgres string
	lease                   time.Duration
	guard, demo             bool
}

func main() {
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var c config
	flags := flag.NewFlagSet("orders", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what it would print is printed below, once, and where it belongs
	flags.StringVar(&c.listen, "listen", "localhost:8080", "`host:port` to listen at")
	flags.StringVar(&c.redis, "redis", "", "`host:port` of a Redis server; without it, one inside the program")
	flags.StringVar(&c.postgres, "postgres", "", "`URL` of a PostgreSQL database; without it, SQLite in the program's memory")
	flags.DurationVar(&c.lease, "lease", 3*time.Second, "lease of the locks, at least 10ms; the demo has its own")
	flags.BoolVar(&c.guard, "guard", true, "check the tokens; false shows what gets lost without")
	flags.BoolVar(&c.demo, "demo", false, "play both terminals and end; the exit code tells whether it went as told")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	case err == nil && flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case err == nil && c.lease < 10*time.Millisecond:
		err = fmt.Errorf("-lease %v is less than 10ms", c.lease)
	}
	if err != nil {
		fmt.Fprintf(errs, "orders: %v (see -h)\n", err)
		return 2
	}
	if err := start(ctx, c, out); err != nil {
		fmt.Fprintln(errs, "orders:", err)
		return 1
	}
	return 0
}

// start runs the service or the demo on it until it ends, or ctx does.
func start(ctx context.Context, c config, out io.Writer) error {
	rdb, done, err := connect(ctx, c.redis)
	if err != nil {
		return err
	}
	defer done()
	client, err := rlock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := openStore(ctx, c.postgres, c.guard)
	if err != nil {
		return err
	}
	defer store.close()

	s := &service{client: client, store: store, lease: c.lease, pause: time.Sleep}
	if c.demo {
		return demo(ctx, s, c.guard, out)
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "orders at http://%s, with leases of %v; curl lines are in -h\n", listener.Addr(), c.lease)
	return serve(ctx, listener, s)
}

// serve answers requests until ctx ends, and then those that have begun.
func serve(ctx context.Context, listener net.Listener, s *service) error {
	server := &http.Server{Handler: s.routes(), ReadTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close() // what is paused for longer is cut off
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
