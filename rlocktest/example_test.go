package rlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// Ledger is storage of yours, with a guard.
type Ledger struct {
	marks   *guard.Memory
	balance int
}

func (l *Ledger) add(ctx context.Context, token int64, amount int) error {
	return l.marks.Do(ctx, "ledger", token, func(context.Context) error {
		l.balance += amount
		return nil
	})
}

// Deposit is code of yours. before is told of each step that matters; in a service it does nothing.
func Deposit(ctx context.Context, lock *fenced.Lock, l *Ledger, amount int, before func(step string)) error {
	return lock.Do(ctx, func(ctx context.Context, token int64) error {
		before("the write")
		return l.add(ctx, token, amount)
	})
}

// The lock is stolen before each step of Deposit, once so that it is told and once so that it is not.
func ExampleAtEachStep() {
	test := func(t *testing.T) { // TestDeposit of yours
		rlocktest.AtEachStep(t, "ledger", func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
			ledger := &Ledger{marks: guard.NewMemory()}
			steps.OnSteal(func(thief *rlocktest.Other) {
				if err := ledger.add(t.Context(), thief.Token(), 1000); err != nil {
					t.Error(err)
				}
			})
			err := Deposit(t.Context(), fenced.NewLock(s.Client(), "ledger"), ledger, 10, steps.Step)
			switch {
			case steps.Stolen() && (err == nil || ledger.balance != 1000):
				t.Errorf("the late write was not refused: balance %d, error %v", ledger.balance, err)
			case !steps.Stolen() && (err != nil || ledger.balance != 10):
				t.Errorf("balance %d, error %v", ledger.balance, err)
			}
		})
	}
	fmt.Println(run("TestDeposit", test))
	// Output: ok
}

// A lease of 30 s runs out in no time, because the test is in a bubble.
func Example_bubble() {
	test := func(t *testing.T) { // TestLease of yours
		synctest.Test(t, func(t *testing.T) {
			s := rlocktest.New(t)
			client := s.Client()
			lock := fenced.NewLock(client, "job")
			held, _, err := lock.LockAndGetToken(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s.Stop(client) // the network is away
			time.Sleep(30 * time.Second)
			if !errors.Is(held.Err(), rlock.ErrLost) {
				t.Errorf("the context ended with %v", held.Err())
			}
			s.Continue(client)
			if err := lock.Unlock(held); !errors.Is(err, rlock.ErrLost) {
				t.Errorf("Unlock returned %v", err)
			}
		})
	}
	fmt.Println(run("TestLease", test))
	// Output: ok
}

// Somebody else holds the lock, and a call of yours waits for it.
func ExampleServer_Hold() {
	test := func(t *testing.T) {
		s := rlocktest.New(t)
		lock := fenced.NewLock(s.Client(), "job")
		other := s.Hold("job")
		if _, _, err := lock.TryLockAndGetToken(t.Context(), 0, 0); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("TryLock returned %v", err)
		}
		done := make(chan error, 1)
		go func() { done <- lock.Do(t.Context(), func(context.Context, int64) error { return nil }) }()
		s.WaitForWaiters("job", 1)
		other.Unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	fmt.Println(run("TestWaits", test))
	// Output: ok
}

// Code that is called with a held lock, and takes none itself, needs no Server.
func ExampleContext() {
	held, lose := rlocktest.Context(context.Background(), "account:42", 7)
	token, _ := fenced.TokenFrom(held, "account:42")
	fmt.Println(token, held.Err())
	lose()
	fmt.Println(errors.Is(held.Err(), rlock.ErrLost))
	// Output:
	// 7 <nil>
	// true
}

// run runs a test as go test does.
func run(name string, test func(t *testing.T)) string {
	if testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: name, F: test}}) {
		return "ok"
	}
	return "failed"
}
