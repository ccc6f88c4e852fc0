package interop

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// What each side gets of a lock that all want all the time. No side gets nothing. The log has the shares, which are measured on a
// quiet machine: where sections are empty a JVM takes the lock again before others hear of its release, the more so the busier
// the machine is.
func TestShares(t *testing.T) { // not parallel: it measures
	const threads, during = 8, 4 * time.Second
	for _, c := range []struct {
		clients, callers int
		inside           time.Duration
	}{
		{30, 1, 0},
		{30, 1, 2 * time.Millisecond},
		{1, 8, 0},
		{1, 8, 2 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d clients with %d callers, %v", c.clients, c.callers, c.inside), func(t *testing.T) {
			s := newSite(t)
			java := s.java()
			lock := java.lock("warm", fencedKind, "l")
			lock.lock()
			lock.unlock()
			began := time.Now()
			ctx, stop := context.WithTimeout(t.Context(), during)
			defer stop()
			var ours atomic.Int64
			var all sync.WaitGroup
			for range c.clients {
				l := fenced.NewLock(s.client(), "l")
				for range c.callers {
					all.Go(func() {
						for ctx.Err() == nil {
							held, _, err := l.LockAndGetToken(context.Background())
							if err == nil {
								time.Sleep(c.inside)
								err = l.Unlock(held)
							}
							if err != nil {
								t.Error(err)
								return
							}
							ours.Add(1)
						}
					})
				}
			}
			var waits []<-chan answer
			for i := range threads {
				args := url.Values{"kind": {string(fencedKind)}, "name": {"l"}, "for": {fmt.Sprint(during.Milliseconds())}, "inside": {fmt.Sprint(c.inside.Milliseconds())}}
				waits = append(waits, java.send(fmt.Sprint("thread", i), "holds", args))
			}
			theirs := int64(0)
			for _, w := range waits {
				theirs += java.must(w).number()
			}
			all.Wait()
			one := float64(ours.Load()) / float64(c.clients*c.callers)
			ratio := float64(theirs) / threads / one
			t.Logf("%s: ours %d, Redisson %s %d, %.2f of all; a thread of Redisson's has %.2f of what a caller of ours has", t.Name(), ours.Load(), java.version(), theirs,
				float64(theirs)/float64(theirs+ours.Load()), ratio)
			// On a machine that was late for a tenth of the time a JVM that gets no processor comes too late for its turns.
			share, late := float64(theirs)/float64(theirs+ours.Load()), redistest.Late(began)
			if theirs == 0 || ours.Load() == 0 || (share < 0.01 || share > 0.99) && late < during/10 {
				t.Errorf("Redisson has %.3f of all holds; the machine was late for %v", share, late)
			}
		})
	}
}
