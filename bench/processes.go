package main

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A crew is several processes with a load that is one in all.
type crew []*remote

// enter returns the sum of what all have used, at the mean of their moments.
func (c crew) enter(ctx context.Context, phase int32) (usage, error) {
	var all usage
	var at time.Duration
	for _, r := range c {
		u, err := r.enter(ctx, phase)
		if err != nil {
			return usage{}, err
		}
		at += u.At
		all = all.plus(u)
	}
	all.At = at / time.Duration(len(c))
	return all, nil
}

// drain waits for all at the same time: they share one grace.
func (c crew) drain(ctx context.Context, grace time.Duration) (tally, error) {
	tallies := make([]tally, len(c))
	failed := make(chan error, len(c))
	for i, r := range c {
		go func() {
			var err error
			tallies[i], err = r.drain(ctx, grace)
			failed <- err
		}()
	}
	var err error
	for range c {
		err = errors.Join(err, <-failed)
	}
	var all tally
	for _, t := range tallies {
		all.add(t)
	}
	return all, err
}

func (c crew) stop() {
	for _, r := range c {
		r.stop()
	}
}

// measureInProcesses puts the load on from a process for each client.
func measureInProcesses(ctx context.Context, r round) (result, error) {
	program, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	memory, err := createShared(r.mode.keyCount())
	if err != nil {
		return result{}, err
	}
	defer func() { _ = memory.close(); _ = os.Remove(memory.file) }()
	var all crew
	defer func() { all.stop() }()
	for range r.mode.clients {
		one, err := startRemote("a worker process", exec.Command(program, workerFlag))
		if err != nil {
			return result{}, err
		}
		all = append(all, one)
	}
	for i, one := range all {
		args := url.Values{
			"contender": {r.contender.name}, "mode": {r.mode.name()}, "client": {strconv.Itoa(i)}, "round": {strconv.Itoa(r.id)},
			"address": {r.addr}, "direct": {r.rdb.Options().Addr}, "memory": {memory.file},
		}
		if _, err := one.ask(ctx, 0, "start", args); err != nil {
			return result{}, err
		}
	}
	res, err := measureAt(ctx, r, all)
	if err != nil {
		return res, err
	}
	if res.Stuck > 0 {
		return res, nil // their clients would not close
	}
	for _, one := range all {
		if _, err := one.ask(ctx, abandon, "close", nil); err != nil {
			return res, err
		}
	}
	return res, nil
}
