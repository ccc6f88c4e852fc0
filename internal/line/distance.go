package line

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Distance is how long a command of this client and its answer are on their way, as the refused
// attempts have shown it. A client that is called needs so long to come: the call is half of a
// round trip under way, and the attempt the other half.
type Distance struct{ nanoseconds atomic.Int64 }

// Measured notes a round trip. The distance moves a quarter of the way to it: one answer that was
// late says little.
func (d *Distance) Measured(roundTrip time.Duration) {
	old := d.nanoseconds.Load()
	if old == 0 {
		old = int64(roundTrip)
	}
	d.nanoseconds.Store(max(old+(int64(roundTrip)-old)/4, 1))
}

// timeToCome is how long this client may take to come when it is called (P24).
func (d *Distance) timeToCome() time.Duration {
	return min(max(3*time.Duration(d.nanoseconds.Load()), CalledTimeout), maxCalledTimeout)
}

// Ticket returns the ticket of a stay in the line, made of a name of the client that it never uses
// again. A client that needs longer than CalledTimeout to come says so in the ticket, in
// milliseconds after the name: whoever watches this client reads it there.
func (d *Distance) Ticket(name string) string {
	if needs := d.timeToCome(); needs > CalledTimeout {
		name += ":" + strconv.FormatInt(needs.Milliseconds(), 10)
	}
	return name
}

// timeToComeOf is how long the client with this ticket may take to come when it is called.
func timeToComeOf(ticket string) time.Duration {
	_, number, _ := strings.Cut(ticket, ":")
	_, needs, _ := strings.Cut(number, ":")
	ms, _ := strconv.ParseInt(needs, 10, 32) // anything else than a number stands for no time
	return min(max(time.Duration(ms)*time.Millisecond, CalledTimeout), maxCalledTimeout)
}
