package rlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// What a client does while what the user has given it to be told by does not return.

// stuckHandler is a log whose pipe is full: each of its methods waits until the test ends.
type stuckHandler struct{ end <-chan struct{} }

func (h stuckHandler) Enabled(context.Context, slog.Level) bool { <-h.end; return true }

func (h stuckHandler) Handle(context.Context, slog.Record) error { <-h.end; return nil }

func (h stuckHandler) WithAttrs([]slog.Attr) slog.Handler { <-h.end; return h }

func (h stuckHandler) WithGroup(string) slog.Handler { <-h.end; return h }

// stuckTrace is a trace none of whose functions returns before the test ends, but for those that are told by the goroutine of the call
// that they tell of.
func stuckTrace(end <-chan struct{}) *locktrace.Trace {
	return &locktrace.Trace{
		WaitStarted:         func(locktrace.WaitStarted) { <-end },
		RenewalDone:         func(locktrace.RenewalDone) { <-end },
		SubscriptionChanged: func(locktrace.SubscriptionChanged) { <-end },
		ReleaseDelayed:      func(locktrace.ReleaseDelayed) { <-end },
		ReleaseEnded:        func(locktrace.ReleaseEnded) { <-end },
		HoldDone: func(e locktrace.HoldDone) {
			if e.End != locktrace.Unlocked {
				<-end
			}
		},
	}
}

// P39: no renewal and no waiter depends on a log or on a trace that does not return.
func TestP39_FunctionsThatDoNotReturn(t *testing.T) {
	for name, told := range map[string]func(end <-chan struct{}) rlock.Option{
		"the log":   func(end <-chan struct{}) rlock.Option { return rlock.WithLogger(slog.New(stuckHandler{end})) },
		"the trace": func(end <-chan struct{}) rlock.Option { return rlock.WithTrace(stuckTrace(end)) },
	} {
		t.Run(name, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				end := make(chan struct{})
				c := newClient(t, rdb, told(end), rlock.WithPatience(time.Minute))
				defer close(end) // before the client is closed
				stranger := newClient(t, rdb)
				kept, contended, lost, short := rlock.NewLock(c, "kept"), rlock.NewLock(c, "contended"), rlock.NewLock(c, "lost"), rlock.NewLock(c, "short")
				foreign, theirs := rlock.NewLock(c, "foreign"), rlock.NewLock(stranger, "foreign")
				held, first, gone, other := take(t, kept, t.Context()), take(t, contended, t.Context()), take(t, lost, t.Context()), take(t, theirs, t.Context())
				_, err := short.LockLease(t.Context(), 10*time.Second) // which runs out
				locktest.NoError(t, err)
				waits := func(l *rlock.Lock) chan error {
					done := make(chan error, 1)
					go func() {
						ctx, err := l.TryLock(t.Context(), time.Hour, 0)
						if err == nil {
							err = l.Unlock(ctx)
						}
						done <- err
					}()
					locktest.Sleep(time.Second)
					return done
				}
				done := []chan error{waits(contended), waits(foreign)}
				locktest.Sleep(time.Minute) // the leader has a nested call to warn of
				m.Del("lost")
				m.SetError("LOADING the dataset")
				locktest.Sleep(15 * time.Second) // renewals fail, which is logged
				m.SetError("")
				locktest.Sleep(time.Minute)
				locktest.NoError(t, held.Err())
				locktest.NoError(t, first.Err())
				locktest.IsError(t, gone.Err(), rlock.ErrLost)

				done = append(done, waits(contended), waits(contended))
				locktest.NoError(t, contended.Unlock(first))
				locktest.NoError(t, theirs.Unlock(other))
				locktest.Sleep(100 * time.Millisecond)
				for i, d := range done {
					if len(d) == 0 {
						t.Errorf("waiter %d has not got its lock", i)
						continue
					}
					locktest.NoError(t, <-d)
				}
				locktest.NoError(t, kept.Unlock(held))
			})
		})
	}
}

// P39: a call whose WaitStarted panics, or ends its goroutine, ends so at once, and leaves the queue: others get the lock.
func TestP39_WaitStartedThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("the user's") },
		"Goexit": runtime.Goexit,
	} {
		for place, ahead := range map[string]int{"the first of the queue": 0, "another one": 1} {
			t.Run(name+"/"+place, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					type key struct{}
					trace := &locktrace.Trace{WaitStarted: func(e locktrace.WaitStarted) {
						if e.Context.Value(key{}) != nil {
							end()
						}
					}}
					c, stranger := newClient(t, rdb, rlock.WithTrace(trace)), newClient(t, rdb)
					l, other := rlock.NewLock(c, "l"), rlock.NewLock(stranger, "l")
					held := take(t, other, t.Context())
					got := make(chan error, ahead)
					for range ahead {
						go func() {
							ctx, err := l.Lock(t.Context())
							if err == nil {
								err = l.Unlock(ctx)
							}
							got <- err
						}()
						locktest.Sleep(time.Second)
					}
					var panicked any
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						defer func() { panicked = recover() }()
						_, err := l.Lock(context.WithValue(t.Context(), key{}, true))
						t.Errorf("Lock has returned: %v", err)
					}()
					locktest.Sleep(time.Second)
					select {
					case <-ended:
					default:
						t.Fatalf("the call goes on")
					}
					if name == "panic" {
						locktest.Equal(t, "the panic", panicked, any("the user's"))
					}
					locktest.NoError(t, other.Unlock(held))
					for range ahead {
						locktest.NoError(t, <-got)
					}
					held = take(t, l, t.Context())
					locktest.NoError(t, l.Unlock(held))
				})
			})
		}
	}
}

// P39: a trace's function that the call itself runs panics in it, or ends its goroutine. What the
// call has taken is released, and what it has released is free.
func TestP39_TraceThatPanicsInTheCall(t *testing.T) {
	type key struct{}
	var l *rlock.Lock
	for name, call := range map[string]func(t *testing.T, ctx context.Context){
		"AcquireDone":             func(t *testing.T, ctx context.Context) { _, _ = l.Lock(context.WithValue(ctx, key{}, true)) },
		"HoldDone of Unlock":      func(t *testing.T, ctx context.Context) { _ = l.Unlock(take(t, l, ctx)) },
		"HoldDone of ForceUnlock": func(t *testing.T, ctx context.Context) { take(t, l, ctx); _, _ = l.ForceUnlock(ctx) },
	} {
		for way, end := range map[string]func(){"panic": func() { panic("the user's") }, "Goexit": runtime.Goexit} {
			t.Run(name+"/"+way, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
					ends := name != "AcquireDone"
					c := newClient(t, rdb, rlock.WithTrace(&locktrace.Trace{
						AcquireDone: func(e locktrace.AcquireDone) {
							if e.Context.Value(key{}) != nil {
								end()
							}
						},
						HoldDone: func(locktrace.HoldDone) {
							if ends {
								ends = false
								end()
							}
						},
					}))
					l = rlock.NewLock(c, "l")
					panicked := make(chan any, 1)
					go func() {
						defer func() { panicked <- recover() }()
						call(t, rlock.NewHolder(t.Context()))
						t.Error("the call has returned")
					}()
					locktest.Sleep(time.Second)
					if got := <-panicked; way == "panic" {
						locktest.Equal(t, "the panic", got, any("the user's"))
					}
					locktest.Equal(t, "the lock is there", m.Exists("l"), false)
					locktest.NoError(t, l.Unlock(take(t, l, t.Context())))
				})
			})
		}
	}
}

// panicking is a user's context whose Err panics from some time on.
type panicking struct {
	context.Context
	from time.Time
}

func (c panicking) Err() error {
	if time.Now().After(c.from) {
		panic("the user's")
	}
	return c.Context.Err()
}

// P39: a call whose context panics leaves the queue, and what it may have taken is released.
func TestP39_ContextThatPanics(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
		c, stranger := newClient(t, rdb), newClient(t, rdb)
		l, other := rlock.NewLock(c, "l"), rlock.NewLock(stranger, "l")
		held := take(t, other, t.Context())
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := l.Lock(panicking{ctx, time.Now().Add(time.Second)})
			t.Errorf("Lock has returned: %v", err)
		}()
		locktest.Sleep(time.Second)
		behind := make(chan error, 1)
		go func() {
			ctx, err := l.Lock(t.Context())
			if err == nil {
				err = l.Unlock(ctx)
			}
			behind <- err
		}()
		locktest.Sleep(2 * time.Minute)
		locktest.Equal(t, "the panic", <-panicked, any("the user's"))
		locktest.NoError(t, other.Unlock(held))
		locktest.NoError(t, <-behind)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "the lock is there", m.Exists("l"), false)
		held = take(t, l, t.Context())
		locktest.NoError(t, l.Unlock(held))
	})
}
