package main

import (
	"context"
	"time"
)

// A site is where the goroutines of a round run: in this process, or in the JVM.
type site interface {
	// enter begins a phase, and returns what the site's processes have used until then.
	enter(ctx context.Context, phase int32) (usage, error)
	// drain waits for the goroutines, and returns what they saw.
	drain(ctx context.Context, grace time.Duration) (tally, error)
}

// measureAt measures a load that has begun.
func measureAt(ctx context.Context, r round, s site) (result, error) {
	sleep(ctx, r.timing.warm)
	before, err := r.read(ctx)
	if err != nil {
		return result{}, err
	}
	usedBefore, err := s.enter(ctx, measuring)
	if err != nil {
		return result{}, err
	}
	sleep(ctx, r.timing.window)
	usedAfter, err := s.enter(ctx, ending)
	if err != nil {
		return result{}, err
	}
	after, err := r.read(ctx)
	if err != nil {
		return result{}, err
	}
	t, err := s.drain(ctx, r.timing.grace)
	if err != nil {
		return result{}, err
	}
	res := t.result(r.mode.clients)
	res.Seconds = (usedAfter.At - usedBefore.At).Seconds()
	res.PairsPerSec = float64(res.Pairs) / res.Seconds
	res.meters(before, after, usedBefore, usedAfter)
	return res, ctx.Err()
}

// here is this process as a site.
type here struct{ load *load }

func (h here) enter(_ context.Context, phase int32) (usage, error) {
	h.load.enter(phase)
	return usageHere()
}

func (h here) drain(_ context.Context, grace time.Duration) (tally, error) {
	return h.load.drain(grace), nil
}

// measureHere puts the load on from this process.
func measureHere(ctx context.Context, r round) (result, error) {
	var clients []*client
	defer func() { closeAll(clients) }()
	for range r.mode.clients {
		c, err := r.dial()
		if err != nil {
			return result{}, err
		}
		clients = append(clients, c)
	}
	load := startLoad(ctx, r, clients)
	defer load.cancel()
	return measureAt(ctx, r, here{load})
}
