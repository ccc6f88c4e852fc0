package guard

import (
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// Token gives a context's current token by the lock's name, as fenced.TokenFrom does, and 0 once the hold is over.
func TestToken(t *testing.T) {
	client, err := rlock.New(redistest.New(t))
	locktest.NoError(t, err)
	defer client.Close()
	l := fenced.NewLock(client, "l")
	outer, _, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	inner, _, err := l.LockAndGetToken(outer)
	locktest.NoError(t, err)
	locktest.Equal(t, "outside", Token(t.Context(), "l"), 0)
	locktest.Equal(t, "outer", Token(outer, "l"), 2)
	locktest.Equal(t, "inner", Token(inner, "l"), 2)
	locktest.Equal(t, "another lock", Token(inner, "other"), 0)
	locktest.NoError(t, l.Unlock(inner))
	locktest.NoError(t, l.Unlock(outer))
	locktest.Equal(t, "after the unlock", Token(outer, "l"), 0)
}
