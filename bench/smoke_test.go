package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// testServer starts a server for the test.
func testServer(t testing.TB) (addr string, rdb *redis.Client) {
	t.Helper()
	s, err := redisserver.StartApart()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	rdb = open(s.Addr())
	t.Cleanup(func() { _ = rdb.Close() })
	return s.Addr(), rdb
}

var tiny = timing{warm: 10 * time.Millisecond, window: 60 * time.Millisecond, grace: 5 * time.Second}

func TestEveryContenderInEveryFamily(t *testing.T) {
	addr, rdb := testServer(t)
	quorum, err := startNodes(majority)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(quorum.stop)
	id := 0
	for _, m := range []mode{
		{family: "own", goroutines: 8, clients: 1},
		{family: "one", goroutines: 8, clients: 4, inside: "get"},
		{family: "one", goroutines: 4, clients: 2, inside: "1ms"},
		{family: "hot", goroutines: 8, clients: 4},
		{family: "own", goroutines: 8, clients: 1, slow: true},
		mode{}.with(4, 1),
		mode{inside: "2ms"}.with(4, 8),
		mode{inside: "2ms", busy: true}.with(4, 1),
		mode{nodes: majority}.with(4, 1),
	} {
		for _, c := range contenders {
			if c.run != nil || !c.takesPart(m, true) {
				continue
			}
			t.Run(m.name()+"/"+c.name, func(t *testing.T) {
				id++
				tm := tiny
				if m.nodes > 0 {
					tm.window *= 10 // redsync tries again after up to 250 ms
				}
				res, err := round{id: id, contender: c, mode: m, timing: tm, addr: addr, rdb: rdb, nodes: quorum}.run(t.Context())
				for err == nil && res.Pairs == 0 && tm.window < 10*time.Second { // on a busy machine nothing may end within the window
					id++
					tm.window *= 4
					res, err = round{id: id, contender: c, mode: m, timing: tm, addr: addr, rdb: rdb, nodes: quorum}.run(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if res.Pairs == 0 || res.PairsPerSec <= 0 || res.WaitMax < res.WaitP99 || res.WaitP99 < res.WaitP50 || res.WaitP50 <= 0 {
					t.Errorf("%d pairs, %v/s, waits %v, %v, %v", res.Pairs, res.PairsPerSec, res.WaitP50, res.WaitP99, res.WaitMax)
				}
				if res.UseP50 <= 0 || res.UseP99 < res.UseP50 {
					t.Errorf("uses %v, %v", res.UseP50, res.UseP99)
				}
				if asks := c.name != bound; asks && (res.Commands < 1 || res.Connections < 1) || res.ClientCPU <= 0 || res.Allocs <= 0 {
					t.Errorf("commands %v, connections %d, client CPU %v, allocs %v", res.Commands, res.Connections, res.ClientCPU, res.Allocs)
				}
				if res.Overlaps > 0 || res.OutOfOrder > 0 || res.Errors > 0 {
					t.Errorf("%+v", res)
				}
				if strings.HasPrefix(c.name, "fencelock") && res.Hung > 0 { // of others it is known to happen
					t.Errorf("%d waiters hang", res.Hung)
				}
				if wantTokens := c.name == ours || strings.HasPrefix(c.name, "scripts"); res.Tokens != wantTokens {
					t.Errorf("has tokens: %v", res.Tokens)
				}
			})
		}
	}
}

// fake is a contender whose locks are in this process.
func fake(lock func(key string) lockFunc) contender {
	return contender{name: "fake", dial: func(string) (*client, error) {
		return &client{lock: lock, close: func() {}}, nil
	}}
}

func runFake(t *testing.T, m mode, tm timing, lock func(key string) lockFunc) result {
	t.Helper()
	addr, rdb := testServer(t)
	res, err := round{contender: fake(lock), mode: m, timing: tm, addr: addr, rdb: rdb}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestHungWaitersAreReportedAndLeftBehind(t *testing.T) {
	var mu sync.Mutex
	began := 0
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	brief := timing{warm: time.Millisecond, window: 50 * time.Millisecond, grace: 100 * time.Millisecond}
	res := runFake(t, mode{family: "own", goroutines: 5, clients: 1}, brief, func(string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			mu.Lock()
			began++
			n := began
			mu.Unlock()
			switch n {
			case 1: // comes back only when it is cancelled
				<-ctx.Done()
				return 0, nil, ctx.Err()
			case 2: // not even then
				<-forever
				return 0, nil, errors.New("too late")
			}
			return 0, func() error { return nil }, nil
		}
	})
	if res.Hung != 2 || res.Stuck != 1 || res.Errors != 0 {
		t.Errorf("%d hung, %d stuck, %d errors; want 2, 1, 0", res.Hung, res.Stuck, res.Errors)
	}
	if want := micros(brief.window + brief.grace); res.WaitMax < want {
		t.Errorf("the longest wait is %v us, the hung ones waited at least %v", res.WaitMax, want)
	}
	if res.FairGoroutine != 0 {
		t.Errorf("fairness %v with a goroutine that got nothing", res.FairGoroutine)
	}
}

func TestALockThatDoesNotLockIsFoundOut(t *testing.T) {
	res := runFake(t, mode{family: "one", goroutines: 4, clients: 2, inside: "1ms"}, tiny, func(string) lockFunc {
		return func(context.Context) (int64, func() error, error) { return 7, func() error { return nil }, nil }
	})
	if res.Overlaps == 0 || res.OutOfOrder == 0 {
		t.Errorf("%d overlaps, %d tokens out of order; want some of both", res.Overlaps, res.OutOfOrder)
	}
	if !strings.Contains(res.trouble(), "overlaps") {
		t.Errorf("trouble() = %q", res.trouble())
	}
}

func TestErrorsAreCounted(t *testing.T) {
	res := runFake(t, mode{family: "own", goroutines: 2, clients: 1}, tiny, func(string) lockFunc {
		return func(context.Context) (int64, func() error, error) { return 0, nil, errors.New("no lock today") }
	})
	if res.Pairs != 0 || res.Errors == 0 || res.FirstError != "no lock today" || res.Hung != 0 {
		t.Errorf("%+v", res)
	}
}

func TestAContenderMayBeAnotherProgram(t *testing.T) {
	_, rdb := testServer(t)
	outside := contender{name: "outside", run: func(context.Context, round) (result, error) {
		return result{PairsPerSec: 42}, nil
	}}
	res, err := round{contender: outside, mode: mode{family: "own", goroutines: 1, clients: 1}, repeat: 3, rdb: rdb}.run(t.Context())
	if err != nil || res.PairsPerSec != 42 || res.Contender != "outside" || res.Repeat != 3 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestTheWholeProgram(t *testing.T) {
	dir := t.TempDir()
	var progress bytes.Buffer
	args := []string{"-only", "fencelock,rueidislock", "-modes", "own/g=64,one/g=4/empty", "-seconds", "0.05", "-repeats", "2", "-grace", "2", "-out", dir}
	if err := run(t.Context(), args, os.Stdout, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Results) != 8 || len(r.Summaries) != 4 {
		t.Errorf("%d results, %d summaries, %v; want 8 and 4", len(r.Results), len(r.Summaries), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## own/g=64", "## one/g=4/empty", "| rueidislock | ", "1.00 (1.00-1.00)", "own-rate.svg", "one-p99.svg",
		"## To reach", "| not measured |", "there is no held.json"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("results.md has no %q", want)
		}
	}
	if strings.Contains(string(text), dir) {
		t.Error("results.md tells where it was written")
	}
	for _, plot := range []string{"own-rate.svg", "one-rate.svg", "one-p99.svg"} {
		if svg, err := os.ReadFile(filepath.Join(dir, plot)); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
			t.Errorf("%s: %v", plot, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, heldFile), []byte(`[{"what":"a row from elsewhere"}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-render", "-out", dir}, os.Stdout, &progress); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil || !strings.Contains(string(again), "| a row from elsewhere |") {
		t.Errorf("written again without the row of %s: %v", heldFile, err)
	}
	if before, after := tables(string(text)), tables(string(again)); before != after {
		t.Errorf("what was measured changed from %s to %s", before, after)
	}
	if !strings.Contains(progress.String(), "8/8") {
		t.Errorf("the progress is %s", &progress)
	}
}

// tables is what follows the table of targets.
func tables(text string) string {
	_, tables, _ := strings.Cut(text, "## How to read it")
	return tables
}
