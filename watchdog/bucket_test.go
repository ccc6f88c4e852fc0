package watchdog

import (
	"testing"
	"time"
)

// Buckets that have become empty go when there are more of them than twice the leases and a thousand, and not sooner. What has leases
// stays.
func TestEmptyBuckets(t *testing.T) {
	short := DeadlineOf(Now(), time.Second/2) // whose buckets are a millisecond wide
	for _, leases := range []int{0, 1, 600} {
		var c calendar
		for range leases {
			l := new(Lease)
			l.deadline.Store(&short)
			c.add(l, 5)
		}
		kept, most, pruned := len(c.order), 0, 0
		l := new(Lease)
		l.deadline.Store(&short)
		for at := int64(1000); at < 6000; at++ {
			before := len(c.order)
			c.add(l, at)
			c.remove(l)
			if most = max(most, before); len(c.order) <= before {
				pruned++
				if len(c.order) != kept+1 || len(c.buckets) != kept+1 {
					t.Fatalf("%d leases: %d buckets are left, in the order %d, want %d", leases, len(c.buckets), len(c.order), kept+1)
				}
			}
		}
		if want := 2*leases + 1001; most != want || pruned == 0 {
			t.Errorf("%d leases: %d buckets at most, want %d", leases, most, want)
		}
		if got := len(c.take(10_000, 10_000, nil)); got != leases || c.size != 0 {
			t.Errorf("%d of %d leases are taken, the calendar has %d", got, leases, c.size)
		}
	}
}

// Long leases share buckets of a tenth of a second; a bucket begins before or at the time that its leases are due.
func TestRound(t *testing.T) {
	for _, c := range []struct {
		length    time.Duration
		due, want int64
	}{
		{length: time.Second - 1, due: 12_345, want: 12_345},
		{length: time.Second, due: 12_345, want: 12_300},
		{length: time.Hour, due: 12_300, want: 12_300},
		{length: time.Hour, due: 12_399, want: 12_300},
	} {
		var l Lease
		d := DeadlineOf(Now(), c.length)
		l.deadline.Store(&d)
		if got := l.round(c.due); got != c.want {
			t.Errorf("a lease of %v that is due at %d is in the bucket of %d, want %d", c.length, c.due, got, c.want)
		}
	}
}
