package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
)

func isSeen(t testing.TB, m *Memory, resource string, want int64) {
	t.Helper()
	if got := m.Seen(resource); got != want {
		t.Fatalf("of %q %d has been seen, want %d", resource, got, want)
	}
}

// holdsMarks fails the test unless the Memory has so many marks.
func holdsMarks(t testing.TB, m *Memory, want int) {
	t.Helper()
	if got := len(m.marks); got != want {
		t.Fatalf("%d marks, want %d", got, want)
	}
}

// Inv4: an accepted token is at least the largest before it.
func TestInv4_Memory(t *testing.T) {
	for _, pair := range [][2]int64{{1, 2}, {9, 10}, {1 << 53, 1<<53 + 1}, {math.MaxInt64 - 1, math.MaxInt64}} {
		m := NewMemory(nil)
		older, newer := pair[0], pair[1]
		isSeen(t, m, "r", 0)
		written := ""
		write := func(what string) func(context.Context) error {
			return func(context.Context) error { written += what; return nil }
		}
		for range 2 { // a hold may write many times
			locktest.NoError(t, m.Do(t.Context(), "r", older, write("o")))
			locktest.NoError(t, m.Check(t.Context(), "r", older))
		}
		isSeen(t, m, "r", older)
		locktest.NoError(t, m.Check(t.Context(), "r", newer))
		for _, err := range []error{m.Do(t.Context(), "r", older, write("stale")), m.Check(t.Context(), "r", older)} {
			var stale *StaleError
			locktest.IsError(t, err, ErrStale)
			if !errors.As(err, &stale) || *stale != (StaleError{"r", older, newer}) || !strings.Contains(err.Error(), fmt.Sprint(older)) || !strings.Contains(err.Error(), `"r"`) {
				t.Errorf("%v", err)
			}
		}
		locktest.NoError(t, m.Do(t.Context(), "r", newer, write("n")))
		locktest.NoError(t, m.Check(t.Context(), "other", older)) // another resource has another mark
		if written != "oon" {
			t.Errorf("written: %q", written)
		}
		m.Forget("r")
		m.Forget("none")
		isSeen(t, m, "r", 0)
		locktest.NoError(t, m.Check(t.Context(), "r", older))
		holdsMarks(t, m, 2)
	}
}

// A write that fails leaves the mark, and the room, as it was.
func TestMemory_AFailedWriteLeavesTheMark(t *testing.T) {
	for _, before := range []int64{0, 5} {
		m := NewMemory()
		if before > 0 {
			locktest.NoError(t, m.Check(t.Context(), "r", before))
		}
		failed := errors.New("failed")
		if err := m.Do(t.Context(), "r", 7, func(context.Context) error { return failed }); err != failed {
			t.Errorf("Do says %v", err)
		}
		isSeen(t, m, "r", before)
		holdsMarks(t, m, int(min(before, 1)))
		locktest.NoError(t, m.Check(t.Context(), "r", 6))
	}
}

// Inv4: nobody knows what a write has done that did not return, so that its token counts, and nobody stays locked out.
func TestInv4_MemoryAWriteThatDoesNotReturn(t *testing.T) {
	m := NewMemory(WithMaxResources(1))
	func() {
		defer func() {
			if p := recover(); p != "boo" || !strings.Contains(string(debug.Stack()), "guard.torn(") {
				t.Errorf("recovered %v, and the stack is\n%s", p, debug.Stack())
			}
		}()
		_ = m.Do(t.Context(), "r", 7, torn)
	}()
	isSeen(t, m, "r", 7)
	locktest.IsError(t, m.Check(t.Context(), "r", 6), ErrStale)
	locktest.IsError(t, m.Check(t.Context(), "other", 1), ErrFull) // it is not one that nobody has found
	var exit sync.WaitGroup
	exit.Go(func() { _ = m.Do(t.Context(), "r", 8, func(context.Context) error { runtime.Goexit(); return nil }) })
	exit.Wait()
	isSeen(t, m, "r", 8)
	locktest.NoError(t, m.Check(t.Context(), "r", 8))
}

func torn(context.Context) error { panic("boo") }

// users is how many are at a resource.
func (m *Memory) users(resource string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.marks[resource]; k != nil {
		return len(k.waiting) + 1
	}
	return 0
}

// While a write runs nobody else is at its resource, and everybody at the others.
func TestMemory_OneAtATime(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		second func(*Memory, func(context.Context) error) error
		first  error // what the first write returns
		seen   int64 // in the end
	}{
		"Do":                  {func(m *Memory, write func(context.Context) error) error { return m.Do(t.Context(), "r", 8, write) }, nil, 8},
		"Do after a failure":  {func(m *Memory, write func(context.Context) error) error { return m.Do(t.Context(), "r", 8, write) }, failed, 8},
		"older after failure": {func(m *Memory, write func(context.Context) error) error { return m.Do(t.Context(), "r", 6, write) }, failed, 6},
		"Check":               {func(m *Memory, _ func(context.Context) error) error { return m.Check(t.Context(), "r", 8) }, nil, 8},
	} {
		t.Run(name, func(t *testing.T) {
			m := NewMemory()
			running, other, done := false, false, make(chan error, 1)
			err := m.Do(t.Context(), "r", 7, func(context.Context) error {
				running = true
				go func() {
					done <- c.second(m, func(context.Context) error {
						if running {
							return errors.New("the first write is not over")
						}
						return nil
					})
				}()
				redistest.Eventually(t, time.Minute, func() bool { return m.users("r") == 2 }, "the second one waits")
				locktest.NoError(t, m.Do(t.Context(), "other", 1, func(context.Context) error { other = true; return nil }))
				isSeen(t, m, "r", 0) // does not wait
				if len(done) > 0 {
					t.Errorf("the second one is through: %v", <-done)
				}
				running = false
				return c.first
			})
			if err != c.first || !other {
				t.Errorf("the first one says %v, the other resource was written: %v", err, other)
			}
			locktest.NoError(t, <-done)
			isSeen(t, m, "r", c.seen)
		})
	}
}

// Inv4: writers that all run at once are let in one by one, in the order of their tokens.
func TestInv4_MemoryManyWriters(t *testing.T) {
	m := NewMemory(WithForgetUnused(time.Hour))
	var last atomic.Int64
	var accepted, refused atomic.Int64
	balance, tokens := 0, []int64(nil) // guarded by m
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var older int64
			for i := range 500 {
				token := older
				if i%2 == 0 { // of two the newer one first
					older, token = last.Add(1), last.Add(1)
				}
				runtime.Gosched()
				switch err := m.Do(t.Context(), "r", token, func(context.Context) error {
					before := balance
					runtime.Gosched()
					balance, tokens = before+1, append(tokens, token)
					return nil
				}); {
				case err == nil:
					accepted.Add(1)
				case errors.Is(err, ErrStale):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if int64(balance) != accepted.Load() || accepted.Load()+refused.Load() != 4000 || refused.Load() == 0 || !slices.IsSorted(tokens) {
		t.Errorf("%d accepted, %d refused, the balance is %d, in order: %v", accepted.Load(), refused.Load(), balance, slices.IsSorted(tokens))
	}
	isSeen(t, m, "r", tokens[len(tokens)-1])
}

// At the bound a new resource is refused: the marks that are there are worth more.
func TestMemory_Bound(t *testing.T) {
	m := NewMemory(WithMaxResources(2))
	locktest.NoError(t, m.Check(t.Context(), "a", 5))
	locktest.NoError(t, m.Check(t.Context(), "b", 5))
	ran := false
	for _, err := range []error{m.Check(t.Context(), "c", 5), m.Do(t.Context(), "c", 5, func(context.Context) error { ran = true; return nil })} {
		locktest.IsError(t, err, ErrFull)
		if ran || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), "WithMaxResources") {
			t.Errorf("%v, ran: %v", err, ran)
		}
	}
	locktest.NoError(t, m.Check(t.Context(), "a", 6))
	locktest.IsError(t, m.Check(t.Context(), "b", 4), ErrStale)
	m.Forget("b")
	locktest.IsError(t, m.Do(t.Context(), "c", 1, func(context.Context) error { return ErrToken }), ErrToken) // fails, and takes no room
	locktest.NoError(t, m.Check(t.Context(), "d", 1))
	locktest.IsError(t, m.Check(t.Context(), "c", 5), ErrFull)
	locktest.IsError(t, m.Check(t.Context(), "a", 5), ErrStale)
	holdsMarks(t, m, 2)
}

// With the option the mark that was unused for longest goes, if that is long enough, and never one in use.
func TestMemory_ForgetUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(WithMaxResources(3), WithForgetUnused(time.Hour))
		for _, r := range []string{"a", "b", "c"} {
			locktest.NoError(t, m.Check(t.Context(), r, 5))
			time.Sleep(time.Minute)
		}
		locktest.NoError(t, m.Check(t.Context(), "a", 6)) // used again: b is the oldest now
		time.Sleep(58*time.Minute - time.Nanosecond)
		locktest.IsError(t, m.Check(t.Context(), "d", 1), ErrFull)
		locktest.IsError(t, m.Check(t.Context(), "b", 4), ErrStale) // asking is a use, and a refusal is an answer
		time.Sleep(time.Nanosecond)
		locktest.IsError(t, m.Check(t.Context(), "d", 1), ErrFull)
		time.Sleep(time.Minute)
		locktest.NoError(t, m.Check(t.Context(), "d", 1)) // c is an hour old
		isSeen(t, m, "c", 0)
		locktest.NoError(t, m.Do(t.Context(), "a", 7, func(context.Context) error { // in use for long
			time.Sleep(2 * time.Hour)
			locktest.NoError(t, m.Check(t.Context(), "e", 1))
			locktest.NoError(t, m.Check(t.Context(), "f", 1))
			locktest.IsError(t, m.Check(t.Context(), "g", 1), ErrFull)
			return nil
		}))
		locktest.IsError(t, m.Check(t.Context(), "a", 6), ErrStale)
		locktest.IsError(t, m.Check(t.Context(), "g", 1), ErrFull) // a was in use until now
		holdsMarks(t, m, 3)
		m.Forget("e") // out of the middle, the end, the beginning
		m.Forget("a")
		m.Forget("f")
		holdsMarks(t, m, 0)
		for _, r := range []string{"a", "b", "c"} {
			locktest.NoError(t, m.Check(t.Context(), r, 1))
		}
		locktest.IsError(t, m.Check(t.Context(), "d", 1), ErrFull)
		time.Sleep(time.Hour)
		for _, r := range []string{"d", "e", "f"} {
			locktest.NoError(t, m.Check(t.Context(), r, 1))
		}
		locktest.IsError(t, m.Check(t.Context(), "g", 1), ErrFull)
		for range 2 {
			time.Sleep(40 * time.Minute)
			locktest.IsError(t, m.Check(t.Context(), "g", 1), ErrFull) // each was used within the hour
			for _, r := range []string{"d", "e", "f"} {
				locktest.NoError(t, m.Check(t.Context(), r, 1))
			}
		}
	})
}

func TestMemory_BadArguments(t *testing.T) {
	m := NewMemory()
	never := func(context.Context) error { t.Error("the write ran"); return nil }
	for _, token := range []int64{0, -1, math.MinInt64} {
		locktest.IsError(t, m.Check(t.Context(), "r", token), ErrToken)
		locktest.IsError(t, m.Do(t.Context(), "r", token, never), ErrToken)
	}
	for _, err := range []error{Check("", 1), m.Check(t.Context(), "", 1), m.Do(t.Context(), "", 1, never)} {
		if err == nil || !strings.Contains(err.Error(), "name the resource") || errors.Is(err, ErrToken) {
			t.Errorf("no resource: %v", err)
		}
	}
	if err := m.Do(t.Context(), "r", 1, nil); err == nil || !strings.Contains(err.Error(), `"r"`) {
		t.Errorf("no write: %v", err)
	}
	holdsMarks(t, m, 0)
	for name, opt := range map[string]MemoryOption{"WithMaxResources(0)": WithMaxResources(0), "WithForgetUnused(-1s)": WithForgetUnused(-time.Second)} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), name) {
					t.Errorf("%s: %v", name, p)
				}
			}()
			NewMemory(opt)
		}()
	}
}

// The name of a resource may be a small part of a large text, which does not stay in memory with the mark.
func TestMemory_KeepsNoOnesString(t *testing.T) {
	m := NewMemory()
	freed := make(chan struct{})
	func() {
		large := strings.Repeat("x", 1<<20)
		runtime.AddCleanup(unsafe.StringData(large), func(struct{}) { close(freed) }, struct{}{})
		locktest.NoError(t, m.Check(t.Context(), large[:3], 1))
	}()
	redistest.Eventually(t, time.Minute, func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	}, "the large text is gone")
	isSeen(t, m, "xxx", 1)
}

func TestMemory_Allocations(t *testing.T) {
	for name, m := range map[string]*Memory{"plain": NewMemory(), "forgets": NewMemory(WithForgetUnused(time.Hour))} {
		token, balance := int64(1), 0
		write := func(context.Context) error { balance++; return nil }
		locktest.NoError(t, m.Check(t.Context(), "r", token))
		if n := locktest.Allocs(1000, func() { token++; locktest.NoError(t, m.Check(t.Context(), "r", token)) }); n != 0 {
			t.Errorf("%s: Check allocates %v times", name, n)
		}
		if n := locktest.Allocs(1000, func() { token++; locktest.NoError(t, m.Do(t.Context(), "r", token, write)) }); n != 1 { // write's context
			t.Errorf("%s: Do allocates %v times", name, n)
		}
		if n := locktest.Allocs(1000, func() { isSeen(t, m, "r", token) }); n != 0 {
			t.Errorf("%s: Seen allocates %v times", name, n)
		}
	}
}

// Each write that is refused because of a newer token is told, with no lock held, and no other one.
func TestTraceOfRefusedWrites(t *testing.T) {
	var told []locktrace.WriteRefused
	var m *Memory
	m = NewMemory(WithTrace(&locktrace.Trace{WriteRefused: func(e locktrace.WriteRefused) {
		told = append(told, e)
		locktest.NoError(t, m.Check(t.Context(), "r", 7)) // its turn is not this one's
	}}))
	locktest.NoError(t, m.Check(t.Context(), "r", 7))
	locktest.IsError(t, m.Check(t.Context(), "r", 6), ErrStale)
	locktest.IsError(t, m.Do(t.Context(), "r", 5, func(context.Context) error { return nil }), ErrStale)
	locktest.IsError(t, m.Check(t.Context(), "r", 0), ErrToken)
	locktest.DeepEqual(t, "what was told", told, []locktrace.WriteRefused{{Context: t.Context(), Guard: "memory", Resource: "r", Token: 6, Seen: 7}, {Context: t.Context(), Guard: "memory", Resource: "r", Token: 5, Seen: 7}})
	silent := NewMemory(WithTrace(new(locktrace.Trace)))
	locktest.NoError(t, silent.Check(t.Context(), "r", 2))
	locktest.IsError(t, silent.Check(t.Context(), "r", 1), ErrStale)
}
