package lockotel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/lockotel"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// exposed is what Prometheus is shown: each series with its type, its help, its labels but for those of the scope, and its value.
func exposed(t *testing.T, r prometheus.Gatherer) (all []string) {
	t.Helper()
	families, err := r.Gather()
	locktest.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "target_info" {
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() != "" && !strings.HasPrefix(l.GetName(), "otel_scope_") {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			slices.Sort(labels)
			value := fmt.Sprint(m.Counter.GetValue(), m.Gauge.GetValue())
			if h := m.Histogram; h != nil {
				value = fmt.Sprint(h.GetSampleCount(), h.GetSampleSum())
				for _, b := range h.Bucket {
					value += fmt.Sprintf(" %v:%d", b.GetUpperBound(), b.GetCumulativeCount())
				}
			}
			all = append(all, fmt.Sprintf("%v %s %v: %s (%s)", f.GetType(), f.GetName(), labels, value, f.GetHelp()))
		}
	}
	slices.Sort(all)
	return all
}

// everything tells the trace of each kind of event at least once.
func everything(t *locktrace.Trace) {
	for i := range 2*lockmetrics.MaxGroups + 1 {
		call := locktrace.Call{Context: context.Background(), Lock: fmt.Sprintf("table%d:1", i)}
		if i%3 == 0 {
			call.Lasting = fmt.Sprintf("word %d", i%60)
		}
		t.WaitStarted(locktrace.WaitStarted{Call: call})
		t.WaitStarted(locktrace.WaitStarted{Call: call})
		for by := locktrace.FromRedis; by <= locktrace.Reentry+1; by++ {
			t.AcquireDone(locktrace.AcquireDone{Call: call, By: by, Took: 250 * time.Millisecond, Hold: uint64(i)})
		}
		for _, err := range []error{rlock.ErrNotAcquired, rlock.ErrLost, rlock.ErrClosed, context.Canceled, errors.New("strange")} {
			t.AcquireDone(locktrace.AcquireDone{Call: call, Err: err, Contended: err == rlock.ErrClosed})
		}
		for end := locktrace.Unlocked; end <= locktrace.Closed+1; end++ {
			t.HoldDone(locktrace.HoldDone{Lock: call.Lock, Lasting: call.Lasting, End: end, Held: 3 * time.Second})
		}
	}
	t.RenewalDone(locktrace.RenewalDone{Locks: 3, Failed: 2, Margin: 10 * time.Second, Lease: 20 * time.Second})
	t.RenewalDone(locktrace.RenewalDone{Locks: 3, Margin: -time.Second, Lease: 20 * time.Second})
	t.RenewalDone(locktrace.RenewalDone{Gone: 1})
	for _, up := range []bool{true, false, true} {
		t.SubscriptionChanged(locktrace.SubscriptionChanged{Up: up})
	}
	t.ReleaseDelayed(locktrace.ReleaseDelayed{})
	t.ReleaseDelayed(locktrace.ReleaseDelayed{})
	t.ReleaseEnded(locktrace.ReleaseEnded{})
	t.WriteRefused(locktrace.WriteRefused{Context: context.Background(), Guard: "sql"})
}

// Through the exporter to Prometheus the instruments have the names, types, labels, buckets and values that lockprom has, so that its
// alerts and its dashboard fit.
func TestAgreesWithLockprom(t *testing.T) {
	table := func(lock string) string { table, _, _ := strings.Cut(lock, ":"); return table }
	for name, group := range map[string]func(string) string{"plain": nil, "grouped": table} {
		t.Run(name, func(t *testing.T) {
			ofOtel, ofProm := prometheus.NewRegistry(), prometheus.NewRegistry()
			exporter, err := otelprom.New(otelprom.WithRegisterer(ofOtel))
			locktest.NoError(t, err)
			trace, err := lockotel.New(lockotel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(exporter))), lockotel.WithLockGroup(group))
			locktest.NoError(t, err)
			collector := lockprom.New(lockprom.WithLockGroup(group))
			ofProm.MustRegister(collector)
			atStart := exposed(t, ofProm)
			atStart = slices.DeleteFunc(atStart, func(s string) bool { return strings.HasPrefix(s, "HISTOGRAM") }) // OpenTelemetry has no empty one
			locktest.DeepEqual(t, "before anything has happened", exposed(t, ofOtel), atStart)
			everything(trace)
			everything(collector.Trace())
			want := exposed(t, ofProm)
			if got := exposed(t, ofOtel); !slices.Equal(got, want) {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						t.Errorf("lockotel:\n%s\nlockprom:\n%s", got[i], want[i])
						break
					}
				}
				t.Errorf("%d series of lockotel, %d of lockprom", len(got), len(want))
			}
			for _, i := range lockmetrics.All {
				if !slices.ContainsFunc(want, func(s string) bool { return strings.Contains(s, " "+i.Prometheus()+" ") }) {
					t.Errorf("there is no %s", i.Prometheus())
				}
			}
		})
	}
}
