package lockotel

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/fencelock/fencelock/observe/locktrace"
)

const scope = "github.com/fencelock/fencelock/observe/lockotel"

// New returns a trace that makes metrics and spans of what it is told, for rlock.WithTrace and for the WithTrace of guards. One serves
// all clients and guards of a process. locktrace.Join makes one of it and others. The error is that of the meter provider, which did
// not make an instrument.
func New(opts ...Option) (*locktrace.Trace, error) {
	o := options{minWait: time.Millisecond}
	for _, opt := range opts {
		opt(&o)
	}
	if o.meters == nil {
		o.meters = otel.GetMeterProvider()
	}
	if o.tracers == nil {
		o.tracers = otel.GetTracerProvider()
	}
	mt, err := newMeter(o.meters.Meter(scope), o.group)
	if err != nil {
		return nil, fmt.Errorf("lockotel: %w", err)
	}
	s := &spans{tracer: o.tracers.Tracer(scope), minWait: o.minWait, groups: mt.groups, holds: make(map[uint64]openHold)}
	metrics := &locktrace.Trace{
		WaitStarted:         mt.waitStarted,
		AcquireDone:         mt.acquireDone,
		HoldDone:            mt.holdDone,
		RenewalDone:         mt.renewalDone,
		SubscriptionChanged: mt.subscriptionChanged,
		ReleaseDelayed:      mt.releaseDelayed,
		ReleaseEnded:        mt.releaseEnded,
		WriteRefused:        mt.writeRefused,
	}
	return locktrace.Join(metrics, &locktrace.Trace{AcquireDone: s.acquireDone, HoldDone: s.holdDone}), nil
}
