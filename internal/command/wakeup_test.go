package command

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// A wake-up rings at the earliest of the times that it was asked for. Whoever asks again after that
// is rung for again. What was asked for more than maxAlarm ahead ends with its user, and does not
// keep the next user's alarm from being set.
func TestWakeupRings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Sender)
		wake, began := s.Wakeup(), time.Now()
		rings := func() bool {
			synctest.Wait()
			select {
			case <-wake.ch:
				return true
			default:
				return false
			}
		}
		after := func(d time.Duration) {
			t.Helper()
			time.Sleep(d - 1)
			locktest.Equal(t, "it rings early", rings(), false)
			time.Sleep(time.Nanosecond)
			locktest.Equal(t, "it rings", rings(), true)
		}
		for _, at := range []time.Duration{10, 20, 5, 15} {
			wake.NotifyAt(began.Add(at * time.Millisecond))
		}
		after(5 * time.Millisecond)
		wake.NotifyAt(began.Add(20 * time.Millisecond))
		after(15 * time.Millisecond)

		wake.NotifyAt(time.Now().Add(2 * time.Minute))
		s.PutWakeup(wake)
		time.Sleep(2 * time.Minute)
		locktest.Equal(t, "it rings for the user before", rings(), false)

		wake.NotifyAt(time.Now().Add(2 * time.Minute))
		s.PutWakeup(wake)
		wake.NotifyAt(time.Now().Add(3 * time.Minute))
		after(3 * time.Minute)

		wake.Notify()
		s.PutWakeup(wake)
		locktest.Equal(t, "it rings for the user before", rings(), false)
	})
}

// A wait ends with the wake-up or with its end, and tells which.
func TestWakeupWait(t *testing.T) {
	wake := new(Sender).Wakeup()
	wake.Notify()
	wake.Notify() // the second one is the same
	locktest.Equal(t, "woken", wake.Wait(nil), true)
	end := make(chan struct{})
	wake.Notify()
	locktest.Equal(t, "woken", wake.Wait(end), true)
	close(end)
	locktest.Equal(t, "woken", wake.Wait(end), false)
}
