package watchdog

import (
	"testing"
	"time"
)

// A deadline has passed as soon as one of the clocks says so. The three are set apart by hand.
func TestDeadlineOnEachClock(t *testing.T) {
	const hour = time.Hour
	real := time.Now()
	ahead := real.Add(hour)
	// a time whose wall clock says something else than its monotonic one cannot be made; one without the monotonic
	// reading is compared by the wall clock alone
	for what, c := range map[string]struct {
		d    Deadline
		want bool
	}{
		"in an hour":                       {Deadline{at: ahead}, false},
		"an hour ago":                      {Deadline{at: real.Add(-hour)}, true},
		"now":                              {Deadline{at: real}, true},
		"wall clock only, in an hour":      {Deadline{at: ahead.Round(0)}, false},
		"wall clock only, an hour ago":     {Deadline{at: real.Add(-hour).Round(0)}, true},
		"boot clock says so, no other":     {Deadline{at: ahead, boot: 1}, true},
		"boot clock has time left":         {Deadline{at: ahead, boot: bootClock() + hour}, false},
		"boot clock has time left, others": {Deadline{at: real.Add(-hour), boot: bootClock() + hour}, true},
	} {
		if bootClock() == 0 && c.d.boot != 0 {
			continue // no such clock here
		}
		if got := c.d.Passed(); got != c.want {
			t.Errorf("%s: passed %v, want %v", what, got, c.want)
		}
	}
}

func TestInstantAndDeadline(t *testing.T) {
	sent := Now()
	if time.Since(sent.Time()) > time.Second {
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
	if age := d.Age(); age < 0 || age > time.Second {
		t.Errorf("its age is %v", age)
	}
	later := DeadlineOf(sent, 31*time.Second)
	if !later.After(d) || d.After(later) || d.After(d) {
		t.Error("After does not order deadlines")
	}
	if got := (&Lease{}); got.Passed() || !got.Deadline().Time().IsZero() {
		t.Error("a lease that was never added has a deadline")
	}
}

// The boot clock runs.
func TestBootClock(t *testing.T) {
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
		o.length, o.kept = 30*time.Second, true
		w.count++
	}
	passed := Deadline{at: time.Now().Add(-time.Second).Round(0)} // on the wall clock
	ahead := Deadline{at: time.Now().Add(30 * time.Second)}
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
