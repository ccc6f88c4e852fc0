package lockmetrics

import "strings"

// Kind is the kind of an instrument.
type Kind int

// The kinds of instruments.
const (
	Counter   Kind = iota // grows
	Gauge                 // grows and shrinks
	Histogram             // a distribution
	Observed              // a gauge that is measured when it is read, as Open does
)

// Instrument is one thing that is counted or measured.
type Instrument struct {
	Name        string // as OpenTelemetry writes it
	Kind        Kind
	Unit        string // as UCUM writes it: "s", "1", or what is counted, in braces
	Description string
	Bounds      []float64 // of a histogram's buckets
}

// The instruments. Their attributes are those of [Acquire], the words of locktrace.End as "outcome", "group" where locks are
// grouped, and of holds and waits the word of rlock.Lasting as "lasting".
var (
	AcquireDuration  = Instrument{"fencelock.acquire.duration", Histogram, "s", "Duration of the calls that acquire a lock, waits included.", seconds}
	HoldDuration     = Instrument{"fencelock.hold.duration", Histogram, "s", "Duration of the holds that have ended.", seconds}
	HoldActive       = Instrument{"fencelock.hold.active", Gauge, "{hold}", "Holds that have not ended.", nil}
	HoldOldest       = Instrument{"fencelock.hold.oldest", Observed, "s", "Age of the oldest hold that has not ended; 0 where there is none.", nil}
	HoldLost         = Instrument{"fencelock.hold.lost", Counter, "{hold}", "Holds that ended before their holder unlocked them.", nil}
	WaiterActive     = Instrument{"fencelock.waiter.active", Gauge, "{waiter}", "Calls that wait for other holders.", nil}
	WaiterOldest     = Instrument{"fencelock.waiter.oldest", Observed, "s", "For how long the call waits that has waited longest; 0 where none waits.", nil}
	RenewalMargin    = Instrument{"fencelock.renewal.margin", Histogram, "1", "Share of the lease that was left when a renewal was answered, of the lock that had the least.", []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9}}
	RenewalFailures  = Instrument{"fencelock.renewal.failures", Counter, "{renewal}", "Renewals that Redis did not confirm. They are tried again.", nil}
	ReleaseDelayed   = Instrument{"fencelock.release.delayed", Gauge, "{release}", "Releases that Redis has not confirmed, and that are sent again in the background.", nil}
	SubscriptionLost = Instrument{"fencelock.subscription.lost", Counter, "{subscription}", "Connections on which waiters listened that broke. Waiters poll until there is another one.", nil}
	WriteRefused     = Instrument{"fencelock.write.refused", Counter, "{write}", "Writes that a guard refused, because a newer token was shown before.", nil}
)

// All are the instruments.
var All = []Instrument{
	AcquireDuration, HoldDuration, HoldActive, HoldOldest, HoldLost, WaiterActive, WaiterOldest, RenewalMargin, RenewalFailures, ReleaseDelayed, SubscriptionLost, WriteRefused,
}

var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// Prometheus is the name that the instrument has in Prometheus: the one that the exporters of OpenTelemetry give it by default.
func (i Instrument) Prometheus() string {
	name := strings.ReplaceAll(i.Name, ".", "_")
	switch {
	case i.Unit == "s":
		name += "_seconds"
	case i.Kind == Counter:
		name += "_total"
	}
	return name
}
