package engine

import (
	"fmt"
	"testing"

	"github.com/fencelock/fencelock/scripts"
)

// P38: of the locks that were released lately each is there once, and the newest one always.
func TestP38_LatelyReleased(t *testing.T) {
	l := new(lately)
	for i := range 100_000 {
		keys := scripts.KeysOf(fmt.Sprint("lock ", i))
		for range 2 {
			l.note(keys)
			n := 0
			for _, set := range l.locks {
				for _, have := range set {
					if have.keys == keys {
						n++
					}
				}
			}
			if n != 1 {
				t.Fatalf("%s is there %d times", keys.Lock, n)
			}
		}
		if i > 3*latelySets*latelyWays {
			break
		}
	}
}
