package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestStory(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
	}
	if !strings.Contains(out.String(), "\nok: ") {
		t.Errorf("no summary:\n%s", &out)
	}
}

func TestStoryOnAServerLeavesNothing(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-addr", addr}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
	}
	if left := redistest.Client(t, addr).Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("keys left behind: %q", left)
	}
}

// A store that does not look at the token must be found out, or the story proves nothing.
func TestStoryNeedsTheCheck(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"-unchecked"}, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "B's deposit is overwritten") {
		t.Errorf("exit code %d: %s\n%s", code, &errs, &out)
	}
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		args      []string
		code      int
		out, errs string
	}{
		{[]string{"-h"}, 0, "-addr localhost:6379", ""},
		{[]string{"-adr"}, 2, "", "see -h"},
		{[]string{"-slow", "0"}, 2, "", "use 1 to 1000"},
		{[]string{"localhost:6379"}, 2, "", "given with -addr"},
		{[]string{"-addr", "127.0.0.1:1"}, 1, "", "no Redis answers at 127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%q: exit code %d, output %q, errors %q", c.args, code, &out, &errs)
		}
	}
}
