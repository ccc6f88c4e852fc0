package rlock_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P30: under a hook that changes keys no client can be called by the line. Six clients of each of two tenants take turns without a pause all the
// same, each tenant with a lock of its own, and the clients that have come to wait in the line say once why there is none.
func TestP30_KeysWithAPrefix(t *testing.T) {
	kinds := map[string]func(ctx context.Context, c *rlock.Client, section func()) error{
		"a lock": func(ctx context.Context, c *rlock.Client, section func()) error {
			return fenced.NewLock(c, "l").Do(ctx, func(context.Context, int64) error { section(); return nil })
		},
		"a semaphore": func(ctx context.Context, c *rlock.Client, section func()) error {
			return fenced.NewSemaphore(c, "l", 1).Do(ctx, func(context.Context, *fenced.Hold) error { section(); return nil })
		},
		"a write lock": func(ctx context.Context, c *rlock.Client, section func()) error {
			return fenced.NewRWLock(c, "l").Write().Do(ctx, func(context.Context, int64) error { section(); return nil })
		},
	}
	const (
		clients, turns = 6, 5
		turn           = 10 * time.Millisecond
	)
	for kind, do := range kinds {
		t.Run(kind, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				m, _ := redistest.Pipe(t)
				var all sync.WaitGroup
				var said atomic.Int32
				began := time.Now()
				for _, name := range []locktest.KeyPrefix{"a:", "b:"} { // at once: their locks have one channel
					var inside atomic.Int32
					for range clients {
						rdb := redistest.PipeClient(t, m)
						rdb.AddHook(name)
						var log locktest.Log
						c := newClient(t, rdb, rlock.WithLogger(log.Logger()), rlock.WithPollInterval(time.Minute))
						all.Go(func() {
							for range turns {
								locktest.NoError(t, do(t.Context(), c, func() {
									if inside.Add(1) > 1 {
										t.Error("two are inside")
									}
									time.Sleep(turn)
									inside.Add(-1)
								}))
							}
							n := log.Count("changes the names of keys")
							said.Add(int32(n))
							if n > 1 || len(log.Records()) != n {
								t.Errorf("logged: %q", log.With(""))
							}
						})
					}
				}
				all.Wait()
				if took := time.Since(began); took > 2*clients*turns*turn {
					t.Errorf("%d turns of %v took %v", clients*turns, turn, took)
				}
				if said.Load() < clients {
					t.Errorf("%d of %d clients say why there is no line", said.Load(), 2*clients)
				}
				for _, key := range m.Keys() { // the counters, whose tokens are one more for each turn
					token, err := m.Get(key)
					locktest.NoError(t, err)
					locktest.Equal(t, key, token, strconv.Itoa(clients*turns))
				}
				locktest.Equal(t, "keys that are left", len(m.Keys()), 2)
			})
		})
	}
}

// P30, P46: under a hook that puts a prefix before keys, all keys of all kinds of lock are behind that prefix, as a user may have rights to those alone.
// Holds are renewed there, and leave nothing but counters.
func TestP30_AllKeysAreBehindThePrefix(t *testing.T) {
	type holds interface {
		Err() error
		Unlock(context.Context) error
	}
	for _, prefix := range []string{"tenant:", "{tenant}:", "{"} {
		for _, names := range [][]string{{"page"}, {"{page}"}, {"a{page}b"}, {"{page}", "page", "other"}, {"page", "a{page}b", "4"}} {
			t.Run(fmt.Sprint(prefix, names), func(t *testing.T) {
				redistest.Virtual(t, func(t *testing.T) {
					m, rdb := redistest.Pipe(t)
					rdb.AddHook(locktest.KeyPrefix(prefix))
					c := newClient(t, rdb)
					behind := func() {
						t.Helper()
						for _, key := range m.Keys() {
							if !strings.HasPrefix(key, prefix) {
								t.Errorf("the key %q", key)
							}
						}
					}
					for kind, acquire := range map[string]func(name string) (holds, error){
						"a lock":      func(name string) (holds, error) { return fenced.NewLock(c, name).Acquire(t.Context()) },
						"a semaphore": func(name string) (holds, error) { return fenced.NewSemaphore(c, name, 30).Acquire(t.Context()) },
						"a read lock": func(name string) (holds, error) { return fenced.NewRWLock(c, name).Read().Acquire(t.Context()) },
						"a write lock": func(name string) (holds, error) {
							return fenced.NewRWLock(c, name).Write().Acquire(t.Context())
						},
					} {
						each := 1
						if kind == "a semaphore" || kind == "a read lock" {
							each = 3
						}
						var all sync.WaitGroup
						var mu sync.Mutex
						var have []holds
						for _, name := range names { // at once, so that they share commands
							for range each {
								all.Go(func() {
									h, err := acquire(name)
									locktest.NoError(t, err)
									mu.Lock()
									have = append(have, h)
									mu.Unlock()
								})
							}
						}
						all.Wait()
						behind()
						locktest.Sleep(2 * time.Minute)
						behind()
						for _, h := range have {
							locktest.NoError(t, h.Err())
							all.Go(func() { locktest.NoError(t, h.Unlock(t.Context())) })
						}
						all.Wait()
						for _, key := range m.Keys() {
							if !strings.HasPrefix(key, prefix+"redisson_lock_token:") {
								t.Errorf("%s: the key %q is left", kind, key)
							}
						}
					}
				})
			})
		}
	}
}
