package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// topLease is the lease of holds that must come through a failover, which takes two to five seconds: they are renewed
// every 5 s, and Redis may be away for 10.
const topLease = 15 * time.Second

// A failover that finds the replica up to date loses nothing: every hold goes on and is renewed at the new master, every
// waiter gets its turn there, calls that come while there is no master are ridden out or end in time, and the old master
// brings nothing back.
func TestSentinelFailoverKeepsWhatWasReplicated(t *testing.T) {
	t.Parallel()
	for how, strike := range map[string]func(*redistest.Server){
		"command": nil,
		"kill":    (*redistest.Server).Kill,
		"freeze":  (*redistest.Server).Freeze,
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := redistest.Watched(t, 2)
			opts := []rlock.Option{rlock.WithLease(topLease), rlock.WithPatience(topBound)}
			one, two := faultClient(t, s.Client(), opts...), faultClient(t, s.Client(), opts...)
			locks := topTake(t, one, two, 0, "a", "b", "c", "{d}e")
			through, meanwhile := locks[:3], locks[3]
			brief := faultClient(t, s.Client(), rlock.WithUnlockTimeout(time.Second))
			given := topTake(t, brief, two, 10*time.Minute, "f")[0] // nothing but a release makes it free
			old := s.Master()
			(&redistest.Replication{Master: old, Replicas: s.Nodes[1:]}).Sync()

			if strike != nil {
				old.Freeze()
				began := time.Now()
				short := faultTimeout(t, t.Context(), 100*time.Millisecond)
				_, err := fenced.NewLock(one, "g").TryLock(short, time.Minute, 0)
				faultIs(t, err, context.DeadlineExceeded)
				faultWithin(t, began, 100*time.Millisecond, "a call whose context ends (Inv6)")
				old.Thaw()
			}
			// Calls that nobody answers, or not the one that is to be master.
			inner := handGo(func() (context.Context, int64, error) { return meanwhile.LockAndGetToken(meanwhile.held) })
			var unlocked <-chan error
			var master *redistest.Server
			if strike != nil {
				strike(old)
				unlocked = faultGo(func() error { return given.Unlock(given.held) })
				master = s.AwaitMaster(old)
			} else {
				master = s.Failover()
			}
			for _, l := range through {
				l.intact(t)
			}
			got := topGet(t, inner, "the re-entry")
			faultNo(t, got.err)
			meanwhile.token = got.token
			faultNo(t, meanwhile.Unlock(got.ctx))
			topRenewed(t, through)
			switch how { // the old one comes back
			case "kill":
				old.Restart()
			case "freeze":
				old.Thaw()
			}
			s.Settle() // until then a command may reach the old one, and what that does is lost
			if strike != nil {
				if err := topGet(t, unlocked, "the unlock"); err == nil {
					t.Error("Unlock says that it has released, but there was nobody to tell for longer than it takes (Inv7)")
				}
				given.passed(t) // it was sent again
			} else {
				given.pass(t)
			}
			for _, l := range append(through, meanwhile) {
				l.intact(t)
				l.pass(t)
			}
			topClean(t, []*rlock.Client{one, two, brief}, master)
		})
	}
}
