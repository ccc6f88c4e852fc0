package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each break names a piece of code that is there, once: found out here in a second, not at the end of a long run.
func TestMutantsFitTheCode(t *testing.T) {
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %s has %q %d times", m.name, m.file, m.old, n)
		}
	}
}
