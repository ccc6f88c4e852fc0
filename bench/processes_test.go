package main

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

func processMode() mode {
	all, _ := selected(modes(), mode.name, "processes")
	return all[0]
}

func contenderOf(t *testing.T, name string) contender {
	t.Helper()
	i := slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("no contender is called %q", name)
	}
	return contenders[i]
}

func TestProcessesAreOneLoad(t *testing.T) {
	realtime.Test(t, "a load of 60 ms by processes")
	addr, rdb := testServer(t)
	res, err := round{id: 7, contender: contenderOf(t, ours), mode: processMode(), timing: tiny, addr: addr, rdb: rdb}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if res.Pairs == 0 || res.PairsPerSec <= 0 || res.WaitMax <= 0 || res.ClientCPU <= 0 || res.Allocs <= 0 || res.Connections < 4 {
		t.Errorf("%+v", res)
	}
	if res.Overlaps+res.OutOfOrder+res.Errors != 0 || res.Hung != 0 || !res.Tokens {
		t.Errorf("%+v", res)
	}
}

// What one process does in a section, another one finds out.
func TestProcessesSeeEachOther(t *testing.T) {
	mine, err := createShared(2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.close(); _ = os.Remove(mine.file) }()
	theirs, err := openShared(mine.file, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = theirs.close() }()
	l := &load{keys: mine.keys, round: round{mode: mode{family: "one"}}}
	theirs.keys[1].inside.Add(1)
	theirs.keys[1].token.Store(5)
	l.section(t.Context(), &l.keys[1], 5, false)
	if l.overlaps.Load() != 1 || l.outOfOrder.Load() != 1 {
		t.Errorf("%d overlaps, %d out of order; want 1 and 1", l.overlaps.Load(), l.outOfOrder.Load())
	}
	l.section(t.Context(), &l.keys[0], 1, false)
	if l.overlaps.Load() != 1 || l.outOfOrder.Load() != 1 || theirs.keys[0].token.Load() != 1 {
		t.Errorf("the other key: %d overlaps, %d out of order", l.overlaps.Load(), l.outOfOrder.Load())
	}
}

func TestAWorkerSaysWhatIsWrong(t *testing.T) {
	r, err := startRemote("the worker", exec.Command(os.Args[0], workerFlag))
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	if _, err := r.enter(t.Context(), measuring); err == nil || !strings.Contains(err.Error(), `the worker, at "measure": no load was started`) {
		t.Errorf("measure: %v", err)
	}
	if _, err := r.ask(t.Context(), 0, "start", url.Values{"contender": {"x y&z"}}); err == nil || !strings.Contains(err.Error(), "x y&z") {
		t.Errorf("start: %v", err)
	}
}

func TestARemoteThatEndsOrIsSilent(t *testing.T) {
	r, err := startRemote("it", exec.Command("sh", "-c", "echo too bad >&2; read line"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	if _, err := r.ask(t.Context(), 0, "hello", nil); err == nil || !strings.Contains(err.Error(), "it ended") || !strings.Contains(err.Error(), "too bad") {
		t.Errorf("the error is %v", err)
	}
	silent, err := startRemote("it", exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := silent.ask(ctx, 0, "hello", nil); err != context.DeadlineExceeded {
		t.Errorf("the error is %v", err)
	}
}

func TestTalliesAddUp(t *testing.T) {
	var all tally
	all.add(tally{Pairs: []int{4, 2}, Clients: []int{0, 0}, Waits: []time.Duration{3000}, Overlaps: 1, Hung: 1})
	all.add(tally{Pairs: []int{3}, Clients: []int{1}, Waits: []time.Duration{1000, 2000}, Tokens: true, Stuck: 1, Errors: 2, FirstError: "x"})
	want := result{Pairs: 9, WaitP50: 2, WaitP99: 3, WaitMax: 3, FairGoroutine: 0.5, FairClient: 0.5,
		Overlaps: 1, Tokens: true, Hung: 1, Stuck: 1, Errors: 2, FirstError: "x"}
	if got := all.result(2); got.WaitP50 != want.WaitP50 || got.WaitMax != want.WaitMax || got.Pairs != want.Pairs ||
		got.FairGoroutine != want.FairGoroutine || got.FairClient != want.FairClient || got.Overlaps != 1 || !got.Tokens ||
		got.Hung != 1 || got.Stuck != 1 || got.Errors != 2 || got.FirstError != "x" {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
