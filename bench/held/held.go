package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// measureHeld is what locks cost that are held.
func measureHeld(ctx context.Context, r *report) error {
	s, err := redisserver.StartApart()
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := dial(s.Addr(), r.lease)
	if err != nil {
		return err
	}
	defer c.close()
	third := r.lease / 3

	warm := make([]held, 64) // what is there for few locks: connections, buffers, scripts
	if err := c.takeAll(ctx, "warm:", warm); err != nil {
		return err
	}
	if err := unlockAll(ctx, warm); err != nil {
		return err
	}
	quiet := pingFor(ctx, s.Addr(), 2*time.Second)
	locks := make([]held, r.holds)
	if err := pause(ctx, 2*time.Second); err != nil {
		return err
	}
	before := readMemory()
	began := time.Now()
	if err := c.takeAll(ctx, "held:", locks); err != nil {
		return err
	}
	took := time.Since(began)
	r.say("taken in %v", took.Round(time.Millisecond))
	fresh := readMemory().since(before)
	r.profile("held-fresh")

	// PING while what was taken at once comes to be renewed for the first time.
	first := pingFor(ctx, s.Addr(), third)
	r.say("first renewals: PING p99 %v", first.quantile(.99))
	// The shares, without pings.
	usage, err := watch(ctx, c.rdb, time.Duration(r.periods)*third)
	if err != nil {
		return err
	}
	r.say("renewals: %.2f%% of a Redis core, %.2f%% of a client core", 100*usage.server, 100*usage.client)
	later := pingFor(ctx, s.Addr(), third)
	r.say("later renewals: PING p99 %v", later.quantile(.99))
	memory := readMemory().since(before)
	r.profile("held")
	r.say("%.0f bytes of heap a hold, %d goroutines more", per(memory.heap, r.holds), memory.goroutines)

	ratio, none, many, err := besideHeld(ctx, r, c)
	if err != nil {
		return err
	}
	for i, l := range locks {
		if l.ctx.Err() != nil {
			return fmt.Errorf("lock %d was lost: %w", i, context.Cause(l.ctx))
		}
	}
	began = time.Now()
	if err := unlockAll(ctx, locks); err != nil {
		return err
	}
	r.say("unlocked in %v", time.Since(began).Round(time.Millisecond))
	runtime.KeepAlive(locks)

	renewed := usage.commands["hexists"]
	heading := fmt.Sprintf("%d held locks, a lease of %v", r.holds, r.lease)
	r.figure(heading, "time to take them, %d goroutines", "%v", workers, took.Round(time.Millisecond))
	r.figure(heading, "renewals: share of a Redis core", "%.2f%%", 100*usage.server)
	r.figure(heading, "renewals: share of a client core", "%.2f%%", 100*usage.client)
	r.figure(heading, "renewals a second", "%.0f", float64(renewed)/usage.took.Seconds())
	r.figure(heading, "scripts a second", "%.1f", float64(usage.commands["evalsha"])/usage.took.Seconds())
	r.figure(heading, "PING p50 / p99 / max; p99 of the worst half second, nothing held", "%s", quiet.String())
	r.figure(heading, "PING p50 / p99 / max; p99 of the worst half second, from the taking to the end of the first renewals", "%s", first.String())
	r.figure(heading, "PING p50 / p99 / max; p99 of the worst half second, renewals from then on", "%s", later.String())
	r.figure(heading, "heap a hold when taken", "%.0f B", per(fresh.heap, r.holds))
	r.figure(heading, "heap a hold after renewals", "%.0f B", per(memory.heap, r.holds))
	r.figure(heading, "goroutines more", "%d", memory.goroutines)
	r.figure(heading, "pairs a second beside them / beside none, 64 goroutines", "%s", fmt.Sprintf("%.0f / %.0f, ratio %.2f", many, none, ratio))
	r.goal(fmt.Sprintf("%d held locks, renewed every %v: share of a Redis core", r.holds, third), 0.05, 0.03, usage.server, percent)
	r.goal(fmt.Sprintf("%d held locks, renewed every %v: share of a client core", r.holds, third), 0.03, 0.01, usage.client, percent)
	r.goal("memory a held lock in the client", 1024, 512, per(max(fresh.heap, memory.heap), r.holds), size)
	return nil
}

// besideHeld is the rate of acquire and unlock on the client with many holds against a client that has none and a server
// that has none, in turns.
func besideHeld(ctx context.Context, r *report, many *client) (ratio, none, with float64, err error) {
	s, err := redisserver.StartApart()
	if err != nil {
		return 0, 0, 0, err
	}
	defer s.Close()
	c, err := dial(s.Addr(), r.lease)
	if err != nil {
		return 0, 0, 0, err
	}
	defer c.close()
	var ratios, nones, withs []float64
	for i := range 8 {
		a, b := c, many
		if i%2 == 1 {
			a, b = b, a
		}
		x, err := a.pairs(ctx, 64, 700*time.Millisecond)
		if err != nil {
			return 0, 0, 0, err
		}
		y, err := b.pairs(ctx, 64, 700*time.Millisecond)
		if err != nil {
			return 0, 0, 0, err
		}
		if i%2 == 1 {
			x, y = y, x
		}
		if i == 0 {
			continue // warm-up
		}
		ratios, nones, withs = append(ratios, y/x), append(nones, x), append(withs, y)
	}
	r.say("pairs beside them: %.2f of the rate beside none", median(ratios))
	return median(ratios), median(nones), median(withs), nil
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
