package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// Import is code of yours: one of five at a time. It does nothing where all five are busy.
func Import(ctx context.Context, jobs *fenced.Semaphore, work func(slot int)) error {
	err := jobs.Do(ctx, func(_ context.Context, p *fenced.Hold) error {
		work(p.Slot())
		return nil
	}, rlock.Wait(0))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	return err
}

// Others hold four of five permits, then all of them.
func ExampleServer_HoldSlots() {
	test := func(t *testing.T) { // TestImport of yours
		s := rlocktest.New(t)
		jobs := fenced.NewSemaphore(s.Client(), "jobs", 5)
		var slots []int
		work := func(slot int) { slots = append(slots, slot) }

		s.HoldSlots("jobs", 4)
		if err := Import(t.Context(), jobs, work); err != nil || len(slots) != 1 || slots[0] != 4 {
			t.Errorf("with one permit left it works in %v, and returns %v", slots, err)
		}
		last := s.HoldSlots("jobs", 1)[0]
		if err := Import(t.Context(), jobs, work); err != nil || len(slots) != 1 {
			t.Errorf("without a permit it works in %v, and returns %v", slots, err)
		}

		done := make(chan error, 1) // and a call that waits
		go func() { done <- jobs.Do(t.Context(), func(context.Context, *fenced.Hold) error { return nil }) }()
		s.WaitForWaiters(rlocktest.AnySlot("jobs"), 1)
		last.Unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	fmt.Println(run("TestImport", test))
	// Output: ok
}

// acquire takes a permit.
func acquire(t testing.TB, jobs *fenced.Semaphore) *fenced.Hold {
	t.Helper()
	p, err := jobs.Acquire(t.Context())
	locktest.NoError(t, err)
	return p
}

func TestSlotNames(t *testing.T) {
	s := rlocktest.New(t)
	for name, want := range map[string]string{"jobs": "{jobs}:", "jobs{a}": "jobs{a}:"} {
		p := acquire(t, fenced.NewSemaphore(s.Client(), name, 1024))
		locktest.Equal(t, "the name of a permit", p.Name(), rlocktest.SlotName(name, 0))
		locktest.Equal(t, "of slot 1023", rlocktest.SlotName(name, 1023), want+"1023")
		locktest.Equal(t, "of any slot", rlocktest.AnySlot(name), want+"*")
		locktest.NoError(t, p.Unlock(t.Context()))
	}
}

// Who waits for a permit has it at once when one of the others gives it back, when its lease ends, and when a thief unlocks it.
func TestOthersPermitsWakeWhoWaits(t *testing.T) {
	for what, give := range map[string]func(s *rlocktest.Server, others []*rlocktest.Other){
		"Unlock": func(_ *rlocktest.Server, others []*rlocktest.Other) { others[1].Unlock() },
		"Expire": func(s *rlocktest.Server, _ []*rlocktest.Other) { s.Expire(rlocktest.SlotName("jobs", 1)) },
		"Steal":  func(s *rlocktest.Server, _ []*rlocktest.Other) { s.Steal(rlocktest.SlotName("jobs", 1)).Unlock() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := rlocktest.New(t)
				jobs := fenced.NewSemaphore(s.Client(), "jobs", 3)
				others := s.HoldSlots("jobs", 3)
				_, err := jobs.Acquire(t.Context(), rlock.Wait(0))
				locktest.IsError(t, err, rlock.ErrNotAcquired)
				slot := make(chan int, 1)
				got := locktest.Start(func() error {
					return jobs.Do(t.Context(), func(_ context.Context, p *fenced.Hold) error { slot <- p.Slot(); return nil })
				})
				s.WaitForWaiters(rlocktest.AnySlot("jobs"), 1)
				locktest.Equal(t, "waiters", s.Waiters(rlocktest.AnySlot("jobs")), 1)
				time.Sleep(15 * time.Second)
				began := time.Now()
				give(s, others)
				locktest.NoError(t, <-got)
				locktest.Equal(t, "slot", <-slot, 1)
				if took := time.Since(began); took > 10*time.Millisecond {
					t.Errorf("who waits has it after %v", took)
				}
				locktest.Equal(t, "the others hold theirs", others[0].Held() && others[2].Held(), true)
			})
		})
	}
}

// Others take what clients leave, for a lease too, with tokens of their own.
func TestHoldSlotsTakesFreeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		jobs := fenced.NewSemaphore(s.Client(), "jobs", 3)
		p := acquire(t, jobs)
		others := s.HoldSlots("jobs", 2, rlocktest.ExpiresAfter(8*time.Second))
		locktest.Equal(t, "token", others[1].Token(), 1)
		locktest.Equal(t, "last token of slot 2", s.LastToken(rlocktest.SlotName("jobs", 2)), 1)
		_, err := jobs.Acquire(t.Context(), rlock.Wait(7*time.Second))
		locktest.IsError(t, err, rlock.ErrNotAcquired)
		q, err := jobs.Acquire(t.Context(), rlock.Wait(7*time.Second))
		locktest.NoError(t, err)
		locktest.Equal(t, "token after that of a dead process", q.Token(), 2)
		locktest.NoError(t, q.Unlock(t.Context()))

		thief := s.Steal(p.Name())
		locktest.IsError(t, p.Err(), rlock.ErrLost)
		if thief.Token() <= p.Token() {
			t.Errorf("token %d after %d", thief.Token(), p.Token())
		}
		locktest.IsError(t, p.Unlock(t.Context()), rlock.ErrLost)
	})
}

// A permit has the place of its semaphore in the order of locks, whatever slot it has.
func TestCyclesOfPermits(t *testing.T) {
	underPermit := func(t testing.TB, c *rlock.Client, lock string) {
		locktest.NoError(t, fenced.NewSemaphore(c, "jobs", 2).Do(context.Background(), func(ctx context.Context, _ *fenced.Hold) error {
			return fenced.NewLock(c, lock).Do(ctx, func(context.Context, int64) error { return nil })
		}))
	}
	permitUnder := func(t testing.TB, c *rlock.Client, lock string) {
		locktest.NoError(t, fenced.NewLock(c, lock).Do(context.Background(), func(ctx context.Context, _ int64) error {
			return fenced.NewSemaphore(c, "jobs", 2).Do(ctx, func(context.Context, *fenced.Hold) error { return nil })
		}))
	}
	for what, c := range map[string]struct {
		test func(t testing.TB, s *rlocktest.Server, c *rlock.Client)
		says []string // nothing: the test is told of nothing
	}{
		"a permit under a lock, and the lock under a permit": {func(t testing.TB, s *rlocktest.Server, c *rlock.Client) {
			underPermit(t, c, "a")
			s.HoldSlots("jobs", 1)
			permitUnder(t, c, "a")
		}, []string{"circle", `"a" under "{jobs}:*"`, `"{jobs}:*" under "a"`}},
		"a permit under a permit": {func(t testing.TB, s *rlocktest.Server, c *rlock.Client) {
			jobs := fenced.NewSemaphore(c, "jobs", 2)
			locktest.NoError(t, jobs.Do(context.Background(), func(ctx context.Context, _ *fenced.Hold) error {
				return jobs.Do(ctx, func(context.Context, *fenced.Hold) error { return nil })
			}))
		}, []string{"circle", `"{jobs}:*" under "{jobs}:*" at slots_test.go:`}},
		"one that does not wait": {func(t testing.TB, s *rlocktest.Server, c *rlock.Client) {
			jobs := fenced.NewSemaphore(c, "jobs", 2)
			locktest.NoError(t, jobs.Do(context.Background(), func(ctx context.Context, _ *fenced.Hold) error {
				return jobs.Do(ctx, func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(0))
			}))
		}, nil},
		"one order": {func(t testing.TB, s *rlocktest.Server, c *rlock.Client) {
			underPermit(t, c, "a")
			s.HoldSlots("jobs", 1)
			underPermit(t, c, "a")
			under(t, c, "{nodes}:0", "{nodes}:1") // plain locks
			s.RequireOrder(rlocktest.AnySlot("jobs"), "a")
		}, nil},
	} {
		got := told(t, func(t testing.TB) {
			s := rlocktest.New(t)
			c.test(t, s, s.Client())
		})
		if len(c.says) == 0 {
			locktest.Equal(t, what, got, "")
		}
		for _, part := range c.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: the test was told %q, want %q", what, got, part)
			}
		}
	}
}

func TestHoldSlotsThatAreNotThere(t *testing.T) {
	for what, c := range map[string]struct {
		name string
		m    int
		says string
	}{
		"none":     {"jobs", 0, "0 slots"},
		"too many": {"jobs", 1024, `1024 slots: "jobs" has 1023 free ones`},
		"no name":  {"", 1, "HoldSlots: the semaphore's name is empty"},
	} {
		got := told(t, func(t testing.TB) {
			s := rlocktest.New(t)
			s.Hold(rlocktest.SlotName("jobs", 7))
			s.HoldSlots(c.name, c.m)
		})
		if !strings.Contains(got, c.says) {
			t.Errorf("%s: the test was told %q, want %q", what, got, c.says)
		}
	}
}
