package redistest_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

func TestSleeper(t *testing.T) {
	begun := time.Unix(1_000_000_000, 0)
	at := func(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }
	s := redistest.NewSleeper(begun)
	for _, ms := range []int{1, 2, 4, 15, 16, 37} { // of these the ones at 15 and at 37 come 10 and 20 too late
		s.Woke(at(ms))
	}
	for _, c := range []struct{ since, now, want int }{
		{0, 38, 30}, // what is a millisecond late or less does not count
		{14, 38, 21},
		{15, 38, 20},
		{30, 38, 7},
		{37, 38, 0},
		{37, 50, 12}, // and it sleeps still
		{45, 50, 5},
		{-1, 50, 0},
	} {
		if got := s.Late(at(c.since), at(c.now)); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("from %d to %d it is %v late, want %d ms", c.since, c.now, got, c.want)
		}
	}
	for ms := range 100_000 { // more than it keeps
		s.Woke(at(1000 + 10*ms))
	}
	if got := s.Late(at(500_000+1), at(1_000_991)); got < 100*time.Second || got > 500*time.Second {
		t.Errorf("it is %v late", got)
	}
}

// A machine that has something else to do is one on which goroutines wait.
func TestLate(t *testing.T) {
	began := time.Now()
	if redistest.Late(time.Now()) > time.Since(began) {
		t.Error("it is later than any time there was")
	}
	var over atomic.Bool
	for range 4 * runtime.GOMAXPROCS(0) {
		go func() {
			for !over.Load() {
			}
		}()
	}
	defer over.Store(true)
	redistest.Eventually(t, 10*bound, func() bool { return redistest.Late(began) > 50*time.Millisecond }, "goroutines wait")
	if d := redistest.Bound(began, time.Hour); d <= time.Hour || d > 21*time.Hour {
		t.Errorf("the bound of an hour has become %v", d)
	}
	synctest.Test(t, func(*testing.T) {
		begun := time.Now()
		time.Sleep(time.Hour)
		if late := redistest.Late(begun); late != 0 {
			t.Errorf("%v late in a bubble", late)
		}
	})
}

func TestAwait(t *testing.T) {
	ch := make(chan int, 1)
	ch <- 7
	if n := redistest.Await(t, 0, ch, "it comes"); n != 7 {
		t.Errorf("got %d", n)
	}
	errs := new(double).run(t, func(t testing.TB) { redistest.Await(t, time.Millisecond, ch, "it is %d", 7) })
	if len(errs) != 1 || errs[0] != realtime.Mark+"not within 1ms: it is 7" {
		t.Errorf("got %q", errs)
	}
}
