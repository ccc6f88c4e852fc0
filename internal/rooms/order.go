package main

import (
	"math/rand/v2"
	"slices"
)

// starts is from how many shuffled orders the program looks for a better one.
const starts = 30

// order returns the files from those that use others to those that are used, as the package comment says.
func (r *room) order() []string {
	random := rand.New(rand.NewPCG(1, 1)) // the same in each run
	order := slices.Sorted(slices.Values(r.files))
	best := r.better(order)
	for range starts {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		if other := r.better(order); len(r.backUp(other)) < len(r.backUp(best)) {
			best = other
		}
	}
	return best
}

// better moves single files to where there are fewer arrows back up, until no such move is left.
func (r *room) better(order []string) []string {
	fewest := len(r.backUp(order))
	for again := true; again; {
		again = false
		for _, file := range slices.Clone(order) {
			rest := slices.DeleteFunc(slices.Clone(order), func(f string) bool { return f == file })
			for at := range order {
				moved := slices.Insert(slices.Clone(rest), at, file)
				if n := len(r.backUp(moved)); n < fewest {
					fewest, order, again = n, moved, true
				}
			}
		}
	}
	return order
}

// backUp returns the arrows that lead to a file which stands before the one that they come from.
func (r *room) backUp(order []string) (back []arrow) {
	place := map[string]int{}
	for i, file := range order {
		place[file] = i
	}
	for a := range r.arrows {
		if place[a.to] < place[a.from] {
			back = append(back, a)
		}
	}
	return back
}
