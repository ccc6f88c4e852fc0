package engine

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// P38: an answer from before the end of a hold of this client's tells nothing: it may have been that hold. Another client's field is
// another client's.
func TestP38_AnAnswerMayBeOld(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{Owes: func(string) bool { return false }}) // Close waits for none
	ls := c.lockState(stateKey{name: "l"})
	defer ls.removeUser()
	w := &waiter{Lock: NewLock(c, "l", LockOptions{})}
	ls.beginTry(w)
	defer ls.endTry(w, nil)
	field := c.newField()
	ls.unregisterHold(holdOn(c, w.keys, field, 0))
	ls.mu.Lock()
	defer ls.mu.Unlock()
	locktest.Equal(t, "released by an old answer", ls.releaseIfOver(&w.own, field), false)
	locktest.Equal(t, "released, another client's", ls.releaseIfOver(&w.own, "another:1"), false)
	locktest.Equal(t, "releases", c.releaser.Len(), 0)
	for range 2 { // the release is under way
		locktest.Equal(t, "released", ls.releaseIfOver(&w.own, field), true)
		locktest.Equal(t, "releases", c.releaser.Len(), 1)
	}
}
