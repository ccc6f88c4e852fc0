package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A worker is a process that does tasks. It has one processor: what happens in a world then hangs on the seed, as far as Go lets it.
type worker struct {
	program  string
	cmd      *exec.Cmd
	tasks    io.WriteCloser
	outcomes *json.Decoder
	said     *tail
}

// taskTime bounds one task in real time.
const taskTime = 5 * time.Minute

func (w *worker) start(ctx context.Context) error {
	w.cmd = exec.CommandContext(ctx, w.program, workerFlag)
	w.cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=400", "GOTRACEBACK=all")
	w.said = new(tail)
	w.cmd.Stderr = w.said
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("a worker: %w", err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("a worker: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("a worker: %w", err)
	}
	w.tasks, w.outcomes = in, json.NewDecoder(out)
	return nil
}

// do has one task done. A worker that dies of it is an outcome too: a bubble ends its program where goroutines are left that wait for ever.
func (w *worker) do(ctx context.Context, one task) (outcome, error) {
	if w.cmd == nil {
		if err := w.start(ctx); err != nil {
			return outcome{}, err
		}
	}
	stuck := time.AfterFunc(taskTime, func() { _ = w.cmd.Process.Kill() })
	defer stuck.Stop()
	var o outcome
	err := json.NewEncoder(w.tasks).Encode(one)
	if err == nil {
		err = w.outcomes.Decode(&o)
	}
	if err == nil {
		return o, nil
	}
	_ = w.cmd.Wait()
	w.cmd = nil
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	p := one.plan()
	return outcome{Seed: p.Seed, Plan: p, Violations: []violation{{Rule: itEnds, Text: w.said.String()}}}, nil
}

func (w *worker) stop() {
	if w.cmd != nil {
		_ = w.tasks.Close()
		_ = w.cmd.Wait()
		w.cmd = nil
	}
}

// tail keeps what is interesting of what a program says before it dies: the reason, and what follows that.
type tail struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() < 1<<20 {
		t.text.Write(b)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text.String()
	for _, mark := range []string{"panic: ", "fatal error: ", "WARNING: DATA RACE"} {
		if i := strings.Index(text, mark); i >= 0 {
			text = text[i:]
			break
		}
	}
	return text[:min(len(text), 1<<14)]
}

// all has tasks done by several workers, until next says that there are no more, and calls each for every outcome, one at a time.
func all(ctx context.Context, program string, jobs int, next func() (task, bool), each func(outcome)) error {
	var mu sync.Mutex
	var workers sync.WaitGroup
	var first error
	for range jobs {
		workers.Go(func() {
			w := worker{program: program}
			defer w.stop()
			for ctx.Err() == nil {
				mu.Lock()
				one, more := next()
				mu.Unlock()
				if !more {
					return
				}
				o, err := w.do(ctx, one)
				mu.Lock()
				switch {
				case err == nil:
					each(o)
				case first == nil:
					first = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	if first == nil && ctx.Err() != nil {
		first = context.Cause(ctx)
	}
	return first
}
