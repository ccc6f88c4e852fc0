package scripts

import (
	"context"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The keys of a semaphore, and of the locks of its slots.
func TestPermitsOf(t *testing.T) {
	for name, want := range map[string]string{"jobs": "{jobs}:2", "jobs{a}": "jobs{a}:2", "a}b": "{a}b}:2"} {
		k := PermitsOf(name, 3)
		locktest.Equal(t, "the last slot", k.SlotName(2), want)
		locktest.Equal(t, "how many", k.Permits(), 3)
		locktest.Equal(t, "hash slot", k.Slot, KeysOf(want).Slot)
		locktest.NoError(t, k.CheckCluster())
		given := k.PermitIn(2)
		locktest.Equal(t, "the lock", given.Lock, want)
		locktest.Equal(t, "the line", given.Line, k.Line)
		locktest.Equal(t, "the channel", given.Channel(), k.Channel())
		locktest.Equal(t, "the name stands for slots", IsPermits(k.Lock), true)
		locktest.Equal(t, "so does that of a slot", IsPermits(want), false)
	}
	locktest.ErrorSays(t, PermitsOf("a{b", 3).CheckCluster(), `"a{b"`, "different hash slots")
	locktest.Equal(t, "how many permits a lock has", KeysOf("jobs").Permits(), 0)
}

// The name of a slot's lock, and the one that stands for all slots, tell the semaphore.
func TestSlotOf(t *testing.T) {
	for _, name := range []string{"jobs", "jobs{a}", "a}b", "{{a}}", "{}", "a:b", "a b:3"} {
		k := PermitsOf(name, MostPermits)
		for _, slot := range []int{0, 10, MostPermits - 1} {
			of, found, is := SlotOf(k.SlotName(slot))
			if of != name || found != slot || !is {
				t.Errorf("%q is slot %d of %q: %v", k.SlotName(slot), found, of, is)
			}
		}
		locktest.Equal(t, "the semaphore of the name for all slots", SemaphoreOf(k.Lock), name)
		locktest.Equal(t, "the semaphore of a slot's name", SemaphoreOf(k.SlotName(0)), "")
	}
	locktest.Equal(t, "the name in braces", SemaphoreOf(PermitsOf("{jobs}", 1).Lock), "jobs")
	for _, lock := range []string{"jobs", "jobs:3", "{jobs}", "{jobs}:*", "{jobs}:", "{jobs}:x", "{jobs}:03", "{jobs}:+3", "{jobs}:-1", "{jobs}:1024", "{jobs}:99999999999999999999", ""} {
		if of, slot, is := SlotOf(lock); is {
			t.Errorf("%q is slot %d of %q", lock, slot, of)
		}
	}
}

// Ops of semaphores and of locks that are sent together have the answers that each has alone, on one server and in a cluster, confirmed or not.
func TestPermitsAndLocksTogether(t *testing.T) {
	run := func(t *testing.T, s *Scripts) {
		t.Helper()
		jobs, nodes, lock := PermitsOf(newKeys(t).Lock, 2), PermitsOf(newKeys(t).Lock, 1), newKeys(t)
		take := func(k *Keys) Op { return Acquire(k, true, newField(), lease) }
		said := together(s, take(jobs), take(lock), take(nodes).InTurn(Turn{}), take(jobs).InTurn(Turn{}), take(lock).InTurn(Turn{}), take(jobs))
		for i, want := range []struct {
			held bool
			slot int
		}{{true, 0}, {true, 0}, {true, 0}, {true, 1}, {false, 0}, {false, 0}} {
			if o := said[i]; o.err != nil || o.Held != want.held || o.Slot != want.slot || o.Held && o.Token != 1 {
				t.Errorf("op %d hears %+v", i, o)
			}
		}
	}
	t.Run("one server", func(t *testing.T) { run(t, New(redistest.New(t))) })
	t.Run("cluster", func(t *testing.T) {
		var rdb *redis.ClusterClient = newCluster(t, 2).rdb
		confirmedOrNot(t, rdb, run)
	})
}

// commandCount is how many commands the server has executed, inside of scripts too.
func commandCount(t *testing.T, rdb *redis.Client) (n int64) {
	t.Helper()
	for _, calls := range regexp.MustCompile(`cmdstat_[^:]*:calls=(\d+)`).FindAllStringSubmatch(rdb.Info(t.Context(), "commandstats").Val(), -1) {
		one, err := strconv.ParseInt(calls[1], 10, 64)
		locktest.NoError(t, err)
		n += one
	}
	return n
}

// A permit that nobody waits for takes 12 commands at most, and its release 5.
func TestCommandsOfAPermit(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	s, jobs := New(rdb), PermitsOf("jobs", 5)
	take := func() (field string) {
		field = newField()
		if a, err := s.Do(t.Context(), Acquire(jobs, true, field, time.Minute).InTurn(Turn{})); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
		return field
	}
	give := func(slot int, field string) {
		if a, err := s.Do(t.Context(), Unlock(jobs.PermitIn(slot), field, false).Calling("", 0)); err != nil || !a.Held {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	give(0, take()) // the scripts are known
	var fields []string
	for slot := range 5 {
		before := commandCount(t, rdb)
		fields = append(fields, take())
		if n := commandCount(t, rdb) - before; n-1 > 12 { // and INFO
			t.Errorf("slot %d took %d commands", slot, n)
		}
	}
	for slot, field := range fields {
		before := commandCount(t, rdb)
		give(slot, field)
		if n := commandCount(t, rdb) - before; n-1 > 5 {
			t.Errorf("the release of slot %d took %d commands", slot, n)
		}
	}
}

// P43: of an attempt for a permit whose answer is slow no copy is sent, which would take a slot of its own. Its caller is told to ask anew.
func TestP43_NoCopies(t *testing.T) {
	for what, c := range map[string]struct {
		keys   *Keys
		copies bool
	}{"lock": {KeysOf("lock"), true}, "permit": {PermitsOf("jobs", 3), false}} {
		t.Run(what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				_, rdb := redistest.Pipe(t)
				s, first := New(rdb), newField()
				mustHear(t, send(s, Acquire(c.keys, true, first, lease)))
				<-send(s, Unlock(c.keys, first, false)).heard // the scripts are known
				var sent atomic.Int64
				rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
					if len(locktest.Ops(cmd.Args())) > 0 && sent.Add(1) == 1 {
						time.Sleep(5 * silentAfter)
					}
					return send()
				}))
				began, x := time.Now(), send(s, Acquire(c.keys, true, newField(), lease))
				if said := <-x.heard; c.copies {
					locktest.NoError(t, said.err)
				} else {
					locktest.IsError(t, said.err, errOvertaken)
				}
				locktest.TookAtMost(t, began, 2*silentAfter, 0, "an answer")
				time.Sleep(10 * silentAfter)
				locktest.Equal(t, "a copy is sent", sent.Load() > 1, c.copies)
			})
		})
	}
}
