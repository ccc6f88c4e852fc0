package rlocktest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// account is guarded storage.
type account struct {
	marks   *guard.Memory
	balance int
}

func (a *account) read(ctx context.Context, token int64) (balance int, err error) {
	err = a.marks.Do(ctx, "account", token, func(context.Context) error {
		balance = a.balance
		return nil
	})
	return balance, err
}

func (a *account) write(ctx context.Context, token int64, balance int) error {
	return a.marks.Do(ctx, "account", token, func(context.Context) error {
		a.balance = balance
		return nil
	})
}

// deposit is code under test.
func deposit(ctx context.Context, lock *fenced.Lock, a *account, amount int, step func(string)) error {
	step("lock")
	return lock.Do(ctx, func(ctx context.Context, token int64) error {
		step("read")
		balance, err := a.read(ctx, token)
		if err != nil {
			return err
		}
		step("write")
		return a.write(ctx, token, balance+amount)
	})
}

func TestAtEachStep(t *testing.T) {
	runs, stolen := 0, 0
	rlocktest.AtEachStep(t, "account", func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
		runs++
		a := &account{marks: guard.NewMemory()}
		want := 10
		steps.OnSteal(func(thief *rlocktest.Other) {
			stolen++
			want += 100
			locktest.NoError(t, a.write(t.Context(), thief.Token(), a.balance+100))
		})
		err := deposit(t.Context(), fenced.NewLock(s.Client(), "account"), a, 10, steps.Step)
		if err != nil {
			want -= 10
			if !errors.Is(err, rlock.ErrLost) && !errors.Is(err, guard.ErrStale) {
				t.Errorf("got the error %v", err)
			}
		}
		locktest.Equal(t, "balance", a.balance, want)
		locktest.Equal(t, "stolen", steps.Stolen(), want >= 100)
	})
	locktest.Equal(t, "runs: one, and two for each of three steps", runs, 7)
	locktest.Equal(t, "stolen", stolen, 6)
}

// One of the subtests can be chosen, as editors do.
func TestAtEachStepOfOneSubtest(t *testing.T) {
	const variable = "RLOCKTEST_ONE_SUBTEST"
	if os.Getenv(variable) != "" {
		rlocktest.AtEachStep(t, "account", func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
			err := deposit(t.Context(), fenced.NewLock(s.Client(), "account"), &account{marks: guard.NewMemory()}, 10, steps.Step)
			locktest.Equal(t, "stolen", steps.Stolen(), err != nil || steps.Stolen())
		})
		return
	}
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$/^stolen_before_write$")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if passed := "--- PASS: " + t.Name() + "/stolen_before_write "; err != nil || !strings.Contains(string(out), passed) {
		t.Errorf("%v, want %q in\n%s", err, passed, out)
	}
}
