package main

import (
	"slices"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A circle of files has one arrow back up, and two files that use each other are a pair.
func TestOrder(t *testing.T) {
	r := &room{files: []string{"a", "b", "c", "d"}, arrows: map[arrow][]string{}}
	for _, a := range []arrow{{"b", "a"}, {"a", "c"}, {"c", "b"}, {"d", "b"}, {"c", "a"}} {
		r.arrows[a] = []string{"x"}
	}

	locktest.Equal(t, "back up", len(r.backUp(r.order())), 1)
	if pairs := r.bothWays(); !slices.Equal(pairs, []arrow{{"a", "c"}}) {
		t.Error(pairs)
	}
}

func TestLinesOfCode(t *testing.T) {
	const text = "// Package p is a test.\npackage p\n\n/* no\nline */\nconst s = `two\n\nlines`\n\nfunc f() { // here\n\t// nothing\n}\n"
	locktest.Equal(t, "lines", linesOfCode([]byte(text)), 6)
}

// What this package itself has is counted.
func TestLoad(t *testing.T) {
	rooms, err := load([]string{"."})
	locktest.NoError(t, err)
	locktest.Equal(t, "rooms", len(rooms), 1)
	r := rooms[0]
	locktest.Equal(t, "files", len(r.files), 3)
	if names := r.arrows[arrow{"main.go", "order.go"}]; !slices.Equal(names, []string{"backUp", "order"}) {
		t.Errorf("main.go uses %v of order.go", names)
	}
}
