package engine

import (
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A distance is how long a command of this client and its answer are on their way, as the refused attempts have shown it. A client that is
// called needs so long to come: the call is half of a round trip under way, and the attempt the other half.
type distance struct{ nanoseconds atomic.Int64 }

// measured notes a round trip. The distance moves a quarter of the way to it: one answer that was late says little.
func (d *distance) measured(roundTrip time.Duration) {
	old := d.nanoseconds.Load()
	if old == 0 {
		old = int64(roundTrip)
	}
	d.nanoseconds.Store(max(old+(int64(roundTrip)-old)/4, 1))
}

// timeToCome is how long this client may take to come when it is called (P24).
func (d *distance) timeToCome() time.Duration {
	return min(max(3*time.Duration(d.nanoseconds.Load()), calledTimeout), maxCalledTimeout)
}

// newTicket returns a ticket for one stay in the line. A client that needs longer than calledTimeout to come says so in the ticket, in
// milliseconds after the number: whoever watches this client reads it there.
func (c *Client) newTicket() string {
	ticket := c.newField()
	if needs := c.distance.timeToCome(); needs > calledTimeout {
		ticket += ":" + strconv.FormatInt(needs.Milliseconds(), 10)
	}
	return ticket
}

// timeToComeOf is how long the client with this ticket may take to come when it is called.
func timeToComeOf(ticket string) time.Duration {
	_, number, _ := strings.Cut(ticket, ":")
	_, needs, _ := strings.Cut(number, ":")
	ms, _ := strconv.ParseInt(needs, 10, 32) // anything else than a number stands for no time
	return min(max(time.Duration(ms)*time.Millisecond, calledTimeout), maxCalledTimeout)
}
