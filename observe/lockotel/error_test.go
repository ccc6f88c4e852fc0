package lockotel_test

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockotel"
)

var errMeter = errors.New("no more counters")

// brokenMeters is a meter provider that makes no counters.
type brokenMeters struct{ noop.MeterProvider }

type brokenMeter struct{ noop.Meter }

func (brokenMeters) Meter(string, ...metric.MeterOption) metric.Meter { return brokenMeter{} }

func (brokenMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errMeter
}

func TestNewTellsOfAnInstrumentThatIsMissing(t *testing.T) {
	trace, err := lockotel.New(lockotel.WithMeterProvider(brokenMeters{}))
	locktest.IsError(t, err, errMeter)
	locktest.ErrorSays(t, err, "lockotel")
	locktest.Equal(t, "a trace", trace != nil, false)
}
