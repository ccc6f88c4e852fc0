package watchdog

import (
	"testing"
	"time"
	"unsafe"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A deadline has passed as soon as one of the clocks says so. The three are set apart by hand.
func TestDeadlineOnEachClock(t *testing.T) {
	now := Instant{at: time.Now(), boot: time.Hour}
	ahead := DeadlineOf(Instant{at: now.at.Add(time.Hour), boot: 2 * time.Hour}, time.Minute)
	with := func(change func(d *Deadline)) Deadline {
		d := ahead
		change(&d)
		return d
	}
	for what, c := range map[string]struct {
		d    Deadline
		want bool
	}{
		"in an hour":              {ahead, false},
		"monotonic clock":         {with(func(d *Deadline) { d.mono = now.at.Sub(start) }), true},
		"nearly, monotonic clock": {with(func(d *Deadline) { d.mono = now.at.Sub(start) + 1 }), false},
		"wall clock":              {with(func(d *Deadline) { d.wall = now.at.UnixNano() }), true},
		"nearly, wall clock":      {with(func(d *Deadline) { d.wall = now.at.UnixNano() + 1 }), false},
		"boot clock":              {with(func(d *Deadline) { d.boot = time.Hour }), true},
		"nearly, boot clock":      {with(func(d *Deadline) { d.boot = time.Hour + 1 }), false},
		"there is no boot clock":  {with(func(d *Deadline) { d.boot = 0 }), false},
	} {
		if got := c.d.passed(now); got != c.want {
			t.Errorf("%s: passed %v, want %v", what, got, c.want)
		}
	}
	for what, d := range map[string]Deadline{
		"monotonic": {mono: time.Since(start), wall: 1 << 62},
		"wall":      {mono: 1 << 62, wall: time.Now().UnixNano()},
		"boot":      {mono: 1 << 62, wall: 1 << 62, boot: 1},
	} {
		if bootClock() == 0 && d.boot != 0 {
			continue // no such clock here
		}
		if !d.Passed() {
			t.Errorf("%s clock: not passed", what)
		}
	}
}

func TestInstantAndDeadline(t *testing.T) {
	before := time.Now()
	sent := Now()
	if sent.Time().Before(before) || time.Now().Before(sent.Time()) {
		t.Error("Now is not now")
	}
	d := DeadlineOf(sent, 30*time.Second)
	trust := 30*time.Second - 301*time.Millisecond
	if got := d.Time().Sub(sent.Time()); got != trust {
		t.Errorf("trusted for %v", got)
	}
	if bootClock() != 0 && d.boot-sent.boot != trust {
		t.Errorf("trusted for %v on the boot clock", d.boot-sent.boot)
	}
	if d.Passed() {
		t.Error("passed at once")
	}
	if age := d.Age(); age < 0 || age > time.Since(before) {
		t.Errorf("its age is %v", age)
	}
	later := DeadlineOf(sent, 31*time.Second)
	if !later.After(d) || d.After(later) || d.After(d) {
		t.Error("After does not order deadlines")
	}
	if got := (&Lease{}); got.Passed() || got.Deadline() != (Deadline{}) {
		t.Error("a lease that was never added has a deadline")
	}
}

// The boot clock runs.
func TestBootClock(t *testing.T) {
	realtime.Test(t, "a sleep of 10 ms that takes less than 10 s")
	a := bootClock()
	if a == 0 {
		t.Log("there is none on this system")
		return
	}
	time.Sleep(10 * time.Millisecond)
	if d := bootClock() - a; d < 10*time.Millisecond || d > 10*time.Second {
		t.Errorf("10 ms were %v", d)
	}
}

// What the goroutine does when the wall clock was set forward: the leases that are over are found, though their buckets
// are not due by the count that no step moves.
func TestAfterAJumpOfTheWallClock(t *testing.T) {
	w := New(nil)
	over, fine := newOwner(0), newOwner(0)
	for _, o := range []*owner{over, fine} {
		o.kept = true
		w.count++
	}
	ahead := DeadlineOf(Now(), 30*time.Second)
	passed := ahead
	passed.wall = time.Now().UnixNano()
	over.deadline.Store(&passed)
	fine.deadline.Store(&ahead)
	w.leases.add(&over.Lease, 30_000)
	w.leases.add(&fine.Lease, 30_000)
	due := w.afterJump(nil)
	if len(due) != 1 || due[0] != &over.Lease {
		t.Fatalf("found %d leases", len(due))
	}
	lost, _ := w.tick(due, 0)
	if len(lost) != 1 || lost[0] != &over.Lease || w.count != 1 {
		t.Errorf("lost %d leases, %d are left", len(lost), w.count)
	}
	if left := w.leases.all(nil); len(left) != 1 || left[0] != &fine.Lease {
		t.Errorf("%d are left in the calendar", len(left))
	}
}

// What every hold carries is small, and what was renewed together shares its deadline.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Lease{}); n > 64 {
		t.Errorf("a lease has %d bytes", n)
	}
	if n := unsafe.Sizeof(Deadline{}); n > 32 {
		t.Errorf("a deadline has %d bytes", n)
	}
}

// In virtual time a lease does not end by the boot clock, which goes on as ever.
func TestTimeHasNoBootClock(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		d := DeadlineOf(Now(), 10*time.Millisecond)
		for real := bootClock(); real != 0 && bootClock()-real < 20*time.Millisecond; {
		}
		if d.Passed() {
			t.Error("passed, although no time has passed")
		}
	})
	if Now().boot == 0 && bootClock() != 0 {
		t.Error("the boot clock is left out after the bubble")
	}
}
