package lockprom

import _ "embed"

// Rules are alerts, as a file of rules for Prometheus: a lock was lost, a write was refused, renewals are late, calls wait for locks
// that nobody holds, releases are not confirmed. The one of waiters takes a lease of 30 s.
//
//go:embed alerts.yml
var Rules []byte

// Dashboard is a dashboard for Grafana, to be imported. It asks for the data source.
//
//go:embed dashboard.json
var Dashboard []byte
