package rlock

import (
	"context"
	"errors"
	"time"
)

// Do runs fn while it holds the lock, which it takes as Lock does; fn's context is the one that Lock would return. The
// error says all there is to say: fn's own, joined with Unlock's, which is ErrLost where the lock was lost, also if fn
// returned nil. A panic in fn unlocks and goes on.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return l.run(ctx, request{op: "Do", forever: true}, withoutToken(fn))
}

// TryDo is Do that takes the lock as TryLock does; ErrNotAcquired means that fn did not run.
func (l *Lock) TryDo(ctx context.Context, wait, lease time.Duration, fn func(ctx context.Context) error) error {
	return l.run(ctx, request{op: "TryDo", wait: wait, lease: lease}, withoutToken(fn))
}

func withoutToken(fn func(context.Context) error) func(context.Context, int64) error {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, _ int64) error { return fn(ctx) }
}

func (l *Lock) run(ctx context.Context, r request, fn func(context.Context, int64) error) (err error) {
	if fn == nil {
		return l.wrap(r.op, errors.New("fn is nil: there is nothing to do"))
	}
	held, lv, err := l.acquire(ctx, r)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		unlockErr := l.wrap(r.op, l.unlock(held))
		if returned {
			err = errors.Join(err, unlockErr)
		}
	}()
	err = fn(held, lv.token)
	returned = true
	return err
}
