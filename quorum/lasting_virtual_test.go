package quorum_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// Each node that has the hold says that it is meant to last.
func TestLasting(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		u := s.user(rlock.WithPresence("first"))
		h, err := u.lock("l").Acquire(t.Context(), rlock.Lasting("serves"))
		locktest.NoError(t, err)
		locktest.Sleep(30 * time.Second)
		for i := range s.nodes {
			in, err := inspect.New(s.connect(i))
			locktest.NoError(t, err)
			all, err := in.Look(t.Context(), "l")
			locktest.NoError(t, err)
			if have := all[0].Holder; have == nil || have.Lasting != "serves" {
				t.Errorf("node %d: %+v", i, have)
			}
		}
		locktest.NoError(t, h.Unlock(t.Context()))
	})
}
