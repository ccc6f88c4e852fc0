package engine

import (
	"context"

	"github.com/fencelock/fencelock/scripts"
)

// inspect asks who has the lock.
func (l *Lock) inspect(ctx context.Context, field string) (scripts.State, error) {
	if err := l.checkAsk(ctx); err != nil {
		return scripts.State{}, err
	}
	bound, cancel := context.WithTimeout(ctx, l.client.set.Patience)
	defer cancel()
	state, err := l.look(bound, field)
	if err != nil && ctx.Err() != nil {
		err = contextError(ctx)
	}
	return state, err
}

// checkAsk is why Redis need not be asked; nil if it is to be.
func (l *Lock) checkAsk(ctx context.Context) error {
	if err := l.checkName(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	return nil
}

// look is inspect within this bound.
func (l *Lock) look(bound context.Context, field string) (scripts.State, error) {
	state, _, err := retry(bound, l.client.set.Patience/3, func(ctx context.Context) (scripts.State, error) {
		return l.client.store.Inspect(ctx, l.keys, field)
	})
	return state, err
}
