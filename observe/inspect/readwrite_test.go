package inspect_test

import (
	"context"
	"fmt"
	"slices"
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

// Who reads and who writes is seen, who waits for what, and what clients say of it.
func TestReadWrite(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		in := newInspector(t, rdb)
		page := fenced.NewRWLock(newClient(t, rdb, rlock.WithPresence("reader")), "page")
		other := fenced.NewRWLock(newClient(t, redistest.PipeClient(t, m), rlock.WithPresence("both")), "page")
		long, err := page.Read().Acquire(t.Context(), rlock.Lease(time.Hour))
		locktest.NoError(t, err)
		short, err := other.Read().Acquire(t.Context(), rlock.Lease(20*time.Minute))
		locktest.NoError(t, err)
		writes := locktest.Start(func() error { return page.Write().Do(t.Context(), func(context.Context, int64) error { return nil }) })
		locktest.Sleep(time.Second)
		later := locktest.Start(func() error { return other.Write().Do(t.Context(), func(context.Context, int64) error { return nil }) })
		locktest.Sleep(time.Second)
		reads := locktest.Start(func() error { return page.Read().Do(t.Context(), func(context.Context, int64) error { return nil }) })
		locktest.Sleep(28 * time.Second)

		l := look(t, in, "page")
		locktest.Equal(t, "the mode", l.Mode, "read")
		locktest.Equal(t, "another object", l.Other, "")
		locktest.Equal(t, "how many read", l.Reading, 2)
		locktest.Equal(t, "readers", len(l.Readers), 2)
		locktest.Equal(t, "the token", l.Token, long.Token())
		locktest.Equal(t, "the lease", l.TTL.Round(time.Second), time.Hour-30*time.Second)
		locktest.Equal(t, "the holder", l.Holder.Field, l.Readers[0].Field)
		for i, want := range []struct {
			name string
			ttl  time.Duration
		}{{"reader", time.Hour - 30*time.Second}, {"both", 20*time.Minute - 30*time.Second}} {
			h := l.Readers[i]
			if h.By == nil || h.By.Name != want.name || h.TTL.Round(time.Second) != want.ttl || h.Token != short.Token() || h.Count != 1 || h.For == 0 {
				t.Errorf("reader %d: %+v, want %+v", i, h, want)
			}
			locktest.Equal(t, "the mode of the hold that the client says", h.By.Holds[0].Mode, "read")
		}
		var line []string
		for _, w := range l.Line {
			line = append(line, fmt.Sprint(w.By.Name, " waits to ", w.Mode, " with ", w.Calls, " for ", w.For.Round(time.Second) > 0))
		}
		want := []string{"reader waits to write with 1 for true", "both waits to write with 1 for true", "reader waits to read with 1 for true"}
		if !slices.Equal(line, want) {
			t.Errorf("the line: %q", line)
		}
		locktest.NoError(t, long.Unlock(t.Context()))
		locktest.NoError(t, short.Unlock(t.Context()))
		for _, done := range []<-chan error{writes, later, reads} {
			locktest.NoError(t, <-done)
		}
		if l := look(t, in, "page"); l.Holder != nil || l.Mode != "" || l.Reading != 0 || len(l.Readers) > 0 {
			t.Errorf("a free lock: %+v", l)
		}

		hold, err := other.Write().Acquire(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(15 * time.Second)
		l = look(t, in, "page")
		if l.Mode != "write" || l.Holder == nil || l.Holder.By.Name != "both" || l.Holder.Token != hold.Token() || l.Reading != 0 || l.TTL <= 0 {
			t.Errorf("while one writes: %+v", l)
		}
		locktest.NoError(t, hold.Unlock(t.Context()))
	})
}

// Of very many readers some are shown, and not those whose leases are over; a name with braces and Redisson's levels are no obstacle.
func TestManyReaders(t *testing.T) {
	rdb := redistest.Real(t).Client()
	in := newInspector(t, rdb)
	const name, n = "page{a}", 600
	field := func(i int) string { return fmt.Sprintf("01234567-89ab-cdef-0123-%012d:1", i) }
	rdb.HSet(t.Context(), name, "mode", "read", "phase", "t7")
	for i := range n {
		rdb.HSet(t.Context(), name, field(i), 1)
		if i%3 > 0 { // otherwise its lease is over
			rdb.Set(t.Context(), fmt.Sprint(name, ":", field(i), ":rwlock_timeout:1"), 1, time.Hour)
		}
	}
	locktest.NoError(t, rdb.PExpire(t.Context(), name, time.Hour).Err())
	l := look(t, in, name)
	if l.Mode != "read" || l.Holder == nil || len(l.Readers) != inspect.MaxLine || l.Reading < n/2 || l.Reading > n || l.TTL < time.Minute {
		t.Errorf("%d readers are shown of %d, mode %q, for %v", len(l.Readers), l.Reading, l.Mode, l.TTL)
	}
	var found []string
	for l, err := range in.Scan(t.Context(), "*", inspect.Pace{}) {
		locktest.NoError(t, err)
		found = append(found, l.Name)
	}
	if !slices.Equal(found, []string{name}) {
		t.Errorf("Scan shows %q", found)
	}
	locktest.NoError(t, rdb.Del(t.Context(), name).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), name, "mode", "read", field(0), 3).Err())
	locktest.NoError(t, rdb.Set(t.Context(), fmt.Sprint(name, ":", field(0), ":rwlock_timeout:2"), 1, time.Hour).Err())
	if l := look(t, in, name); l.Reading != 1 || l.Readers[0].Count != 3 || l.Readers[0].TTL < time.Minute {
		t.Errorf("a reader of Redisson's with levels: %+v", l)
	}
}

// A read-write lock without a hold is no free one as long as its hash is there.
func TestReadWriteWithoutAHold(t *testing.T) {
	rdb := redistest.New(t)
	locktest.NoError(t, rdb.HSet(t.Context(), "page", "mode", "read").Err())
	locktest.NoError(t, rdb.PExpire(t.Context(), "page", time.Hour).Err())
	l := look(t, newInspector(t, rdb), "page")
	if l.Holder != nil || l.Mode != "" || !strings.Contains(l.Other, "without a hold") {
		t.Errorf("it is shown as %+v", l)
	}
}

// What no client can have written is not released, and no name is no name of a lock.
func TestFreeOfWhatWasNotShown(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	locktest.NoError(t, rdb.HSet(t.Context(), "users", "anna", 1).Err())
	freed, err := in.Free(t.Context(), inspect.Lock{Name: "users", Holder: &inspect.Holder{Field: "anna"}})
	locktest.NoError(t, err)
	locktest.Equal(t, "released", freed, false)
	locktest.Equal(t, "fields of a hash that is no lock", rdb.HLen(t.Context(), "users").Val(), 1)
	_, err = in.Look(t.Context(), "users", "")
	locktest.ErrorSays(t, err, "empty")
}

// Free releases those that were shown, and no other: all that read, or the one that writes.
func TestFreeReadWrite(t *testing.T) {
	rdb := redistest.Real(t).Client()
	in := newInspector(t, rdb)
	page := fenced.NewRWLock(newClient(t, rdb), "page")
	take := func(l *fenced.Lock) *fenced.Hold {
		t.Helper()
		h, err := l.Acquire(t.Context())
		locktest.NoError(t, err)
		return h
	}
	lost := func(h *fenced.Hold) {
		t.Helper()
		redistest.Await(t, 20*time.Second, h.Context().Done(), "the loss of the hold")
	}
	a := take(page.Read())
	shown := look(t, in, "page")
	b := take(page.Read())
	free := func(l inspect.Lock, want bool) {
		t.Helper()
		freed, err := in.Free(t.Context(), l)
		locktest.NoError(t, err)
		locktest.Equal(t, "freed", freed, want)
	}
	free(shown, true)
	lost(a)
	locktest.Equal(t, "who still reads", look(t, in, "page").Reading, 1)
	waits := locktest.Start(func() error { return page.Write().Do(t.Context(), func(context.Context, int64) error { return nil }) })
	redistest.Eventually(t, 20*time.Second, func() bool { return look(t, in, "page").Waiting == 1 }, "a writer waits")
	contended, err := in.ContendedNames(t.Context())
	locktest.NoError(t, err)
	if !slices.Equal(contended, []string{"page"}) {
		t.Errorf("contended: %q", contended)
	}
	listeners, err := in.Listeners(t.Context(), "page")
	locktest.NoError(t, err)
	if listeners["page"] == 0 {
		t.Error("nobody listens")
	}
	free(look(t, in, "page"), true)
	lost(b)
	locktest.NoError(t, redistest.Await(t, 20*time.Second, waits, "the writer"))
	w := take(page.Write())
	free(shown, false)
	shown = look(t, in, "page")
	free(shown, true)
	lost(w)
	free(shown, false)
	free(look(t, in, "page"), false)
}
