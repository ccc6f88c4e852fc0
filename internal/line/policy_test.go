package line

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

func TestYieldPolicy(t *testing.T) {
	var y yieldPolicy
	now := time.Now()
	for range maxUnusedYields {
		y.ended(now, false)
		if !y.allows(now) {
			t.Fatal("some yields for nothing are allowed")
		}
	}
	var last time.Duration
	for range 20 { // each further one is followed by a longer time without
		y.ended(now, false)
		pause := y.after.Sub(now)
		if pause < last || pause > maxNoYield || y.allows(now.Add(pause-1)) || !y.allows(now.Add(pause)) {
			t.Fatalf("%v without a yield after %v", pause, last)
		}
		now, last = now.Add(pause), pause
	}
	if last != maxNoYield {
		t.Errorf("at most %v without a yield, want %v", last, maxNoYield)
	}
	y.ended(now, true)
	y.ended(now, false)
	if !y.allows(now) {
		t.Error("a yield that was used is not forgotten")
	}
}

// P27: the pauses without a yield begin with a tenth of a second, and double up to a second.
func TestP27_PausesWithoutAYield(t *testing.T) {
	for _, c := range []struct {
		unused int // yields in a row, so many more than are forgiven
		want   time.Duration
	}{
		{unused: 1, want: 100 * time.Millisecond},
		{unused: 2, want: 200 * time.Millisecond},
		{unused: 4, want: 800 * time.Millisecond},
		{unused: 5, want: maxNoYield},
		{unused: 100, want: maxNoYield},
	} {
		var y yieldPolicy
		now := time.Now()
		for range maxUnusedYields + c.unused {
			y.ended(now, false)
		}
		if got := y.after.Sub(now); got != c.want {
			t.Errorf("%d more: %v, want %v", c.unused, got, c.want)
		}
	}
}

func TestLookPolicy(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	for _, c := range []struct {
		what   string
		policy lookPolicy
		ttl    time.Duration
		before int
		want   time.Duration
	}{
		{"a lock that does not expire", lookPolicy{poll: s}, scripts.NoExpiry, 0, s},
		{"the first, before it listens", lookPolicy{poll: s, firstFor: 5 * ms}, 30 * s, 0, 15 * ms},
		{"the first, late to listen", lookPolicy{poll: s, firstFor: 50 * ms}, 30 * s, 0, 0},
		{"the first, which listens", lookPolicy{poll: s, listens: true}, 30 * s, 0, s},
		{"the first, at the end of a lease", lookPolicy{poll: s, listens: true}, 300 * ms, 0, 301 * ms},
		{"the first, after looks in vain", lookPolicy{poll: s, listens: true, quiet: 2}, 30 * s, 0, 4 * s},
		{"the first, after many", lookPolicy{poll: s, listens: true, quiet: 9}, 30 * s, 0, 10 * s},
		{"the first, after more than can be doubled", lookPolicy{poll: s, listens: true, quiet: 100}, 30 * s, 0, 10 * s},
		{"the second, before it listens", lookPolicy{poll: s, secondFor: 100 * ms}, 30 * s, 1, 200 * ms},
		{"the second, late to listen", lookPolicy{poll: s, secondFor: 400 * ms}, 30 * s, 1, 0},
		{"the second, at the end of a lease", lookPolicy{poll: s}, 50 * ms, 1, 150 * ms},
		{"the second, which listens", lookPolicy{poll: s, listens: true}, 30 * s, 1, 10 * s},
		{"the second, which listens, at the end of a lease", lookPolicy{poll: s, listens: true}, 50 * ms, 1, 150 * ms},
		{"others, the first time", lookPolicy{poll: s}, 30 * s, 5, s},
		{"others, who have waited for long", lookPolicy{poll: s, lastStay: 3 * s}, 30 * s, 5, 6 * s},
		{"others, who have waited for very long", lookPolicy{poll: s, lastStay: time.Minute}, 30 * s, 5, 10 * s},
		{"others, after looks in vain", lookPolicy{poll: s, quiet: 3}, 30 * s, 5, 8 * s},
	} {
		if got := c.policy.next(c.ttl, c.before); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
