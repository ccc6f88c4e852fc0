package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fencelock/fencelock/internal/test/breaks"
)

const (
	lastRule      = 58
	lastInvariant = 12
)

// rules are the names of all invariants and rules of docs/protocol.md. No rule has the number 17.
func rules() []string {
	var all []string
	for i := range lastInvariant {
		all = append(all, fmt.Sprint("Inv", i+1))
	}
	for i := range lastRule {
		if i+1 != 17 {
			all = append(all, fmt.Sprint("P", i+1))
		}
	}
	return all
}

// rulesTable is each rule with its tests and how many breaks it has. root is the directory of the root module.
func rulesTable(root string) (string, error) {
	tests, err := testsOfRules(root)
	if err != nil {
		return "", err
	}
	broken := breaksOfRules()
	var table strings.Builder
	for _, rule := range rules() {
		fmt.Fprintf(&table, "%s, %d breaks\n", rule, broken[rule])
		for _, folder := range slices.Sorted(maps.Keys(tests[rule])) {
			slices.Sort(tests[rule][folder])
			fmt.Fprintf(&table, "  %-18s %s\n", folder, strings.Join(tests[rule][folder], ", "))
		}
	}
	return table.String(), nil
}

var carries = regexp.MustCompile(`(?m)^func Test((?:P|Inv)\d+)_(\w+)\(`)

// testsOfRules are the names of the tests, without the rule, by rule and folder.
func testsOfRules(root string) (map[string]map[string][]string, error) {
	tests := make(map[string]map[string][]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, m := range carries.FindAllStringSubmatch(string(text), -1) {
			rule, name := m[1], m[2]
			if tests[rule] == nil {
				tests[rule] = make(map[string][]string)
			}
			tests[rule][filepath.ToSlash(folder)] = append(tests[rule][filepath.ToSlash(folder)], name)
		}
		return nil
	})
	return tests, err
}

var numbered = regexp.MustCompile(`\b(?:P|Inv)\d+\b`)

// breaksOfRules are how many breaks name each rule.
func breaksOfRules() map[string]int {
	broken := make(map[string]int)
	for _, b := range breaks.All {
		name, _, _ := strings.Cut(b.Name, ":")
		for _, rule := range numbered.FindAllString(name, -1) {
			broken[rule]++
		}
	}
	return broken
}
