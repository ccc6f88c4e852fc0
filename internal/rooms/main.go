// Rooms counts what a reader of a package has to hold together: its files, its lines without comments and blanks, its structs with more
// than 15 fields, and the arrows between its files. There is an arrow from file A to file B where A uses a name that B declares: a type, a
// function, a method, a field, a variable or a constant. Tests are left out, and so are files of other systems.
//
// An arrow runs back up where B stands before A in the order of the files. The program finds the order by itself. A file that no file behind
// it uses comes next; where there is none, the one that uses the most files behind it, less those that use it. Then the program moves single
// files for as long as a move makes the arrows back up fewer. So their number is the least that the program finds, and maybe not the least.
//
//	go run ./internal/rooms                           # the packages of this module
//	go run ./internal/rooms -pairs ./internal/engine  # and which arrows run back up, and which pairs of files have arrows both ways
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	pairs := flag.Bool("pairs", false, "print the order of the files, the arrows back up, and the pairs of files with arrows both ways")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	rooms, err := load(patterns)
	if err != nil {
		fmt.Fprintln(os.Stderr, "rooms:", err)
		os.Exit(1)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "package\tfiles\tlines\tarrows\tback up\tpairs both ways\tstructs with more than 15 fields")
	for _, r := range rooms {
		up := len(r.backUp(r.order()))
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d (%d%%)\t%d\t%s\n", r.path, len(r.files), r.lines, len(r.arrows), up, 100*up/max(len(r.arrows), 1),
			len(r.bothWays()), strings.Join(r.wide, ", "))
	}
	_ = out.Flush()
	for _, r := range rooms {
		if *pairs {
			r.printPairs()
		}
	}
}

func (r *room) printPairs() {
	order := r.order()
	fmt.Printf("\n%s, in this order: %s\n", r.path, strings.Join(order, " "))
	fmt.Println("\narrows back up, with what is used:")
	for _, a := range r.backUp(order) {
		fmt.Printf("  %s -> %s: %s\n", a.from, a.to, strings.Join(r.arrows[a], " "))
	}
	fmt.Println("\npairs with arrows both ways:")
	for _, a := range r.bothWays() {
		fmt.Printf("  %s <-> %s\n", a.from, a.to)
	}
}

// bothWays returns one arrow of each pair of files that have arrows both ways.
func (r *room) bothWays() (pairs []arrow) {
	for a := range r.arrows {
		if _, back := r.arrows[arrow{a.to, a.from}]; back && a.from < a.to {
			pairs = append(pairs, a)
		}
	}
	slices.SortFunc(pairs, compareArrows)
	return pairs
}

func compareArrows(a, b arrow) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
}
