// Package lockotel has metrics and spans of locks for OpenTelemetry: how long calls wait, how long locks are held, which holds were
// lost, how close renewals come to the end of a lease, which writes came too late.
//
//	trace, err := lockotel.New()
//	client, err := rlock.New(rdb, rlock.WithTrace(trace))
//	marks := guard.NewMemory(guard.WithTrace(trace)) // or redisguard, sqlguard
//
// docs/metrics.md has the instruments. With an exporter to Prometheus they have the names that lockprom has, and its alerts and its
// dashboard fit.
//
// An acquire that takes a millisecond or longer (WithMinWait) gets a span "lock wait", under the span of the caller's context and with
// its true start. A hold gets none. The end of a hold by anything but Unlock or Close is an event "lock lost" on the span that its
// acquire was called under, as long as that has not ended.
package lockotel
