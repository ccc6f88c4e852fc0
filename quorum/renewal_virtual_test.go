package quorum_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

// A busyLoad counts what comes to nodes that take so long for each command, one command after the other.
type busyLoad struct {
	mu       sync.Mutex
	fields   map[string]bool // of all votes: each attempt has another one
	renewals int             // commands that extend
}

// attempts is how many attempts there were by now.
func (b *busyLoad) attempts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.fields, "")
	return len(b.fields)
}

// extensions is how many commands have extended holds by now.
func (b *busyLoad) extensions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewals
}

func busy(u *user, each time.Duration) *busyLoad {
	b := &busyLoad{fields: make(map[string]bool)}
	turns := make([]chan struct{}, len(u.links))
	for i := range turns {
		turns[i] = make(chan struct{}, 1)
	}
	u.on(func(node int, op string, args []any, next func() error) error {
		turns[node] <- struct{}{}
		defer func() { <-turns[node] }()
		b.mu.Lock()
		if strings.Contains(op, "vote") {
			for i := range args {
				b.fields[fieldOf(args[i:i+1])] = true
			}
		}
		if strings.Contains(op, "extend") {
			b.renewals++
		}
		b.mu.Unlock()
		time.Sleep(each)
		return next()
	}, 0, 1, 2, 3, 4)
	return b
}

// takeMany takes so many locks at once, each by a call that does not wait, and returns the holds.
func takeMany(t *testing.T, u *user, name string, n int) []*fenced.Hold {
	t.Helper()
	holds := make([]*fenced.Hold, n)
	var calls []<-chan error
	for i := range holds {
		calls = append(calls, locktest.Start(func() (err error) {
			holds[i], err = u.lock(fmt.Sprint(name, i)).Acquire(t.Context(), rlock.Wait(0))
			return err
		}))
	}
	for _, call := range calls {
		locktest.NoError(t, <-call)
	}
	return holds
}

// living is how many of the holds are alive.
func living(holds []*fenced.Hold) int {
	return len(holds) - len(slices.DeleteFunc(slices.Clone(holds), func(h *fenced.Hold) bool { return h.Err() == nil }))
}

// short is a lease of a second and a half.
func short() rlock.Option {
	return rlock.WithLease(1500 * time.Millisecond)
}

// Nodes that take their time for each command: hundreds of votes wait for their turn for longer than a node has to answer, and none is
// given up.
func TestRound_ManyVotesOnBusyNodes(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		takeMany(t, u, "first:", 20) // the nodes know the script of many votes
		locktest.Sleep(time.Second)
		load := busy(u, 10*time.Millisecond)
		takeMany(t, u, "many:", 800)
		locktest.Equal(t, "attempts", load.attempts(), 800)
	})
}

// The renewals of many holds are few commands to a node, and none is lost where that takes long for each of them.
func TestRenewal_ManyHoldsOnBusyNodes(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(short())
		known(t, u)
		holds := takeMany(t, u, "many:", 300)
		locktest.Sleep(time.Second)
		load := busy(u, 60*time.Millisecond)
		locktest.Sleep(6 * time.Second)
		locktest.Equal(t, "holds that live", living(holds), 300)
		if most := 5 * 20 * 4; load.extensions() > most { // 20 periods of half a second, one batch or two
			t.Errorf("%d commands have extended 300 holds, want %d at most", load.extensions(), most)
		}
	})
}

// Among the holds that are renewed together one was forced open, one node has forgotten all of them, and another one is silent: the one ends, and
// the others go on, and come to be on the node that has forgotten them.
func TestRenewal_EachHoldForItself(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(short())
		known(t, u)
		holds := takeMany(t, u, "many:", 300)
		locktest.Sleep(time.Second)
		s.restart(1)
		thaws := make(chan struct{})
		defer close(thaws)
		u.on(func(_ int, _ string, _ []any, next func() error) error {
			<-thaws
			return next()
		}, 3)
		forced := s.user().lock("many:7")
		if open, err := forced.ForceUnlock(t.Context()); err != nil || !open {
			t.Fatal(open, err)
		}
		locktest.Sleep(4 * time.Second)
		locktest.Equal(t, "holds that live", living(holds), 299)
		if holds[7].Err() == nil {
			t.Error("the hold that was forced open lives")
		}
		for _, i := range []int{0, 6, 8, 299} {
			if who := s.fields(fmt.Sprint("many:", i)); who[1] == "" || who[1] != who[0] {
				t.Errorf("hold %d is on the nodes as %q", i, who)
			}
		}
		locktest.Equal(t, "nodes that have the lock that was forced open", s.has("many:7"), 0)
	})
}

// Where too few nodes answer the renewal says so, the hold lives for as long as its lease, and is renewed when they are back.
func TestRenewal_NoMajority(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(short())
		known(t, u)
		holds := takeMany(t, u, "many:", 300)
		locktest.Sleep(time.Second)
		u.down(0, 2, 4)
		locktest.Sleep(700 * time.Millisecond)
		u.up()
		locktest.Sleep(5 * time.Second)
		locktest.Equal(t, "holds that live", living(holds), 300)
		u.down(0, 2, 4)
		locktest.Sleep(2 * time.Second)
		locktest.Equal(t, "holds that live without a majority", living(holds), 0)
	})
}

// Nodes that have started a moment ago renew, and do not count.
func TestRenewal_YoungNodes(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(short())
		known(t, u)
		holds := takeMany(t, u, "many:", 150)
		locktest.Sleep(time.Second)
		s.restart(0)
		s.restart(1)
		locktest.Sleep(500 * time.Millisecond) // the holds are on these too
		u.down(3, 4)
		locktest.Sleep(1500 * time.Millisecond)
		locktest.Equal(t, "holds that live", living(holds), 0)
	})
}

// Nodes that were away for a lease, and have lost a hold by that, take it again, also when others go before they have: as long as a majority answers a
// hold is kept.
func TestRenewal_NodesThatWereAway(t *testing.T) {
	for _, c := range []struct{ nodes, first, then []int }{
		{[]int{0, 1, 2}, []int{0}, []int{1}},
		{[]int{0, 1, 2, 3, 4}, []int{0}, []int{2, 3}},
		{[]int{0, 1, 2, 3, 4}, []int{0, 1}, []int{2, 3}},
		{[]int{0, 1, 2, 3, 4}, []int{0, 1}, []int{2}},
	} {
		virtual(t, len(c.nodes), func(t *testing.T, s *site) {
			u := s.user(short())
			holds := takeMany(t, u, "many:", 3)
			locktest.Sleep(time.Second)
			u.down(c.first...)
			locktest.Sleep(2 * time.Second)
			u.up()
			u.down(c.then...)
			locktest.Sleep(4 * time.Second)
			locktest.Equal(t, fmt.Sprint("holds that live: ", c), living(holds), 3)
			u.up()
		})
	}
}
