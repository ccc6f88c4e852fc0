package rlock_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P41: in a cluster a client that does not know yet whether channels are sharded hears of another client too.
func TestP41_AFreshClientInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.Clustered(t, 3, 0)
	if !cl.Sharded() {
		t.Skip("there is no line in a cluster without sharded channels")
	}
	l := rlock.NewLock(newClient(t, cl.Client()), "l")
	h, err := l.Acquire(t.Context())
	locktest.NoError(t, err)
	w := h.Waited()
	next := locktest.Start(func() error {
		h, err := rlock.NewLock(newClient(t, cl.Client()), "l").Acquire(t.Context())
		if err == nil {
			err = h.Unlock(t.Context())
		}
		return err
	})
	select {
	case <-w:
	case <-time.After(15 * time.Second):
		t.Errorf("not heard for 15 s; %d in the line", cl.Client().ZCard(t.Context(), "fencelock_line:{l}").Val())
	}
	locktest.NoError(t, h.Unlock(t.Context()))
	locktest.NoError(t, <-next)
}
