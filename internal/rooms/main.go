// Rooms counts what a reader of a package has to hold together: its files, its lines without comments and blanks, its structs with more
// than 15 fields, and the arrows between its files. There is an arrow from file A to file B where A uses a name that B declares: a type, a
// function, a method, a field, a variable or a constant. Tests are left out, and so are files of other systems.
//
// An arrow runs back up where B stands before A in the order of the files. The program finds the order by itself: the one with the fewest
// arrows back up. It begins with shuffled orders, moves single files for as long as a move makes these arrows fewer, and takes the best of
// what it gets. So their number is the least that the program finds, and maybe not the least.
//
//	go run ./internal/rooms                           # the packages of this module
//	go run ./internal/rooms -pairs ./internal/engine  # and which arrows run back up, and which pairs of files have arrows both ways
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
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
	var more strings.Builder
	for _, r := range rooms {
		order := r.order()
		up := len(r.backUp(order))
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d (%d%%)\t%d\t%s\n", r.path, len(r.files), r.lines, len(r.arrows), up, 100*up/max(len(r.arrows), 1),
			len(r.bothWays()), strings.Join(r.wide, ", "))
		if *pairs {
			r.printPairs(&more, order)
		}
	}
	_ = out.Flush()
	fmt.Print(more.String())
}

func (r *room) printPairs(out io.Writer, order []string) {
	fmt.Fprintf(out, "\n%s, in this order: %s\n", r.path, strings.Join(order, " "))
	fmt.Fprintln(out, "\narrows back up, with what is used:")
	for _, a := range slices.SortedFunc(slices.Values(r.backUp(order)), compareArrows) {
		fmt.Fprintf(out, "  %s -> %s: %s\n", a.from, a.to, strings.Join(r.arrows[a], " "))
	}
	fmt.Fprintln(out, "\npairs with arrows both ways:")
	for _, a := range r.bothWays() {
		fmt.Fprintf(out, "  %s <-> %s\n", a.from, a.to)
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
