package rlock_test

import (
	"context"
	"errors"
	"fmt"
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
	for how, failover := range map[string]func(s *redistest.Sentinels, master *redistest.Server) *redistest.Server{
		"command": func(s *redistest.Sentinels, _ *redistest.Server) *redistest.Server { return s.Failover() },
		"kill": func(s *redistest.Sentinels, master *redistest.Server) *redistest.Server {
			master.Kill()
			return s.AwaitMaster(master)
		},
		"freeze": func(s *redistest.Sentinels, master *redistest.Server) *redistest.Server {
			master.Freeze()
			return s.AwaitMaster(master)
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := redistest.Watched(t, 2)
			opts := []rlock.Option{rlock.WithLease(topLease), rlock.WithPatience(topBound)}
			one, two := faultClient(t, s.Client(), opts...), faultClient(t, s.Client(), opts...)
			locks := topTake(t, one, two, "a", "b", "c", "{d}e", "f")
			through, meanwhile, given := locks[:3], locks[3], locks[4]
			old := s.Master()
			(&redistest.Replication{Master: old, Replicas: s.Nodes[1:]}).Sync()

			if how != "command" { // else there is always a master
				old.Freeze()
				began := time.Now()
				short := faultTimeout(t, t.Context(), 100*time.Millisecond)
				_, err := fenced.NewLock(one, "g").TryLock(short, time.Minute, 0)
				faultIs(t, err, context.DeadlineExceeded)
				faultWithin(t, began, 100*time.Millisecond, "a call whose context ends (Inv6)")
				old.Thaw()
			}
			// These calls begin before anybody knows that the master is away.
			inner := handGo(func() (context.Context, int64, error) { return meanwhile.LockAndGetToken(meanwhile.held) })
			var unlocked <-chan error
			if how != "command" {
				old.Freeze()
				began := time.Now()
				unlocked = faultGo(func() error {
					err := given.Unlock(given.held)
					if took := time.Since(began); took > 8*time.Second {
						err = errors.Join(err, fmt.Errorf("Inv7: Unlock took %v", took))
					}
					return err
				})
			}

			master := failover(s, old)
			for _, l := range through {
				l.intact(t)
			}
			got := topGet(t, inner, "the re-entry")
			faultNo(t, got.err)
			meanwhile.token = got.token
			faultNo(t, meanwhile.Unlock(got.ctx))
			topRenewed(t, through)
			if how != "command" {
				if err := topGet(t, unlocked, "the unlock"); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Logf("the unlock that found no master: %v", err)
				}
				given.passed(t)
			} else {
				given.pass(t)
			}

			switch how { // the old one comes back
			case "kill":
				old.Restart()
			case "freeze":
				old.Thaw()
			}
			s.Settle()
			for _, l := range append(through, meanwhile) {
				l.intact(t)
				l.pass(t)
			}
			topClean(t, []*rlock.Client{one, two}, master)
		})
	}
}
