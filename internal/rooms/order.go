package main

import "slices"

// order returns the files from those that use others to those that are used, as the package comment says.
func (r *room) order() (order []string) {
	left := slices.Clone(r.files)
	slices.Sort(left)
	for len(left) > 0 {
		best, most := 0, -len(r.files)
		for i, file := range left {
			uses, users := r.degrees(file, left)
			if users == 0 {
				uses = len(r.files)
			}
			if uses-users > most {
				best, most = i, uses-users
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	return r.better(order)
}

// degrees returns how many of these files the file uses, and how many use it.
func (r *room) degrees(file string, of []string) (uses, users int) {
	for a := range r.arrows {
		if a.from == file && slices.Contains(of, a.to) {
			uses++
		}
		if a.to == file && slices.Contains(of, a.from) {
			users++
		}
	}
	return uses, users
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
	slices.SortFunc(back, compareArrows)
	return back
}
