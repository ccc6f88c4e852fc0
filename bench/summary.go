package main

import (
	"fmt"
	"strings"
)

// A summary is what all repeats of one contender in one mode gave: medians, but the worst of what must not be.
type summary struct {
	Contender     string  `json:"contender"`
	Mode          string  `json:"mode"`
	Repeats       int     `json:"repeats"`
	PairsPerSec   spread  `json:"pairs_per_second"`
	Ratio         *spread `json:"ratio_to_baseline,omitempty"` // of rounds in the same repeat
	RatioP99      *spread `json:"wait_p99_ratio_to_baseline,omitempty"`
	WaitP50       spread  `json:"wait_p50_us"`
	WaitP99       spread  `json:"wait_p99_us"`
	WaitMax       float64 `json:"wait_max_us"`
	UseP50        spread  `json:"use_p50_us"`
	UseP99        spread  `json:"use_p99_us"`
	Commands      float64 `json:"commands_per_pair"`
	Messages      float64 `json:"messages_per_pair"`
	ServerCPU     float64 `json:"server_cpu_us_per_pair"`
	ClientCPU     float64 `json:"client_cpu_us_per_pair"`
	Allocs        float64 `json:"allocs_per_pair"`
	AllocBytes    float64 `json:"alloc_bytes_per_pair"`
	Connections   float64 `json:"connections"`
	FairGoroutine float64 `json:"least_over_most_goroutine"`
	FairClient    float64 `json:"least_over_most_client"`
	Tokens        bool    `json:"has_tokens"`
	Overlaps      int64   `json:"overlaps"`
	OutOfOrder    int64   `json:"tokens_out_of_order"`
	Hung          int     `json:"hung_waiters"`
	Stuck         int     `json:"hung_after_cancel"`
	HungRounds    int     `json:"rounds_with_hung_waiters"`
	Still         int     `json:"rounds_without_a_pair"`
	Errors        int64   `json:"errors"`
	FirstError    string  `json:"first_error,omitempty"`
}

// summarize returns the summaries of one mode, in the contenders' order.
func summarize(results []result, m mode) []summary {
	base := map[int]result{} // by repeat
	for _, r := range results {
		if r.Mode == m.name() && r.Contender == m.baseline() {
			base[r.Repeat] = r
		}
	}
	var all []summary
	for _, c := range contenders {
		var rounds []result
		for _, r := range results {
			if r.Mode == m.name() && r.Contender == c.name {
				rounds = append(rounds, r)
			}
		}
		if len(rounds) > 0 {
			all = append(all, summaryOf(rounds, base))
		}
	}
	return all
}

func summaryOf(rounds []result, base map[int]result) summary {
	values := func(of func(result) float64) []float64 { return valuesOf(rounds, of) }
	middle := func(of func(result) float64) float64 { return median(values(of)) }
	var moving []result
	for _, r := range rounds {
		if r.PairsPerSec > 0 {
			moving = append(moving, r)
		}
	}
	cost := func(of func(result) float64) float64 { return median(valuesOf(moving, of)) } // of a pair: 0 where no round has one
	s := summary{
		Contender: rounds[0].Contender, Mode: rounds[0].Mode, Repeats: len(rounds), Still: len(rounds) - len(moving), Tokens: rounds[0].Tokens,
		PairsPerSec:   spreadOf(values(func(r result) float64 { return r.PairsPerSec })),
		WaitP50:       spreadOf(values(func(r result) float64 { return r.WaitP50 })),
		WaitP99:       spreadOf(values(func(r result) float64 { return r.WaitP99 })),
		WaitMax:       spreadOf(values(func(r result) float64 { return r.WaitMax })).Max,
		UseP50:        spreadOf(values(func(r result) float64 { return r.UseP50 })),
		UseP99:        spreadOf(values(func(r result) float64 { return r.UseP99 })),
		Commands:      cost(func(r result) float64 { return r.Commands }),
		Messages:      cost(func(r result) float64 { return r.Messages }),
		ServerCPU:     cost(func(r result) float64 { return r.ServerCPU }),
		ClientCPU:     cost(func(r result) float64 { return r.ClientCPU }),
		Allocs:        cost(func(r result) float64 { return r.Allocs }),
		AllocBytes:    cost(func(r result) float64 { return r.AllocBytes }),
		Connections:   middle(func(r result) float64 { return float64(r.Connections) }),
		FairGoroutine: middle(func(r result) float64 { return r.FairGoroutine }),
		FairClient:    middle(func(r result) float64 { return r.FairClient }),
	}
	s.Ratio = ratio(rounds, base, func(r result) float64 { return r.PairsPerSec })
	s.RatioP99 = ratio(rounds, base, func(r result) float64 { return r.WaitP99 })
	for _, r := range rounds {
		s.Overlaps += r.Overlaps
		s.OutOfOrder += r.OutOfOrder
		s.Hung += r.Hung
		s.Stuck += r.Stuck
		if r.Hung > 0 {
			s.HungRounds++
		}
		s.Errors += r.Errors
		if s.FirstError == "" {
			s.FirstError = r.FirstError
		}
	}
	return s
}

func valuesOf(rounds []result, of func(result) float64) []float64 {
	var v []float64
	for _, r := range rounds {
		v = append(v, of(r))
	}
	return v
}

// ratio compares each round with the baseline's in the same repeat; nil where there is none.
func ratio(rounds []result, base map[int]result, of func(result) float64) *spread {
	var ratios []float64
	for _, r := range rounds {
		if b := of(base[r.Repeat]); b > 0 {
			ratios = append(ratios, of(r)/b)
		}
	}
	if len(ratios) == 0 {
		return nil
	}
	s := spreadOf(ratios)
	return &s
}

// trouble tells in a few words what should not have been, or nothing.
func (r result) trouble() string {
	var words []string
	for _, t := range []struct {
		n    int64
		word string
	}{
		{r.Overlaps, "overlaps"}, {r.OutOfOrder, "tokens out of order"}, {int64(r.Hung), "hung"}, {r.Errors, "errors"},
	} {
		if t.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", t.n, t.word))
		}
	}
	if r.FirstError != "" {
		words = append(words, strings.ReplaceAll(r.FirstError, "\n", " "))
	}
	if len(words) == 0 {
		return ""
	}
	return "! " + strings.Join(words, ", ") + " "
}
