package engine

import (
	"testing"
	"time"
)

// P3: the release of what may have been taken with a long lease is sent again ever more rarely, and often enough that what arrives late stays
// for no longer than about as long again as it was late.
func TestP3_ReleasesOfALongLeaseGrowRare(t *testing.T) {
	const lease = 24 * time.Hour
	r := &release{lease: lease}
	sent := 0
	for at := r.after(0); at < lease; {
		sent++
		next := r.after(sent)
		if at > time.Minute && next > at+time.Minute {
			t.Errorf("after %v the next one is sent %v later", at, next)
		}
		at += next
	}
	if sent > 20 {
		t.Errorf("%d releases within a lease of %v", sent, lease)
	}
}
