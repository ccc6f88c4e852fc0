package lockmetrics_test

import (
	"context"
	"fmt"

	"github.com/fencelock/fencelock/observe/lockmetrics"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// The names and labels on which a module for another system of metrics agrees with lockprom and lockotel.
func Example() {
	fmt.Println(lockmetrics.AcquireDuration.Name, lockmetrics.AcquireDuration.Unit, lockmetrics.AcquireDuration.Prometheus())

	acquired := lockmetrics.AcquireOf(locktrace.AcquireDone{By: locktrace.FromHandoff})
	fmt.Println(acquired.Outcome(), acquired.How())
	failed := lockmetrics.AcquireOf(locktrace.AcquireDone{Err: rlock.ErrClosed})
	fmt.Println(failed.Outcome(), failed.ErrorType())
	given := lockmetrics.AcquireOf(locktrace.AcquireDone{Err: context.DeadlineExceeded})
	fmt.Println(given.Outcome(), given.ErrorType())
	// Output:
	// fencelock.acquire.duration s fencelock_acquire_duration_seconds
	// acquired handoff
	// error closed
	// error deadline_exceeded
}
