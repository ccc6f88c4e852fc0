package lockotel_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Without providers, and with nil, metrics and spans go to the global ones.
func TestGlobalProviders(t *testing.T) {
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	plain, err := lockotel.New()
	locktest.NoError(t, err)
	withNil, err := lockotel.New(lockotel.WithMeterProvider(nil), lockotel.WithTracerProvider(nil))
	locktest.NoError(t, err)
	for _, trace := range []*locktrace.Trace{plain, withNil} {
		trace.AcquireDone(locktrace.AcquireDone{Call: locktrace.Call{Context: t.Context()}, By: locktrace.FromRedis, Took: time.Second})
	}
	locktest.Equal(t, "holds", read(t, reader, lockmetrics.HoldActive), 2)
	locktest.Equal(t, "spans", len(spans.Ended()), 2)
}
