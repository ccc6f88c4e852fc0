package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A Result is what an acquiring call returned.
type Result struct {
	Ctx   context.Context
	Token int64 // 0 for a call that returns none
	Err   error
	At    time.Time // when the call returned
}

// Start makes a call on a goroutine of its own. The channel gives its error.
func Start(call func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- call() }()
	return ch
}

// StartLock makes an acquiring call on a goroutine of its own. The channel gives its result.
func StartLock(call func() (context.Context, error)) <-chan Result {
	return StartFenced(func() (context.Context, int64, error) {
		ctx, err := call()
		return ctx, 0, err
	})
}

// StartFenced is [StartLock] for a call that returns a token too.
func StartFenced(call func() (context.Context, int64, error)) <-chan Result {
	ch := make(chan Result, 1)
	go func() {
		ctx, token, err := call()
		ch <- Result{ctx, token, err, time.Now()}
	}()
	return ch
}

// NothingComes requires that the channel gives nothing for this time.
func NothingComes[T any](t testing.TB, ch <-chan T, within time.Duration, what string) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-ch:
		t.Fatalf("%s: got %+v, want nothing for %v", what, v, within)
	case <-timer.C:
	}
}

// TookAtMost requires that what began then has taken no longer than the bound. The slack is the machine's: it grows on a
// machine that is busy.
func TookAtMost(t testing.TB, began time.Time, bound, slack time.Duration, what string) {
	t.Helper()
	if took := time.Since(began); took > redistest.Bound(began, bound+slack) {
		t.Fatalf("%s%s: took %v, want %v at most", realtime.Bound(), what, took.Round(time.Millisecond), bound)
	}
}
