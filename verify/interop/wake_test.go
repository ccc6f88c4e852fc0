package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Each side's release wakes the other side's waiter, long before a poll (a minute here, for ours) or the lease (30 s)
// would. How long it takes is logged; it includes a message through a pipe for Redisson's half.
func TestEachWakesTheOther(t *testing.T) {
	const rounds = 50
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) { // not parallel: it measures
			s := newSite(t)
			c, client := s.client(), s.java()
			var wakesJava, wakesUs []time.Duration
			for i := range rounds {
				name := fmt.Sprint("l", i) // a channel that nobody listens to yet
				channel := "redisson_lock__channel:{" + name + "}"
				ours, java := newLock(c, k, name), client.lock("a", k, name)
				held, _ := take(t, ours, t.Context())
				waits := java.startLock()
				s.asleep(channel, 1)
				began := time.Now()
				noError(t, ours.Unlock(held))
				wakesJava = append(wakesJava, client.must(waits).at.Sub(began))

				s.listened(channel, 0)
				call := begin(func() (context.Context, error) { return ours.Lock(t.Context()) })
				s.asleep(channel, 1)
				began = time.Now()
				java.unlock()
				got := await(t, call, soon, "our waiter")
				noError(t, got.err)
				wakesUs = append(wakesUs, got.at.Sub(began))
				noError(t, ours.Unlock(got.ctx))
			}
			t.Logf("our release wakes Redisson's waiter: %s", spread(wakesJava))
			t.Logf("Redisson's release wakes our waiter: %s", spread(wakesUs))
			if longest := max(wakesJava[rounds-1], wakesUs[rounds-1]); longest > soon {
				t.Errorf("a wait of %v after a release", longest)
			}
		})
	}
}

// A crowd on both sides waits for a hold of each side in turn; all of them get the lock, one after the other.
func TestACrowdOnBothSides(t *testing.T) {
	t.Parallel()
	const each = 8
	s := newSite(t)
	c, client := s.client(), s.java()
	for _, k := range kinds {
		name := string(k)
		ours := newLock(c, k, name)
		holder := client.lock("holder", k, name)
		for _, byJava := range []bool{false, true} {
			var release func()
			if byJava {
				holder.lock()
				release = holder.unlock
			} else {
				held, _ := take(t, ours, t.Context())
				release = func() { noError(t, ours.Unlock(held)) }
			}
			var inside sync.Mutex // whoever has the lock finds it unlocked
			done := make(chan error, 2*each)
			for i := range each {
				java := client.lock(string(rune('a'+i)), k, name)
				section := func() {
					if !inside.TryLock() {
						t.Error("two holders at once")
						return
					}
					time.Sleep(time.Millisecond)
					inside.Unlock()
				}
				go func() {
					_, err := client.jvm.result(java.startLock())
					if err == nil {
						section()
						_, err = java.try("unlock")
					}
					done <- err
				}()
				go func() {
					held, err := ours.Lock(rlock.NewHolder(t.Context()))
					if err == nil {
						section()
						err = ours.Unlock(held)
					}
					done <- err
				}()
			}
			s.asleep("redisson_lock__channel:{"+name+"}", 2)
			release()
			for range 2 * each {
				noError(t, await(t, done, patience, "everybody's turn"))
			}
			free(t, ours)
		}
	}
}

// A thread of Redisson's among four busy clients of ours gets in all the time (P15: a bounded series of local handoffs,
// and a pause after it).
func TestARedissonWaiterAmongBusyClients(t *testing.T) { // not parallel: it measures
	const turns = 20
	s := newSite(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	var mu sync.Mutex
	pairs := 0
	for range 4 {
		l := fenced.NewLock(s.client(), "l")
		for range 4 {
			workers.Go(func() {
				for ctx.Err() == nil {
					held, _, err := l.LockAndGetToken(context.Background())
					if err == nil {
						err = l.Unlock(held)
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					pairs++
					mu.Unlock()
				}
			})
		}
	}
	java := s.java().lock("a", fencedKind, "l")
	var waits []time.Duration
	began := time.Now()
	for range turns {
		asked := time.Now()
		java.lock()
		waits = append(waits, time.Since(asked))
		java.unlock()
	}
	stop()
	workers.Wait()
	mu.Lock()
	defer mu.Unlock()
	t.Logf("Redisson's waits: %s; meanwhile %d holds of ours in %v", spread(waits), pairs, time.Since(began).Round(time.Millisecond))
	if waits[turns-1] > soon {
		t.Errorf("a wait of %v", waits[turns-1])
	}
	if pairs < turns {
		t.Errorf("%d holds of ours: nobody was busy", pairs)
	}
}
