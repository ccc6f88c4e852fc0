package inspect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// Who does not know how many permits there are sees those that are, or were, taken; who says too few hears of the others.
func TestSlotsThatAreSeen(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		client := newClient(t, rdb)
		shows := func(what string, s inspect.Semaphore, slots, seen, taken, waiting int, full, exists bool, beyond ...int) {
			t.Helper()
			locktest.Equal(t, what, fmt.Sprint(len(s.Slots), s.Seen, s.Taken, s.Waiting, s.Full(), s.Exists(), s.Beyond), fmt.Sprint(slots, seen, taken, waiting, full, exists, beyond))
		}
		shows("a name of which Redis has nothing", slots(t, in, "jobs", 0), 0, 0, 0, 0, false, false)
		plain := newClient(t, rdb)
		_, err := rlock.NewLock(plain, "{jobs}:7").Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.NoError(t, rdb.Set(t.Context(), "{jobs}:9", "something else", 0).Err())
		shows("a lock, and another key, of such names", slots(t, in, "jobs", 0), 0, 0, 0, 0, false, false)

		jobs := fenced.NewSemaphore(client, "jobs", 5)
		var permits []*fenced.Hold
		for range 5 {
			permits = append(permits, acquire(t, jobs))
		}
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 5)
		waits := locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(time.Second)
		shows("all are taken, and one waits", slots(t, in, "jobs", 0), 5, 5, 5, 1, true, true)
		of := slots(t, in, "jobs", 0)
		of.Waiting = 0 // as where there is no line
		locktest.Equal(t, "somebody listens", fmt.Sprint(of.Waited(0), of.Waited(1)), "false true")
		listeners, err := in.Listeners(t.Context(), inspect.AnySlot("jobs"))
		locktest.NoError(t, err)
		locktest.Equal(t, "who waits listens, and no holder", listeners["{jobs}:*"], 1)
		shows("of three", slots(t, in, "jobs", 3), 3, 5, 3, 1, true, true, 3, 4)
		shows("of eight", slots(t, in, "jobs", 8), 8, 5, 6, 1, false, true)
		for _, p := range permits[1:4] {
			locktest.NoError(t, p.Unlock(t.Context()))
		}
		locktest.NoError(t, <-waits)
		locktest.Sleep(2 * time.Second)
		listeners, err = in.Listeners(t.Context(), inspect.AnySlot("jobs"))
		locktest.NoError(t, err)
		locktest.Equal(t, "who has waited listens no more", listeners["{jobs}:*"], 0)
		shows("some are given back", slots(t, in, "jobs", 0), 5, 5, 2, 0, false, true)
		for _, p := range []*fenced.Hold{permits[0], permits[4]} {
			locktest.NoError(t, p.Unlock(t.Context()))
		}
		shows("nobody has one", slots(t, in, "jobs", 0), 5, 5, 0, 0, false, true)
	})
}

// SlotsWith asks about several semaphores in the same round trips, and about no more slots than it must; what clients say leads it further.
func TestSlotsWith(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		client := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("nodes"))
		for i := range 20 {
			m.HSet(fmt.Sprintf("{large}:%d", i), fmt.Sprintf("%s:-%d", client.ID(), 100+i), "1")
		}
		for range 3 {
			acquire(t, fenced.NewSemaphore(client, "small", 3))
			acquire(t, fenced.NewSemaphore(client, "far", 1000))
		}
		for i := range 500 { // so that the next one is far above
			m.HSet(fmt.Sprintf("{far}:%d", 3+i), "else", "1")
		}
		acquire(t, fenced.NewSemaphore(client, "far", 1000))
		for i := range 500 {
			m.Del(fmt.Sprintf("{far}:%d", 3+i))
		}
		locktest.Sleep(11 * time.Second) // the client says what it holds
		trips := new(pipelines)
		rdb.AddHook(trips)
		in := newInspector(t, rdb)
		clients, err := in.Clients(t.Context())
		locktest.NoError(t, err)
		for _, h := range clients[0].Holds {
			locktest.Equal(t, "the semaphore of "+h.Lock, inspect.AnySlot(h.Semaphore), h.Lock[:len(inspect.AnySlot(h.Semaphore))-1]+"*")
		}
		ask := func(clients []inspect.Client) (text string) {
			trips.n = 0
			all, err := in.SlotsWith(t.Context(), clients, "small", "large", "none", "far")
			locktest.NoError(t, err)
			for i := range all {
				text += fmt.Sprintf("%s %d of %d, ", all[i].Name, all[i].Taken, all[i].Seen)
			}
			return text
		}
		locktest.Equal(t, "without what clients say", ask(nil), "small 3 of 3, large 20 of 20, none 0 of 0, far 3 of 3, ")
		locktest.Equal(t, "the first 68 names, more of the large one, and two for the clients", trips.n, 1+2+2)
		locktest.Equal(t, "with it", ask(clients), "small 3 of 3, large 20 of 20, none 0 of 0, far 4 of 504, ")
	})
}

// A semaphore says why nobody gets a permit, and whether those who have one keep it for long.
func TestBlocked(t *testing.T) {
	by := &inspect.Client{}
	held := inspect.Lock{Holder: &inspect.Holder{By: by}, TTL: time.Second}
	lasts := inspect.Lock{Holder: &inspect.Holder{By: by, Lasting: "leads"}, TTL: time.Second}
	quiet := inspect.Lock{Holder: &inspect.Holder{By: &inspect.Client{Silent: 20 * time.Second}, Lasting: "leads"}, TTL: time.Second}
	forever := inspect.Lock{Holder: &inspect.Holder{By: by, Lasting: "leads"}, TTL: inspect.NoExpiry}
	other, free, broken := inspect.Lock{Other: "a key that is no hash"}, inspect.Lock{}, inspect.Lock{Counter: "the counter is none"}
	const none = "all slots are taken, without a lease or by holders that are not heard of"
	for what, c := range map[string]struct {
		slots []inspect.Lock
		want  string
		lasts bool
	}{
		"nothing is seen":                      {nil, "", false},
		"one holder is like others":            {[]inspect.Lock{quiet, held, forever}, "", false},
		"nobody gives one back":                {[]inspect.Lock{quiet, other, forever}, none, false},
		"one is free":                          {[]inspect.Lock{quiet, free}, "", false},
		"the lowest free one has no counter":   {[]inspect.Lock{held, broken, free}, "slot 1 is free, but the counter is none", false},
		"another free one has no counter":      {[]inspect.Lock{free, broken}, "", false},
		"all lead":                             {[]inspect.Lock{lasts, lasts}, "", true},
		"all but one lead":                     {[]inspect.Lock{lasts, held}, "", false},
		"all lead, and one is not heard of":    {[]inspect.Lock{lasts, quiet}, "", false},
		"all lead, and one is without a lease": {[]inspect.Lock{lasts, forever}, "", false},
	} {
		s := inspect.Semaphore{Slots: c.slots, Seen: len(c.slots)}
		for _, l := range c.slots {
			if l.Holder != nil || l.Other != "" {
				s.Taken++
			}
		}
		locktest.Equal(t, what, s.Blocked(), c.want)
		locktest.Equal(t, what+": it lasts", s.Lasts(), c.lasts)
	}
}
