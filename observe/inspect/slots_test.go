package inspect_test

import (
	"context"
	"fmt"
	"strings"
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

func slots(t *testing.T, in *inspect.Inspector, name string, permits int) inspect.Semaphore {
	t.Helper()
	s, err := in.Slots(t.Context(), name, permits)
	locktest.NoError(t, err)
	return s
}

// acquire takes a permit.
func acquire(t *testing.T, s *fenced.Semaphore) *fenced.Hold {
	t.Helper()
	p, err := s.Acquire(t.Context())
	locktest.NoError(t, err)
	return p
}

// Slots shows who has which slot, what stands in the way of one, and the line for a permit, on a server and in a cluster.
func TestSlots(t *testing.T) {
	cluster := redistest.Clustered(t, 1, 0) // more would lose each other on a busy machine
	for what, connect := range map[string]func() redis.UniversalClient{
		"a server":  func() redis.UniversalClient { return redistest.Client(t, redistest.Start(t)) },
		"a cluster": func() redis.UniversalClient { return cluster.Client() },
	} {
		t.Run(what, func(t *testing.T) {
			rdb := connect()
			in := newInspector(t, rdb)
			client := newClient(t, rdb, rlock.WithPresence("imports"))
			const n = 4
			jobs := fenced.NewSemaphore(client, "jobs", n)
			a := acquire(t, jobs)
			locktest.NoError(t, rdb.Set(t.Context(), "{jobs}:1", "something else", 0).Err())
			out := newClient(t, rdb)
			_, _, err := fenced.NewLock(out, "{jobs}:2").LockAndGetToken(t.Context()) // out of service
			locktest.NoError(t, err)

			s := slots(t, in, "jobs", n)
			locktest.Equal(t, "the name", s.Name, "jobs")
			locktest.DeepEqual(t, "the locks", names(s.Slots), []string{"{jobs}:0", "{jobs}:1", "{jobs}:2", "{jobs}:3"})
			locktest.Equal(t, "taken", s.Taken, 3)
			locktest.Equal(t, "waiting", s.Waiting, 0)
			if l := s.Slots[0]; l.Holder == nil || l.Holder.Client != client.ID() || l.Token != a.Token() || l.TTL <= 0 || l.Semaphore != "jobs" {
				t.Errorf("the slot with a permit: %+v", l)
			}
			if l := s.Slots[1]; l.Holder != nil || l.Other != "a key that is no hash" || l.Semaphore != "jobs" {
				t.Errorf("the slot with something else: %+v", l)
			}
			if l := s.Slots[2]; l.Holder == nil || l.Holder.Client != out.ID() || l.Semaphore != "" {
				t.Errorf("the slot that a plain lock has: %+v", l)
			}
			if l := s.Slots[3]; l.Holder != nil || l.Other != "" || l.TTL != 0 || l.Semaphore != "jobs" {
				t.Errorf("the free slot: %+v", l)
			}
			locktest.Equal(t, "Look of a permit tells its semaphore", look(t, in, "{jobs}:0").Semaphore, "jobs")
			locktest.Equal(t, "Look of a plain lock tells none", look(t, in, "{jobs}:2").Semaphore, "")

			if what == "a cluster" && !cluster.Sharded() {
				redistest.Lacks(t, "there is no line in a cluster without sharded channels")
			}
			b := acquire(t, jobs)
			other := newClient(t, rdb, rlock.WithPresence("exports"))
			waits := locktest.Start(func() error {
				return fenced.NewSemaphore(other, "jobs", n).Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
			})
			redistest.Eventually(t, time.Minute, func() bool {
				s = slots(t, in, "jobs", n)
				return s.Waiting == 1 && s.Line[0].By != nil && s.Line[0].Calls == 1
			}, "who waits for a permit is shown")
			if s.Taken != n || len(s.Line) != 1 || s.Line[0].Client != other.ID() || s.Line[0].By.Name != "exports" {
				t.Errorf("while one waits: %+v", s)
			}
			locktest.NoError(t, a.Unlock(t.Context()))
			locktest.NoError(t, <-waits)
			locktest.NoError(t, b.Unlock(t.Context()))
		})
	}
}

// pipelines counts the pipelines that a go-redis client sends.
type pipelines struct {
	locktest.Hook
	n int
}

func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.n++
		return next(ctx, cmds)
	}
}

// All of the largest semaphore takes nine round trips for the slots.
func TestSlotsOfTheLargestSemaphore(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		const most = 1024
		client := newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("nodes"))
		acquire(t, fenced.NewSemaphore(client, "others", 1)) // so that the client says who it is
		for i := range most {
			m.HSet(fmt.Sprintf("{jobs}:%d", i), fmt.Sprintf("%s:-%d", client.ID(), i), "1")
			locktest.NoError(t, m.Set(fmt.Sprintf("redisson_lock_token:{jobs}:%d", i), "7"))
		}
		locktest.Sleep(2 * time.Second)
		trips := new(pipelines)
		rdb.AddHook(trips)
		s := slots(t, newInspector(t, rdb), "jobs", most)
		locktest.Equal(t, "taken", s.Taken, most)
		for i, l := range s.Slots {
			if l.Name != fmt.Sprintf("{jobs}:%d", i) || l.Holder == nil || l.Holder.By == nil || l.Holder.By.Name != "nodes" || l.Token != 7 {
				t.Fatalf("slot %d: %+v", i, l)
			}
		}
		locktest.Equal(t, "round trips, two of them for the client", trips.n, 9+2)
	})
}

// A counter that is no number is shown with its slot: no permit is given while that slot is free.
func TestSlotsOfABrokenCounter(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	for _, c := range []struct {
		what  string
		put   func(key string) error
		want  string
		token int64
	}{
		{"a text", func(key string) error { return rdb.Set(t.Context(), key, "text", 0).Err() }, "the fencing counter holds something that is not a number", 0},
		{"a hash", func(key string) error { return rdb.HSet(t.Context(), key, "text", 0).Err() }, "the fencing counter holds something that is not a number", 0},
		{"more than there is", func(key string) error { return rdb.Set(t.Context(), key, "99999999999999999999", 0).Err() }, "the fencing counter holds something that is not a number", 0},
		{"the end", func(key string) error { return rdb.Set(t.Context(), key, 1<<53-1, 0).Err() }, "the fencing counter has reached 2^53, where Lua cannot count exactly", 1<<53 - 1},
		{"a number", func(key string) error { return rdb.Set(t.Context(), key, 41, 0).Err() }, "", 41},
	} {
		locktest.NoError(t, rdb.FlushAll(t.Context()).Err())
		locktest.NoError(t, c.put("redisson_lock_token:{jobs}:1"))
		s := slots(t, in, "jobs", 3)
		for i, l := range s.Slots {
			want, token := "", int64(0)
			if i == 1 {
				want, token = c.want, c.token
			}
			locktest.Equal(t, fmt.Sprintf("%s: the counter of slot %d", c.what, i), l.Counter, want)
			locktest.Equal(t, fmt.Sprintf("%s: the token of slot %d", c.what, i), l.Token, token)
		}
		client := newClient(t, rdb)
		var held []*fenced.Hold
		acquires := func() error {
			p, err := fenced.NewSemaphore(client, "jobs", 3).Acquire(t.Context())
			if err == nil {
				held = append(held, p)
			}
			return err
		}
		locktest.NoError(t, acquires()) // slot 0
		if err := acquires(); (err != nil) != (c.want != "") {
			t.Errorf("%s: an acquire says %v", c.what, err)
		}
		for _, p := range held {
			locktest.NoError(t, p.Unlock(t.Context()))
		}
	}
}

// What cannot be asked for is an error at once, and so is a Redis that is away.
func TestSlotsRefuses(t *testing.T) {
	server := redistest.Real(t)
	in := newInspector(t, server.Client(func(o *redis.Options) { o.MaxRetries = -1 }))
	for _, c := range []struct {
		name    string
		permits int
		want    string
	}{
		{"jobs", -1, "inspect: Slots: -1 permits: use 1 to 1024, or 0 for those that are seen"},
		{"jobs", 1025, "inspect: Slots: 1025 permits: use 1 to 1024"},
		{"", 5, "inspect: Slots: the semaphore's name is empty"},
	} {
		_, err := in.Slots(t.Context(), c.name, c.permits)
		locktest.ErrorSays(t, err, c.want)
	}
	locktest.Equal(t, "slots of the largest semaphore", len(slots(t, in, "jobs", 1024).Slots), 1024)
	several, err := inspect.NewQuorum([]redis.UniversalClient{redistest.Client(t, server.Addr())})
	locktest.NoError(t, err)
	_, err = several.Slots(t.Context(), "jobs", 0)
	locktest.ErrorSays(t, err, "inspect: Slots: a quorum has no semaphores")
	cluster := newInspector(t, redistest.Clustered(t, 1, 0).Client())
	_, err = cluster.Slots(t.Context(), "a{b", 5)
	locktest.ErrorSays(t, err, `inspect: Slots: the locks of the slots of "a{b"`, "different hash slots of a cluster")

	locktest.NoError(t, server.Client().Do(t.Context(), "acl", "setuser", "limited", "on", ">secret", "~{other}:*", "~redisson_lock_token:{other}:*", "~fencelock_line_of:{other}:*", "~fencelock_client*", "allchannels", "+@all").Err())
	limited := newInspector(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "limited", "secret" }))
	_, err = limited.Slots(t.Context(), "jobs", 5)
	locktest.ErrorSays(t, err, "inspect: Slots: ", "NOPERM")
	some, err := limited.SlotsWith(t.Context(), nil, "jobs", "other")
	locktest.NoError(t, err)
	locktest.Equal(t, "those that this user may not read, and those that it may", some[0].Other+", "+some[1].Other, "a key that the Redis user may not read, ")
	some, err = cluster.SlotsWith(t.Context(), nil, "jobs", "a{b")
	locktest.NoError(t, err)
	locktest.Equal(t, "one that a cluster cannot have, beside another", strings.HasPrefix(some[1].Other, "the locks of the slots") && some[0].Other == "", true)
	server.Kill()
	_, err = in.Slots(t.Context(), "jobs", 5)
	locktest.ErrorSays(t, err, "inspect: Slots: ", "connection refused")
}

// Free of a slot has who waits for a permit called.
func TestFreeOfASlotCallsWhoWaits(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		p := acquire(t, fenced.NewSemaphore(newClient(t, rdb), "jobs", 1))
		other := fenced.NewSemaphore(newClient(t, redistest.PipeClient(t, m)), "jobs", 1)
		got := locktest.Start(func() error {
			return other.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil })
		})
		locktest.Sleep(15 * time.Second)
		began := time.Now()
		freed, err := in.Free(t.Context(), look(t, in, p.Name()))
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, true)
		locktest.NoError(t, <-got)
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("who waits has it after %v", took)
		}
	})
}
