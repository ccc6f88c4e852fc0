package main

import (
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
