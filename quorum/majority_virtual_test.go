package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/scripts"
)

// A tally counts what a client asks each node.
type tally struct {
	mu    sync.Mutex
	asked [5]map[string]int
}

func count(u *user) *tally {
	t := new(tally)
	for i := range t.asked {
		t.asked[i] = make(map[string]int)
		u.on(func(_ int, op string, _ []any, next func() error) error {
			t.mu.Lock()
			t.asked[i][op]++
			t.mu.Unlock()
			return next()
		}, i)
	}
	return t
}

// nodes is how many nodes were asked for this.
func (t *tally) nodes(op string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, asked := range t.asked {
		if asked[op] > 0 {
			n++
		}
	}
	return n
}

// known returns a lock of a client that knows all nodes and their clocks, and of which the nodes have a counter.
func known(t *testing.T, u *user) {
	t.Helper()
	for range 4 { // a node may have its first counter later than others, and each first one is ahead of the time for a while
		locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }))
		locktest.Sleep(time.Minute / 3)
	}
}

// An acquire takes lock and token of a majority in one round, and asks nobody else. A hold that lasts has the other nodes too.
func TestMajorityFirst(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		counted := count(u)
		l := u.lock("l")
		held, _, err := l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 3)
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(500 * time.Millisecond)
		for what, want := range map[string]int{"vote": 3, "raise": 0, "withdraw": 3, "look": 2} { // it looks how the other two are, once in a while
			locktest.Equal(t, "nodes that were asked to "+what, counted.nodes(what), want)
		}
		held, _, err = l.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(20 * time.Millisecond)
		locktest.Equal(t, "nodes that have the lock after a while", s.has("l"), 5)
		locktest.NoError(t, l.Unlock(held))
		locktest.Sleep(20 * time.Millisecond)
		locktest.Equal(t, "nodes that have the lock after that", s.has("l"), 0)
	})
}

// WithAllNodes asks all of them.
func TestWithAllNodes(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user(quorum.WithAllNodes())
		known(t, u)
		held, _, err := u.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		locktest.Sleep(time.Millisecond)
		locktest.Equal(t, "nodes that have the lock", s.has("l"), 5)
		locktest.NoError(t, u.lock("l").Unlock(held))
	})
}

// One of the majority fails, refuses, or is slow: others are asked in its place. A node that fails is passed over from then on, and asked
// again when it is back.
func TestMajorityFirst_OneNodeInTrouble(t *testing.T) {
	type links struct {
		u    *user
		node int
	}
	for name, c := range map[string]struct {
		spoil func(links)
		votes int // how many nodes have voted when the lock is held
		took  time.Duration
	}{
		"it fails": {func(l links) { l.u.down(l.node) }, 3, 0},
		"it refuses": {func(l links) {
			l.u.on(func(int, string, []any, func() error) error { return errRefused }, l.node)
		}, 3, 0},
		"it is slow": {func(l links) {
			l.u.on(func(_ int, op string, _ []any, next func() error) error {
				if op == "vote" {
					locktest.Sleep(30 * time.Millisecond)
				}
				return next()
			}, l.node)
		}, 4, 5 * time.Millisecond},
	} {
		for place := range 3 {
			t.Run(fmt.Sprintf("%s, place %d", name, place), func(t *testing.T) {
				virtual(t, 5, func(t *testing.T, s *site) {
					u := s.user()
					known(t, u)
					node := quorum.Order(u.Client, "l")[place]
					c.spoil(links{u, node})
					l := u.lock("l")
					began := time.Now()
					held, _, err := l.LockAndGetToken(t.Context())
					locktest.NoError(t, err)
					if took := time.Since(began); took != c.took {
						t.Errorf("it took %v, want %v", took, c.took)
					}
					locktest.Sleep(time.Millisecond)
					locktest.Equal(t, "nodes that have the lock", s.has("l"), c.votes)
					locktest.NoError(t, l.Unlock(held))
				})
			})
		}
	}
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		order := quorum.Order(u.Client, "l")
		u.down(order[0])
		known(t, u)
		if passed := slices.Concat(order[1:], order[:1]); !slices.Equal(quorum.Order(u.Client, "l"), passed) {
			t.Errorf("the order is %v, want %v", quorum.Order(u.Client, "l"), passed)
		}
		counted := count(u)
		known(t, u)
		locktest.Equal(t, "votes that the node is asked for", counted.asked[order[0]]["vote"], 0)
		u.up()
		locktest.Sleep(time.Second)
		known(t, u) // and it is asked how it is
		if got := quorum.Order(u.Client, "l"); !slices.Equal(got, order) {
			t.Errorf("the order is %v, want %v", got, order)
		}
	})
}

// Inv2: two clients take a lock in turn, in one round each, and their tokens grow; also where the counters are ahead of the time, as those of a
// new lock are, where a client hears of them first with a second round.
func TestInv2_TokensInOneRound(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		a, b := s.user(), s.user()
		ofA, ofB := count(a), count(b)
		var last int64
		take := func(u *user) {
			t.Helper()
			locktest.NoError(t, u.lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
				if token <= last {
					t.Errorf("Inv2: token %d after %d", token, last)
				}
				last = token
				return nil
			}))
			locktest.Sleep(time.Millisecond)
		}
		raises := func() (n int) {
			return ofA.nodes("raise") + ofB.nodes("raise")
		}
		for range 4 { // also where a node has its first counter later than others, the time catches up with the counters
			take(a)
			take(b)
			locktest.Sleep(time.Minute / 3)
		}
		ofA, ofB = count(a), count(b)
		for range 20 {
			take(a)
			take(b)
		}
		locktest.Equal(t, "nodes of second rounds", raises(), 0)
		for i := range 5 { // the counters are ahead, by one that is not known
			locktest.NoError(t, s.minis[i].Set(scripts.KeysOf("l").Token, fmt.Sprint(time.Now().Add(20*time.Second).UnixMicro())))
		}
		take(a)
		locktest.Equal(t, "nodes of second rounds, with a counter that is ahead", raises(), 3)
		ofA = count(a)
		take(a)
		locktest.Equal(t, "nodes of second rounds of who knows the counter", raises(), 0)
	})
}

// Inv2: nodes that took the proposal for those with a counter, and a node that took the other one, are no majority together: a second round
// has one number for all. That is as far ahead of the time as a number for a node without a counter, also where the one that the node took with its vote
// was not: it went by clocks that have been set since.
func TestInv2_TwoProposals(t *testing.T) {
	for _, set := range []time.Duration{0, 20 * time.Second} {
		t.Run(fmt.Sprint("clocks set forward by ", set), func(t *testing.T) { twoProposals(t, set) })
	}
}

func twoProposals(t *testing.T, set time.Duration) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		locktest.Sleep(time.Minute / 2)
		locktest.NoError(t, u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil })) // the counters are those of the time
		counter := scripts.KeysOf("l").Token
		locktest.Sleep(time.Millisecond)
		forgets := quorum.Order(u.Client, "l")[1]
		s.minis[forgets].Del(counter)
		for i := range s.nodes {
			if i != forgets {
				s.clock(i, set)
			}
		}
		locktest.NoError(t, u.lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
			if ahead := time.Until(time.UnixMicro(token)) - set; ahead < 31*time.Second/4 {
				t.Errorf("the token is %v ahead of the time: a counter that was forgotten may be larger", ahead)
			}
			accepted := 0
			for _, m := range s.minis {
				if got, _ := m.Get(counter); got == fmt.Sprint(token) {
					accepted++
				}
			}
			locktest.Equal(t, "nodes that have the token", accepted, 3)
			return nil
		}))
	})
}

// Inv2: a clock that is wrong by an hour does not set tokens an hour ahead, where it would take two of them: no client goes by it.
func TestInv2_OneWrongClock(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		s.clock(quorum.Order(u.Client, "l")[0], time.Hour)
		for range 20 {
			locktest.NoError(t, u.lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
				if ahead := time.Until(time.UnixMicro(token)); ahead > time.Minute {
					t.Errorf("a token is %v ahead of the time", ahead)
				}
				return nil
			}))
			locktest.Sleep(5 * time.Second)
		}
	})
}

// Inv2: a node that forgets its counter between its vote and the token refuses a number that was not made for it, and gets one that was.
func TestInv2_ForgottenBetweenVoteAndToken(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		u := s.user()
		known(t, u)
		locktest.Sleep(2 * time.Minute) // the client has forgotten the clocks, and needs a second round
		counter := scripts.KeysOf("l").Token
		node := quorum.Order(u.Client, "l")[1]
		var votes, raises atomic.Int32
		u.on(func(_ int, op string, _ []any, next func() error) error {
			if op == "raise" && raises.Load() == 0 {
				s.minis[node].Del(counter)
			}
			err := next()
			switch {
			case redis.HasErrorPrefix(err, "NOSCRIPT"): // and comes again as EVAL
			case op == "vote":
				votes.Add(1)
			case op == "raise":
				raises.Add(1)
			}
			return err
		}, node)
		locktest.NoError(t, u.lock("l").Do(t.Context(), func(_ context.Context, token int64) error {
			if ahead := time.Until(time.UnixMicro(token)); ahead < 31*time.Second/4 {
				t.Errorf("the token is %v ahead of the time: a counter that was forgotten may be larger", ahead)
			}
			return nil
		}))
		locktest.Equal(t, "votes that the node was asked for", votes.Load(), 1)
		locktest.Equal(t, "tokens that were proposed to the node", raises.Load(), 2)
	})
}
