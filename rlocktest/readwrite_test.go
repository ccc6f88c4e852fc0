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

// Refresh is code of yours: it changes the page, unless somebody reads it now.
func Refresh(ctx context.Context, page *fenced.RWLock, change func() error) error {
	err := page.Write().Do(ctx, func(context.Context, int64) error { return change() }, rlock.Wait(0))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	return err
}

// Others read, and the code waits for its turn, or does nothing.
func ExampleAsReader() {
	test := func(t *testing.T) { // TestRefresh of yours
		s := rlocktest.New(t)
		page := fenced.NewRWLock(s.Client(), "page")
		changes := 0
		change := func() error { changes++; return nil }

		reader := s.Hold("page", rlocktest.AsReader())
		another := s.Hold("page", rlocktest.AsReader(), rlocktest.AsRedisson())
		if err := Refresh(t.Context(), page, change); err != nil || changes != 0 {
			t.Errorf("while others read it makes %d changes, and returns %v", changes, err)
		}
		done := make(chan error, 1) // and a call that waits
		go func() {
			done <- page.Write().Do(t.Context(), func(context.Context, int64) error { return change() })
		}()
		s.WaitForWaiters("page", 1)
		reader.Unlock()
		another.Unlock()
		if err := <-done; err != nil || changes != 1 {
			t.Errorf("it makes %d changes, and returns %v", changes, err)
		}
	}
	fmt.Println(run("TestRefresh", test))
	// Output: ok
}

// Others read beside the clients, write alone, and take a lock from all that have it; leases of theirs end.
func TestOthersReadAndWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		client := s.Client()
		page := fenced.NewRWLock(client, "page")
		take := func(l *fenced.Lock) *fenced.Hold {
			t.Helper()
			h, err := l.Acquire(t.Context())
			locktest.NoError(t, err)
			return h
		}
		lost := func(what string, h *fenced.Hold) {
			t.Helper()
			if !errors.Is(context.Cause(h.Context()), rlock.ErrLost) {
				t.Errorf("%s: the context's cause is %v", what, context.Cause(h.Context()))
			}
			if err := h.Unlock(t.Context()); !errors.Is(err, rlock.ErrLost) {
				t.Errorf("%s: Unlock says %v", what, err)
			}
		}
		first, second := take(page.Read()), take(page.Read())
		other := s.Hold("page", rlocktest.AsReader())
		locktest.Equal(t, "the token of the phase", other.Token(), first.Token())
		locktest.Equal(t, "how many hold it", s.HoldCount("page"), 3)
		other.Unlock()
		locktest.Equal(t, "how many hold it then", s.HoldCount("page"), 2)
		thief := s.Steal("page")
		lost("the first one", first)
		lost("the second one", second)
		locktest.Equal(t, "the thief's token", thief.Token(), first.Token()+1)
		got := locktest.Start(func() error { return page.Read().Do(t.Context(), func(context.Context, int64) error { return nil }) })
		s.WaitForWaiters("page", 1)
		thief.Unlock()
		locktest.NoError(t, <-got)

		write := take(page.Write())
		locktest.Equal(t, "who writes", s.Holder("page"), client.ID())
		s.StealUnnoticed("page", rlocktest.AsReader())
		locktest.NoError(t, write.Context().Err())
		synctest.Wait()
		if err := write.Unlock(t.Context()); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock of a write lock that was stolen: %v", err)
		}
		s.Expire("page")
		locktest.Equal(t, "who has it", s.Holder("page"), "")

		s.Hold("page", rlocktest.AsWriter(), rlocktest.ExpiresAfter(5*time.Second))
		began := time.Now()
		read := take(page.Read())
		locktest.Equal(t, "it waited for the dead one", time.Since(began) >= 5*time.Second, true)
		s.Expire("page")
		lost("one whose lease has run out", read)
		write = take(page.Write())
		s.Forget()
		lost("one that Redis has forgotten", write)
	})
}

// A lock that is read is no free one for a writer, nor one that is written for anybody.
func TestHoldOfATakenReadWriteLock(t *testing.T) {
	for what, c := range map[string]struct{ first, second []rlocktest.HoldOption }{
		"write beside a reader":     {[]rlocktest.HoldOption{rlocktest.AsReader()}, []rlocktest.HoldOption{rlocktest.AsWriter()}},
		"read beside a writer":      {[]rlocktest.HoldOption{rlocktest.AsWriter()}, []rlocktest.HoldOption{rlocktest.AsReader()}},
		"hold it as a plain lock":   {[]rlocktest.HoldOption{rlocktest.AsReader()}, nil},
		"read beside a plain hold":  {nil, []rlocktest.HoldOption{rlocktest.AsReader()}},
		"write beside a plain hold": {nil, []rlocktest.HoldOption{rlocktest.AsWriter()}},
	} {
		said := told(t, func(t testing.TB) {
			s := rlocktest.New(t)
			s.Hold("page", c.first...)
			s.Hold("page", c.second...)
		})
		if !strings.Contains(said, `"page" is held by`) {
			t.Errorf("%s: the test was told %q", what, said)
		}
	}
}

// Steal makes no read-write lock of a plain one.
func TestStealOfAnotherKind(t *testing.T) {
	said := told(t, func(t testing.TB) {
		s := rlocktest.New(t)
		s.Hold("page")
		s.Steal("page", rlocktest.AsReader())
	})
	if !strings.Contains(said, "no read-write lock") {
		t.Errorf("the test was told %q", said)
	}
}

// AtEachStep steals a read-write lock from whoever has it.
func TestAtEachStepOfAReader(t *testing.T) {
	rlocktest.AtEachStep(t, "page", func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
		page := fenced.NewRWLock(s.Client(), "page")
		err := page.Read().Do(t.Context(), func(ctx context.Context, token int64) error {
			steps.Step("look")
			return ctx.Err()
		})
		if stolen := steps.Stolen(); stolen != (err != nil) {
			t.Errorf("stolen: %v, and it returns %v", stolen, err)
		}
	})
}
