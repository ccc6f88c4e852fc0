package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of tests into RULES.md")

const (
	lastRule      = 55
	lastInvariant = 12
)

// Each rule of docs/protocol.md is listed in RULES.md with the tests and breaks that carry its number, and each has some.
func TestRulesAreListed(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	protocol, err := os.ReadFile(filepath.Join(root, "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("RULES.md")
	if err != nil {
		t.Fatal(err)
	}
	written, list, found := strings.Cut(string(text), "\n| rule | tests | breaks |\n")
	if !found {
		t.Fatal("RULES.md has no table of rules, tests and breaks")
	}
	tests, err := testsOfRules(root)
	if err != nil {
		t.Fatal(err)
	}
	breaks := breaksOfRules()
	var want strings.Builder
	want.WriteString("|---|---|--:|\n")
	for _, rule := range rules() {
		if !strings.Contains(string(protocol), "**"+strings.TrimPrefix(rule, "Inv")+"**") {
			t.Errorf("docs/protocol.md does not say what %s is", rule)
		}
		if rule == "P17" { // what is different in tests
			continue
		}
		if len(tests[rule]) == 0 {
			t.Errorf("no test carries the number of %s", rule)
		}
		fmt.Fprintf(&want, "| %s | %s | %d |\n", rule, names(tests[rule]), breaks[rule])
		delete(tests, rule)
		delete(breaks, rule)
	}
	for rule := range tests {
		t.Errorf("there are tests of %s, which is no rule", rule)
	}
	for rule := range breaks {
		t.Errorf("there are breaks of %s, which is no rule", rule)
	}
	if list == want.String() {
		return
	}
	if !*update {
		t.Errorf("the table in RULES.md is not what the code has: go test ./internal/test/mutants -run Rules -update")
		return
	}
	if err := os.WriteFile("RULES.md", []byte(written+"\n| rule | tests | breaks |\n"+want.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// rules are the names of all, in the order of the table.
func rules() []string {
	var all []string
	for i := range lastInvariant {
		all = append(all, fmt.Sprint("Inv", i+1))
	}
	for i := range lastRule {
		all = append(all, fmt.Sprint("P", i+1))
	}
	return all
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
			tests[rule][folder] = append(tests[rule][folder], name)
		}
		return nil
	})
	return tests, err
}

var numbered = regexp.MustCompile(`\b(?:P|Inv)\d+\b`)

// breaksOfRules are how many breaks name each rule.
func breaksOfRules() map[string]int {
	breaks := make(map[string]int)
	for _, m := range mutants {
		name, _, _ := strings.Cut(m.name, ":")
		for _, rule := range numbered.FindAllString(name, -1) {
			breaks[rule]++
		}
	}
	return breaks
}

func names(byFolder map[string][]string) string {
	var parts []string
	for _, folder := range slices.Sorted(maps.Keys(byFolder)) {
		slices.Sort(byFolder[folder])
		parts = append(parts, "`"+filepath.ToSlash(folder)+"`: "+strings.Join(byFolder[folder], ", "))
	}
	return strings.Join(parts, "; ")
}
