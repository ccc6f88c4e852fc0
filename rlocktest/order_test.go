package rlocktest_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// under takes inner under outer.
func under(t testing.TB, c *rlock.Client, outer, inner string) {
	t.Helper()
	locktest.NoError(t, fenced.NewLock(c, outer).Do(context.Background(), func(ctx context.Context, _ int64) error {
		return fenced.NewLock(c, inner).Do(ctx, func(context.Context, int64) error { return nil })
	}))
}

func TestCyclesFailTheTest(t *testing.T) {
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		under(t, s.Client(), "a", "b")
		under(t, s.Client(), "b", "c")
		under(t, s.Client(), "c", "a")
	})
	for _, part := range []string{"circle", `"b" under "a" at order_test.go:`, `"c" under "b"`, `"a" under "c"`} {
		if !strings.Contains(got, part) {
			t.Errorf("the test was told %q, want %q", got, part)
		}
	}
	for name, test := range map[string]func(t testing.TB){
		"one order": func(t testing.TB) {
			s := rlocktest.New(t)
			under(t, s.Client(), "a", "b")
			under(t, s.Client(), "a", "c")
			under(t, s.Client(), "b", "c")
			under(t, s.Client(), "a", "a")
		},
		"allowed": func(t testing.TB) {
			s := rlocktest.New(t, rlocktest.AllowCycles())
			under(t, s.Client(), "a", "b")
			under(t, s.Client(), "b", "a")
		},
	} {
		locktest.Equal(t, name, told(t, test), "")
	}
}

// A call that waits in vain, as in a deadlock, counts too.
func TestCyclesOfThoseThatWait(t *testing.T) {
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		c := s.Client()
		under(t, c, "a", "b")
		s.Hold("a")
		locktest.NoError(t, fenced.NewLock(c, "b").Do(context.Background(), func(ctx context.Context, _ int64) error {
			_, _, err := fenced.NewLock(c, "a").TryLockAndGetToken(ctx, 1e9, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			return nil
		}))
	})
	if !strings.Contains(got, "circle") {
		t.Errorf("the test was told %q", got)
	}
}

// A call with wait 0 that is refused has neither the lock nor waited for it.
func TestNoCycleByARefusedCall(t *testing.T) {
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		c := s.Client()
		under(t, c, "a", "b")
		s.Hold("a")
		locktest.NoError(t, fenced.NewLock(c, "b").Do(context.Background(), func(ctx context.Context, _ int64) error {
			_, _, err := fenced.NewLock(c, "a").TryLockAndGetToken(ctx, 0, 0)
			locktest.IsError(t, err, rlock.ErrNotAcquired)
			return nil
		}))
	})
	locktest.Equal(t, "told", got, "")
}

// A call with wait 0 waits for nobody, also where it gets the lock. RequireOrder sees it all the same.
func TestNoCycleByACallThatDoesNotWait(t *testing.T) {
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		c := s.Client()
		for range 2 {
			under(t, c, "a", "b")
			locktest.NoError(t, fenced.NewLock(c, "b").Do(context.Background(), func(ctx context.Context, _ int64) error {
				return fenced.NewLock(c, "a").Do(ctx, func(context.Context, int64) error { return nil }, rlock.Wait(0))
			}))
		}
		s.RequireOrder("a", "b")
	})
	if want := `"a" was taken under "b"`; strings.Contains(got, "circle") || !strings.Contains(got, want) {
		t.Errorf("the test was told %q, want %s and no circle", got, want)
	}
}

// A holder that has the lock already waits for nobody: a re-entry under another lock makes no circle, and is no order.
func TestNoCycleByAReentry(t *testing.T) {
	reenter := func(t testing.TB, c *rlock.Client, wait time.Duration) {
		t.Helper()
		a, b := fenced.NewLock(c, "a"), fenced.NewLock(c, "b")
		locktest.NoError(t, a.Do(context.Background(), func(ctx context.Context, _ int64) error {
			return b.Do(ctx, func(ctx context.Context, _ int64) error {
				return a.Do(ctx, func(context.Context, int64) error { return nil }, rlock.Wait(wait))
			})
		}))
	}
	locktest.Equal(t, "told", told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		reenter(t, s.Client(), 0)
		reenter(t, s.Client(), time.Minute)
		s.RequireOrder("a", "b")
	}), "")
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		reenter(t, s.Client(), time.Minute)
		under(t, s.Client(), "b", "a")
	})
	if !strings.Contains(got, `"a" under "b" at order_test.go:`) {
		t.Errorf("the test was told %q of a real circle", got)
	}
}

func TestRequireOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		under(t, s.Client(), "a", "b")
		s.RequireOrder("a", "b")
	})
	got := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		under(t, s.Client(), "a", "b")
		s.RequireOrder("b", "a")
	})
	if !strings.Contains(got, `"b" was taken under "a" at order_test.go:`) || !strings.Contains(got, `"a" was not taken under "b"`) {
		t.Errorf("the test was told %q", got)
	}
}
