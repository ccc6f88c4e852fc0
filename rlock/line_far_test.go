package rlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
)

// P24: a client that is farther from Redis than others has its turn after the clients that were in the line before it, and loses no place.
// Each of its locks takes the round trip of the attempt by which it enters the line, one turn of each near client, the round trip of its call
// and of the attempt that follows, and at most one more: where the call crosses an attempt, that one is in vain.
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
					if most := 3*roundTrip + (near+2)*(section+linePause); turn > 4 && took > most {
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
