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
func TestSchedules(t *testing.T) {
	fails := func(args ...string) []string {
		var out bytes.Buffer
		if err := run(t.Context(), append(args, "verify/schedules/testdata/first"), &out, io.Discard); err != nil && !errors.Is(err, errFailed) {
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
	found := fails("-n", "32")
	if len(found) == 0 || len(found) == 32 {
		t.Errorf("it fails under %d of 32 schedules", len(found))
	}
	if again := fails("-n", "32"); !slices.Equal(found, again) {
		t.Errorf("it fails under %v, and then under %v", found, again)
	}
}

// What cannot be run is an error of its own.
func TestNothingToRun(t *testing.T) {
	for want, args := range map[string][]string{
		"at least 1":   {"-n", "0"},
		"no test":      {"-n", "1", "-run", "NoSuchTest", "verify/schedules/testdata/first"},
		"no such file": {"verify/schedules/testdata/none"},
	} {
		var out bytes.Buffer
		err := run(t.Context(), args, &out, io.Discard)
		if err == nil || errors.Is(err, errFailed) != (want == "no test") {
			t.Errorf("%v: %v", args, err)
		} else if !strings.Contains(err.Error()+out.String(), want) {
			t.Errorf("%v: %v, which does not say %q\n%s", args, err, want, out.String())
		}
	}
}
