package quorum_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// What lies at the lock's name and is no lock of this kind is refused, and stays as it is.
func TestAnotherObjectOfTheName(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		for _, m := range s.minis {
			m.HSet("l", "mode", "write", "6b1f0d1e-0000-4000-8000-000000000001:1:write", "1")
			m.SetTTL("l", time.Hour)
		}
		l := s.user().lock("l")
		refused := func(call string, err error) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), "'mode'") {
				t.Errorf("%s: %v", call, err)
			}
		}
		_, err := l.IsLocked(t.Context())
		refused("IsLocked", err)
		_, err = l.ForceUnlock(t.Context())
		refused("ForceUnlock", err)
		_, _, err = l.TryLockAndGetToken(t.Context(), 0, 0)
		refused("TryLock", err)
		began := time.Now()
		_, _, err = l.LockAndGetToken(t.Context())
		refused("Lock", err)
		if took := time.Since(began); took > time.Second {
			t.Errorf("Lock took %v", took)
		}
		for i, m := range s.minis {
			if m.HGet("l", "mode") != "write" || m.HGet("l", "6b1f0d1e-0000-4000-8000-000000000001:1:write") != "1" {
				t.Errorf("node %d: it was changed", i)
			}
		}
	})
}

// Where that is on a minority of the nodes, the others have the lock, and it can be forced open.
func TestAnotherObjectOnAMinority(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		s.minis[1].HSet("l", "mode", "write")
		s.minis[1].SetTTL("l", time.Hour)
		l := s.user().lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		freed, err := s.user().lock("l").ForceUnlock(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		_ = l.Unlock(held)
		locktest.Sleep(time.Minute)
		locktest.Equal(t, "what is there", s.minis[1].HGet("l", "mode"), "write")
	})
}
