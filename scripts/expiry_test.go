package scripts

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Inv9: a client that enters the line marks the hold that has the lock (P36). Where the lease runs out in the middle of that script the
// mark must not stay: it would be a lock that never expires. The clock of Redis stands still in a script, that of miniredis goes on.
func TestInv9_AMarkOfAHoldThatRunsOutMeanwhile(t *testing.T) {
	rdb := redistest.New(t)
	s := New(rdb)
	for i := range time.Duration(200) {
		keys, began := newKeys(t), time.Now()
		a, err := s.Do(t.Context(), Acquire(keys, false, newField(), 2*time.Millisecond))
		if err != nil || !a.Held {
			t.Fatal(a, err)
		}
		for time.Since(began) < 1700*time.Microsecond+i%40*10*time.Microsecond { // no sleep is as exact
		}
		mine := newField()
		for {
			if a, err = s.Do(t.Context(), Acquire(keys, false, mine, time.Minute).InTurn(Turn{Ticket: "c:1"})); err != nil {
				t.Fatal(err)
			}
			if a.Held {
				break
			}
			if rdb.PTTL(t.Context(), keys.Lock).Val() == -1 {
				t.Fatalf("the lock has no expiry, and is %v", rdb.HGetAll(t.Context(), keys.Lock).Val())
			}
		}
	}
}
