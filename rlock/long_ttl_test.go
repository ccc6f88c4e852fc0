package rlock_test

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// P32: who waits for a lock whose lease somebody else has made longer than a time.Duration can tell, looks as seldom as at any other.
func TestP32_ALeaseOfCenturies(t *testing.T) {
	realtime.Test(t, "waits of 2 s")
	server := realServer(t)
	javaHolds(t, server.Client(), 0)
	server.Do("pexpire", "l", int64(1e16))
	var spies []*locktest.Spy
	var waits []<-chan error
	for range 3 { // the first, the second, and one behind them
		rdb := server.Client()
		spies = append(spies, locktest.SpyOn(rdb))
		l := rlock.NewLock(newClient(t, rdb), "l")
		waits = append(waits, locktest.Start(func() error { _, err := l.TryLock(t.Context(), 2*time.Second, 0); return err }))
	}
	for i, w := range waits {
		locktest.IsError(t, redistest.Await(t, bound, w, "the end of a wait"), rlock.ErrNotAcquired)
		if n := spies[i].Commands(); n > 50 {
			t.Errorf("a client has sent %d commands in 2 s", n)
		}
	}
}

// What is left of such a lease is told as a hundred years, the longest lease there is, and a force of it works.
func TestP32_TTLOfCenturies(t *testing.T) {
	server := realServer(t)
	l := rlock.NewLock(newClient(t, server.Client()), "l")
	javaHolds(t, server.Client(), 0)
	server.Do("pexpire", "l", int64(1e16))
	ttl, err := l.TTL(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "TTL", ttl, 100*365*24*time.Hour)
	freed, err := l.ForceUnlock(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
}
