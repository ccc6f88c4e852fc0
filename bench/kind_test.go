package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

// A semaphore may let as many in as it has permits, and one that lets one more in is found out.
func TestASemaphoreThatLetsMoreInIsFoundOut(t *testing.T) {
	for _, let := range []int{permits, permits + 1} {
		inside := make(chan struct{}, let)
		res := runFake(t, mode{kind: semaphore, inside: "2ms"}.with(2*permits, 1), tiny, func(string) lockFunc {
			return func(context.Context) (int64, func() error, error) {
				inside <- struct{}{}
				return 0, func() error { <-inside; return nil }, nil
			}
		})
		if found := res.Overlaps > 0; res.Pairs == 0 || found != (let > permits) {
			t.Errorf("of %d permits %d are given: %d overlaps in %d pairs", permits, let, res.Overlaps, res.Pairs)
		}
	}
}

func TestASlotThatTwoHaveIsRefused(t *testing.T) {
	slot := t.Name()
	enter := func(token int64, wrong string) func() {
		t.Helper()
		leave, err := enterSlot(slot, token)
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("with token %d: %v, want %q", token, err, wrong)
		}
		return leave
	}
	first := enter(5, "")
	enter(6, "1 others inside")()
	first()
	enter(6, "token 6 after 6, and 0 others")()
	enter(7, "")()
}

// The report of a run of these modes says what they are compared with.
func TestTheReportOfKinds(t *testing.T) {
	var r report
	for _, m := range kindModes() {
		for _, c := range []string{ours, "redisson"} {
			r.Results = append(r.Results, result{Contender: c, Mode: m.name(), Repeat: 1, PairsPerSec: 1, WaitP99: 1})
		}
		r.Summaries = append(r.Summaries, summarize(r.Results, m)...)
	}
	text := r.markdown(nil)
	for want, has := range map[string]bool{
		"a multiple of redisson's.": true, "In the modes semaphore": true,
		"A semaphore of 5 permits, 64 goroutines, 64 clients in one process, 2 ms inside.": true,
		"A read-write lock, which 9 of 10 uses read, 4 goroutines":                         true, "which one caller writes and the others read, 65 goroutines": true,
		"In the modes others": false, "In the modes of many clients": false,
	} {
		if strings.Contains(text, want) != has {
			t.Errorf("it has %q: %v, want %v", want, !has, has)
		}
	}
}

// Holds that read may be inside at once and have the same token; beside one that writes nobody may be, and its token is its own.
func TestWhatMayBeInsideAReadWriteLock(t *testing.T) {
	for _, c := range []struct {
		inside                     int32 // readers
		before, token              int64
		reading, overlap, disorder bool
	}{
		{3, 5, 5, true, false, false},
		{3, 5, 4, true, false, true},
		{0, 5, 6, false, false, false},
		{0, 5, 5, false, false, true},
		{1, 5, 6, false, true, false},
		{mode{kind: readWrite}.room(), 5, 6, true, true, false}, // one writes
		{mode{kind: readWrite}.room(), 5, 6, false, true, false},
	} {
		l := &load{round: round{mode: mode{kind: readWrite, family: "one"}}}
		var key keyState
		key.inside.Store(c.inside)
		key.token.Store(c.before)
		l.section(t.Context(), &key, c.token, c.reading)
		if overlap, disorder := l.overlaps.Load() > 0, l.outOfOrder.Load() > 0; overlap != c.overlap || disorder != c.disorder || key.inside.Load() != c.inside {
			t.Errorf("%+v: overlap %v, out of order %v, %d inside", c, overlap, disorder, key.inside.Load())
		}
	}
}

// The times of a lone writer are the only ones, and all its readers read.
func TestALoneWriter(t *testing.T) {
	realtime.Test(t, "a load of 60 ms")
	var wrote, read atomic.Int32
	lock := func(count *atomic.Int32, takes time.Duration) lockFunc {
		return func(context.Context) (int64, func() error, error) {
			count.Add(1)
			time.Sleep(takes)
			return 0, func() error { return nil }, nil
		}
	}
	c := contender{name: "fake", kinds: map[string]dialFunc{readWrite: func(string) (*client, error) {
		return &client{
			lock: func(string) lockFunc { return lock(&wrote, 10*time.Millisecond) },
			read: func(string) lockFunc { return lock(&read, time.Millisecond) }, close: func() {},
		}, nil
	}}}
	addr, rdb := testServer(t)
	res, err := round{contender: c, mode: mode{kind: readWrite, lone: true}.with(4, 1), timing: tiny, addr: addr, rdb: rdb}.run(t.Context())
	if err != nil || res.WaitP50 < 10_000 || wrote.Load() == 0 || read.Load() < wrote.Load() {
		t.Errorf("%d wrote, %d read, waits of %v us, %v", wrote.Load(), read.Load(), res.WaitP50, err)
	}
}
