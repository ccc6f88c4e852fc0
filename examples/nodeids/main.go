//go:build unix

// Nodeids gives each process a node id for a snowflake generator, from a semaphore of two ids. Three processes want one. The first is frozen
// between making an id and sending it, for longer than its lease, and its node id is given to another process. When the first one goes on, the
// registry refuses what it sends, by its token, and its generator has ended.
//
//	go run ./examples/nodeids
//
// The Redis is inside the program. The exit code is 1 if something did not happen as told.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9/logging"

	"github.com/fencelock/fencelock/guard"
)

// nodes is how many node ids there are.
const nodes = 2

// lease is short here, so that nobody has to wait: a service takes the 30 s of the default.
const lease = 2 * time.Second

func main() {
	logging.Disable() // of go-redis: an error that matters is returned
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	addr := flag.String("worker", "", "be one of the processes, on the Redis at this address")
	freezes := flag.Bool("freezes", false, "stop before the third id is sent")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Nodeids shows a semaphore that gives node ids to processes, one of which is frozen. It takes about four seconds.\n\n  go run ./examples/nodeids\n")
	}
	flag.Parse()
	var err error
	if *addr != "" {
		err = work(ctx, *addr, *freezes, os.Stdout)
	} else {
		err = story(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodeids:", err)
		os.Exit(1)
	}
}

// A worker is a process with a generator, as the one that has started it sees it.
type worker struct {
	name  string
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// start starts a worker.
func start(ctx context.Context, name, addr string, freezes bool) (*worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &worker{name: name, cmd: exec.CommandContext(ctx, self, "-worker", addr, fmt.Sprintf("-freezes=%v", freezes))}
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.lines = bufio.NewScanner(out)
	return w, w.cmd.Start()
}

// next is the next id that the worker sends; false when it has ended.
func (w *worker) next() (made, bool) {
	var m made
	return m, w.lines.Scan() && json.Unmarshal(w.lines.Bytes(), &m) == nil
}

// story runs the workers, and checks what comes of it.
func story(ctx context.Context, out io.Writer) error {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out by the clock, as in a real Redis
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	registry := guard.NewMemory()
	ids := map[int64]string{}
	// receive gives the registry the next id of a worker.
	receive := func(w *worker) (made, error) {
		m, ok := w.next()
		if !ok {
			return m, io.EOF
		}
		err := registry.Do(ctx, m.Lock, m.Token, func(context.Context) error {
			if other := ids[m.ID]; other != "" {
				return fmt.Errorf("%s and %s have made the same id %d", other, w.name, m.ID)
			}
			ids[m.ID] = w.name
			return nil
		})
		return m, err
	}
	var all []*worker
	for i, name := range []string{"a", "b", "c"} {
		w, err := start(ctx, name, server.Addr(), i == 0)
		if err != nil {
			return err
		}
		all = append(all, w)
		if i == nodes {
			fmt.Fprintf(out, "%s  waits: there are %d node ids\n", name, nodes)
			continue
		}
		m, err := receive(w)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(out, "%s  is node %d, token %d: id %d\n", name, m.Node, m.Token, m.ID)
	}
	a, c := all[0], all[2]
	if _, err := receive(a); err != nil {
		return fmt.Errorf("a: %w", err)
	}
	fmt.Fprintf(out, "a  makes a third id, and is frozen before it sends it\n")
	m, err := receive(c)
	if err != nil {
		return fmt.Errorf("c: %w", err)
	}
	fmt.Fprintf(out, "c  is node %d, token %d, when the lease of a is over: id %d\n", m.Node, m.Token, m.ID)
	if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	late, err := receive(a)
	if !errors.Is(err, guard.ErrStale) || late.Node != m.Node || late.Token >= m.Token {
		return fmt.Errorf("the registry took the late id of a: %+v, %v", late, err)
	}
	fmt.Fprintf(out, "a  goes on and sends its id: refused, %v\n", err)
	if _, err := receive(a); err != io.EOF {
		return fmt.Errorf("a makes ids after its lease: %v", err)
	}
	fmt.Fprintf(out, "a  has ended: its generator makes no id without a permit\n\nok: no id twice, and a late one refused\n")
	return nil
}
