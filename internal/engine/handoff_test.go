package engine

import (
	"testing"
	"time"
)

func TestHandoffRun(t *testing.T) {
	for _, c := range []struct {
		what      string
		age       time.Duration
		outsiders bool
		want      int
	}{
		{"a short run", 0, false, 32},
		{"as long as may be", maxRun, false, 32},
		{"too long", maxRun + 1, false, 0},
		{"beside outsiders", 0, true, runBesideOutsiders},
	} {
		var r handoffRun
		n := 0
		for range 100 {
			if r.next(c.age, 32, c.outsiders) {
				n++
			}
		}
		if n != c.want {
			t.Errorf("%s: %d handoffs, want %d", c.what, n, c.want)
		}
	}
}
