package sqlguard

import (
	"reflect"
	"slices"
	"strings"
)

// What a database says when it ends a transaction, or a wait in one, for the sake of another.
var (
	// serialization_failure, deadlock_detected, lock_not_available
	retryStates = []string{"40001", "40P01", "55P03"}
	// deadlock, lock wait timeout, record changed since the snapshot (MariaDB), NOWAIT, rollback during commit (group
	// replication)
	retryNumbers = []int64{1213, 1205, 1020, 3572, 3101}
	// SQLITE_BUSY, SQLITE_LOCKED; their extended codes are in the higher bits
	retryCodes = []int64{5, 6}
)

// Retryable tells whether a database has ended a transaction for the sake of another one, or a wait for a lock, so that
// nothing was written, and the whole transaction may be tried again: from its beginning, with the same token, as long as
// the lock is held. It is false for everything else, above all for guard.ErrStale. It is true also for such an error of a
// commit, which is ErrUnknown otherwise.
//
// It knows the errors of a driver by their SQLState method (pgx, lib/pq), or by the number that they have: Number of
// go-sql-driver/mysql, Code of the drivers for SQLite (modernc.org/sqlite, mattn/go-sqlite3, ncruces/go-sqlite3).
func Retryable(err error) bool {
	if err == nil {
		return false
	}
	if conflict(err) {
		return true
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return Retryable(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), Retryable)
	}
	return false
}

func conflict(err error) bool {
	if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	if err, ok := err.(interface{ SQLState() string }); ok {
		return slices.Contains(retryStates, err.SQLState())
	}
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case strings.Contains(t.PkgPath(), "mysql"):
		return slices.Contains(retryNumbers, number(err, "Number"))
	case strings.Contains(t.PkgPath(), "sqlite"):
		return slices.Contains(retryCodes, number(err, "Code")&0xff)
	}
	return false
}

// number is what the error's method of this name returns, or its field of this name holds; 0 if it has neither.
func number(err error, name string) int64 {
	v := reflect.ValueOf(err)
	if m := v.MethodByName(name); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		v = m.Call(nil)[0]
	} else if v = reflect.Indirect(v); v.Kind() == reflect.Struct {
		v = v.FieldByName(name)
	}
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	}
	return 0
}
