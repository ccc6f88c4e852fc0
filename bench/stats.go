package main

import (
	"cmp"
	"math"
	"slices"
)

type number interface{ ~int | ~int64 | ~float64 }

// percentile returns the smallest of the sorted values that p percent of them do not exceed (nearest rank); 0 of none.
func percentile[N number](sorted []N, p float64) N {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle value, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread is what several repeats gave.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{median(values), slices.Min(values), slices.Max(values)}
}

// fairness is the least value over the most: 1 where all got the same, 0 where somebody got nothing. Where nobody got
// anything, or there is nobody, it is 1.
func fairness[N number](values []N) float64 {
	if len(values) == 0 {
		return 1
	}
	least, most := slices.Min(values), slices.Max(values)
	if cmp.Compare(most, 0) == 0 {
		return 1
	}
	return float64(least) / float64(most)
}
