package errcompare

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/rlock"
)

// bad never finds that somebody else has the lock.
func bad(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, time.Second, 0)
	if err == rlock.ErrNotAcquired { // want `err is wrapped and never equal to rlock.ErrNotAcquired: use errors.Is`
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

// good asks with errors.Is.
func good(ctx context.Context, lock *rlock.Lock) error {
	held, err := lock.TryLock(ctx, time.Second, 0)
	if errors.Is(err, rlock.ErrNotAcquired) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock(held)
	return work(held)
}

func switches(ctx context.Context, lock *rlock.Lock) bool {
	err := lock.Do(ctx, work)
	switch err {
	case nil, io.EOF:
		return true
	case rlock.ErrLost, rlock.ErrClosed: // want `never equal to rlock.ErrLost` `never equal to rlock.ErrClosed`
		return false
	}
	return false
}

func ends(ctx context.Context, lock *rlock.Lock) error {
	return lock.Do(ctx, func(ctx context.Context) error {
		if ctx.Err() == context.Canceled { // want `ctx.Err\(\) equals context.Canceled when the caller has canceled, and not when the lock was lost`
			return nil
		}
		if context.Cause(ctx) != rlock.ErrLost { // want `never equal to rlock.ErrLost`
			return nil
		}
		return ctx.Err()
	})
}

func guards(ctx context.Context, w redisguard.Writer) error {
	n, err := w.Do(ctx, "INCRBY", "balance", 10).Int64()
	if err == guard.ErrStale { // want `never equal to guard.ErrStale`
		return nil
	}
	if n > 0 && guard.Check("account:42", n) == guard.ErrToken { // want `never equal to guard.ErrToken`
		return nil
	}
	return err
}

func deposit(ctx context.Context, lock *rlock.Lock) error {
	if err := lock.Do(ctx, work); err != nil {
		return err
	}
	return nil
}

func through(ctx context.Context, lock *rlock.Lock) bool {
	return deposit(ctx, lock) == rlock.ErrLost // want `never equal to rlock.ErrLost`
}

// classify returns the bare error, so that it may be compared.
func classify(err error) error {
	if errors.Is(err, rlock.ErrLost) {
		return rlock.ErrLost
	}
	return nil
}

func classified(ctx context.Context, lock *rlock.Lock) bool {
	return classify(lock.Do(ctx, work)) == rlock.ErrLost
}

type lost struct{}

func (lost) Error() string { return "lost" }

func (lost) Is(target error) bool { return target == rlock.ErrLost }

func wants(want error) bool { return want == rlock.ErrLost }

func late(ctx context.Context, lock *rlock.Lock) bool {
	held, err := lock.Lock(ctx)
	if err == context.Canceled { // want `err is wrapped and never equal to context.Canceled`
		return false
	}
	if err != nil {
		return false
	}
	defer lock.Unlock(held)
	return held.Err() == context.DeadlineExceeded // the caller's, as it is
}

func outer(ctx context.Context) bool { return ctx.Err() == context.Canceled }

func unwrapped(ctx context.Context, lock *rlock.Lock) bool {
	err := lock.Do(ctx, work)
	return errors.Unwrap(err) == rlock.ErrLost
}

// bare is an error of the function that Do was given, and Do may pass on.
func bare(ctx context.Context, m *guard.Memory) bool {
	err := m.Do(ctx, "account:42", 1, func(context.Context) error { return guard.ErrAbsent })
	return err == guard.ErrAbsent
}

func work(context.Context) error { return nil }
