package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each break names a piece of code that is there, once: found out here in a second, not at the end of a long run.
func TestMutantsFitTheCode(t *testing.T) {
	for _, m := range mutants {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("%s: %s has %q %d times", m.name, m.file, m.old, n)
		}
	}
}

var testName = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// Each break names tests that its package has.
func TestMutantsHaveTests(t *testing.T) {
	declared := map[string][]string{}
	for _, m := range mutants {
		if declared[m.pkg] == nil {
			files, err := filepath.Glob(filepath.Join("..", "..", "..", m.pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range testName.FindAllStringSubmatch(string(text), -1) {
					declared[m.pkg] = append(declared[m.pkg], name[1])
				}
			}
		}
		top, _, _ := strings.Cut(m.run, "/")
		run, err := regexp.Compile(top)
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if !slices.ContainsFunc(declared[m.pkg], run.MatchString) {
			t.Errorf("%s: no test of %s matches %s", m.name, m.pkg, m.run)
		}
	}
}
