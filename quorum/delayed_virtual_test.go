package quorum_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// delays counts what a trace is told of delayed releases.
type delays struct{ told, ended atomic.Int64 }

func (d *delays) option() rlock.Option {
	return together(rlock.WithUnlockTimeout(time.Second), rlock.WithTrace(&locktrace.Trace{
		ReleaseDelayed: func(locktrace.ReleaseDelayed) { d.told.Add(1) },
		ReleaseEnded:   func(locktrace.ReleaseEnded) { d.ended.Add(1) },
	}))
}

// The releases of a contended quorum are not delayed, also where a node takes seconds to answer one, or none comes: a majority has confirmed them.
func TestDelayedReleases_OfAContendedQuorum(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		for what, minority := range map[string]func(u *user){
			"all answer": func(*user) {},
			"one is slow": func(u *user) {
				u.on(func(_ int, _ string, _ []any, next func() error) error { time.Sleep(3 * time.Second); return next() }, 0)
			},
			"one is away": func(u *user) { u.down(0) },
		} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, what), func(t *testing.T) {
				virtual(t, nodes, func(t *testing.T, s *site) {
					var d delays
					var calls []<-chan error
					for range 3 {
						u := s.user(d.option())
						minority(u)
						for i := range 4 {
							calls = append(calls, locktest.Start(func() error {
								l := u.lock(fmt.Sprint("l", i%2))
								for range 10 {
									if held, _, err := l.TryLockAndGetToken(t.Context(), time.Millisecond, 0); err == nil {
										_ = l.Unlock(held)
									}
									if err := l.Do(t.Context(), func(context.Context, int64) error { time.Sleep(time.Millisecond); return nil }); err != nil {
										return err
									}
								}
								return nil
							}))
						}
					}
					for _, call := range calls {
						locktest.NoError(t, <-call)
					}
					locktest.Sleep(5 * time.Second)
					locktest.Equal(t, "delayed releases", d.told.Load(), 0)
				})
			})
		}
	}
}

// A release that no majority confirms is told as delayed, once, and its end once: when the majority is there again, or the client is closed.
func TestDelayedReleases_WithoutAMajority(t *testing.T) {
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed %v", closes), func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				var d delays
				u := s.user(d.option())
				l := u.lock("l")
				held, _, err := l.LockAndGetToken(t.Context())
				locktest.NoError(t, err)
				locktest.Sleep(time.Second)
				u.down(0, 1, 2)
				if l.Unlock(held) == nil {
					t.Error("Unlock was confirmed")
				}
				locktest.Sleep(2 * time.Second)
				locktest.Equal(t, "told", d.told.Load(), 1)
				locktest.Equal(t, "ended while the majority is away", d.ended.Load(), 0)
				if closes {
					_ = u.Close()
				} else {
					u.up()
				}
				locktest.Sleep(2 * time.Second)
				locktest.Equal(t, "told in the end", d.told.Load(), 1)
				locktest.Equal(t, "ended in the end", d.ended.Load(), 1)
			})
		})
	}
}
