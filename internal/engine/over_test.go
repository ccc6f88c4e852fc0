package engine

import (
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// P38: a field of this client's is released unless a hold or a call has it: the hold that is there, the one that was lost by the client's
// clock, the first of the queue, and those that try once.
func TestP38_WhoHasAField(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{})
	field := c.newField()
	has := holdOn(c, nil, field, 0)
	another := holdOn(c, nil, c.newField(), 0)
	lock := NewLock(c, "l", LockOptions{})
	try := func(ls *lockState, field string) *waiter {
		w := &waiter{Lock: lock}
		ls.beginTry(w)
		w.own.hold.attempts.Field = field
		return w
	}
	for name, set := range map[string]func(*lockState){
		"the hold":               func(ls *lockState) { ls.hold = has },
		"a lost hold":            func(ls *lockState) { ls.hold, ls.past = another, &pastHolds{lost: has} },
		"what waiters claim":     func(ls *lockState) { ls.asker = &asker{claim: claim{hold: has}} },
		"a try":                  func(ls *lockState) { try(ls, field) },
		"a try before a newer":   func(ls *lockState) { try(ls, field); try(ls, "") },
		"a try, another is over": func(ls *lockState) { try(ls, field); ls.endTry(try(ls, ""), nil) },
	} {
		ls := &lockState{client: c}
		set(ls)
		ls.mu.Lock()
		locktest.Equal(t, name, ls.has(field), true)
		ls.mu.Unlock()
	}
	ls := &lockState{client: c, ownHolds: ownHolds{hold: another, past: &pastHolds{lost: another}}, asker: &asker{claim: claim{hold: another}}}
	one, two := try(ls, field), try(ls, field)
	ls.endTry(one, nil)
	ls.endTry(two, nil)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	locktest.Equal(t, "a field that nobody has", ls.has(field), false)
}

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
	ls.unregisterHold(holdOn(c, nil, field, 0))
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
