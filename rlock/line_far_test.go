package rlock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// P24: a client that is farther from Redis than others has its turn after the clients that were in the line before it, and loses no place.
// Each of its locks takes the round trip of the attempt by which it enters the line, one turn of each near client, the way of its call and the
// round trip of the attempt that follows, and at most one more: where the call crosses an attempt, that one is in vain.
func TestP24_AFarClientHasItsTurn(t *testing.T) {
	const section, near = 20 * time.Millisecond, 3
	for _, roundTrip := range []time.Duration{120 * time.Millisecond, 250 * time.Millisecond} {
		t.Run(fmt.Sprint(roundTrip), func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				over := make(chan struct{})
				ended := make(chan int, near)
				for range near {
					c := lineNew(t, m)
					go func() {
						turns := 0
						for ; !closedNow(over); turns++ {
							held, err := c.l.Lock(t.Context())
							if err != nil {
								t.Error(err)
								break
							}
							time.Sleep(section)
							if err := c.l.Unlock(held); err != nil {
								t.Error(err)
								break
							}
						}
						ended <- turns
					}()
				}
				far := lineNew(t, m)
				far.link.way = roundTrip / 2
				for turn := range 12 {
					began := time.Now()
					held := take(t, far.l, t.Context())
					took := time.Since(began)
					// In the first turns the client connects, subscribes and sends its scripts, each of which is a round trip or two.
					if most := 3*roundTrip + roundTrip/2 + near*(section+linePause); turn > 4 && took > most {
						t.Errorf("turn %d: the lock took %v, want %v at most", turn, took, most)
					}
					time.Sleep(section)
					locktest.NoError(t, far.l.Unlock(held))
				}
				close(over)
				for range near {
					t.Logf("turns of a near one: %d", <-ended)
				}
			})
		})
	}
}

// P19: clients that are 20 ms away and wait for 80 ms at most hear late of most of what they are told. They do not keep each other from the
// lock by leaving again for it.
func TestP19_LateMessagesCostNoTurns(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const clients, lasts = 12, 20 * time.Second
		var holds atomic.Int64
		var all sync.WaitGroup
		stop := time.Now().Add(lasts)
		for i := range clients {
			p := lineNew(t, m)
			p.link.way = 20 * time.Millisecond
			r := rand.New(rand.NewPCG(1, uint64(i)))
			all.Go(func() {
				for time.Now().Before(stop) {
					wait := time.Duration(1+r.IntN(80)) * time.Millisecond
					if r.IntN(4) == 0 {
						wait = time.Minute
					}
					if held, err := p.l.TryLock(t.Context(), wait, 0); err == nil {
						holds.Add(1)
						time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
						_ = p.l.Unlock(held)
					}
					if r.IntN(3) == 0 {
						time.Sleep(time.Duration(r.IntN(30)) * time.Millisecond)
					}
				}
			})
		}
		all.Wait()
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "in the line", len(lineOf(t, m)), 0)
		if n := holds.Load(); n < 150 { // 170 to 190; 110 to 137 where each late message is a reason to leave
			t.Errorf("%d holds in %v", n, lasts)
		}
	})
}
