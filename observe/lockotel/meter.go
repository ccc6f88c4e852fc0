package lockotel

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// meter has the instruments.
type meter struct {
	acquires, holds, margin               metric.Float64Histogram
	active, waiters, delayed              metric.Int64UpDownCounter
	lost, refused, failures, disconnected metric.Int64Counter

	groups *lockmetrics.Groups[group]
}

// group has the attributes of one group of locks, or of its holds with a word of rlock.Lasting, made once.
type group struct {
	name     string
	plain    []metric.AddOption
	acquires [][]metric.RecordOption // by lockmetrics.Acquire
	holds    [][]metric.RecordOption // by locktrace.End
	lost     map[locktrace.End][]metric.AddOption

	observe   []metric.ObserveOption
	openHolds lockmetrics.Open[uint64]
	openWaits lockmetrics.Open[time.Time]
}

func newMeter(m metric.Meter, groupOf func(lock string) string) (*meter, error) {
	var errs []error
	histogram := func(i lockmetrics.Instrument) metric.Float64Histogram {
		h, err := m.Float64Histogram(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description), metric.WithExplicitBucketBoundaries(i.Bounds...))
		errs = append(errs, err)
		return h
	}
	gauge := func(i lockmetrics.Instrument) metric.Int64UpDownCounter {
		g, err := m.Int64UpDownCounter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description))
		errs = append(errs, err)
		return g
	}
	counter := func(i lockmetrics.Instrument) metric.Int64Counter {
		c, err := m.Int64Counter(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description))
		errs = append(errs, err)
		return c
	}
	mt := &meter{
		acquires:     histogram(lockmetrics.AcquireDuration),
		holds:        histogram(lockmetrics.HoldDuration),
		margin:       histogram(lockmetrics.RenewalMargin),
		active:       gauge(lockmetrics.HoldActive),
		waiters:      gauge(lockmetrics.WaiterActive),
		delayed:      gauge(lockmetrics.ReleaseDelayed),
		lost:         counter(lockmetrics.HoldLost),
		refused:      counter(lockmetrics.WriteRefused),
		failures:     counter(lockmetrics.RenewalFailures),
		disconnected: counter(lockmetrics.SubscriptionLost),
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	// What is there from the start begins at zero, so that the first of a kind is seen as an increase.
	ctx := context.Background()
	mt.delayed.Add(ctx, 0)
	mt.failures.Add(ctx, 0)
	mt.disconnected.Add(ctx, 0)
	for _, guard := range lockmetrics.Guards {
		mt.refused.Add(ctx, 0, metric.WithAttributes(attribute.String("guard", guard)))
	}
	observed := func(i lockmetrics.Instrument, oldest func(*group) time.Duration) {
		_, err := m.Float64ObservableGauge(i.Name, metric.WithUnit(i.Unit), metric.WithDescription(i.Description), metric.WithFloat64Callback(
			func(_ context.Context, to metric.Float64Observer) error {
				for _, g := range mt.groups.All() {
					to.Observe(oldest(g).Seconds(), g.observe...)
				}
				return nil
			}))
		errs = append(errs, err)
	}
	mt.groups = lockmetrics.NewGroups(groupOf, mt.newGroup)
	observed(lockmetrics.HoldOldest, func(g *group) time.Duration { return g.openHolds.Oldest() })
	observed(lockmetrics.WaiterOldest, func(g *group) time.Duration { return g.openWaits.Oldest() })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return mt, nil
}

func (mt *meter) newGroup(name, lasting string) *group {
	// set has the attributes that are not empty.
	set := func(pairs ...string) metric.MeasurementOption {
		pairs = append(pairs, "group", name)
		var all []attribute.KeyValue
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] != "" {
				all = append(all, attribute.String(pairs[i], pairs[i+1]))
			}
		}
		return metric.WithAttributeSet(attribute.NewSet(all...))
	}
	g := &group{name: name, plain: []metric.AddOption{set("lasting", lasting)}, observe: []metric.ObserveOption{set("lasting", lasting)}, lost: make(map[locktrace.End][]metric.AddOption)}
	for a := range lockmetrics.Acquires() {
		g.acquires = append(g.acquires, []metric.RecordOption{set("outcome", a.Outcome(), "how", a.How(), "error.type", a.ErrorType())})
	}
	for end := range lockmetrics.Ends {
		g.holds = append(g.holds, []metric.RecordOption{set("outcome", end.String(), "lasting", lasting)})
	}
	ctx := context.Background()
	for _, end := range lockmetrics.LostEnds {
		g.lost[end] = []metric.AddOption{set("outcome", end.String(), "lasting", lasting)}
		mt.lost.Add(ctx, 0, g.lost[end]...)
	}
	mt.active.Add(ctx, 0, g.plain...)
	mt.waiters.Add(ctx, 0, g.plain...)
	return g
}

func (mt *meter) waitStarted(e locktrace.WaitStarted) {
	g := mt.groups.Of(e.Lock, e.Lasting)
	mt.waiters.Add(e.Context, 1, g.plain...)
	g.openWaits.Begin(e.Began, e.Began)
}

func (mt *meter) acquireDone(e locktrace.AcquireDone) {
	g := mt.groups.Of(e.Lock, e.Lasting)
	if e.Contended {
		mt.waiters.Add(e.Context, -1, g.plain...)
		g.openWaits.End(e.Began)
	}
	if lockmetrics.Begins(e) {
		mt.active.Add(e.Context, 1, g.plain...)
		g.openHolds.Begin(e.Hold, e.Began.Add(e.Took))
	}
	mt.acquires.Record(e.Context, e.Took.Seconds(), g.acquires[lockmetrics.AcquireOf(e)]...)
}

func (mt *meter) holdDone(e locktrace.HoldDone) {
	ctx, g := context.Background(), mt.groups.Of(e.Lock, e.Lasting)
	mt.active.Add(ctx, -1, g.plain...)
	g.openHolds.End(e.Hold)
	if attrs := g.lost[e.End]; attrs != nil {
		mt.lost.Add(ctx, 1, attrs...)
	}
	mt.holds.Record(ctx, e.Held.Seconds(), g.holds[lockmetrics.EndOf(e)]...)
}

func (mt *meter) renewalDone(e locktrace.RenewalDone) {
	ctx := context.Background()
	if share, is := lockmetrics.Margin(e); is {
		mt.margin.Record(ctx, share)
	}
	mt.failures.Add(ctx, int64(e.Failed))
}

func (mt *meter) subscriptionChanged(e locktrace.SubscriptionChanged) {
	if !e.Up {
		mt.disconnected.Add(context.Background(), 1)
	}
}

func (mt *meter) releaseDelayed(locktrace.ReleaseDelayed) { mt.delayed.Add(context.Background(), 1) }

func (mt *meter) releaseEnded(locktrace.ReleaseEnded) { mt.delayed.Add(context.Background(), -1) }

func (mt *meter) writeRefused(e locktrace.WriteRefused) {
	mt.refused.Add(e.Context, 1, metric.WithAttributes(attribute.String("guard", e.Guard)))
}
