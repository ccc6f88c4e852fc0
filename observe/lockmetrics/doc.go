// Package lockmetrics has what modules that make metrics of a locktrace.Trace agree on: which instruments there are, what they are
// called, and which labels an event gets. lockotel (OpenTelemetry) and lockprom (Prometheus) are made of it, and so may be a module
// for another system. A service takes one of these instead.
//
// docs/metrics.md has the instruments for those who run the service.
package lockmetrics
