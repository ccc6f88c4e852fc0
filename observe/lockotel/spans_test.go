package lockotel_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// recorded gives a trace whose spans are recorded, and a tracer for those of callers.
func recorded(t *testing.T, opts ...lockotel.Option) (*locktrace.Trace, oteltrace.Tracer, *tracetest.SpanRecorder) {
	t.Helper()
	r := tracetest.NewSpanRecorder()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
	trace, err := lockotel.New(append([]lockotel.Option{lockotel.WithTracerProvider(p), lockotel.WithMeterProvider(metricnoop.NewMeterProvider())}, opts...)...)
	locktest.NoError(t, err)
	return trace, p.Tracer("test"), r
}

func wantAttributes(t *testing.T, what string, got []attribute.KeyValue, want ...attribute.KeyValue) {
	t.Helper()
	g, w := attribute.NewSet(got...), attribute.NewSet(want...)
	if !g.Equals(&w) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// A call that waits gets one span, as long as the wait, under the caller's. One that does not wait gets none.
func TestSpanOfAWait(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		trace, tracer, r := recorded(t, lockotel.WithLockGroup(func(string) string { return "accounts" }))
		var last locktrace.AcquireDone
		client, err := rlock.New(rdb, rlock.WithTrace(locktrace.Join(trace, &locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) { last = e }})))
		locktest.NoError(t, err)
		defer client.Close()
		l := fenced.NewLock(client, "account:42")
		began := time.Now()
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		inner, _, err := l.LockAndGetToken(held)
		locktest.NoError(t, err)
		locktest.NoError(t, l.Unlock(inner))
		_, _, err = l.TryLockAndGetToken(t.Context(), 0, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Equal(t, "spans of calls that did not wait", len(r.Ended()), 0)

		ctx, parent := tracer.Start(t.Context(), "order")
		var took time.Duration
		waits := locktest.StartLock(func() (context.Context, error) {
			held, _, err := l.LockAndGetToken(ctx)
			took = time.Since(began)
			return held, err
		})
		_, _, err = l.TryLockAndGetToken(t.Context(), time.Second, 0)
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		locktest.Sleep(2 * time.Second)
		locktest.NoError(t, l.Unlock(held))
		got := <-waits
		locktest.NoError(t, got.Err)
		locktest.NoError(t, l.Unlock(got.Ctx))

		if took < 3*time.Second {
			t.Errorf("the wait took %v", took)
		}
		spans := r.Ended()
		locktest.Equal(t, "spans", len(spans), 2)
		for i, s := range spans {
			locktest.Equal(t, "name", s.Name(), "lock wait accounts")
			locktest.Equal(t, "kind", s.SpanKind(), oteltrace.SpanKindInternal)
			locktest.Equal(t, "begin", s.StartTime().Sub(began), 0)
			locktest.Equal(t, "length", s.EndTime().Sub(s.StartTime()), []time.Duration{time.Second, took}[i])
			locktest.Equal(t, "status", s.Status().Code, codes.Unset)
		}
		wantAttributes(t, "a wait in vain", spans[0].Attributes(), attribute.String("fencelock.lock", "account:42"),
			attribute.String("fencelock.outcome", "not_acquired"), attribute.Bool("fencelock.contended", true))
		wantAttributes(t, "a wait", spans[1].Attributes(), attribute.String("fencelock.lock", "account:42"), attribute.String("fencelock.outcome", "acquired"),
			attribute.Bool("fencelock.contended", true), attribute.String("fencelock.how", last.By.String()), attribute.Int64("fencelock.token", last.Token))
		locktest.Equal(t, "the first has a parent", spans[0].Parent().IsValid(), false)
		locktest.Equal(t, "the parent of the second", spans[1].Parent().SpanID(), parent.SpanContext().SpanID())
	})
}

// A lost lock is an event on the span that the acquire was called under.
func TestEventOfALoss(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		trace, tracer, r := recorded(t)
		client, err := rlock.New(rdb, rlock.WithTrace(trace))
		locktest.NoError(t, err)
		defer client.Close()
		ctx, parent := tracer.Start(t.Context(), "order")
		var held []context.Context
		for _, name := range []string{"unlocked", "lost", "forced"} {
			h, _, err := fenced.NewLock(client, name).LockAndGetToken(ctx)
			locktest.NoError(t, err)
			held = append(held, h)
		}
		locktest.NoError(t, fenced.NewLock(client, "unlocked").Unlock(held[0]))
		_, err = fenced.NewLock(client, "forced").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		m.Del("lost")
		<-held[1].Done()
		locktest.Sleep(0)
		runtime.KeepAlive(held) // otherwise a lock could be lost as one that was dropped
		parent.End()
		events := r.Ended()[0].Events()
		slices.SortFunc(events, func(a, b sdktrace.Event) int { return a.Time.Compare(b.Time) })
		locktest.Equal(t, "events", len(events), 2)
		for i, e := range events {
			locktest.Equal(t, "event", e.Name, "lock lost")
			name := []string{"forced", "lost"}[i]
			set := attribute.NewSet(e.Attributes...)
			lock, _ := set.Value("fencelock.lock")
			outcome, _ := set.Value("fencelock.outcome")
			token, _ := set.Value("fencelock.token")
			why, _ := set.Value("fencelock.reason")
			if lock.AsString() != name || outcome.AsString() != name || token.AsInt64() != 1 || why.AsString() == "" {
				t.Errorf("the event of %s: %v", name, e.Attributes)
			}
		}
	})
}

// What goes wrong in a call makes its span one of an error, and WithMinWait decides which calls get one.
func TestSpanOfAnError(t *testing.T) {
	trace, _, r := recorded(t, lockotel.WithMinWait(time.Second))
	call := locktrace.Call{Context: t.Context(), Lock: "l", Began: time.Now()}
	trace.AcquireDone(locktrace.AcquireDone{Call: call, Took: time.Second - 1, Err: errors.New("strange")})
	locktest.Equal(t, "spans of a short call", len(r.Ended()), 0)
	trace.AcquireDone(locktrace.AcquireDone{Call: call, Took: time.Second, Err: errors.New("strange")})
	s := r.Ended()[0]
	locktest.Equal(t, "name", s.Name(), "lock wait")
	locktest.Equal(t, "status", s.Status(), sdktrace.Status{Code: codes.Error, Description: "strange"})
	wantAttributes(t, "an error", s.Attributes(), attribute.String("fencelock.lock", "l"), attribute.String("fencelock.outcome", "error"),
		attribute.Bool("fencelock.contended", false), attribute.String("error.type", "_OTHER"))
}

// The events of a hold may come in either order; nothing is kept of one that has ended.
func TestEventsInEitherOrder(t *testing.T) {
	trace, tracer, r := recorded(t)
	ctx, parent := tracer.Start(t.Context(), "order")
	begin := locktrace.AcquireDone{Call: locktrace.Call{Context: ctx, Lock: "l"}, By: locktrace.FromRedis, Hold: 1}
	trace.HoldDone(locktrace.HoldDone{Lock: "l", Hold: 1, End: locktrace.Lost})
	trace.AcquireDone(begin)
	begin.Hold = 2
	trace.AcquireDone(begin)
	begin.By = locktrace.Reentry
	trace.AcquireDone(begin)
	trace.HoldDone(locktrace.HoldDone{Lock: "l", Hold: 2, End: locktrace.Dropped})
	parent.End()
	locktest.Equal(t, "events", len(r.Ended()[0].Events()), 2)
}
