package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

func TestNamesOfClientModes(t *testing.T) {
	for want, m := range map[string]mode{
		"clients/n=64/empty":     mode{}.with(64, 1),
		"clients/n=64x8/empty":   mode{}.with(64, 8),
		"clients/n=4/2ms-70":     mode{inside: "2ms", busy: true}.with(4, 1),
		"quorum/n=16/2ms":        mode{inside: "2ms", nodes: majority}.with(16, 1),
		"quorum-own/g=16":        mode{nodes: majority}.own(16),
		"others/g=16":            mode{others: true}.own(16),
		"others/n=64/2ms-70":     mode{others: true, inside: "2ms", busy: true}.with(64, 1),
		"semaphore/n=16/2ms":     mode{kind: semaphore, inside: "2ms"}.with(16, 1),
		"rwlock-mixed/n=16/2ms":  mode{kind: readWrite, reads: 9, inside: "2ms"}.with(16, 1),
		"rwlock-lone/n=65/empty": mode{kind: readWrite, lone: true}.with(65, 1),
		"quorum-far/g=1":         mode{nodes: majority, trouble: far}.own(1),
		"quorum-dead/n=4/empty":  mode{nodes: majority, trouble: dead}.with(4, 1),
	} {
		if got := m.name(); got != want {
			t.Errorf("name() = %q, want %q", got, want)
		}
	}
}

func TestPausesLeaveTheLockTakenForItsShare(t *testing.T) {
	m := mode{inside: "2ms", busy: true}.with(64, 1)
	if share := 64 * float64(section) / float64(m.pause()+section); share < 0.69 || share > 0.71 {
		t.Errorf("a pause of %v makes the lock taken for %.2f of the time", m.pause(), share)
	}
	if p := (mode{inside: "2ms"}).with(64, 1).pause(); p != 0 {
		t.Errorf("where the lock is always wanted callers pause for %v", p)
	}
}

// A caller that pauses neither delays the end of its load nor counts its pause.
func TestALoadWithPauses(t *testing.T) {
	realtime.Test(t, "a load that ends within a second")
	m := mode{inside: "2ms", busy: true}.with(1000, 1)
	addr, rdb := testServer(t)
	tm := timing{warm: 10 * time.Millisecond, window: 200 * time.Millisecond, grace: time.Second}
	began := time.Now()
	res, err := round{contender: contenderOf(t, bound), mode: m, timing: tm, addr: addr, rdb: rdb}.run(t.Context())
	if err != nil || res.Pairs == 0 || res.Hung > 0 || res.Overlaps > 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if res.Pairs > 150 { // 2 ms each
		t.Errorf("%d pairs in %v", res.Pairs, tm.window)
	}
	if took := time.Since(began); took > time.Second+m.pause()/2 {
		t.Errorf("a load of %v took %v", tm.window, took)
	}
}

func TestTimingOfClientModes(t *testing.T) {
	tm := timing{warm: 250 * time.Millisecond, window: time.Second, grace: time.Second}
	for _, c := range []struct {
		mode mode
		want timing
	}{
		{mode{family: "one"}, tm},
		{mode{}.with(4, 1), timing{262 * time.Millisecond, 4 * time.Second, 1080 * time.Millisecond}},
		{mode{busy: true}.with(4, 1), timing{2 * time.Second, 4 * time.Second, 1080 * time.Millisecond}},
		{mode{busy: true}.with(1400, 1), timing{4998 * time.Millisecond, 4 * time.Second, 29 * time.Second}},
	} {
		if got := tm.of(c.mode); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.mode.name(), got, c.want)
		}
	}
}

func TestGrowth(t *testing.T) {
	r := report{Summaries: []summary{
		{Repeats: 1, Contender: ours, Mode: "clients/n=4/empty", PairsPerSec: spread{Median: 5000}, Commands: 19.3, UseP99: spread{Median: 600}, FairClient: 1},
		{Repeats: 1, Contender: ours, Mode: "clients/n=16/empty", PairsPerSec: spread{Median: 4000}, Commands: 19, UseP99: spread{Median: 3000}, FairClient: 0.98},
		{Repeats: 1, Contender: baseline, Mode: "clients/n=4/empty", PairsPerSec: spread{Median: 9000}, Commands: 12, UseP99: spread{Median: 2000}, FairClient: 0.3},
		{Repeats: 1, Still: 1, Contender: "redsync", Mode: "quorum-dead/n=16/empty", UseP99: spread{Median: 10000}, FairClient: 1},
		{Repeats: 1, Contender: ours, Mode: "quorum-own/g=1", PairsPerSec: spread{Median: 1}},
		{Repeats: 1, Contender: ours, Mode: "clients/n=4/2ms-70", PairsPerSec: spread{Median: 300}, Commands: 14, UseP99: spread{Median: 7000}, WaitP99: spread{Median: 5000}},
	}}
	var b strings.Builder
	r.growth(&b)
	for _, want := range []string{
		"Clients, empty:\n\n| clients | fencelock | rueidislock |\n|--:|---|---|\n",
		"| 4 | 5000; 19.3; 600 us; 1.00 | 9000; 12.0; 2.00 ms; 0.30 |\n| 16 | 4000; 19.0; 3.00 ms; 0.98 |  |\n",
		"| 16 | 0; -; 10 ms; - |\n",
		"Clients, 2ms-70:\n\n| clients | fencelock |\n|--:|---|\n| 4 | 300; 14.0; 5.00 ms; 0.00 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "Quorum-own") {
		t.Errorf("a mode of one client is in:\n%s", &b)
	}
}

func TestFilesAreNeeded(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	p := plan{modes: []mode{mode{}.with(4, 1), mode{}.with(1000, 1)}}
	if err := p.needFiles(); err != nil {
		t.Errorf("with a limit of %d: %v", was.Cur, err)
	}
	p.modes[1].clients = 1 << 40
	err := p.needFiles()
	if err == nil || !strings.Contains(err.Error(), "raise that with `ulimit -n ") {
		t.Errorf("of too many: %v", err)
	}
}
