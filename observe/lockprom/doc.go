// Package lockprom has metrics of locks for Prometheus: how long calls wait, how long locks are held, which holds were lost, how close
// renewals come to the end of a lease, which writes came too late.
//
//	locks := lockprom.New()
//	prometheus.MustRegister(locks)
//	client, err := rlock.New(rdb, rlock.WithTrace(locks.Trace()))
//	marks := guard.NewMemory(guard.WithTrace(locks.Trace())) // or redisguard, sqlguard
//
// docs/metrics.md has the metrics. [Rules] are alerts, and [Dashboard] is a dashboard for Grafana, on these names. lockotel, with an
// exporter of OpenTelemetry to Prometheus, has the same names.
package lockprom
