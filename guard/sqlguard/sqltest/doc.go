// Package sqltest tests sqlguard on real databases. It is a module of its own, so that the drivers stay out of the
// library's. The tests start their servers themselves, in a temporary folder and without a network, and stop them:
//
//	env $(../../../.ci/databases) GOWORK=off go test ./...
//
// The programs are those that POSTGRES_SERVER and MARIADB_SERVER name, paths of postgres and mariadbd, or else those
// that Debian's packages install. Tests without them fail. They need a Unix system.
package sqltest
