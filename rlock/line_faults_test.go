package rlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// lineStopped puts a ticket in the line whose client is connected and does nothing: its process is stopped, or its host is gone
// and the server does not know it yet.
func lineStopped(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client, i int) string {
	t.Helper()
	client := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
	sub := rdb.Subscribe(t.Context(), lineKey+":"+client)
	_, err := sub.Receive(t.Context())
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = sub.Close() })
	_, err = m.ZAdd(lineKey, float64(1000+i), client+":1")
	locktest.NoError(t, err)
	return client + ":1"
}

// P24: clients at the front of the line are stopped. The second waits for the first one's bound, who is behind the second looks
// after a second, and takes the others out one after the other.
func TestP24_StoppedClients(t *testing.T) {
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				holder := rlock.NewLock(newClient(t, rdb), "l")
				held := take(t, holder, t.Context())
				for i := range n {
					lineStopped(t, m, rdb, i)
				}
				p := lineNew(t, m)
				got := locktest.StartLock(func() (context.Context, error) { return p.l.TryLock(t.Context(), time.Minute, 0) })
				synctest.Wait()
				locktest.Equal(t, "in the line", len(lineOf(t, m)), n+1)
				bound := 100 * time.Millisecond
				if n > 1 {
					bound = time.Second + time.Duration(n)*200*time.Millisecond
				}
				began := time.Now()
				locktest.NoError(t, holder.Unlock(held))
				lineGets(t, p, got, began, bound)
			})
		})
	}
}

// P32: tickets of clients that are gone do not keep a free lock from a call that waits for half a second.
func TestP32_GhostsOfAFreeLock(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			for i := range n {
				_, err := m.ZAdd(lineKey, float64(1000+i), fmt.Sprintf("00000000-0000-0000-0000-%012d:1", i))
				locktest.NoError(t, err)
			}
			p := lineNew(t, m)
			held, err := p.l.TryLock(t.Context(), 500*time.Millisecond, 0)
			if err != nil {
				t.Fatalf("%d ghosts: %v", n, err)
			}
			locktest.NoError(t, p.l.Unlock(held))
		})
	}
}

// P27: clients of several callers each, none of whom is a stranger: nothing is left to strangers, and nobody listens on the lock's own
// channel for long.
func TestP27_CallersAreNoStrangers(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const clients, callers, each = 8, 4, 50
		var all sync.WaitGroup
		began := time.Now()
		var most int
		for range clients {
			p := lineNew(t, m)
			for range callers {
				all.Go(func() {
					for range each {
						held, err := p.l.Lock(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Millisecond)
						most = max(most, m.PubSubNumSub(lockChannel)[lockChannel]) // the lock guards it
						locktest.NoError(t, p.l.Unlock(held))
					}
				})
			}
			synctest.Wait()
		}
		all.Wait()
		idle := time.Since(began) - clients*callers*each*time.Millisecond
		if idle > 10*time.Millisecond || most > 2 {
			t.Errorf("the lock was left alone for %v, and %d listened on its own channel", idle, most)
		}
	})
}

// P24: a client that is called anew has its 100 ms anew. One that was second before, and left, comes back.
func TestP24_TheBoundOfAnotherStay(t *testing.T) {
	lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		barger := rlock.NewLock(newClient(t, p[0].link.redis(t, m)), "l")
		second := lineNew(t, m)
		first := lineOf(t, m)[0]
		two := locktest.StartLock(func() (context.Context, error) { return second.l.TryLock(t.Context(), 50*time.Millisecond, 0) })
		synctest.Wait()
		p[0].spy.Wrap(func(ops []string, next func() error) error { // its acquire takes so long that it comes when it is called again
			p[0].spy.Wrap(nil)
			time.Sleep(252 * time.Millisecond)
			return next()
		})
		release()
		held, err := barger.TryLock(t.Context(), 0, 0) // it takes it before the first one comes
		locktest.NoError(t, err)
		<-two // in vain
		locktest.Sleep(200 * time.Millisecond)
		locktest.Equal(t, "the first", lineOf(t, m)[0], first)
		locktest.NoError(t, barger.Unlock(held))
		// The first one is called, and comes in 2 ms.
		began := time.Now()
		held, err = second.l.TryLock(t.Context(), 50*time.Millisecond, 0)
		if err == nil {
			if since := time.Since(began); since < 2*time.Millisecond {
				t.Errorf("another client has the lock %v after the first one was called", since)
			}
			locktest.NoError(t, second.l.Unlock(held))
		}
		lineGets(t, p[0], got[0], began, time.Second)
	})
}

// P24: within one stay: called in vain, and called again.
func TestP24_TheBoundOfAnotherCall(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		barger := rlock.NewLock(newClient(t, p[0].link.redis(t, m)), "l")
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			p[0].spy.Wrap(nil)
			time.Sleep(105 * time.Millisecond)
			return next()
		})
		began := time.Now()
		release()
		held, err := barger.TryLock(t.Context(), 0, 0)
		locktest.NoError(t, err)
		third := lineNew(t, m)
		last := third.waits(t, t.Context()) // its hold knows from now on that others are in the line
		locktest.Sleep(80 * time.Millisecond)
		locktest.NoError(t, barger.Unlock(held)) // the first one is called again, and comes in 25 ms
		lineGets(t, p[0], got[0], began, 110*time.Millisecond)
		lineGets(t, p[1], got[1], began, 150*time.Millisecond)
		lineGets(t, third, last, began, 150*time.Millisecond)
	})
}

// P12: Shutdown at the moment at which a lingering ends waits for the holds all the same.
func TestP12_ShutdownAsALingeringEnds(t *testing.T) {
	early := 0
	for range 30 {
		lineSite(t, 1, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
			release()
			g := <-got[0]
			locktest.NoError(t, g.Err)
			time.Sleep(2 * time.Second) // lineLingers
			done := make(chan error, 1)
			go func() { done <- p[0].c.Shutdown(context.Background()) }()
			time.Sleep(time.Second)
			select {
			case <-done:
				early++
				done <- nil
			default:
			}
			_ = p[0].l.Unlock(g.Ctx)
			runtime.KeepAlive(g.Ctx)
			<-done
		})
	}
	if early > 0 {
		t.Errorf("it has not waited %d times of 30", early)
	}
}

// P25: a short wait beside a Redisson client, which releases in time.
func TestP25_ShortWaitBesideRedisson(t *testing.T) {
	for _, wait := range []time.Duration{5, 10, 15, 19, 25} {
		t.Run((wait * time.Millisecond).String(), func(t *testing.T) { lineShortWait(t, wait*time.Millisecond) })
	}
}

func lineShortWait(t *testing.T, wait time.Duration) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		p := lineNew(t, m)
		javaHolds(t, rdb, time.Hour)
		time.AfterFunc(wait/2, func() {
			m.Del("l")
			rdb.Publish(context.Background(), lockChannel, "0")
		})
		held, err := p.l.TryLock(t.Context(), wait, 0)
		if err != nil {
			t.Errorf("wait %v, released after %v: %v", wait, wait/2, err)
			return
		}
		locktest.NoError(t, p.l.Unlock(held))
	})
}

// P32: leases that run out: each of the clients takes the lock with a lease of its own and never unlocks it.
func TestP32_LeasesRunOut(t *testing.T) {
	for _, lease := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(lease.String(), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				const clients = 6
				javaHolds(t, rdb, 3*time.Second)
				began := time.Now()
				var got []<-chan locktest.Result
				for range clients {
					l := rlock.NewLock(newClient(t, redistest.PipeClient(t, m)), "l")
					got = append(got, locktest.StartLock(func() (context.Context, error) { return l.LockLease(t.Context(), lease) }))
					synctest.Wait()
				}
				var last time.Duration
				for i := range clients {
					g := <-got[i]
					locktest.NoError(t, g.Err)
					last = max(last, g.At.Sub(began)-3*time.Second)
				}
				if ideal := (clients - 1) * lease; last > ideal+clients*110*time.Millisecond {
					t.Errorf("the last one has it after %v, the leases together are %v", last, ideal)
				}
			})
		})
	}
}

// P25: the first in the line is stopped, and a Redisson client takes the lock again and again, for most of the time. The others in
// the line get it all the same, and no sooner than the first one is late.
func TestP25_StoppedBesideRedisson(t *testing.T) {
	for _, n := range []int{1, 3} {
		locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
			lineStopped(t, m, rdb, 0)
			javaHolds(t, rdb, 30*time.Second)
			ctx, stop := context.WithTimeout(t.Context(), 50*time.Second)
			defer stop()
			began := time.Now()
			var all sync.WaitGroup
			for range n {
				p := lineNew(t, m)
				p.link.way = 400 * time.Microsecond
				all.Go(func() {
					held, err := p.l.Lock(ctx)
					if err != nil {
						t.Errorf("%d clients: %v", n, err)
						return
					}
					if late := time.Since(began); late > 2*time.Second {
						t.Errorf("%d clients: one has it after %v", n, late)
					}
					_ = p.l.Unlock(held) // lost, if the other one came at the same moment
				})
			}
			synctest.Wait()
			locktest.Sleep(10 * time.Millisecond) // they are in the line
			done := make(chan struct{})
			go func() {
				defer close(done)
				for free := 0; ctx.Err() == nil; free++ {
					m.Del("l")
					rdb.Publish(t.Context(), lockChannel, "0")
					time.Sleep(time.Duration(500+1000*(free%2)) * time.Microsecond) // every other time it is back before one of ours comes
					for m.Exists("l") {
						time.Sleep(time.Millisecond)
					}
					javaHolds(t, rdb, 30*time.Second)
					time.Sleep(4 * time.Millisecond)
				}
			}()
			all.Wait()
			stop()
			<-done
		})
	}
}

// P24: a first one that was called in vain, and is alive, keeps its place beside a Redisson client: the second learns that it lives.
func TestP24_AliveBesideRedisson(t *testing.T) {
	lineSite(t, 2, func(t *testing.T, m *miniredis.Miniredis, release func(), p []*lineClient, got []<-chan locktest.Result) {
		rdb := redistest.PipeClient(t, m)
		locktest.Sleep(500 * time.Millisecond) // both listen
		locktest.Equal(t, "listeners", m.PubSubNumSub(lockChannel)[lockChannel], 2)
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			p[0].spy.Wrap(nil)
			javaHolds(t, rdb, time.Hour)
			return next()
		})
		release()
		first := lineOf(t, m)[0]
		locktest.Sleep(110 * time.Millisecond) // longer than the bound
		p[0].spy.Wrap(func(ops []string, next func() error) error {
			time.Sleep(2 * time.Millisecond)
			return next()
		})
		m.Del("l")
		began := time.Now()
		rdb.Publish(t.Context(), lockChannel, "0")
		locktest.Sleep(time.Millisecond)
		if line := lineOf(t, m); len(line) != 2 || line[0] != first {
			t.Errorf("the first was %s, and the line is %v", first, line)
		}
		lineGets(t, p[0], got[0], began, 10*time.Millisecond)
		lineGets(t, p[1], got[1], began, 20*time.Millisecond)
	})
}
