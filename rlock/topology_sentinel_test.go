package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// failoverLease is the lease of holds that must come through a failover. That takes seven to ten seconds; beside other work, where
// Sentinels miss each other's votes and vote again, it has taken 24. The holds are renewed every 15 s, and Redis may be away for 30.
const failoverLease = 45 * time.Second

// longLease is the lease of holds that are over before it is.
const longLease = 3 * time.Minute

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
			opts := []rlock.Option{rlock.WithLease(failoverLease), rlock.WithPatience(failoverBound)}
			one, two := newClient(t, s.Client(), opts...), newClient(t, s.Client(), opts...)
			locks := contest(t, one, two, 0, "a", "b", "c", "{d}e")
			through, meanwhile := locks[:3], locks[3]
			brief := newClient(t, s.Client(), rlock.WithUnlockTimeout(time.Second))
			given := contest(t, brief, two, longLease, "f")[0] // nothing but a release makes it free
			old := s.Master()
			(&redistest.Replication{Master: old, Replicas: s.Nodes[1:]}).Sync()

			if strike != nil {
				old.Freeze()
				began := time.Now()
				short := withTimeout(t, t.Context(), 100*time.Millisecond)
				_, _, err := fenced.NewLock(one, "g").TryLockAndGetToken(short, time.Minute, 0)
				locktest.IsError(t, err, context.DeadlineExceeded)
				within(t, began, 100*time.Millisecond, "a call whose context ends (Inv6)")
				old.Thaw()
			}
			// Calls that nobody answers, or not the one that is to be master.
			inner := locktest.StartFenced(func() (context.Context, int64, error) { return meanwhile.LockAndGetToken(meanwhile.held) })
			var unlocked <-chan error
			var master *redistest.Server
			if strike != nil {
				strike(old)
				unlocked = locktest.Start(func() error { return given.Unlock(given.held) })
				master = s.AwaitMaster(old)
			} else {
				master = s.Failover()
			}
			for _, l := range through {
				l.intact(t)
			}
			got := redistest.Await(t, failoverBound, inner, "the re-entry")
			locktest.NoError(t, got.Err)
			meanwhile.token = got.Token
			locktest.NoError(t, meanwhile.Unlock(got.Ctx))
			awaitRenewals(t, through)
			switch how { // the old one comes back
			case "kill":
				old.Restart()
			case "freeze":
				old.Thaw()
			}
			s.Settle() // until then a command may reach the old one, and what that does is lost
			if strike != nil {
				if err := redistest.Await(t, failoverBound, unlocked, "the unlock"); err == nil {
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
			wantClean(t, []*rlock.Client{one, two, brief}, master)
		})
	}
}
