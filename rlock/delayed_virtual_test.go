package rlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/memredis"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// After a silence of Redis no release is told as delayed for longer than Redis takes to confirm it, although it is sent again for a lease.
func TestDelayedReleases_AfterASilence(t *testing.T) {
	for _, silence := range []time.Duration{600 * time.Millisecond, 5 * time.Second} {
		t.Run(fmt.Sprint(silence), func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				m, _ := redistest.Pipe(t)
				var gate memredis.Gate
				defer gate.Open()
				rdb := redistest.GatedClient(t, m, &gate, func(o *redis.Options) { o.ReadTimeout = 500 * time.Millisecond })
				var tr tracer
				client := newClient(t, rdb, tr.option(), rlock.WithUnlockTimeout(400*time.Millisecond))
				var calls []<-chan error
				for i := range 17 {
					calls = append(calls, locktest.Start(func() error {
						l := rlock.NewLock(client, fmt.Sprint("l", i))
						for range 100 {
							if held, err := l.TryLock(t.Context(), 50*time.Millisecond, 0); err == nil {
								time.Sleep(10 * time.Millisecond)
								_ = l.Unlock(held)
							}
						}
						return nil
					}))
				}
				time.Sleep(100 * time.Millisecond)
				gate.Shut()
				time.Sleep(silence)
				gate.Open()
				time.Sleep(2 * time.Second)
				delayed, ended := len(told[locktrace.ReleaseDelayed](&tr)), len(told[locktrace.ReleaseEnded](&tr))
				locktest.Equal(t, "releases that are over 2 s after the silence", ended, delayed)
				if delayed == 0 {
					t.Error("none was delayed")
				}
				for _, call := range calls {
					locktest.NoError(t, <-call)
				}
			})
		})
	}
}
