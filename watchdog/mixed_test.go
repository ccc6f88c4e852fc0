package watchdog

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A lease of ten minutes, and then a level that is renewed with 30 s: from the first renewal on there are 20 s, and what
// goes wrong in them is tried again within them ("tried again until the deadline"), not after a thirtieth or a third of
// the ten minutes.
func TestRenewalShorterThanTheLeaseIsRepeated(t *testing.T) {
	for what, fail := range map[string]func(context.Context, Renewal) error{
		"error": func(context.Context, Renewal) error { return errors.New("no") },
		"hang":  hang,
	} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T, w *Watchdog, s *server) {
				o := newOwner(0)
				w.Add(&o.Lease, now(), 10*time.Minute)
				o.wants(30 * time.Second)
				w.Extend(&o.Lease, now(), 30*time.Second)
				s.answer(fail)
				time.Sleep(9*time.Minute + 42*time.Second) // the first renewal has begun
				if n := len(s.seen()); n == 0 {
					t.Fatal("no renewal yet")
				}
				s.answer(nil)
				time.Sleep(time.Minute)
				o.wantLost(t, nil)
			})
		})
	}
}
