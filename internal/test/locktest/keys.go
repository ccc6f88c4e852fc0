package locktest

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A KeyPrefix is a go-redis hook that puts this before the keys of scripts, as programs have it that serve several tenants: in the command itself,
// which go-redis has no other way to change.
type KeyPrefix string

func (p KeyPrefix) change(cmd redis.Cmder) {
	keys := keysOf(cmd)
	for i := range keys {
		keys[i] = string(p) + keys[i].(string)
	}
}

// DialHook implements redis.Hook.
func (KeyPrefix) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (p KeyPrefix) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		p.change(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (p KeyPrefix) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			p.change(cmd)
		}
		return next(ctx, cmds)
	}
}

// Insists returns a go-redis hook that makes the server one that insists on declared keys, as Dragonfly does: the hook refuses a script that has
// declared the keys of a guard alone, in Dragonfly's words, and counts that.
func Insists(refused *atomic.Int32) Hook {
	return func(_ context.Context, cmd redis.Cmder, send func() error) error {
		keys := keysOf(cmd)
		if len(keys) == 0 || !strings.HasPrefix(keys[0].(string), "fencelock_guard:") || !strings.HasPrefix(keys[len(keys)-1].(string), "fencelock_") {
			return send()
		}
		refused.Add(1)
		cmd.SetErr(undeclaredKey{})
		return undeclaredKey{}
	}
}

type undeclaredKey struct{}

func (undeclaredKey) Error() string {
	return "ERR Error running script (call to x): @user_script:2: script tried accessing undeclared key, key: x"
}

// RedisError implements redis.Error.
func (undeclaredKey) RedisError() {}

// keysOf returns the keys that a script has declared, as a part of the command's arguments; none for another command.
func keysOf(cmd redis.Cmder) []any {
	args := cmd.Args()
	if cmd.Name() != "eval" && cmd.Name() != "evalsha" {
		return nil
	}
	return args[3 : 3+args[2].(int)]
}
