package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// Inv12: a waiter whose attempt has no answer counts its patience from that attempt, where Redis has answered another call of its client
// since the errors before.
func TestInv12_PatienceAfterAnAnswerToAnother(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		began := time.Now()
		var swallowed atomic.Bool
		store.onSend(func(caller scripts.Caller) {
			caller.Sending(nil)
			_, acquires := caller.(*command.Command)
			switch {
			case time.Since(began) < c.set.Patience-600*time.Millisecond:
				caller.Answered(scripts.Answer{}, locktest.Reply("LOADING"))
			case acquires && swallowed.CompareAndSwap(false, true):
			default:
				caller.Answered(scripts.Answer{Held: true}, nil)
			}
		})
		l := NewLock(c, "l", LockOptions{})
		waits := locktest.Start(func() error { _, _, err := l.Acquire(t.Context(), Request{Forever: true}); return err })
		time.Sleep(c.set.Patience - 50*time.Millisecond)
		locktest.Equal(t, "an attempt of the waiter has no answer", swallowed.Load(), true)
		_, _, err := l.Acquire(t.Context(), Request{}) // one try, which Redis answers
		locktest.NoError(t, err)
		locktest.Sleep(time.Second)
		locktest.NoError(t, c.Close())
		locktest.IsError(t, <-waits, ErrClosed) // Redis has answered a second before
	})
}
