package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// A test that hangs on the schedule fails under some, and under the same ones again.
func TestTestsUnderSchedules(t *testing.T) {
	set := settings{seed: 1, n: 32, jobs: 4, only: "*", packages: []string{"verify/sim/testdata/first"}}
	fails := func() []string {
		var out bytes.Buffer
		if err := runTests(t.Context(), set, &out, io.Discard); err != nil && !errors.Is(err, errViolated) {
			t.Fatal(err)
		}
		var found []string
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, "fails under schedule") {
				found = append(found, line)
			}
		}
		slices.Sort(found) // they end in any order
		if !strings.Contains(out.String(), "the first one was first") {
			t.Errorf("what the test says is missing:\n%s", out.String())
		}
		return found
	}
	found := fails()
	if len(found) == 0 || len(found) == set.n {
		t.Errorf("it fails under %d of %d schedules", len(found), set.n)
	}
	set.only = "NoSuchTest"
	if err := runTests(t.Context(), set, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), set.only) {
		t.Errorf("without such a test: %v", err)
	}
	set.only = "*"
	if again := fails(); !slices.Equal(found, again) {
		t.Errorf("it fails under %v, and then under %v", found, again)
	}
}
