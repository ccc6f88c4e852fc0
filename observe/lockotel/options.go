package lockotel

import (
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option changes a default of New.
type Option func(*options)

type options struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	group   func(lock string) string
	minWait time.Duration
}

// WithMeterProvider sets where the metrics go: by default, and with nil, to the provider that otel.GetMeterProvider returns. The one of
// package go.opentelemetry.io/otel/metric/noop is for a service that has its metrics from lockprom.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithTracerProvider sets where the spans go: by default, and with nil, to the provider that otel.GetTracerProvider returns. The one of
// package go.opentelemetry.io/otel/trace/noop makes none.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.tracers = p } }

// WithLockGroup gives the metrics of acquires and holds an attribute "group", and spans a word in their name: what of returns for a
// lock's name, the table of "account:42", say. It returns the same for the same name each time, does not block, and may be called from
// several goroutines at a time. The hundred groups that come first are kept; all others, and "", are the group "other".
func WithLockGroup(of func(lock string) string) Option { return func(o *options) { o.group = of } }

// WithMinWait sets how long an acquire takes at least that gets a span, 1 ms by default. Set it above the usual round trip to Redis, so
// that only those get one that have waited.
func WithMinWait(d time.Duration) Option { return func(o *options) { o.minWait = d } }
