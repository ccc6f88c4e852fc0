package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerFlag, as the only argument, makes this program the remote of another one of it: a client in a process of its
// own. The flag is not for users, and not in the help.
const workerFlag = "-worker"

// A worked is the round of a worker process.
type worked struct {
	load    *load
	clients []*client
	rdb     *redis.Client
	memory  *sharedMemory
}

// work lets do answer commands until there are no more; see remote.
func work(ctx context.Context, in io.Reader, out io.Writer, do func(ctx context.Context, command string, args url.Values) (answer, error)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		command, query, _ := strings.Cut(lines.Text(), " ")
		args, err := url.ParseQuery(query)
		if err != nil {
			return err
		}
		a, err := do(ctx, command, args)
		if err != nil {
			a.Error = err.Error()
		}
		raw, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *worked) answer(ctx context.Context, command string, args url.Values) (answer, error) {
	if w.load == nil && command != "start" {
		return answer{}, errors.New("no load was started")
	}
	var a answer
	var err error
	switch command {
	case "start":
		if err = w.start(ctx, args); err == nil {
			a.Usage, err = usageHere()
		}
	case phaseWord[measuring]:
		a.Usage, err = here{w.load}.enter(ctx, measuring)
	case phaseWord[ending]:
		a.Usage, err = here{w.load}.enter(ctx, ending)
	case "drain":
		var ms int
		ms, err = strconv.Atoi(args.Get("grace_ms"))
		t := w.load.drain(time.Duration(ms) * time.Millisecond)
		a.Tally = &t
	case "close":
		closeAll(w.clients)
		err = errors.Join(w.rdb.Close(), w.memory.close())
	default:
		err = fmt.Errorf("no command is called %q", command)
	}
	return a, err
}

// start starts the goroutines of one client.
func (w *worked) start(ctx context.Context, args url.Values) error {
	r := round{addr: args.Get("address"), rdb: open(args.Get("direct"))}
	found := 0
	for _, c := range contenders {
		if c.name == args.Get("contender") {
			r.contender, found = c, found+1
		}
	}
	for _, m := range modes() {
		if m.name() == args.Get("mode") {
			r.mode, found = m, found+1
		}
	}
	number, err := strconv.Atoi(args.Get("client"))
	if err != nil || found != 2 || number >= r.mode.clients {
		return fmt.Errorf("no contender, mode or client: %v", args)
	}
	if r.id, err = strconv.Atoi(args.Get("round")); err != nil {
		return err
	}
	c, err := r.dial()
	if err != nil {
		return err
	}
	w.clients = make([]*client, r.mode.clients)
	w.clients[number], w.rdb = c, r.rdb
	if w.memory, err = openShared(args.Get("memory"), r.mode.keyCount()); err != nil {
		return err
	}
	w.load = startLoad(ctx, r, w.clients, w.memory.keys)
	return nil
}
