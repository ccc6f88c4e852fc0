package locktest

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// A Hook is a go-redis hook that is called instead of sending a command. It sends the command by calling send, or does not.
// Pipelines pass it by.
type Hook func(ctx context.Context, cmd redis.Cmder, send func() error) error

// DialHook implements redis.Hook.
func (h Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (h Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (h Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return h(ctx, cmd, func() error { return next(ctx, cmd) })
	}
}

// A DialHook is a go-redis hook that is called before each connection is made.
type DialHook func()

// DialHook implements redis.Hook.
func (h DialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		h()
		return next(ctx, network, addr)
	}
}

// ProcessHook implements redis.Hook.
func (h DialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (h DialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
