package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/protocol.md says what each rule is, and each has tests that carry its number. No test and no break is of a rule that is not there.
func TestRulesHaveTests(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	protocol, err := os.ReadFile(filepath.Join(root, "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := testsOfRules(root)
	if err != nil {
		t.Fatal(err)
	}
	broken := breaksOfRules()
	for _, rule := range rules() {
		if !strings.Contains(string(protocol), "**"+strings.TrimPrefix(rule, "Inv")+"**") {
			t.Errorf("docs/protocol.md does not say what %s is", rule)
		}
		if len(tests[rule]) == 0 {
			t.Errorf("no test carries the number of %s", rule)
		}
		if broken[rule] == 0 {
			t.Errorf("no break is of %s", rule)
		}
		delete(tests, rule)
		delete(broken, rule)
	}
	for rule := range tests {
		t.Errorf("there are tests of %s, which is no rule", rule)
	}
	for rule := range broken {
		t.Errorf("there are breaks of %s, which is no rule", rule)
	}
}
