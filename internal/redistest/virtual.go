package redistest

import (
	"testing"
	"testing/synctest"
)

// Virtual is synctest.Test for tests with [Pipe]. Where REDIS_SERVER is set the
// test is skipped: no server can make it differ, and make test runs it in its
// first pass.
func Virtual(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if IsReal() {
		t.Skip("in virtual time, on miniredis: for a run without REDIS_SERVER")
	}
	synctest.Test(t, test)
}
