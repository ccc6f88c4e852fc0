// Command page measures what looking costs: the page of observe/lockui, and inspect.Known, with 10,000 held locks of 1,000 clients that
// say what they are; and what a pair of acquire and unlock on the same server takes while somebody looks once a second. It starts
// its own Redis server on loopback; the holders, and the page, are processes of their own, as they would be.
//
//	GOWORK=off go run ./page        in about four minutes
//	GOWORK=off go run ./page -h     the flags
//
// With and without the page takes turns in each round, so that whatever else the machine does hits both.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

type settings struct {
	locks, clients, rounds, callers int
	turn, every                     time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "page:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var set settings
	var role, addr string
	flags := flag.NewFlagSet("page", flag.ContinueOnError)
	flags.IntVar(&set.locks, "locks", 10_000, "locks that are held")
	flags.IntVar(&set.clients, "clients", 1000, "clients that hold them")
	flags.IntVar(&set.rounds, "rounds", 6, "rounds of a turn without and a turn with the page")
	flags.IntVar(&set.callers, "callers", 1, "callers that lock and unlock, each a lock of its own")
	flags.DurationVar(&set.turn, "turn", 10*time.Second, "length of a turn; in 10 s all holders renew their locks once, and say what they are")
	flags.DurationVar(&set.every, "every", time.Second, "how often the page is asked")
	flags.StringVar(&role, "role", "", "of a process that the program starts itself: holders or page")
	flags.StringVar(&addr, "addr", "", "of the Redis server, for -role")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || set.locks < 1 || set.clients < 1 || set.rounds < 1 || set.callers < 1 || set.turn < set.every || set.every <= 0 {
		return errors.New("the flags make no sense together; -h tells more")
	}
	switch role {
	case "":
		return measure(ctx, set)
	case "holders":
		return hold(ctx, addr, set)
	case "page":
		return serve(ctx, addr)
	default:
		return fmt.Errorf("there is no role %q", role)
	}
}

// measure is the process that asks and counts.
func measure(ctx context.Context, set settings) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server, err := redisserver.StartApart()
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintf(os.Stderr, "%d locks of %d clients ...\n", set.locks, set.clients)
	_, endHolders, err := start(ctx, server.Addr(), "holders", set)
	if err != nil {
		return err
	}
	defer endHolders()
	url, endPage, err := start(ctx, server.Addr(), "page", set)
	if err != nil {
		return err
	}
	defer endPage()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	in, err := inspect.New(rdb)
	if err != nil {
		return err
	}
	for known := 0; known < set.locks; { // as soon as all clients have said what they hold
		locks, err := in.Known(ctx)
		if err != nil {
			return err
		}
		known = len(locks)
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	if err := looks(ctx, in, url); err != nil {
		return err
	}
	if err := pairs(ctx, rdb, url, set); err != nil {
		return err
	}
	locks, err := in.Known(ctx)
	if err == nil && len(locks) < set.locks {
		err = fmt.Errorf("in the end %d locks are known, not %d: the figures are of fewer", len(locks), set.locks)
	}
	return err
}

// start starts this program as another process, and returns the line that it says when it is ready, and what ends it.
func start(ctx context.Context, addr, role string, set settings) (line string, end func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, "-role", role, "-addr", addr, "-locks", strconv.Itoa(set.locks), "-clients", strconv.Itoa(set.clients))
	cmd.Stderr = os.Stderr
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		stop()
		return "", nil, err
	}
	end = func() {
		stop()
		_ = cmd.Wait()
	}
	line, err = bufio.NewReader(said).ReadString('\n')
	if err != nil {
		end()
		return "", nil, fmt.Errorf("%s: %w", role, err)
	}
	return strings.TrimSpace(line), end, nil
}

// looks tells what one look takes, each by itself.
func looks(ctx context.Context, in *inspect.Inspector, url string) error {
	fmt.Println("| a look at everything | median | longest of 10 |\n|---|--:|--:|")
	for _, way := range []struct {
		name string
		look func() error
	}{
		{"the page, HTML", func() error { _, err := get(ctx, url); return err }},
		{"the page, JSON", func() error { _, err := get(ctx, url+"?format=json"); return err }},
		{"inspect.Known", func() error { _, err := in.Known(ctx); return err }},
		{"inspect.Contended", func() error { _, err := in.Contended(ctx); return err }},
		{"inspect.ContendedNames", func() error { _, err := in.ContendedNames(ctx); return err }},
		{"inspect.Clients", func() error { _, err := in.Clients(ctx); return err }},
	} {
		var took []time.Duration
		for range 10 {
			if err := sleep(ctx, 1100*time.Millisecond); err != nil { // the page keeps what it has found for a second
				return err
			}
			began := time.Now()
			if err := way.look(); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		fmt.Printf("| %s | %v | %v |\n", way.name, took[5].Round(time.Millisecond), took[9].Round(time.Millisecond))
	}
	return nil
}

// pairs tells what a pair of acquire and unlock takes with and without the page.
func pairs(ctx context.Context, rdb *redis.Client, url string, set settings) error {
	client, err := rlock.New(rdb)
	if err != nil {
		return err
	}
	defer client.Close()
	var all [2][]time.Duration
	var ratios []float64
	if _, err := turn(ctx, client, "", set); err != nil { // to warm up
		return err
	}
	for round := range set.rounds {
		var p99 [2]time.Duration
		for i := range 2 {
			with := (i + round) % 2 // who begins takes turns too
			asked := ""
			if with == 1 {
				asked = url
			}
			took, err := turn(ctx, client, asked, set)
			if err != nil {
				return err
			}
			p99[with] = quantile(took, .99)
			all[with] = append(all[with], took...)
		}
		ratios = append(ratios, float64(p99[1])/float64(p99[0]))
		fmt.Fprintf(os.Stderr, "round %d: p99 %v without, %v with the page: %.2f\n", round+1, p99[0], p99[1], ratios[round])
	}
	fmt.Printf("\n| acquire and unlock, %d at a time | pairs | median | p99 | p99.9 |\n|---|--:|--:|--:|--:|\n", set.callers)
	for with, name := range []string{"nobody looks", fmt.Sprintf("the page is asked every %v", set.every)} {
		fmt.Printf("| %s | %d | %v | %v | %v |\n", name, len(all[with]), quantile(all[with], .5), quantile(all[with], .99), quantile(all[with], .999))
	}
	slices.Sort(ratios)
	fmt.Printf("\np99 with the page / without: %.2f over all; of %d rounds the median is %.2f, from %.2f to %.2f\n",
		float64(quantile(all[1], .99))/float64(quantile(all[0], .99)), len(ratios), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	return nil
}

// turn locks and unlocks for a while, and asks for the page meanwhile, if there is one.
func turn(ctx context.Context, client *rlock.Client, page string, set settings) ([]time.Duration, error) {
	bound, stop := context.WithTimeout(ctx, set.turn)
	defer stop()
	asked := make(chan error, 1)
	go func() {
		for page != "" {
			if _, err := get(ctx, page); err != nil {
				asked <- err
				return
			}
			if sleep(bound, set.every) != nil {
				break
			}
		}
		asked <- nil
	}()
	took := make([][]time.Duration, set.callers)
	done := make(chan error, set.callers)
	for i := range set.callers {
		go func() {
			l := fenced.NewLock(client, fmt.Sprint("pair:", i))
			for bound.Err() == nil {
				began := time.Now()
				held, err := l.Lock(ctx)
				if err == nil {
					err = l.Unlock(held)
				}
				if err != nil {
					done <- err
					return
				}
				took[i] = append(took[i], time.Since(began))
			}
			done <- nil
		}()
	}
	errs := []error{<-asked}
	for range set.callers {
		errs = append(errs, <-done)
	}
	return slices.Concat(took...), errors.Join(errs...)
}

func get(ctx context.Context, url string) (bytes int64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, errors.New(answer.Status)
	}
	return io.Copy(io.Discard, answer.Body)
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(time.Microsecond)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
