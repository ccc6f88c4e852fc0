package engine

import (
	"testing"

	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/internal/test/locktest"
)

// P38: a field of this client's is released unless a hold or a call has it: the hold that is there, the one that was lost by the client's
// clock, the first of the queue, and those that try once.
func TestP38_WhoHasAField(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{})
	field := c.newField()
	has := &hold{attempts: releases.NewAttempts(nil, field, 0)}
	another := &hold{attempts: releases.NewAttempts(nil, c.newField(), 0)}
	for name, set := range map[string]func(*lockState){
		"the hold":             func(ls *lockState) { ls.hold = has },
		"a lost hold":          func(ls *lockState) { ls.hold, ls.lost = another, has },
		"the first waiter":     func(ls *lockState) { ls.first = &waiter{field: field} },
		"a try":                func(ls *lockState) { ls.beginTry(&waiter{field: field}) },
		"a try before a newer": func(ls *lockState) { ls.beginTry(&waiter{field: field}); ls.beginTry(&waiter{}) },
		"a try, another is over": func(ls *lockState) {
			over := new(waiter)
			ls.beginTry(&waiter{field: field})
			ls.beginTry(over)
			ls.endTry(over)
		},
	} {
		ls := &lockState{client: c}
		set(ls)
		ls.mu.Lock()
		locktest.Equal(t, name, ls.has(field), true)
		ls.mu.Unlock()
	}
	ls := &lockState{client: c, hold: another, lost: another, first: &waiter{field: another.attempts.Field}}
	one, two := &waiter{field: field}, &waiter{field: field}
	ls.beginTry(one)
	ls.beginTry(two)
	ls.endTry(one)
	ls.endTry(two)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	locktest.Equal(t, "a field that nobody has", ls.has(field), false)
}

// P38: an answer from before the end of a hold of this client's tells nothing: it may have been that hold. Another client's field is
// another client's.
func TestP38_AnAnswerMayBeOld(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{Owes: func(string) bool { return false }}) // Close waits for none
	ls := c.lockState("l")
	defer ls.removeUser()
	w := &waiter{Lock: NewLock(c, "l", Tokens{}), lockState: ls}
	field := c.newField()
	ls.unregisterHold(&hold{client: c, attempts: releases.NewAttempts(nil, field, 0)})
	locktest.Equal(t, "released by an old answer", w.releaseOver(field), false)
	w.endsSeen = ls.ends.Load()
	locktest.Equal(t, "released, another client's", w.releaseOver("another:1"), false)
	locktest.Equal(t, "releases", c.releaser.Len(), 0)
	for range 2 { // the release is under way
		locktest.Equal(t, "released", w.releaseOver(field), true)
		locktest.Equal(t, "releases", c.releaser.Len(), 1)
	}
}
