package token

import (
	"context"

	"github.com/fencelock/fencelock/fenced"
)

// bad asks for a token that nobody looks at.
func bad(ctx context.Context, lock *fenced.Lock) error {
	held, _, err := lock.LockAndGetToken(ctx) // want `the token is dropped: Lock does the same`
	if err != nil {
		return err
	}
	return lock.Unlock(held)
}

// good does not ask.
func good(ctx context.Context, lock *fenced.Lock) error {
	held, err := lock.Lock(ctx)
	if err != nil {
		return err
	}
	return lock.Unlock(held)
}
