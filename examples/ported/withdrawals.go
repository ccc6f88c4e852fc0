// Package ported is a class that used Redisson, ported to Go, with a test. The class is
// verify/interop/redisson/src/main/java/Withdrawals.java in the repository; docs/migrating.md says what differs.
package ported

import (
	"context"
	"errors"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Accounts is where the balances are. A call with a token older than one that the account has seen is refused, with
// guard.ErrStale.
type Accounts interface {
	Read(ctx context.Context, id string, token int64) (int64, error)
	Write(ctx context.Context, id string, token, balance int64) error
}

// Withdrawals takes money out of accounts.
type Withdrawals struct {
	Locks    *rlock.Client
	Accounts Accounts
}

// ErrPoor says that the account has not got so much.
var ErrPoor = errors.New("the balance is too low")

// Withdraw takes an amount out of an account. The error is rlock.ErrNotAcquired if others were at it for 3 s, and ErrPoor if the
// account has not got so much.
func (w *Withdrawals) Withdraw(ctx context.Context, id string, amount int64) (err error) {
	lock := fenced.NewLock(w.Locks, "account:"+id)
	held, token, err := lock.TryLockAndGetToken(ctx, 3*time.Second, 10*time.Second)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock(held)) }()

	balance, err := w.Accounts.Read(held, id, token)
	if err != nil {
		return err
	}
	if balance < amount {
		return ErrPoor
	}
	return w.Accounts.Write(held, id, token, balance-amount)
}
