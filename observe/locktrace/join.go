package locktrace

// Join returns a trace that calls the functions of all these, in this order: one has the metrics, another one the spans, a third one
// the log. nil is left out. A later change of a trace does not change what Join has returned.
func Join(traces ...*Trace) *Trace {
	all := new(Trace)
	for _, t := range traces {
		if t == nil {
			continue
		}
		all.WaitStarted = both(all.WaitStarted, t.WaitStarted)
		all.AcquireDone = both(all.AcquireDone, t.AcquireDone)
		all.HoldDone = both(all.HoldDone, t.HoldDone)
		all.RenewalDone = both(all.RenewalDone, t.RenewalDone)
		all.SubscriptionChanged = both(all.SubscriptionChanged, t.SubscriptionChanged)
		all.ReleaseDelayed = both(all.ReleaseDelayed, t.ReleaseDelayed)
		all.ReleaseEnded = both(all.ReleaseEnded, t.ReleaseEnded)
		all.WriteRefused = both(all.WriteRefused, t.WriteRefused)
	}
	return all
}

// both calls the one and then the other; where one is nil it is the other.
func both[E any](one, other func(E)) func(E) {
	switch {
	case one == nil:
		return other
	case other == nil:
		return one
	}
	return func(e E) {
		one(e)
		other(e)
	}
}
