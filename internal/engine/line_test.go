package engine

import (
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// Where there is no line a client that has released leaves the lock for a moment to the others that were told: for as long as two round trips,
// and for minYield at least. Its own connection is none of the others. The lock's state goes when the moment is over.
func TestYieldsAfterAReleaseWithoutALine(t *testing.T) {
	for _, c := range []struct {
		what      string
		listens   bool
		live      bool
		receivers int
		took      time.Duration
		want      time.Duration
	}{
		{what: "nobody was told"},
		{what: "nobody was told, and it listens", listens: true, live: true},
		{what: "it alone was told", listens: true, live: true, receivers: 1},
		{what: "another one was told", receivers: 1, want: minYield},
		{what: "another one was told too", listens: true, live: true, receivers: 2, want: minYield},
		{what: "another one was told, and it does not hear", listens: true, receivers: 1, want: minYield},
		{what: "the release took long", receivers: 1, took: 30 * time.Millisecond, want: 60 * time.Millisecond},
	} {
		t.Run(c.what, func(t *testing.T) {
			redistest.Virtual(t, func(t *testing.T) {
				client, _ := newFakeClient(t, &fakeBus{live: c.live}, Limits{})
				client.lineRefused(scripts.KeysOf("l"), false)
				ls := client.lockState(stateKey{name: "l"})
				if c.listens {
					ls.listen(scripts.KeysOf("l"))
				}
				began := time.Now()
				locktest.Sleep(c.took)
				ls.released(&hold{lockState: ls}, scripts.Answer{Held: true, Receivers: c.receivers}, began)
				ls.removeUser()
				locktest.Equal(t, "it yields", ls.yieldsFor(), c.want)
				states := 0
				if c.want > 0 {
					states = 1
				}
				locktest.Equal(t, "lock states", client.LockStates(), states)
				locktest.Sleep(c.want + time.Millisecond)
				locktest.Equal(t, "lock states after that", client.LockStates(), 0)
				if d := ls.yieldsFor(); d > 0 {
					t.Errorf("it yields for %v more", d)
				}
			})
		})
	}
}

// A client in the line drops its subscription to the lock's own channel, where others would take it for an outsider, but not while a hold that
// has lasted is followed there.
func TestStopListening(t *testing.T) {
	c, _ := newFakeClient(t, new(fakeBus), Limits{})
	ls := c.lockState(stateKey{name: "l"})
	defer ls.removeUser()
	ls.stopListening() // to nothing
	s := new(fakeSubscription)
	ls.subscription, ls.holdFollowed = s, true
	ls.stopListening()
	if ls.subscription != s || s.ended != "" {
		t.Errorf("the subscription of a hold is %q", s.ended)
	}
	ls.holdFollowed = false
	ls.stopListening()
	if ls.subscription != nil || s.ended != "dropped" {
		t.Errorf("the subscription is %q", s.ended)
	}
}

// The state of a lock is not used for another lock when the client has listened to its channels: a message that comes late would be taken for
// the other lock's.
func TestStatesThatHaveListened(t *testing.T) {
	keys := scripts.KeysOf("l")
	for what, c := range map[string]struct {
		use   func(ls *lockState)
		spare int
	}{
		"nothing":           {use: func(*lockState) {}, spare: 1},
		"the lock's own":    {use: func(ls *lockState) { ls.listen(keys) }},
		"that of its calls": {use: func(ls *lockState) { ls.listenForCalls(keys) }},
	} {
		client, _ := newFakeClient(t, new(fakeBus), Limits{})
		ls := client.lockState(stateKey{name: "l"})
		c.use(ls)
		ls.removeUser()
		locktest.Equal(t, what+": states to be used again", len(client.spareStates), c.spare)
		locktest.Equal(t, what+": lock states", client.LockStates(), 0)
	}
}
