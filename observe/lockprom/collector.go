package lockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Collector has the metrics of the clients and guards that have its trace. One serves all of a process.
type Collector struct {
	acquires, holds        *prometheus.HistogramVec
	active, waiters        *prometheus.GaugeVec
	lost, refused          *prometheus.CounterVec
	margin                 prometheus.Histogram
	failures, disconnected prometheus.Counter
	delayed                prometheus.Gauge
	oldestHold, oldestWait *prometheus.Desc

	groups *lockmetrics.Groups[group]
	trace  locktrace.Trace
}

var _ prometheus.Collector = (*Collector)(nil)

// Option changes a default of New.
type Option func(*options)

type options struct{ group func(lock string) string }

// WithLockGroup gives the metrics of acquires and holds a label "group", which is what of returns for a lock's name: the table of
// "account:42", say. It returns the same for the same name each time, does not block, and may be called from several goroutines at a
// time. Keep the groups few: each has some 20 series for each outcome that occurs. The hundred that come first are kept; all others,
// and "", are the group "other".
func WithLockGroup(of func(lock string) string) Option { return func(o *options) { o.group = of } }

// New returns a collector, to be registered with a prometheus.Registerer. prometheus.WrapRegistererWith adds labels of your own.
func New(opts ...Option) *Collector {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	var grouped []string
	if o.group != nil {
		grouped = []string{"group"}
	}
	labels := func(of ...string) []string { return append(of, grouped...) }
	c := &Collector{
		acquires:     prometheus.NewHistogramVec(histogram(lockmetrics.AcquireDuration), labels("outcome", "how", "error_type")),
		holds:        prometheus.NewHistogramVec(histogram(lockmetrics.HoldDuration), labels("outcome", "lasting")),
		active:       prometheus.NewGaugeVec(prometheus.GaugeOpts(described(lockmetrics.HoldActive)), labels("lasting")),
		waiters:      prometheus.NewGaugeVec(prometheus.GaugeOpts(described(lockmetrics.WaiterActive)), labels("lasting")),
		lost:         prometheus.NewCounterVec(prometheus.CounterOpts(described(lockmetrics.HoldLost)), labels("outcome", "lasting")),
		refused:      prometheus.NewCounterVec(prometheus.CounterOpts(described(lockmetrics.WriteRefused)), []string{"guard"}),
		margin:       prometheus.NewHistogram(histogram(lockmetrics.RenewalMargin)),
		failures:     prometheus.NewCounter(prometheus.CounterOpts(described(lockmetrics.RenewalFailures))),
		disconnected: prometheus.NewCounter(prometheus.CounterOpts(described(lockmetrics.SubscriptionLost))),
		delayed:      prometheus.NewGauge(prometheus.GaugeOpts(described(lockmetrics.ReleaseDelayed))),
	}
	for to, i := range map[**prometheus.Desc]lockmetrics.Instrument{&c.oldestHold: lockmetrics.HoldOldest, &c.oldestWait: lockmetrics.WaiterOldest} {
		*to = prometheus.NewDesc(i.Prometheus(), i.Description, labels("lasting"), nil)
	}
	for _, guard := range lockmetrics.Guards {
		c.refused.WithLabelValues(guard)
	}
	c.groups = lockmetrics.NewGroups(o.group, c.newGroup)
	c.trace = c.newTrace()
	return c
}

// Trace is for rlock.WithTrace, and for the WithTrace of guards. locktrace.Join makes one of it and others.
func (c *Collector) Trace() *locktrace.Trace { return &c.trace }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.all() {
		m.Describe(to)
	}
	to <- c.oldestHold
	to <- c.oldestWait
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.all() {
		m.Collect(to)
	}
	for _, g := range c.groups.All() {
		to <- prometheus.MustNewConstMetric(c.oldestHold, prometheus.GaugeValue, g.openHolds.Oldest().Seconds(), g.labels...)
		to <- prometheus.MustNewConstMetric(c.oldestWait, prometheus.GaugeValue, g.openWaits.Oldest().Seconds(), g.labels...)
	}
}

func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{
		c.acquires, c.holds, c.active, c.waiters, c.lost, c.refused, c.margin, c.failures, c.disconnected, c.delayed,
	}
}

func described(i lockmetrics.Instrument) prometheus.Opts {
	return prometheus.Opts{Name: i.Prometheus(), Help: i.Description}
}

func histogram(i lockmetrics.Instrument) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: i.Prometheus(), Help: i.Description, Buckets: i.Bounds}
}
