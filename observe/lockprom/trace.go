package lockprom

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// group has the metrics of one group of locks, or of its holds with a word of rlock.Lasting, so that none is looked up by its labels when an event comes. A series of a histogram,
// with all its buckets, is made when it is first needed.
type group struct {
	acquires        []func() prometheus.Observer // by lockmetrics.Acquire
	holds           []func() prometheus.Observer // by locktrace.End
	active, waiters prometheus.Gauge
	lost            map[locktrace.End]prometheus.Counter
	labels          []string // of the group, and of its part
	openHolds       lockmetrics.Open[uint64]
	openWaits       lockmetrics.Open[time.Time]
}

func (c *Collector) newGroup(name, lasting string) *group {
	labels := func(of ...string) []string {
		if name != "" {
			of = append(of, name)
		}
		return of
	}
	g := &group{
		active:  c.active.WithLabelValues(labels(lasting)...),
		waiters: c.waiters.WithLabelValues(labels(lasting)...),
		lost:    make(map[locktrace.End]prometheus.Counter),
		labels:  labels(lasting),
	}
	series := func(of *prometheus.HistogramVec, values ...string) func() prometheus.Observer {
		return sync.OnceValue(func() prometheus.Observer { return of.WithLabelValues(labels(values...)...) })
	}
	for a := range lockmetrics.Acquires() {
		g.acquires = append(g.acquires, series(c.acquires, a.Outcome(), a.How(), a.ErrorType()))
	}
	for end := range lockmetrics.Ends {
		g.holds = append(g.holds, series(c.holds, end.String(), lasting))
	}
	for _, end := range lockmetrics.LostEnds {
		g.lost[end] = c.lost.WithLabelValues(labels(end.String(), lasting)...)
	}
	return g
}

func (c *Collector) newTrace() locktrace.Trace {
	return locktrace.Trace{
		WaitStarted: func(e locktrace.WaitStarted) {
			g := c.groups.Of(e.Lock, e.Lasting)
			g.waiters.Inc()
			g.openWaits.Begin(e.Began, e.Began)
		},
		AcquireDone: func(e locktrace.AcquireDone) {
			g := c.groups.Of(e.Lock, e.Lasting)
			if e.Contended {
				g.waiters.Dec()
				g.openWaits.End(e.Began)
			}
			if lockmetrics.Begins(e) {
				g.active.Inc()
				g.openHolds.Begin(e.Hold, e.Began.Add(e.Took))
			}
			g.acquires[lockmetrics.AcquireOf(e)]().Observe(e.Took.Seconds())
		},
		HoldDone: func(e locktrace.HoldDone) {
			g := c.groups.Of(e.Lock, e.Lasting)
			g.active.Dec()
			g.openHolds.End(e.Hold)
			if lost := g.lost[e.End]; lost != nil {
				lost.Inc()
			}
			g.holds[lockmetrics.EndOf(e)]().Observe(e.Held.Seconds())
		},
		RenewalDone: func(e locktrace.RenewalDone) {
			if share, is := lockmetrics.Margin(e); is {
				c.margin.Observe(share)
			}
			c.failures.Add(float64(e.Failed))
		},
		SubscriptionChanged: func(e locktrace.SubscriptionChanged) {
			if !e.Up {
				c.disconnected.Inc()
			}
		},
		ReleaseDelayed: func(locktrace.ReleaseDelayed) { c.delayed.Inc() },
		ReleaseEnded:   func(locktrace.ReleaseEnded) { c.delayed.Dec() },
		WriteRefused:   func(e locktrace.WriteRefused) { c.refused.WithLabelValues(e.Guard).Inc() },
	}
}
