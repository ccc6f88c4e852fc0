package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The workers of a test are the test program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerFlag {
		if err := work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A short round on real servers has a history, faults, and no violation.
func TestRound(t *testing.T) {
	realtime.Test(t, "a round of three seconds on real servers")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range scenarios {
		if sc.name != "pause" && sc.name != "restart" {
			continue
		}
		played, err := play(t.Context(), sc, 1, plan{program: program, load: 2 * time.Second, calm: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		v := judge(played)
		if len(v.Violations) > 0 {
			t.Errorf("%s: %v", sc.name, v.Violations)
		}
		if s := summarize(played, v); s.holds < 10 || s.faults == 0 {
			t.Errorf("%s: nothing much happened: %v", sc.name, s)
		}
	}
}

// A place in a line whose client is gone is gone when somebody has come to the lock; anything else that is left stays.
func TestComeToLocks(t *testing.T) {
	rdb := redistest.Real(t).Client()
	ctx := t.Context()
	for name, line := range map[string]string{"a": "fencelock_line:{a}", anySlot: "fencelock_line_of:" + anySlot} {
		rdb.ZAdd(ctx, line, redis.Z{Score: 1, Member: "gone:1"})
		there := onServer(ctx, rdb)
		names := linesOf(there)
		if len(names) != 1 || names[0] != name || len(there) != 1 {
			t.Fatalf("there are %q, lines of %q", there, names)
		}
		if left := comeToLocks(ctx, rdb, names); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	}
	rdb.HSet(ctx, "a", "other", 1)
	rdb.ZAdd(ctx, "fencelock_line:{b}", redis.Z{Score: 1, Member: "gone:1"})
	if left := comeToLocks(ctx, rdb, []string{"b"}); len(left) != 1 || left[0] != "key a" {
		t.Errorf("left: %q", left)
	}
}

// A round ends when what was looked for is seen.
func TestRoundThatHasShownEnough(t *testing.T) {
	realtime.Test(t, "a round on real servers")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sc, _ := scenarioCalled("calm")
	played, err := play(t.Context(), sc, 1, plan{program: program, load: time.Hour, calm: time.Hour, enough: func(t trial) bool { return len(t.Ops) > 100 }})
	if err != nil {
		t.Fatal(err)
	}
	if v := judge(played); len(played.Ops) <= 100 || len(v.Violations) > 0 {
		t.Errorf("after %d calls: %v", len(played.Ops), v.Violations)
	}
}

// The workers of a round that is given up are gone.
func TestRoundThatIsGivenUp(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := play(t.Context(), scenario{name: "x", args: []string{"--no-such-option", "1"}}, 1, plan{program: program, load: time.Second, calm: time.Second}); err == nil {
		t.Error("a server that cannot start is no error")
	}
}

// Every fault that a scenario names is there, and every scenario that a bug names.
func TestNames(t *testing.T) {
	for _, sc := range scenarios {
		if got, want := len(faultsCalled(sc.faults)), len(strings.Fields(sc.faults)); got != want {
			t.Errorf("%s: %d of its %d faults are there", sc.name, got, want)
		}
	}
	for _, b := range bugs {
		if _, ok := scenarioCalled(b.scenario); !ok {
			t.Errorf("%s: there is no scenario %q", b.Short, b.scenario)
		}
	}
}
