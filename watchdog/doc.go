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
// are removed before, so adding and removing is a list operation. Renewals travel in batches of up to a hundred.
package watchdog
