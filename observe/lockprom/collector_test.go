package lockprom_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// series are the values of a collector by name and labels without the empty ones, as in "name{a=b c=d}"; of a histogram the count, and
// the sum as name_sum.
func series(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	locktest.NoError(t, r.Register(c))
	families, err := r.Gather()
	locktest.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() != "" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			of := "{" + strings.Join(labels, " ") + "}"
			switch {
			case m.Counter != nil:
				all[f.GetName()+of] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[f.GetName()+of] = m.Gauge.GetValue()
			default:
				all[f.GetName()+of] = float64(m.Histogram.GetSampleCount())
				all[f.GetName()+"_sum"+of] = m.Histogram.GetSampleSum()
			}
		}
	}
	return all
}

// zeros are the series that a collector has before anything happens.
func zeros() map[string]float64 {
	return map[string]float64{
		"fencelock_hold_active{}":                     0,
		"fencelock_hold_lost_total{outcome=dropped}":  0,
		"fencelock_hold_lost_total{outcome=forced}":   0,
		"fencelock_hold_lost_total{outcome=lost}":     0,
		"fencelock_hold_oldest_seconds{}":             0,
		"fencelock_release_delayed{}":                 0,
		"fencelock_renewal_failures_total{}":          0,
		"fencelock_renewal_margin{}":                  0,
		"fencelock_renewal_margin_sum{}":              0,
		"fencelock_subscription_lost_total{}":         0,
		"fencelock_waiter_active{}":                   0,
		"fencelock_waiter_oldest_seconds{}":           0,
		"fencelock_write_refused_total{guard=memory}": 0,
		"fencelock_write_refused_total{guard=redis}":  0,
		"fencelock_write_refused_total{guard=s3}":     0,
		"fencelock_write_refused_total{guard=sql}":    0,
	}
}

func wantSeries(t *testing.T, when string, c prometheus.Collector, changed map[string]float64) {
	t.Helper()
	want := zeros()
	maps.Copy(want, changed)
	locktest.DeepEqual(t, when, series(t, c), want)
}

// Each event, in the series that it is for.
func TestEvents(t *testing.T) {
	c := lockprom.New()
	wantSeries(t, "new", c, nil)
	trace := c.Trace()
	for range 2 {
		trace.WaitStarted(locktrace.WaitStarted{})
	}
	trace.AcquireDone(locktrace.AcquireDone{By: locktrace.FromHandoff, Contended: true, Took: 2 * time.Second})
	trace.AcquireDone(locktrace.AcquireDone{By: locktrace.Reentry})
	trace.AcquireDone(locktrace.AcquireDone{Err: rlock.ErrNotAcquired})
	for range 3 {
		trace.AcquireDone(locktrace.AcquireDone{Err: errors.New("strange"), Took: time.Second})
	}
	trace.HoldDone(locktrace.HoldDone{End: locktrace.Forced, Held: 5 * time.Second})
	trace.HoldDone(locktrace.HoldDone{End: locktrace.Closed})
	trace.HoldDone(locktrace.HoldDone{End: locktrace.Closed + 7})
	trace.RenewalDone(locktrace.RenewalDone{Locks: 8, Failed: 3, Margin: 10 * time.Second, Lease: 20 * time.Second})
	trace.RenewalDone(locktrace.RenewalDone{Gone: 1})
	for _, up := range []bool{true, false, true, false} {
		trace.SubscriptionChanged(locktrace.SubscriptionChanged{Up: up})
	}
	trace.ReleaseDelayed(locktrace.ReleaseDelayed{})
	trace.ReleaseDelayed(locktrace.ReleaseDelayed{})
	trace.ReleaseEnded(locktrace.ReleaseEnded{})
	trace.WriteRefused(locktrace.WriteRefused{Guard: "sql"})
	trace.WriteRefused(locktrace.WriteRefused{Guard: "mine"})
	wantSeries(t, "after one of each", c, map[string]float64{
		"fencelock_acquire_duration_seconds{how=handoff outcome=acquired}":        1,
		"fencelock_acquire_duration_seconds_sum{how=handoff outcome=acquired}":    2,
		"fencelock_acquire_duration_seconds{how=reentry outcome=acquired}":        1,
		"fencelock_acquire_duration_seconds_sum{how=reentry outcome=acquired}":    0,
		"fencelock_acquire_duration_seconds{outcome=not_acquired}":                1,
		"fencelock_acquire_duration_seconds_sum{outcome=not_acquired}":            0,
		"fencelock_acquire_duration_seconds{error_type=_OTHER outcome=error}":     3,
		"fencelock_acquire_duration_seconds_sum{error_type=_OTHER outcome=error}": 3,
		"fencelock_hold_active{}":                              1 - 3,
		"fencelock_waiter_active{}":                            1,
		"fencelock_waiter_oldest_seconds{}":                    time.Duration(math.MaxInt64).Seconds(), // it began in the year 1
		"fencelock_hold_lost_total{outcome=forced}":            1,
		"fencelock_hold_duration_seconds{outcome=forced}":      1,
		"fencelock_hold_duration_seconds_sum{outcome=forced}":  5,
		"fencelock_hold_duration_seconds{outcome=closed}":      1,
		"fencelock_hold_duration_seconds_sum{outcome=closed}":  0,
		"fencelock_hold_duration_seconds{outcome=unknown}":     1,
		"fencelock_hold_duration_seconds_sum{outcome=unknown}": 0,
		"fencelock_renewal_margin{}":                           1,
		"fencelock_renewal_margin_sum{}":                       .5,
		"fencelock_renewal_failures_total{}":                   3,
		"fencelock_subscription_lost_total{}":                  2,
		"fencelock_release_delayed{}":                          1,
		"fencelock_write_refused_total{guard=sql}":             1,
		"fencelock_write_refused_total{guard=mine}":            1,
	})
}

// The names of locks are in no label, but for the groups that a function makes of them, and these have a bound.
func TestGroups(t *testing.T) {
	c := lockprom.New(lockprom.WithLockGroup(func(lock string) string { table, _, _ := strings.Cut(lock, ":"); return table }))
	acquire := func(lock string) {
		c.Trace().AcquireDone(locktrace.AcquireDone{Call: locktrace.Call{Lock: lock}, By: locktrace.FromRedis})
	}
	for i := range 2 * lockmetrics.MaxGroups {
		acquire(fmt.Sprintf("table%d:1", i))
		acquire(fmt.Sprintf("table%d:2", i))
	}
	all := series(t, c)
	locktest.Equal(t, "holds of a group", all["fencelock_hold_active{group=table0}"], 2)
	locktest.Equal(t, "acquires of a group", all["fencelock_acquire_duration_seconds{group=table99 how=redis outcome=acquired}"], 2)
	if oldest, is := all["fencelock_hold_oldest_seconds{group=table0}"]; !is || oldest == 0 {
		t.Errorf("the oldest hold of a group: %v", oldest)
	}
	locktest.Equal(t, "holds of the group other", all["fencelock_hold_active{group=other}"], 2*lockmetrics.MaxGroups)
	lost, primed := all["fencelock_hold_lost_total{group=table0 outcome=lost}"]
	locktest.Equal(t, "the counter of lost holds is there", primed, true)
	locktest.Equal(t, "lost", lost, 0)
	groups := map[string]bool{}
	for name := range all {
		if _, group, is := strings.Cut(name, "group="); is {
			group, _, _ = strings.Cut(strings.TrimSuffix(group, "}"), " ")
			groups[group] = true
		}
	}
	locktest.Equal(t, "groups", len(groups), lockmetrics.MaxGroups+1)
}

// A client with waits, a lost lock, a write that came too late, and an end in the middle of it all.
func TestClient(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := lockprom.New()
		client, err := rlock.New(rdb, rlock.WithTrace(c.Trace()))
		locktest.NoError(t, err)
		marks := guard.NewMemory(guard.WithTrace(c.Trace()))
		l := fenced.NewLock(client, "l")
		held, first, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		waits := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(15 * time.Second)
		all := series(t, c)
		locktest.Equal(t, "holds", all["fencelock_hold_active{}"], 1)
		locktest.Equal(t, "waiters", all["fencelock_waiter_active{}"], 1)
		locktest.Equal(t, "age of the oldest hold", all["fencelock_hold_oldest_seconds{}"], 15)
		locktest.Equal(t, "age of the longest wait", all["fencelock_waiter_oldest_seconds{}"], 15)
		if n, sum := all["fencelock_renewal_margin{}"], all["fencelock_renewal_margin_sum{}"]; n == 0 || sum/n < .6 || sum/n > 1 {
			t.Errorf("%v renewals, with %v of the lease left together", n, sum)
		}

		m.Del("l")
		<-held.Done()
		r := <-waits
		runtime.KeepAlive(held) // otherwise it could be lost as one that was dropped
		locktest.NoError(t, r.Err)
		second, err := l.Token(r.Ctx)
		locktest.NoError(t, err)
		locktest.NoError(t, marks.Check(t.Context(), "l", second))
		locktest.IsError(t, marks.Check(t.Context(), "l", first), guard.ErrStale)
		waits = locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
		locktest.Sleep(time.Second)
		locktest.NoError(t, client.Close())
		locktest.IsError(t, (<-waits).Err, rlock.ErrClosed)
		locktest.Sleep(time.Second)
		all = series(t, c)
		for name, want := range map[string]float64{
			"fencelock_hold_active{}":                                             0,
			"fencelock_waiter_active{}":                                           0,
			"fencelock_hold_oldest_seconds{}":                                     0,
			"fencelock_waiter_oldest_seconds{}":                                   0,
			"fencelock_release_delayed{}":                                         0,
			"fencelock_hold_lost_total{outcome=lost}":                             1,
			"fencelock_hold_duration_seconds{outcome=closed}":                     1,
			"fencelock_write_refused_total{guard=memory}":                         1,
			"fencelock_acquire_duration_seconds{how=redis outcome=acquired}":      2,
			"fencelock_acquire_duration_seconds{error_type=closed outcome=error}": 1,
			"fencelock_subscription_lost_total{}":                                 0,
		} {
			locktest.Equal(t, name, all[name], want)
		}
	})
}

// What a leader holds, and who stands by, has series of its own.
func TestLasting(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := lockprom.New()
		elect := func(rdb *redis.Client) *leader.Election {
			client, err := rlock.New(rdb, rlock.WithTrace(c.Trace()))
			locktest.NoError(t, err)
			t.Cleanup(func() { _ = client.Close() })
			e, err := leader.New(fenced.NewLock(client, "l"))
			locktest.NoError(t, err)
			return e
		}
		term, err := elect(rdb).Campaign(t.Context())
		locktest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		stands := locktest.Start(func() error { _, err := elect(redistest.PipeClient(t, m)).Campaign(ctx); return err })
		locktest.Sleep(time.Minute)
		all := series(t, c)
		for name, want := range map[string]float64{
			"fencelock_hold_active": 1, "fencelock_hold_oldest_seconds": 60, "fencelock_waiter_active": 1, "fencelock_waiter_oldest_seconds": 60,
		} {
			locktest.Equal(t, name+" of those who lead", all[name+"{lasting=leads}"], want)
			locktest.Equal(t, name+" of others", all[name+"{}"], 0)
		}
		stop()
		locktest.IsError(t, <-stands, context.Canceled)
		m.Del("l")
		<-term.Done()
		locktest.IsError(t, term.StepDown(t.Context()), rlock.ErrLost)
		synctest.Wait() // a trace is told by a goroutine of its own
		all = series(t, c)
		for name, want := range map[string]float64{
			"fencelock_hold_active{lasting=leads}":                        0,
			"fencelock_waiter_active{lasting=leads}":                      0,
			"fencelock_hold_lost_total{lasting=leads outcome=lost}":       1,
			"fencelock_hold_lost_total{outcome=lost}":                     0,
			"fencelock_hold_duration_seconds{lasting=leads outcome=lost}": 1,
		} {
			locktest.Equal(t, name, all[name], want)
		}
	})
}

// A connection for messages that breaks is counted.
func TestSubscriptionLost(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t))
	c := lockprom.New()
	listens := make(chan struct{}, 100)
	told := &locktrace.Trace{SubscriptionChanged: func(e locktrace.SubscriptionChanged) {
		if e.Up {
			listens <- struct{}{}
		}
	}}
	client, err := rlock.New(redistest.Client(t, proxy.Addr()), rlock.WithTrace(locktrace.Join(c.Trace(), told)))
	locktest.NoError(t, err)
	defer client.Close()
	l := rlock.NewLock(client, "l")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	waits := locktest.StartLock(func() (context.Context, error) { return l.Lock(ctx) })
	<-listens
	proxy.Cut()
	<-listens
	locktest.Equal(t, "lost", series(t, c)["fencelock_subscription_lost_total{}"], 1)
	cancel()
	locktest.IsError(t, (<-waits).Err, context.Canceled)
	locktest.NoError(t, l.Unlock(held))
}

// full is a collector with at least one series of each metric.
func full() *lockprom.Collector {
	c := lockprom.New()
	c.Trace().AcquireDone(locktrace.AcquireDone{By: locktrace.FromRedis})
	c.Trace().HoldDone(locktrace.HoldDone{})
	return c
}
