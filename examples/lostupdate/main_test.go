package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestGuardedIsExact(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, newAccount, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
	}
	if !strings.Contains(out.String(), "\nok: stale tokens refused: ") {
		t.Errorf("no summary:\n%s", &out)
	}
}

func TestOnAServerLeavesNothing(t *testing.T) {
	addr := redistest.Start(t)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-addr", addr}, newAccount, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &errs, &out)
	}
	if left := redistest.Client(t, addr).Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("keys left behind: %q", left)
	}
}

// An account without a guard must be found out: the lock alone is not enough.
func TestLockAloneIsNotEnough(t *testing.T) {
	unchecked := func(bool) *account { return newAccount(false) }
	var out, errs bytes.Buffer
	code := run(t.Context(), nil, unchecked, &out, &errs)
	if code != 1 || !strings.Contains(errs.String(), "fenced lock, guard: the balance is 40, not 120") {
		t.Errorf("exit code %d: %s\n%s", code, &errs, &out)
	}
}

// And where nobody is refused for being late, the program is not what it says.
func TestEveryAccountGuarded(t *testing.T) {
	guarded := func(bool) *account { return newAccount(true) }
	var out, errs bytes.Buffer
	if code := run(t.Context(), nil, guarded, &out, &errs); code != 1 {
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
		{[]string{"localhost:6379"}, 2, "", "given with -addr"},
		{[]string{"-addr", "127.0.0.1:1"}, 1, "", "no Redis answers at 127.0.0.1:1"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), c.args, newAccount, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
			t.Errorf("%q: exit code %d, output %q, errors %q", c.args, code, &out, &errs)
		}
	}
}
