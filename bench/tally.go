package main

import (
	"slices"
	"time"
)

// A tally is what the goroutines of a load saw, and how a load in another process tells it.
type tally struct {
	Pairs      []int           `json:"pairs"`   // of each goroutine, within the window
	Clients    []int           `json:"clients"` // the client of each goroutine
	Waits      []time.Duration `json:"waits_ns"`
	Uses       []time.Duration `json:"uses_ns"` // waits, sections and unlocks together
	Overlaps   int64           `json:"overlaps"`
	OutOfOrder int64           `json:"out_of_order"`
	Tokens     bool            `json:"tokens"`
	Hung       int             `json:"hung"`
	Stuck      int             `json:"stuck"`
	Errors     int64           `json:"errors"`
	FirstError string          `json:"first_error,omitempty"`
}

// result is what it says of the round.
func (t tally) result(clients int) result {
	res := result{
		Overlaps: t.Overlaps, OutOfOrder: t.OutOfOrder, Tokens: t.Tokens,
		Hung: t.Hung, Stuck: t.Stuck, Errors: t.Errors, FirstError: t.FirstError,
	}
	byClient := make([]int, clients)
	for i, pairs := range t.Pairs {
		byClient[t.Clients[i]] += pairs
		res.Pairs += pairs
	}
	waits := slices.Sorted(slices.Values(t.Waits))
	res.WaitP50 = micros(percentile(waits, 50))
	res.WaitP99 = micros(percentile(waits, 99))
	res.WaitMax = micros(percentile(waits, 100))
	uses := slices.Sorted(slices.Values(t.Uses))
	res.UseP50, res.UseP99 = micros(percentile(uses, 50)), micros(percentile(uses, 99))
	res.FairGoroutine, res.FairClient = fairness(t.Pairs), fairness(byClient)
	return res
}
