package redisguard_test

import (
	"testing"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// Each write that is refused because of a newer token is told, and no other one.
func TestTraceOfRefusedWrites(t *testing.T) {
	var told []locktrace.WriteRefused
	_, g := fresh(t, redisguard.WithTrace(&locktrace.Trace{WriteRefused: func(e locktrace.WriteRefused) { told = append(told, e) }}))
	set(t, g.Writer(resource, 7), "a")
	locktest.IsError(t, g.Writer(resource, 6).Do(t.Context(), "SET", key, "b").Err(), guard.ErrStale)
	locktest.IsError(t, g.Writer(resource, 5).Eval(t.Context(), "return 1", nil).Err(), guard.ErrStale)
	locktest.IsError(t, g.Writer(resource, 0).Do(t.Context(), "SET", key, "b").Err(), guard.ErrToken)
	locktest.DeepEqual(t, "what was told", told, []locktrace.WriteRefused{{Context: t.Context(), Guard: "redis", Resource: resource, Token: 6, Seen: 7}, {Context: t.Context(), Guard: "redis", Resource: resource, Token: 5, Seen: 7}})
}
