package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// A turnsCrowd is clients that want the lock "l" all the time, each behind a link of its own.
type turnsCrowd struct {
	m       *miniredis.Miniredis
	in      handInside
	links   []*handLink
	spies   []*handSpy
	clients []*rlock.Client
	counts  []*atomic.Int64 // of holds
	all     sync.WaitGroup
	ctx     context.Context
	stop    context.CancelFunc
}

const turnsWay = 250 * time.Microsecond // half a round trip

func turnsNew(t *testing.T, m *miniredis.Miniredis) *turnsCrowd {
	s := &turnsCrowd{m: m}
	s.ctx, s.stop = context.WithCancel(t.Context())
	return s
}

// client adds a client with so many goroutines whose sections take so long.
func (s *turnsCrowd) client(t *testing.T, goroutines int, section time.Duration, opts ...rlock.Option) {
	link := &handLink{way: turnsWay}
	rdb := link.redis(t, s.m)
	c := bhClient(t, rdb, opts...)
	s.clients, s.links, s.counts = append(s.clients, c), append(s.links, link), append(s.counts, new(atomic.Int64))
	s.spies = append(s.spies, handSpyOn(rdb))
	l, count := rlock.NewLock(c, "l"), s.counts[len(s.counts)-1]
	for range goroutines {
		s.all.Go(func() {
			for s.ctx.Err() == nil {
				held, err := l.Lock(s.ctx)
				if err != nil {
					continue
				}
				leave := s.in.enter(t, held, 0)
				count.Add(1)
				if section > 0 {
					time.Sleep(section)
				}
				leave()
				_ = l.Unlock(held)
			}
		})
	}
}

// shares is how many holds each client had in this time.
func (s *turnsCrowd) shares(d time.Duration) []int64 {
	before := make([]int64, len(s.counts))
	for i, c := range s.counts {
		before[i] = c.Load()
	}
	time.Sleep(d)
	for i, c := range s.counts {
		before[i] = c.Load() - before[i]
	}
	return before
}

// end stops the crowd, and requires that nothing is left.
func (s *turnsCrowd) end(t *testing.T) {
	t.Helper()
	s.stop()
	s.all.Wait()
	handFree(t, s.m, 110*time.Millisecond, s.clients...)
	time.Sleep(5 * time.Second) // the bus keeps a channel for a while
	if n := s.m.PubSubNumSub(bhChannel)[bhChannel]; n != 0 {
		t.Errorf("Inv9: %d subscriptions are left", n)
	}
}

// longestFree is how long the lock was free at a time, at most, while this test watched it.
func (s *turnsCrowd) longestFree(d time.Duration) (longest time.Duration) {
	const step = 250 * time.Microsecond
	var free time.Duration
	for began := time.Now(); time.Since(began) < d; time.Sleep(step) {
		if s.m.Exists("l") {
			free = 0
			continue
		}
		if free += step; free > longest {
			longest = free
		}
	}
	return longest
}

func turnsFair(t *testing.T, shares []int64, least float64) {
	t.Helper()
	lo, hi := slices.Min(shares), slices.Max(shares)
	t.Logf("holds: %v", shares)
	if float64(lo) < least*float64(hi) {
		t.Errorf("holds of the clients: %v, the least are %.2f of the most", shares, float64(lo)/float64(hi))
	}
}

// Clients that want the same lock all the time have the same number of turns.
func TestTurnsAreFair(t *testing.T) {
	for _, test := range []struct {
		goroutines int
		section    time.Duration
	}{{1, 0}, {3, 0}, {1, time.Millisecond}, {1, 10 * time.Millisecond}, {3, 10 * time.Millisecond}, {1, 50 * time.Millisecond}} {
		t.Run(fmt.Sprint(test.goroutines, " ", test.section), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				for range 4 {
					s.client(t, test.goroutines, test.section)
				}
				time.Sleep(300 * time.Millisecond)
				window := max(time.Duration(test.goroutines)*time.Second, 640*test.section) // an odd turn is not to matter
				shares := s.shares(window)
				turnsFair(t, shares, 0.9)
				// A hold takes its section and two round trips, of the acquire and of the release, or one in a series; hardly more.
				holds := shares[0] + shares[1] + shares[2] + shares[3]
				trips := 4 * turnsWay
				if test.section == 0 {
					trips = 2 * turnsWay
				}
				if time.Duration(holds)*(test.section+trips) < window*7/10 {
					t.Errorf("%d holds in %v", holds, window)
				}
				s.end(t)
			})
		})
	}
}

// P15: a client that stands back does not try while another one's series still lasts: each of its tries is for a lock
// that was released for it.
func TestTurnsLastAsLongAsSeries(t *testing.T) {
	for _, section := range []time.Duration{0, time.Millisecond, 4 * time.Millisecond} {
		t.Run(section.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				for range 4 {
					s.client(t, 6, section)
				}
				time.Sleep(300 * time.Millisecond)
				for _, spy := range s.spies {
					spy.reset()
				}
				shares := s.shares(3 * time.Second)
				turnsFair(t, shares, 0.8)
				tries, series := 0, 0
				for _, spy := range s.spies {
					tries, series = tries+spy.count("acquire"), series+spy.count("unlock")
				}
				t.Logf("%d tries for %d series", tries, series)
				if series == 0 || tries > series*11/10+4 {
					t.Errorf("%d tries for %d series", tries, series)
				}
				s.end(t)
			})
		})
	}
}

// Redisson's own scripts.
func turnsNaive(t testing.TB, name string) *redis.Script {
	t.Helper()
	text, err := os.ReadFile("../scripts/testdata/naive/" + name + ".lua")
	bhOK(t, err)
	return redis.NewScript(string(text))
}

// turnsRedisson wants the lock all the time as a thread of Redisson does: it subscribes, tries, waits for a message or the
// end of the holder's lease, and tries again. react is how long the JVM takes to wake up.
func turnsRedisson(t *testing.T, ctx context.Context, rdb *redis.Client, react, section time.Duration, count *atomic.Int64) {
	acquire, unlock := turnsNaive(t, "acquire"), turnsNaive(t, "unlock")
	const field = "c9a3e0c8-6a3f-4f7e-9f61-2f4d3a1b5c7d:77"
	sub := rdb.Subscribe(ctx, bhChannel)
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil {
		t.Error(err)
		return
	}
	messages := sub.Channel()
	for ctx.Err() == nil {
		reply, err := acquire.Run(context.Background(), rdb, []string{"l", handCounter}, 30000, field).Int64Slice()
		if err != nil {
			t.Error(err)
			return
		}
		if reply[0] != -1 {
			select {
			case <-messages:
			case <-time.After(time.Duration(reply[0]) * time.Millisecond):
			case <-ctx.Done():
			}
			time.Sleep(react)
			continue
		}
		count.Add(1)
		time.Sleep(section)
		if err := unlock.Run(context.Background(), rdb, []string{"l"}, 30000, field, bhChannel).Err(); err != nil {
			t.Error(err)
			return
		}
	}
}

// P15: a waiter of Redisson's among four busy clients gets in as often as any of them.
func TestTurnsOfARedissonClient(t *testing.T) {
	for _, react := range []time.Duration{0, 500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond} {
		t.Run(react.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				for range 4 {
					s.client(t, 3, 0)
				}
				java := new(atomic.Int64)
				s.counts = append(s.counts, java)
				link := &handLink{way: turnsWay}
				rdb := link.redis(t, m)
				s.all.Go(func() { turnsRedisson(t, s.ctx, rdb, react, 0, java) })
				time.Sleep(500 * time.Millisecond)
				shares := s.shares(time.Second)
				turnsFair(t, shares[:4], 0.5)
				// The others' turns are series of holds: one turn is at most 1 + 32 holds.
				turns := (shares[0] + shares[1] + shares[2] + shares[3]) / 4 / 33
				t.Logf("Redisson's: %d holds; about %d turns of each client", shares[4], turns)
				if shares[4] < turns/2 {
					t.Errorf("Redisson had the lock %d times, each client had about %d turns", shares[4], turns)
				}
				s.end(t)
			})
		})
	}
}

// Listeners that never want the lock are waited for for a bounded time in each second only.
func TestTurnsOfListeners(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		s := turnsNew(t, m)
		for range 2 {
			s.client(t, 1, 0)
		}
		time.Sleep(100 * time.Millisecond)
		without := s.shares(1100 * time.Millisecond)
		var subs []*redis.PubSub
		for range 5 {
			sub := redistest.PipeClient(t, m).Subscribe(t.Context(), bhChannel)
			_, err := sub.Receive(t.Context())
			bhOK(t, err)
			subs = append(subs, sub)
		}
		time.Sleep(100 * time.Millisecond)
		with := s.shares(1100 * time.Millisecond)
		t.Logf("holds without listeners %v, with five %v", without, with)
		turnsFair(t, with, 0.05) // five that never want it make shares uneven; nobody is left out
		if sum := with[0] + with[1]; float64(sum) < 0.8*float64(without[0]+without[1]) {
			t.Errorf("%d holds with listeners, %d without", sum, without[0]+without[1])
		}
		for _, sub := range subs {
			_ = sub.Close()
		}
		s.end(t)
	})
}

// However many listen and never want the lock, who wants it has turns: what each client believes about the listeners must
// not let one of two pass by the other for long.
func TestTurnsAmongManyListeners(t *testing.T) {
	for _, section := range []time.Duration{0, 10 * time.Millisecond} {
		t.Run(section.String(), func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				for range 2 {
					s.client(t, 1, section)
				}
				var subs []*redis.PubSub
				for range 50 {
					sub := redistest.PipeClient(t, m).Subscribe(t.Context(), bhChannel)
					_, err := sub.Receive(t.Context())
					bhOK(t, err)
					subs = append(subs, sub)
				}
				time.Sleep(100 * time.Millisecond)
				shares := s.shares(time.Second)
				t.Logf("holds: %v", shares)
				if slices.Min(shares) < 5 {
					t.Errorf("holds in a second: %v, a turn takes %v", shares, section)
				}
				for _, sub := range subs {
					_ = sub.Close()
				}
				s.end(t)
			})
		})
	}
}

// Inv8: whatever happens to one client, the others find a free lock within 20 ms and a round trip; and have fair turns.
func TestTurnsWhenAClient(t *testing.T) {
	const free = 20*time.Millisecond + 4*turnsWay + time.Millisecond
	for _, test := range []struct {
		name   string
		happen func(s *turnsCrowd)
		bound  time.Duration
	}{
		{"is well", func(*turnsCrowd) {}, free},
		{"vanishes while it waits", func(s *turnsCrowd) {
			for field := ""; ; time.Sleep(turnsWay) { // not while it holds the lock
				if fields, _ := s.m.HKeys("l"); len(fields) == 1 {
					field = fields[0]
				}
				if in, idle := s.clients[3].InLine("l"); in > 0 && idle && field != "" {
					break
				}
			}
			s.links[3].cut(true)
		}, free + 100*time.Millisecond}, // of the lease, if it was about to take the lock
		{"loses its subscription", func(s *turnsCrowd) { s.links[3].cut(false) }, free},
		{"loses its messages", func(s *turnsCrowd) { s.links[3].drop.Store(true) }, free},
	} {
		t.Run(test.name, func(t *testing.T) {
			bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
				s := turnsNew(t, m)
				for range 4 {
					s.client(t, 1, time.Millisecond, rlock.WithLease(100*time.Millisecond), rlock.WithPatience(time.Second))
				}
				time.Sleep(100 * time.Millisecond)
				test.happen(s)
				if longest := s.longestFree(400 * time.Millisecond); longest > test.bound {
					t.Errorf("the lock was free for %v although others wanted it", longest)
				} else {
					t.Logf("the lock was free for %v", longest)
				}
				time.Sleep(1200 * time.Millisecond) // who was there is expected for so long
				shares := make([]int64, 3)
				for range 14 { // for a second at a time one may count on less company than another
					few := s.shares(400 * time.Millisecond)[:3]
					turnsFair(t, few, 0.1)
					for i, n := range few {
						shares[i] += n
					}
				}
				turnsFair(t, shares, 0.2)
				s.links[3].cut(false)
				s.links[3].drop.Store(false)
				time.Sleep(1200 * time.Millisecond)
				turnsFair(t, s.shares(200*time.Millisecond), 0.8) // it is back
				s.end(t)
			})
		})
	}
}

// Inv8, P10: all messages are lost: the poll bounds the wait.
func TestTurnsWhenAllMessagesAreLost(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		const poll = 100 * time.Millisecond
		s := turnsNew(t, m)
		for range 3 {
			s.client(t, 2, 0, rlock.WithPollInterval(poll))
			s.links[len(s.links)-1].drop.Store(true)
		}
		if longest := s.longestFree(time.Second); longest > poll+free20 {
			t.Errorf("the lock was free for %v", longest)
		} else {
			t.Logf("the lock was free for %v", longest)
		}
		s.end(t)
	})
}

const free20 = 20*time.Millisecond + 4*turnsWay + time.Millisecond

// A wait that is shorter than what the client would stand back asks at least once.
func TestTurnsOfAShortWait(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		spy := handSpyOn(rdb)
		c := bhClient(t, rdb, rlock.WithHandoffs(0))
		l := rlock.NewLock(c, "l")
		for range 5 {
			sub := redistest.PipeClient(t, m).Subscribe(t.Context(), bhChannel)
			_, err := sub.Receive(t.Context())
			bhOK(t, err)
			defer sub.Close()
		}
		for _, wait := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 15 * time.Millisecond} {
			bhAsleep(1100 * time.Millisecond) // the listeners are expected again
			held := bhLock(t, l, t.Context())
			call := bhGo(func() (context.Context, error) { return l.TryLock(t.Context(), wait, 0) })
			synctest.Wait()
			spy.reset()
			bhOK(t, l.Unlock(held)) // five others are told, and have their turns before the call
			got := <-call
			bhOK(t, got.err) // but the lock is free
			if spy.count("acquire") == 0 {
				t.Error("Redis was not asked")
			}
			bhOK(t, l.Unlock(got.ctx))
		}
		synctest.Wait()
		handFree(t, m, 100*time.Millisecond, c)
	})
}

// A client whose turn it is not leaves a free lock alone for no longer than 20 ms, also when its waiters come and go.
func TestTurnsOfWaitersThatComeAndGo(t *testing.T) {
	bhVirtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c := bhClient(t, rdb)
		l := rlock.NewLock(c, "l")
		for range 5 {
			sub := redistest.PipeClient(t, m).Subscribe(t.Context(), bhChannel)
			_, err := sub.Receive(t.Context())
			bhOK(t, err)
			defer sub.Close()
		}
		bhJavaHolds(t, rdb, 30*time.Second)
		call := bhGo(func() (context.Context, error) { return l.Lock(t.Context()) })
		bhAsleep(time.Millisecond)
		m.Del("l")
		rdb.Publish(t.Context(), bhChannel, "0")
		got := <-call
		bhOK(t, got.err)
		bhOK(t, l.Unlock(got.ctx))
		freed := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var all sync.WaitGroup
		took := make(chan time.Duration, 100)
		for i := range 30 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				mine, cancel := context.WithCancel(ctx)
				defer cancel()
				stopped := time.AfterFunc(3*time.Millisecond, cancel)
				defer stopped.Stop()
				held, err := l.Lock(mine)
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				took <- time.Since(freed)
				_ = l.Unlock(held)
			})
		}
		first := <-took
		if first > free20 {
			t.Errorf("the lock was free for %v although somebody wanted it all the time", first)
		}
		all.Wait()
		if strings.Contains(c.Books(), "holds") && time.Since(freed) > time.Minute {
			t.Error(c.Books())
		}
		handFree(t, m, 200*time.Millisecond, c)
	})
}
