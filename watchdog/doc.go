// Package watchdog keeps leases alive and tells when one is over. It knows nothing of locks: a lease has a length, a
// deadline, and an owner who is asked whether it is still wanted and told when it is lost.
//
// # When a lease is trusted
//
// A lease is trusted until
//
//	sent + length - margin        margin = 1 ms + length/100
//
// where sent is the time before the command was sent whose answer confirmed it: the server starts to count later, so
// it cannot have forgotten the lease before. This is counted on the monotonic clock, on the wall clock and, on Linux,
// on the clock that goes on through a suspend; whichever is over first counts. The margin covers a server clock that
// runs up to one percent faster than ours, and the rounding to milliseconds.
//
// # States of a lease
//
//	        Add                      a third gone: Owner.Renewal?
//	─────────────────▶ trusted ──────────────────────────────────────────▶ renewing
//	                      ▲   ▲      yes                                    │  │  │
//	                      │   └──────────── renewed: new deadline ──────────┘  │  │
//	                      └──────────────── an error: again after length/30 ───┘  │
//	                                                                              │ gone
//	Remove: forgotten    deadline passed: Owner.Lost(ErrExpired)    Owner.Lost(ErrGone) ◀┘
//
// An owner who does not want the renewal (an explicit lease, a holder that is gone) lets the lease run to its deadline.
//
// # Cost
//
// One goroutine serves all leases and ends when there are none. Leases stand in buckets by the time they are due; most
// are removed before, so adding and removing is a list operation. Renewals travel in batches.
//
// # Many leases that were taken at the same moment
//
// They are not renewed at the same moment. Where more are due in a tenth of a second than if all were spread evenly over
// the time between two renewals, the rest is renewed earlier, by up to half of that time, and stays there: renewals are
// never put off, and after a few periods as many are due in each tenth of a second. Those that stood beside each other stay
// together. Of one slot two batches are under way at a time, more only where they take long. When many are behind, as
// after an outage, there is a breath between two batches for what others ask of the server, as long as all of them are
// under way within a quarter of the time that is left to the first deadline; short leases go first.
package watchdog
