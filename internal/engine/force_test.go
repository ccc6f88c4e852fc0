package engine

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// Inv9: what a lock state keeps of the holds that this client forced open goes with the lock state, and where that is in use
// for ever, as soon as no answer can be about them. Of others' holds it keeps nothing.
func TestInv9_NothingIsKeptOfForcedHolds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		c, err := newTestClient(rdb)
		locktest.NoError(t, err)
		defer func() { _ = c.Close() }()
		ls := c.lockState(stateKey{name: "l"})
		for range 100 {
			ls.holdForcedOpen(scripts.State{Field: c.newField(), TTL: 10 * time.Second}, true)
			ls.holdForcedOpen(scripts.State{Field: "6b1f0d1e-0000-4000-8000-000000000001:1", TTL: 10 * time.Second}, true)
			ls.holdForcedOpen(scripts.State{Field: c.newField(), TTL: 10 * time.Second}, false)
			time.Sleep(10 * time.Second)
		}
		if n := len(ls.past.forced); n > 7 { // a minute's
			t.Errorf("%d are kept", n)
		}
		if n := len(c.forced); n > 0 { // where those of permits are
			t.Errorf("%d of others are kept", n)
		}
		ls.removeUser()
		if len(c.spareStates) != 1 || c.spareStates[0].past != nil {
			t.Error("a lock state that is used again has those of another lock")
		}
	})
}
