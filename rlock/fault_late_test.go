package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// An answer that comes at the very moment of its deadline, when the caller may see either first, is a failed try.
func TestP6_AnswerAtItsDeadline(t *testing.T) {
	const lease = time.Second
	for range 40 {
		redistest.Virtual(t, func(t *testing.T) {
			m, direct := redistest.Pipe(t)
			acquire := faultOf(t, "acquire")
			if err := direct.ScriptLoad(t.Context(), bhText("acquire")).Err(); err != nil {
				t.Fatal(err)
			}
			rdb := redistest.PipeClient(t, m, func(o *redis.Options) { o.ReadTimeout = time.Minute })
			rdb.AddHook(faultAfter{func(args []string) {
				if acquire(args) {
					time.Sleep(lease - lease/100 - time.Millisecond)
				}
			}})
			c := faultClient(t, rdb, rlock.WithPatience(time.Millisecond))
			defer func() { _ = c.Close() }()
			held, err := rlock.NewLock(c, "a").TryLock(t.Context(), 0, lease)
			if err == nil {
				t.Fatalf("a lock whose context is %v", held.Err())
			}
		})
	}
}

// faultAfter sees each command when its answer has come.
type faultAfter struct{ f func(args []string) }

func (h faultAfter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (h faultAfter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h faultAfter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		var args []string
		for _, arg := range cmd.Args() {
			args = append(args, fmt.Sprint(arg))
		}
		h.f(args)
		return err
	}
}
