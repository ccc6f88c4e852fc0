package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/fencelock/fencelock/verify/overlay"
)

// A worker is a process that does one task. It has one processor, and collects no garbage below a bound of memory: what happens in a world
// hangs on its plan then.

var oneProcessor = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=off"}

// taskTime bounds one task in real time.
const taskTime = 5 * time.Minute

// do has the program do one task. A worker that dies of it is an outcome too: a bubble ends its program where goroutines are left that wait
// for ever.
func do(ctx context.Context, program string, one task) (outcome, error) {
	text, err := json.Marshal(one)
	if err != nil {
		return outcome{}, fmt.Errorf("a task: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, taskTime)
	defer cancel()
	said := new(tail)
	cmd := exec.CommandContext(bounded, program, workerFlag)
	cmd.Env = append(append(os.Environ(), oneProcessor...), "GOMEMLIMIT=2GiB", "GOTRACEBACK=all")
	p := one.plan()
	if p.Schedule > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", overlay.ScheduleVariable, p.Schedule))
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), said
	answer, failed := cmd.Output()
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	var o outcome
	if failed == nil {
		failed = json.Unmarshal(answer, &o)
	}
	if failed == nil {
		return o, nil
	}
	if bounded.Err() != nil {
		failed = fmt.Errorf("no end of it after %v of real time: it hangs, or this machine is too busy", taskTime)
	}
	return outcome{Seed: p.Seed, Plan: p, Violations: []violation{{Rule: itEnds, Text: fmt.Sprintf("%v\n%s", failed, said)}}}, nil
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

// all has tasks done by several workers.
func all(ctx context.Context, program string, jobs int, next func() (task, bool), each func(outcome)) error {
	return parallel(ctx, jobs, next, func(ctx context.Context, one task) (outcome, error) { return do(ctx, program, one) }, each)
}

// parallel has several goroutines do what next returns, until next says that there is no more, and calls each for every outcome, one at a time.
func parallel[T, O any](ctx context.Context, jobs int, next func() (T, bool), do func(context.Context, T) (O, error), each func(O)) error {
	var mu sync.Mutex
	var workers sync.WaitGroup
	var first error
	for range jobs {
		workers.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				one, more := next()
				mu.Unlock()
				if !more {
					return
				}
				o, err := do(ctx, one)
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
