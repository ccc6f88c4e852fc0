package rlock

import (
	"context"
	"fmt"

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

func (e engine) request(c seam.Call) request {
	t := e.tokens
	return request{op: c.Op, forever: c.Forever, wait: c.Wait, lease: c.Lease, fenced: true, stable: t.Stable, blocks: t.Blocks, floor: t.Floor, expiry: t.Expiry}
}

func (e engine) Acquire(ctx context.Context, c seam.Call) (context.Context, int64, error) {
	held, lv, err := e.acquire(ctx, e.request(c))
	if err != nil {
		return held, 0, err
	}
	return held, lv.token, nil
}

func (e engine) Run(ctx context.Context, c seam.Call, fn func(context.Context, int64) error) error {
	return e.run(ctx, e.request(c), fn)
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
