package rlock

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// Inv9: what a lock's queue keeps of the holds that this client forced open goes with the queue, and where that is in use
// for ever, as soon as no answer can be about them. Of others' holds it keeps nothing.
func TestInv9_NothingIsKeptOfForcedHolds(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		_, rdb := redistest.Pipe(t)
		c, err := New(rdb)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		q := c.use("l")
		for range 100 {
			q.forcedOpen(scripts.State{Field: c.field(), TTL: 10 * time.Second}, true)
			q.forcedOpen(scripts.State{Field: "6b1f0d1e-0000-4000-8000-000000000001:1", TTL: 10 * time.Second}, true)
			q.forcedOpen(scripts.State{Field: c.field(), TTL: 10 * time.Second}, false)
			time.Sleep(10 * time.Second)
		}
		if n := len(q.forced); n > 7 { // a minute's
			t.Errorf("%d are kept", n)
		}
		q.done()
		if len(c.spare) != 1 || c.spare[0].forced != nil {
			t.Error("a queue that is used again has those of another lock")
		}
	})
}
