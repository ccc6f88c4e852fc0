package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// Inv8: while a call waits, who hears a message finds the first one's wake-up, also as another
// leaves.
func TestInv8_TheFirstCallIsFoundAsOthersLeave(t *testing.T) {
	var q calls
	first, other := &waiter{wakeup: new(command.Wakeup)}, &waiter{wakeup: new(command.Wakeup)}
	q.first, q.last = first, first
	q.firstWakeup.Store(first.wakeup)
	var stop atomic.Bool
	var looks, none int
	var hears sync.WaitGroup
	hears.Go(func() {
		for ; !stop.Load(); looks++ {
			if q.firstWakeup.Load() == nil {
				none++
			}
		}
	})
	for range 500_000 {
		other.prev, q.last.next = q.last, other
		q.last = other
		q.remove(other)
	}
	stop.Store(true)
	hears.Wait()
	if none > 0 {
		t.Errorf("in %d of %d looks nobody waited", none, looks)
	}
}

// A call that gives up before its attempt has left says nothing of Redis.
func TestTakenBackIsNoOutage(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		var log locktest.Log
		c, store := newFakeClient(t, &fakeBus{}, Limits{}, logTo(&log))
		store.takeBack = true
		locktest.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, _, err := NewLock(c, "l", LockOptions{}).Acquire(ctx, Request{Forever: true})
		locktest.IsError(t, err, context.DeadlineExceeded)
		locktest.Sleep(time.Second)
		locktest.Equal(t, "lines", log.String(), "")
		store.takeBack = false
	})
}

// An attempt whose answer has come is not silent, whoever is the next to step when it is due.
func TestInv12_AnAnswerIsNoSilence(t *testing.T) {
	c, store := newFakeClient(t, &fakeBus{}, Limits{}, func(s *Settings) { s.UnlockTimeout = 10 * time.Millisecond })
	sent := make(chan scripts.Caller, 1)
	store.onSend(func(f scripts.Caller) { sent <- f })
	l := NewLock(c, "l", LockOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := locktest.Start(func() error {
		_, _, err := l.Acquire(ctx, Request{Forever: true})
		return err
	})
	f := <-sent
	ls := c.stateInUse(l.stateKey())
	ls.mu.Lock() // whoever sees the answer waits for the mutex
	f.Sending(nil)
	f.Answered(scripts.Answer{TTL: time.Minute}, nil)
	late := time.Now().Add(time.Hour)
	ls.hearAnswers(late) // as lock does
	ls.step(late, &room.Event{What: room.Told})
	_, failed := ls.room.Health().InVain(time.Time{})
	ls.mu.Unlock()
	ls.removeUser()
	locktest.Equal(t, "what Redis has said last", failed, nil)
	store.answers(func() error { return nil })
	cancel()
	<-done
}
