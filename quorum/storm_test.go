package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Masters that hang, die and come back empty, and replies that are lost: whatever happens, at most one holder whose context
// is alive, tokens that grow in the order of the holds, and nothing left at the end (Inv1, Inv2, Inv9).
func TestReal_Storm(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { storm(t, seed) })
	}
}

func storm(t *testing.T, seed uint64) {
	s := masters(t, 5)
	var w witness
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var users []*user
	var workers sync.WaitGroup
	for i := range 4 {
		u := s.user(lease(rlock.WithPatience(30*time.Second), rlock.WithLocalHandoffs(20)), patient())
		users = append(users, u)
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		var mu sync.Mutex
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			mu.Lock()
			dice := rng.IntN(100)
			mu.Unlock()
			err := next()
			if dice < 3 && err == nil {
				return io.EOF
			}
			return err
		}, 0, 1, 2, 3, 4)
		l := u.lock("a", fenced.WithClockFloor())
		work := func() {
			for ctx.Err() == nil {
				held, token, err := l.TryLockAndGetToken(ctx, 20*time.Second, 0)
				if err != nil {
					continue
				}
				w.enter(held, token)
				time.Sleep(time.Duration(1+token%5) * time.Millisecond)
				w.leave(held)
				if err := l.Unlock(held); errors.Is(err, rlock.ErrNotHeld) {
					t.Errorf("Unlock: %v", err)
				}
			}
		}
		for range 1 + 3*(i%2) { // the callers of one client pass the lock on
			workers.Go(work)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 99))
	few := func() bool { holds, wrong := w.verdict(); return holds < 20 && wrong == nil } // on a machine that is busy
	for began := time.Now(); time.Since(began) < 8*time.Second || time.Since(began) < bound && few(); {
		node := s.servers[rng.IntN(5)]
		switch rng.IntN(3) {
		case 0:
			node.Restart()
		default:
			node.Freeze()
			time.Sleep(time.Duration(50+rng.IntN(500)) * time.Millisecond)
			node.Thaw()
		}
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
	}
	stop()
	workers.Wait()
	holds, wrong := w.verdict()
	if wrong != nil {
		t.Errorf("seed %d: %v", seed, wrong)
	}
	t.Logf("seed %d: %d holds", seed, holds)
	if holds < 20 {
		t.Errorf("seed %d: only %d holds", seed, holds)
	}
	for _, u := range users {
		u.up()
	}
	s.free("a")
	s.clean("a")
}
