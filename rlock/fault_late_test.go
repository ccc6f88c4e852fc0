package rlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// An answer that comes at the very moment of its deadline, when the caller may see either first, is a failed try.
func TestP6_AnswerAtItsDeadline(t *testing.T) {
	const lease = time.Second
	for range 40 {
		redistest.Virtual(t, func(t *testing.T) {
			m, direct := redistest.Pipe(t)
			acquire := locktest.CallsOf("acquire")
			if err := direct.ScriptLoad(t.Context(), locktest.ScriptText("acquire")).Err(); err != nil {
				t.Fatal(err)
			}
			rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.ReadTimeout, o.Dialer = time.Minute, redistest.Unprobed(o.Dialer) })
			rdb.AddHook(locktest.Hook(func(_ context.Context, cmd redis.Cmder, send func() error) error {
				err := send()
				if acquire(textsOf(cmd)) {
					time.Sleep(lease - lease/100 - time.Millisecond)
				}
				return err
			}))
			c := newClient(t, rdb, rlock.WithPatience(time.Millisecond))
			defer func() { _ = c.Close() }()
			held, err := rlock.NewLock(c, "a").TryLock(t.Context(), 0, lease)
			if err == nil {
				t.Fatalf("a lock whose context is %v", held.Err())
			}
		})
	}
}
