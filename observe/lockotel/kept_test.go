package lockotel

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Nothing is kept of a hold that has ended, in whichever order its events came.
func TestNothingIsKept(t *testing.T) {
	s := &spans{
		tracer: noop.NewTracerProvider().Tracer(scope), holds: make(map[uint64]openHold),
		groups: lockmetrics.NewGroups(nil, func(string, string) *group { return new(group) }),
	}
	begin := func(hold uint64, by locktrace.Way) {
		s.acquireDone(locktrace.AcquireDone{Call: locktrace.Call{Context: context.Background()}, By: by, Hold: hold})
	}
	end := func(hold uint64) { s.holdDone(locktrace.HoldDone{Hold: hold, End: locktrace.Lost}) }
	begin(1, locktrace.FromRedis)
	begin(1, locktrace.Reentry)
	end(2)
	locktest.Equal(t, "kept", len(s.holds), 2)
	end(1)
	begin(2, locktrace.FromHandoff)
	locktest.Equal(t, "kept", len(s.holds), 0)
}
