package main

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A task is what the driver gives a worker to do: a seed, or a plan.
type task struct {
	Seed    uint64
	Limits  limits
	Plan    *plan `json:",omitempty"` // in place of the seed's
	History bool  // return the history, also where nothing is wrong
	Noise   int   // so many objects of each size are on the heap before: addresses differ, and the history must not
}

// An outcome is what a worker returns.
type outcome struct {
	Seed       uint64
	Plan       plan
	Violations []violation
	History    []event `json:",omitempty"`
	Shares     shares
	Calls      int
	Holds      int
	Commands   int
	Virtual    time.Duration
	Took       time.Duration
	Hash       uint64
	Done       map[string]int
}

const workerFlag = "-worker"

// work does the task of standard input, and ends the program. A bubble needs a testing.T, so it does so as a test.
func work() {
	in, out := os.Stdin, os.Stdout
	os.Args, os.Stdout = os.Args[:1], os.Stderr // what package testing reads and prints
	redis.SetLogger(silent{})
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "worker", F: func(t *testing.T) {
		var one task
		if err := json.NewDecoder(in).Decode(&one); err != nil {
			t.Fatalf("a task: %v", err)
		}
		if err := json.NewEncoder(out).Encode(one.do(t)); err != nil {
			t.Fatalf("an outcome: %v", err)
		}
	}}}, nil, nil)
}

// noise keeps the objects of task.Noise.
var noise []any

func (one task) do(t *testing.T) outcome {
	for range one.Noise {
		noise = append(noise, new([1]*int), new([2]*int), new([4]*int), new([8]*int), new([12]*int), new([16]*int), new([24]*int), new([32]*int), new([64]*int))
	}
	p := one.plan()
	began := time.Now()
	r := play(t, p)
	found, judged := judge(p, r.History)
	o := outcome{Seed: p.Seed, Plan: p, Violations: found, Shares: judged, Calls: r.Calls, Commands: r.Commands, Virtual: r.Virtual, Took: time.Since(began), Hash: hashOf(r.History), Done: r.Done}
	for _, e := range r.History {
		if e.Kind == got {
			o.Holds++
		}
	}
	if one.History || len(o.Violations) > 0 {
		o.History = r.History
	}
	return o
}

func (one task) plan() plan {
	if one.Plan != nil {
		return *one.Plan
	}
	return newPlan(one.Seed, one.Limits)
}

// silent is a log of go-redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
