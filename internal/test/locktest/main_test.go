package locktest

import "testing"

// A goroutine counts as left where the project's own code started it or runs in it, and not where only tests do.
func TestGoroutinesThatAreLeft(t *testing.T) {
	for stack, want := range map[string]bool{
		"goroutine 7 [select]:\nruntime.gopark()\ncreated by " + module + "internal/engine.(*releaser).start in goroutine 1": true,
		"goroutine 7 [select]:\n" + module + "pubsub.(*Bus).run(0xc0)\n\t/x/bus.go:1\ncreated by time.goFunc":                true,
		"goroutine 7 [sleep]:\ntime.Sleep()\ncreated by " + module + "rlock_test.TestX in goroutine 1":                       false,
		"goroutine 7 [sleep]:\n" + module + "internal/test/redistest.(*sleeper).run(0xc0)":                                   false,
		"goroutine 1 [running]:\n" + module + "internal/test/locktest.Main(0xc0)\n" + module + "rlock_test.TestMain(0xc0)":   false,
		"goroutine 9 [IO wait]:\nnet.(*conn).Read()\ncreated by github.com/alicebob/miniredis/v2/server.newServer":           false,
	} {
		Equal(t, stack, isLeft(stack), want)
	}
}
