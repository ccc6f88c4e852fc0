package lockmetrics

import "github.com/fencelock/fencelock/observe/locktrace"

// Begins tells whether the event is the begin of a hold, which HoldDone will end: a re-entry is none.
func Begins(e locktrace.AcquireDone) bool { return e.Err == nil && e.By != locktrace.Reentry }

// Ends is how many ends of a hold there are, for the attribute "outcome" of HoldDuration: those of locktrace, and "unknown".
const Ends = locktrace.Imported + 2

// EndOf is the end of this hold, below Ends.
func EndOf(e locktrace.HoldDone) locktrace.End { return min(e.End, Ends-1) }

// LostEnds are the ends of a hold that HoldLost counts: the lock was gone before its holder unlocked it. Closed is none of them: the
// process wanted it.
var LostEnds = []locktrace.End{locktrace.Lost, locktrace.Forced, locktrace.Dropped}

// Guards are the values of WriteRefused.Guard, each of which counts from zero.
var Guards = []string{"memory", "redis", "sql", "s3"}

// Margin is what RenewalMargin measures: from 0, too late, to 1; false where nothing was renewed.
func Margin(e locktrace.RenewalDone) (share float64, is bool) {
	if e.Lease <= 0 {
		return 0, false
	}
	return max(0, float64(e.Margin)/float64(e.Lease)), true
}
