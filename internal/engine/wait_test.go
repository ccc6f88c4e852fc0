package engine

import (
	"context"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/locktest"
	"github.com/fencelock/fencelock/internal/redistest"
)

// Inv9: a waiter that gives up when a hold has just passed the lock to it, with the next token of a block and without a command, leaves the
// lock to the releaser.
func TestInv9_ATokenThatIsNotTakenIsReleased(t *testing.T) {
	redistest.Virtual(t, func(t *testing.T) {
		c, store := newFakeClient(t, new(fakeBus), Limits{})
		store.answers(func(string) error { return nil })
		ctx := context.Background()
		block := takenBy(c, "l", time.Minute)
		w := &waiter{
			Lock: NewLock(c, "l", Tokens{Fenced: true, Blocks: true}), request: Request{Forever: true}, lease: time.Minute,
			ctx: ctx, waitCtx: ctx, holder: &holder{base: ctx}, lockState: c.lockState("l"), wakeup: c.wakeup(), newHold: new(hold),
			attempts: &attempts{keys: block.keys, field: c.newField()}, grantedBlock: &tokenBlock{attempts: block},
		}
		c.mu.Lock()
		c.drain() // Shutdown has begun: the call ends before it looks
		c.mu.Unlock()
		_, err := w.waitInQueue()
		locktest.IsError(t, err, ErrClosed)
		w.lockState.removeUser()
		locktest.Sleep(time.Second)
		var released []string
		for _, one := range store.all() {
			if r, is := one.caller.(*sentRelease); is {
				released = append(released, r.attempts.field)
			}
		}
		if len(released) != 1 || released[0] != block.field {
			t.Errorf("released are %q, not %q", released, block.field)
		}
	})
}
