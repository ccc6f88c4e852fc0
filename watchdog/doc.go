// Package watchdog renews leases and tells when one is over. It knows nothing of locks: a lease has a length, a
// deadline, and an owner. The watchdog asks the owner whether the lease is still wanted, and tells the owner when it is lost.
// Its exported names are for the other packages of this module: they are not promised, and may change in any version.
//
// # When a lease is trusted
//
// A lease is trusted until
//
//	sent + length - margin        margin = 1 ms + length/100
//
// where sent is a time before the command was sent whose answer confirmed the lease: the server starts to count later, so the
// server cannot have forgotten the lease before the trust ends. The time is counted on the monotonic clock, on the wall clock and,
// on Linux, on the clock that goes on through a suspend; whichever of them is over first counts. The margin covers a server clock
// that runs up to one percent faster than ours, and the rounding to milliseconds.
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
// Where the owner does not want the renewal (an explicit lease, a holder that is gone) the lease runs to its deadline.
//
// # Cost
//
// One goroutine serves all leases and ends when there are none. Leases are in buckets by the time when they are due. Most
// are removed before that time, so adding and removing is a list operation. Renewals travel in batches.
//
// # Many leases that were taken at the same moment
//
// Such leases are not renewed at the same moment. Where more are due in a tenth of a second than if all were spread evenly over
// the time between two renewals, the rest is renewed earlier, by up to half of that time, and stays there. Renewals are
// never put off, and after a few periods as many are due in each tenth of a second as in any other. Leases that were beside each
// other stay together.
//
// Leases whose renewals may travel in one command are of one slot. Two batches of a slot are under way at a time, more only where
// they take long; short leases go first. When many batches wait, as after an outage, there is a pause between two of them for the
// server's other clients, as long as all batches are under way within a quarter of the time that is left to the first deadline.
package watchdog
