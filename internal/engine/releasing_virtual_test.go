package engine

import (
	"os"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// A release that is delayed is told once, and its end once: for how long it was delayed, and
// whether Redis has confirmed it.
func TestTraceOfDelayedReleases(t *testing.T) {
	for what, c := range map[string]struct {
		after     time.Duration // the store confirms releases from then on; 0: never
		says      error         // until then
		closes    bool
		onlyEnds  bool // the user wants to be told of ends alone
		confirmed bool
		took      time.Duration
	}{
		"confirmed":            {after: 5 * time.Second, says: os.ErrDeadlineExceeded, confirmed: true, took: 5100 * time.Millisecond},
		"told of ends alone":   {after: 5 * time.Second, says: os.ErrDeadlineExceeded, onlyEnds: true, confirmed: true, took: 5100 * time.Millisecond},
		"the lease is over":    {says: locktest.Reply("ERR refused by somebody on the way"), took: 34100 * time.Millisecond},
		"the client is closed": {says: os.ErrDeadlineExceeded, closes: true, took: 3 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				var log locktest.Log
				delayed, ended := make(chan locktrace.ReleaseDelayed, 9), make(chan locktrace.ReleaseEnded, 9)
				client, store := newFakeClient(t, new(fakeBus), Limits{}, logTo(&log), func(s *Settings) {
					s.UnlockTimeout = time.Second
					s.Trace = &locktrace.Trace{
						ReleaseDelayed: func(e locktrace.ReleaseDelayed) { delayed <- e },
						ReleaseEnded:   func(e locktrace.ReleaseEnded) { ended <- e },
					}
					if c.onlyEnds {
						s.Trace.ReleaseDelayed = nil
					}
				})
				began := time.Now()
				store.answers(func() error {
					if c.after == 0 || time.Since(began) < c.after {
						return c.says
					}
					return nil
				})
				a := &takenBy(client, "l", 30*time.Second).attempts
				client.releaser.Release(a)
				locktest.Sleep(2 * time.Second)
				if !c.onlyEnds {
					locktest.Equal(t, "told at first", len(delayed), 1)
					locktest.Equal(t, "told of", <-delayed, locktrace.ReleaseDelayed{Client: client.id, Lock: "l", Field: a.Field})
				}
				locktest.Equal(t, "ends at first", len(ended), 0)
				if c.closes {
					locktest.NoError(t, client.Close())
				}
				locktest.Sleep(time.Minute)
				if len(delayed) != 0 || len(ended) != 1 {
					t.Fatalf("%d more are delayed and %d have ended", len(delayed), len(ended))
				}
				e := <-ended
				if e.Client != client.id || e.Lock != "l" || e.Field != a.Field || e.Confirmed != c.confirmed || e.Took.Round(100*time.Millisecond) != c.took {
					t.Errorf("told of %+v, want %v after %v", e, c.confirmed, c.took)
				}
			})
		})
	}
}
