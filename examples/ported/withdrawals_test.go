package ported

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/rlock"
	"github.com/fencelock/fencelock/rlocktest"
)

// bank is Accounts in memory. before is told of each call.
type bank struct {
	marks    *guard.Memory
	balances map[string]int64
	before   func(step string)
}

func (b *bank) Read(ctx context.Context, id string, token int64) (balance int64, err error) {
	b.before("the read")
	err = b.marks.Do(ctx, id, token, func(context.Context) error {
		balance = b.balances[id]
		return nil
	})
	return balance, err
}

func (b *bank) Write(ctx context.Context, id string, token, balance int64) error {
	b.before("the write")
	return b.marks.Do(ctx, id, token, func(context.Context) error {
		b.balances[id] = balance
		return nil
	})
}

// However late a withdrawal comes, it takes nothing from what somebody else has paid in meanwhile.
func TestWithdrawAtEachStep(t *testing.T) {
	rlocktest.AtEachStep(t, "account:42", func(t *testing.T, s *rlocktest.Server, steps *rlocktest.Steps) {
		accounts := &bank{marks: guard.NewMemory(), balances: map[string]int64{"42": 100}, before: steps.Step}
		steps.OnSteal(func(thief *rlocktest.Other) {
			err := accounts.marks.Do(t.Context(), "42", thief.Token(), func(context.Context) error {
				accounts.balances["42"] += 1000
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		w := &Withdrawals{Locks: s.Client(), Accounts: accounts}

		err := w.Withdraw(t.Context(), "42", 30)

		want := int64(70)
		if steps.Stolen() {
			want = 1100
		}
		if accounts.balances["42"] != want || (err != nil) != steps.Stolen() {
			t.Errorf("the balance is %d, want %d, and the error %v", accounts.balances["42"], want, err)
		}
		if err != nil && !errors.Is(err, rlock.ErrLost) {
			t.Errorf("the error does not say that the lock was lost: %v", err)
		}
	})
}

// In a bubble the three seconds of the wait take no time.
func TestWithdrawWhileOthersAreAtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rlocktest.New(t)
		accounts := &bank{marks: guard.NewMemory(), balances: map[string]int64{"42": 100}, before: func(string) {}}
		w := &Withdrawals{Locks: s.Client(), Accounts: accounts}
		other := s.Hold("account:42")
		if err := w.Withdraw(t.Context(), "42", 30); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("while others are at it: %v", err)
		}
		other.Unlock()
		if err := w.Withdraw(t.Context(), "42", 130); !errors.Is(err, ErrPoor) {
			t.Errorf("of more than there is: %v", err)
		}
	})
}
