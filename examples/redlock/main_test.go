package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestStory(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, true, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
	}
	for _, part := range []string{"\nok: ", "two holders", "B is refused"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("it does not say %q:\n%s", part, &out)
		}
	}
}

// Servers that claim to have been up for long after a restart must be found out, or the story proves nothing.
func TestStoryNeedsTheUptime(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), nil, false, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "while A has the lock, B is not refused") {
		t.Errorf("exit code %d: %s\n%s", code, &errs, &out)
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"-h"}, 0, "go run ./examples/redlock", ""},
		{[]string{"-adr"}, 2, "", "see -h"},
		{[]string{"localhost:6379"}, 2, "", "unexpected argument"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, true, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%q: exit code %d, %q, %q", c.args, code, &out, &errs)
		}
	}
}
