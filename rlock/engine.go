package rlock

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/seam"
)

func init() {
	seam.New = func(lock any, tokens seam.Tokens) seam.Lock {
		return engine{lock.(*Lock), tokens}
	}
}

// engine is what package fenced builds on.
type engine struct {
	*Lock
	tokens seam.Tokens
}

func (e engine) request(op string, wait, lease time.Duration) request {
	t := e.tokens
	return request{op: op, wait: wait, lease: lease, fenced: true, stable: t.Stable, blocks: t.Blocks, floor: t.Floor, expiry: t.Expiry}
}

func (e engine) Acquire(ctx context.Context, op string, wait, lease time.Duration) (context.Context, int64, error) {
	held, lv, err := e.acquire(ctx, e.request(op, wait, lease))
	if err != nil {
		return held, 0, err
	}
	return held, lv.token, nil
}

func (e engine) Run(ctx context.Context, op string, wait, lease time.Duration, fn func(context.Context, int64) error) error {
	return e.run(ctx, e.request(op, wait, lease), fn)
}

func (e engine) Token(ctx context.Context) (int64, error) {
	h, err := e.held(ctx)
	if err != nil {
		return 0, e.wrap("Token", err)
	}
	token, ok := h.currentToken()
	if !ok || token == 0 {
		return 0, e.wrap("Token", fmt.Errorf("%w by a fenced lock: the hold was taken without a token", ErrNotHeld))
	}
	return token, nil
}
