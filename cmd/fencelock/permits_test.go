//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// run --permits runs so many at a time, each with a slot and a token; a killed one's slot is given to another, with a larger token.
func TestRunPermits(t *testing.T) {
	realtime.Test(t, "a child with a lease of 2 s")
	t.Parallel()
	server := redistest.Real(t)
	says := sh(`echo "$FENCELOCK_NAME $FENCELOCK_SLOT $FENCELOCK_TOKEN"; read -r x < ` + fifo(t))
	run := func(flags ...string) *program {
		return start(t, server.Addr(), append(append([]string{"run", "--permits", "2"}, append(flags, "jobs")...), says...)...)
	}
	first := run("--lease", "2s", "--grace", "300ms")
	equal(t, "the first one's", first.line(), "{jobs}:0 0 1")
	second := run()
	equal(t, "the second one's", second.line(), "{jobs}:1 1 1")
	refused := run("-n")
	equal(t, "no permit is left", refused.ends(), exitNotAcquired)
	third := run()
	redistest.Eventually(t, soon, func() bool { return server.Client().ZCard(ctx, "fencelock_line_of:{jobs}:*").Val() == 1 }, "the third one waits")
	first.signal(syscall.SIGKILL)
	equal(t, "the third one's", third.line(), "{jobs}:0 0 2")
	equal(t, "without permits", start(t, server.Addr(), append([]string{"run", "--permits", "0", "jobs"}, says...)...).ends(), exitUsage)
}
