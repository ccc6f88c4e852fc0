package rlock_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/locktest"
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
				c := newClient(t, rdb, told(end))
				defer close(end) // before the client is closed
				kept, contended, lost := rlock.NewLock(c, "kept"), rlock.NewLock(c, "contended"), rlock.NewLock(c, "lost")
				held := take(t, kept, t.Context())
				first := take(t, contended, t.Context())
				gone := take(t, lost, t.Context())

				var done []chan error // of calls that wait
				for range 3 {
					done = append(done, make(chan error, 1))
				}
				go func() {
					ctx, err := contended.Lock(t.Context())
					done[0] <- err
					if err == nil {
						_ = contended.Unlock(ctx)
					}
				}()
				locktest.Sleep(time.Minute) // the leader has a nested call to warn of
				m.Del("lost")
				m.SetError("LOADING the dataset")
				locktest.Sleep(15 * time.Second) // renewals fail, which is logged
				m.SetError("")
				locktest.Sleep(time.Minute)
				locktest.NoError(t, held.Err())
				locktest.NoError(t, first.Err())
				if gone.Err() == nil {
					t.Errorf("the hold whose key was deleted has not ended")
				}

				for _, d := range done[1:] {
					go func() {
						ctx, err := contended.TryLock(t.Context(), time.Minute, 0)
						d <- err
						if err == nil {
							_ = contended.Unlock(ctx)
						}
					}()
				}
				locktest.Sleep(time.Second)
				locktest.NoError(t, contended.Unlock(first))
				locktest.Sleep(time.Second)
				locktest.Equal(t, "the lock is there", m.Exists("contended"), false)
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
			_, err := l.Lock(panicking{t.Context(), time.Now().Add(time.Minute)})
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
