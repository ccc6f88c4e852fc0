package lockotel

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// spans makes the spans of waits, and the events of lost locks.
type spans struct {
	tracer  trace.Tracer
	minWait time.Duration
	groups  *lockmetrics.Groups[group]

	mu    sync.Mutex
	holds map[uint64]openHold // by locktrace.HoldDone.Hold, until the second of AcquireDone and HoldDone, which come in either order
}

// openHold is a hold of which one event has come: the begin with the caller's span, or the end.
type openHold struct {
	caller trace.Span
	end    *locktrace.HoldDone // where it came first
}

func (s *spans) acquireDone(e locktrace.AcquireDone) {
	if e.Took >= s.minWait {
		s.waited(e)
	}
	if !lockmetrics.Begins(e) {
		return
	}
	caller := trace.SpanFromContext(e.Context)
	s.mu.Lock()
	end := s.holds[e.Hold].end
	if end == nil {
		s.holds[e.Hold] = openHold{caller: caller}
	} else {
		delete(s.holds, e.Hold)
	}
	s.mu.Unlock()
	if end != nil {
		lost(caller, *end)
	}
}

// waited makes the span of a call that has waited.
func (s *spans) waited(e locktrace.AcquireDone) {
	name := "lock wait"
	if group := s.groups.Of(e.Lock, e.Lasting).name; group != "" {
		name += " " + group
	}
	_, span := s.tracer.Start(e.Context, name, trace.WithTimestamp(e.Began), trace.WithSpanKind(trace.SpanKindInternal))
	if span.IsRecording() {
		how := lockmetrics.AcquireOf(e)
		span.SetAttributes(
			attribute.String("fencelock.lock", e.Lock),
			attribute.String("fencelock.outcome", how.Outcome()),
			attribute.Bool("fencelock.contended", e.Contended),
		)
		if e.Err == nil {
			span.SetAttributes(attribute.String("fencelock.how", how.How()), attribute.Int64("fencelock.token", e.Token))
		}
		if e.Slot != "" {
			span.SetAttributes(attribute.String("fencelock.slot", e.Slot))
		}
		if how.ErrorType() != "" {
			span.SetAttributes(attribute.String("error.type", how.ErrorType()))
			span.SetStatus(codes.Error, e.Err.Error())
		}
	}
	span.End(trace.WithTimestamp(e.Began.Add(e.Took)))
}

func (s *spans) holdDone(e locktrace.HoldDone) {
	s.mu.Lock()
	caller := s.holds[e.Hold].caller
	if caller == nil {
		first := e // so that only this allocates
		s.holds[e.Hold] = openHold{end: &first}
	} else {
		delete(s.holds, e.Hold)
	}
	s.mu.Unlock()
	if caller != nil {
		lost(caller, e)
	}
}

// lost tells the span that the lock was lost, if it was, and if the span has not ended.
func lost(caller trace.Span, e locktrace.HoldDone) {
	if e.End == locktrace.Unlocked || e.End == locktrace.Closed || e.End == locktrace.Imported || !caller.IsRecording() {
		return
	}
	attrs := []attribute.KeyValue{
		attribute.String("fencelock.lock", e.Lock),
		attribute.String("fencelock.outcome", e.End.String()),
		attribute.Int64("fencelock.token", e.Token),
	}
	if e.Slot != "" {
		attrs = append(attrs, attribute.String("fencelock.slot", e.Slot))
	}
	if e.Err != nil {
		attrs = append(attrs, attribute.String("fencelock.reason", e.Err.Error()))
	}
	caller.AddEvent("lock lost", trace.WithTimestamp(e.Began.Add(e.Held)), trace.WithAttributes(attrs...))
}
