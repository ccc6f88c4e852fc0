package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// started are the servers of a quorum that all tests share, because they count only when they are old.
var started = sync.OnceValues(func() (*nodes, error) { return startNodes(majority) })

func testNodes(t *testing.T) *nodes {
	t.Helper()
	n, err := started()
	if err != nil {
		t.Fatal(err)
	}
	usesNodes = true
	return n
}

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
	realtime.Test(t, "loads of 60 ms, which end within seconds")
	addr, rdb := testServer(t)
	quorum := testNodes(t)
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
		mode{kind: semaphore}.with(8, 1),
		mode{kind: semaphore, inside: "2ms"}.with(8, 1),
		mode{kind: readWrite, reads: 10}.with(8, 1),
		mode{kind: readWrite, reads: 9, inside: "2ms"}.with(8, 1),
		mode{kind: readWrite, lone: true}.with(8, 1),
		mode{nodes: majority}.with(4, 1),
		mode{nodes: majority}.own(8),
		mode{nodes: majority, trouble: far}.own(1),
		mode{nodes: majority, trouble: dead}.with(4, 1),
	} {
		for _, c := range contenders {
			if c.run != nil || !c.takesPart(m, true) {
				continue
			}
			t.Run(m.name()+"/"+c.name, func(t *testing.T) {
				id++
				tm := tiny
				if m.nodes > 0 && m.family == "one" {
					tm.window *= 10 // redsync tries again after up to 250 ms
				}
				still := m.trouble == dead && strings.HasPrefix(c.name, "redsync") // it waits for the server that does not answer
				if still {
					tm.grace = 100 * time.Millisecond
				}
				began := time.Now()
				res, err := round{id: id, contender: c, mode: m, timing: tm, addr: addr, rdb: rdb, nodes: quorum}.run(t.Context())
				for err == nil && res.Pairs == 0 && !still && tm.window < 10*time.Second { // on a busy machine nothing may end within the window
					id++
					tm.window *= 4
					res, err = round{id: id, contender: c, mode: m, timing: tm, addr: addr, rdb: rdb, nodes: quorum}.run(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				if took, most := time.Since(began), tm.window+10*time.Second; still && took > most {
					t.Errorf("the round took %v, want %v or less", took, most)
				}
				if still && res.Pairs == 0 {
					if res.trouble() == "" {
						t.Error("nothing is said of a round that stands still")
					}
					return
				}
				if res.Pairs == 0 || res.PairsPerSec <= 0 || res.WaitMax < res.WaitP99 || res.WaitP99 < res.WaitP50 || res.WaitP50 <= 0 {
					t.Errorf("%d pairs, %v/s, waits %v, %v, %v", res.Pairs, res.PairsPerSec, res.WaitP50, res.WaitP99, res.WaitMax)
				}
				if res.UseP50 <= 0 || res.UseP99 < res.UseP50 {
					t.Errorf("uses %v, %v", res.UseP50, res.UseP99)
				}
				if asks := c.name != bound; asks && (res.Commands < 1 || res.Messages <= 0 || res.Connections < 1) || res.ClientCPU <= 0 || res.Allocs <= 0 {
					t.Errorf("commands %v, messages %v, connections %d, client CPU %v, allocs %v", res.Commands, res.Messages, res.Connections, res.ClientCPU, res.Allocs)
				}
				if res.Overlaps > 0 || res.OutOfOrder > 0 || res.Errors > 0 {
					t.Errorf("%+v", res)
				}
				if strings.HasPrefix(c.name, "fencelock") && res.Hung > 0 { // of others it is known to happen
					t.Errorf("%d waiters hang", res.Hung)
				}
				if wantTokens := m.kind != semaphore && (c.name == ours || c.name == "fencelock-local"); res.Tokens != wantTokens {
					t.Errorf("has tokens: %v", res.Tokens)
				}
			})
		}
	}
}

// The clients of a lock listen to its home alone: of a lock of a mode with trouble to the server that is in trouble.
func TestTheServerInTroubleIsTheHome(t *testing.T) {
	realtime.Test(t, "a subscription within 10 s")
	quorum := testNodes(t)
	quorum.awaitOld(t.Context())
	for id := range 4 {
		r := round{id: id, contender: contenderOf(t, ours), mode: mode{nodes: majority, trouble: far}.own(1), nodes: quorum, addrs: quorum.addrs()}
		key := r.mode.keys(r.prefix())[0]
		holder, waiter := dialed(t, r), dialed(t, r)
		_, unlock, err := holder.lock(key)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() {
			_, unlock, err := waiter.lock(key)(t.Context())
			if err == nil {
				err = unlock()
			}
			waited <- err
		}()
		var listen []int
		for begin := time.Now(); len(listen) == 0 && time.Since(begin) < 10*time.Second; sleep(t.Context(), time.Millisecond) {
			for i, rdb := range quorum.rdbs {
				if channels, err := rdb.PubSubChannels(t.Context(), "*"+key+"*").Result(); err == nil && len(channels) > 0 {
					listen = append(listen, i)
				}
			}
		}
		if !slices.Equal(listen, []int{0}) {
			t.Errorf("clients of %s listen to the servers %v, want 0", key, listen)
		}
		if err := errors.Join(unlock(), <-waited); err != nil {
			t.Fatal(err)
		}
	}
}

func dialed(t *testing.T, r round) *client {
	t.Helper()
	c, err := r.dial()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// fake is a contender whose locks are in this process.
func fake(lock func(key string) lockFunc) contender {
	dial := func(string) (*client, error) {
		return &client{lock: lock, close: func() {}}, nil
	}
	return contender{name: "fake", dial: dial, kinds: map[string]dialFunc{semaphore: dial}}
}

func runFake(t *testing.T, m mode, tm timing, lock func(key string) lockFunc) result {
	t.Helper()
	realtime.Test(t, "a load of 60 ms")
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
	realtime.Test(t, "loads of 50 ms by the whole program")
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
	for _, want := range []string{"## own/g=64", "## one/g=4/empty", "| rueidislock | ", "1.00 (1.00-1.00)", "own-rate.svg", "one-p99.svg"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("results.md has no %q", want)
		}
	}
	if _, err := os.Stat("/proc/stat"); strings.Contains(string(text), "while other programs took ") != (err == nil) {
		t.Errorf("what other programs took is wrong in %s", text)
	}
	if strings.Contains(string(text), dir) {
		t.Error("results.md tells where it was written")
	}
	for _, plot := range []string{"own-rate.svg", "one-rate.svg", "one-p99.svg"} {
		if svg, err := os.ReadFile(filepath.Join(dir, plot)); err != nil || !bytes.Contains(svg, []byte("</svg>")) {
			t.Errorf("%s: %v", plot, err)
		}
	}
	if err := run(t.Context(), []string{"-render", "-out", dir}, os.Stdout, &progress); err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("written again as %s, %v; want %s", again, err, text)
	}
	if !strings.Contains(progress.String(), "8/8") {
		t.Errorf("the progress is %s", &progress)
	}
}
