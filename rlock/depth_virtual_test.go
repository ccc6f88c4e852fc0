package rlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// What a context costs in deep code. The questions that reach the context below all holds are counted: time says little on a busy machine.

// countedContext counts the questions that it is asked.
type countedContext struct {
	context.Context
	errs, values atomic.Int64
}

func (c *countedContext) Err() error {
	c.errs.Add(1)
	return c.Context.Err()
}

func (c *countedContext) Value(key any) any {
	c.values.Add(1)
	return c.Context.Value(key)
}

// nested are the ways to go one deeper, with what undoes it.
var nested = map[string]func(t testing.TB, c *rlock.Client, ctx context.Context, depth int) context.Context{
	"locks": func(t testing.TB, c *rlock.Client, ctx context.Context, depth int) context.Context {
		return take(t, rlock.NewLock(c, fmt.Sprint("l", depth)), ctx)
	},
	"re-entries": func(t testing.TB, c *rlock.Client, ctx context.Context, _ int) context.Context {
		return take(t, rlock.NewLock(c, "l"), ctx)
	},
	"values between": func(t testing.TB, c *rlock.Client, ctx context.Context, depth int) context.Context {
		return context.WithValue(take(t, rlock.NewLock(c, "l"), ctx), contextKey("k"), depth)
	},
	"holders": func(_ testing.TB, _ *rlock.Client, ctx context.Context, _ int) context.Context {
		return rlock.NewHolder(ctx)
	},
	"holders and locks": func(t testing.TB, c *rlock.Client, ctx context.Context, depth int) context.Context {
		return take(t, rlock.NewLock(c, fmt.Sprint("l", depth)), rlock.NewHolder(ctx))
	},
}

// One question to a context is one question to the context below all holds, however deep the code is nested.
func TestP5_QuestionsDoNotMultiply(t *testing.T) {
	for name, deeper := range nested {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				c := newClient(t, rdb)
				root, cancel := context.WithCancel(t.Context())
				defer cancel()
				counted := &countedContext{Context: root}
				ctx := context.Context(counted)
				for depth := range 14 {
					ctx = deeper(t, c, ctx, depth)
				}
				for question, ask := range map[string]func() bool{
					"Err":                         func() bool { return ctx.Err() == nil },
					"a Value that is not there":   func() bool { return ctx.Value(contextKey("absent")) == nil },
					"a pointer that is not there": func() bool { return ctx.Value(new(int)) == nil },
				} {
					counted.errs.Store(0)
					counted.values.Store(0)
					if !ask() {
						t.Errorf("%s: the answer is wrong", question)
					}
					if errs, values := counted.errs.Load(), counted.values.Load(); errs > 1 || values > 1 {
						t.Errorf("%s asks the context below all holds for its Err %d times, and for a Value %d times", question, errs, values)
					}
				}
				inner, end := context.WithTimeout(ctx, time.Hour)
				cancel()
				<-inner.Done()
				end()
				locktest.IsError(t, ctx.Err(), context.Canceled)
			})
		})
	}
}

// BenchmarkDeep is a question to a context of 1,000 nested levels.
func BenchmarkDeep(b *testing.B) {
	for name, deeper := range nested {
		c := newClient(b, redistest.New(b))
		ctx := b.Context()
		for depth := range 1000 {
			ctx = deeper(b, c, ctx, depth)
		}
		b.Run(name+"/Err", func(b *testing.B) {
			for b.Loop() {
				_ = ctx.Err()
			}
		})
		b.Run(name+"/Value", func(b *testing.B) {
			for b.Loop() {
				_ = ctx.Value(contextKey("absent"))
			}
		})
	}
}
