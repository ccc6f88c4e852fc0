package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// docs/operations.md tells the same steps as the program.
func TestStepsAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	locktest.NoError(t, err)
	for i, step := range steps {
		if line := fmt.Sprintf("\n%d. %s\n", i+1, step); !strings.Contains(string(page), line) {
			t.Errorf("docs/operations.md has no step %q", strings.TrimSpace(line))
		}
	}
}
