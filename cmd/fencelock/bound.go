package main

import (
	"context"
	"time"

	"github.com/fencelock/fencelock/observe/inspect"
)

// askTimeout bounds each question of a command that shows or frees locks: a Redis that stands still for longer is told of.
const askTimeout = 5 * time.Second

// bounded asks within askTimeout.
func bounded[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return ask(ctx)
}

// Look is that of the inspector, within askTimeout.
func (v *viewer) Look(ctx context.Context, names ...string) ([]inspect.Lock, error) {
	return bounded(ctx, func(ctx context.Context) ([]inspect.Lock, error) { return v.Inspector.Look(ctx, names...) })
}

// Clients is that of the inspector, within askTimeout.
func (v *viewer) Clients(ctx context.Context) ([]inspect.Client, error) {
	return bounded(ctx, v.Inspector.Clients)
}

// Known is that of the inspector, within askTimeout.
func (v *viewer) Known(ctx context.Context) ([]inspect.Lock, error) {
	return bounded(ctx, v.Inspector.Known)
}

// Contended is that of the inspector, within askTimeout.
func (v *viewer) Contended(ctx context.Context) ([]inspect.Lock, error) {
	return bounded(ctx, v.Inspector.Contended)
}

// Listeners is that of the inspector, within askTimeout.
func (v *viewer) Listeners(ctx context.Context, names ...string) (map[string]int, error) {
	return bounded(ctx, func(ctx context.Context) (map[string]int, error) { return v.Inspector.Listeners(ctx, names...) })
}

// FreeEach is that of the inspector, within askTimeout.
func (v *viewer) FreeEach(ctx context.Context, l inspect.Lock) (inspect.Freed, error) {
	return bounded(ctx, func(ctx context.Context) (inspect.Freed, error) { return v.Inspector.FreeEach(ctx, l) })
}

// Servers is that of the inspector, within askTimeout.
func (v *viewer) Servers(ctx context.Context) ([]inspect.Server, error) {
	return bounded(ctx, v.Inspector.Servers)
}
