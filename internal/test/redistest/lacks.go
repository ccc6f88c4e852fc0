package redistest

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// Lacks ends a test that needs what the server has not got, for this reason. It
// skips the test on Redis 6; on any other server the test fails, for there the
// reason hides a fault.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if !redisserver.IsRedis6() {
		t.Fatalf(format, args...)
	}
	t.Skipf("DID NOT RUN on Redis 6: "+format, args...)
}
