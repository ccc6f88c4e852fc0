package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// A crowd is callers of one lock, who note who holds it and which tokens they got.
type crowd struct {
	sync.Mutex
	t      *testing.T
	holder context.Context // of the latest hold
	latest int64           // its token
	holds  int
	all    sync.WaitGroup
}

// join has a user ask for the lock again and again until ctx ends. It returns how many holds the user has had.
func (c *crowd) join(ctx context.Context, u *user) (count func() int) {
	n := 0
	c.all.Go(func() {
		l := u.lock("l")
		for i := 0; ctx.Err() == nil; i++ {
			held, token, err := l.TryLockAndGetToken(ctx, 300*time.Millisecond, 0)
			if err != nil {
				time.Sleep(time.Millisecond) // an error may come at once
				continue
			}
			c.Lock()
			if c.holder != nil && c.holder.Err() == nil && held.Err() == nil {
				c.t.Errorf("two holders, with the tokens %d and %d", c.latest, token)
			}
			if token <= c.latest {
				c.t.Errorf("the token %d after %d", token, c.latest)
			}
			c.holder, c.latest = held, token
			c.holds++
			n++
			c.Unlock()
			time.Sleep(time.Duration(1+i%7) * 5 * time.Millisecond)
			c.Lock()
			if c.holder == held {
				c.holder = nil
			}
			c.Unlock()
			_ = l.Unlock(held) // it may be lost
		}
	})
	return func() int {
		c.Lock()
		defer c.Unlock()
		return n
	}
}

func node(i int) string { return fmt.Sprintf("node%d:6379", i) }

// change is a change of the site's members.
func (s *site) change(now, to []int) *quorums.Change {
	c := &quorums.Change{Servers: map[string]redis.UniversalClient{}, Longest: 2 * time.Second, Tell: func(string) {}}
	for _, list := range []struct {
		names *[]string
		nodes []int
	}{{&c.Now, now}, {&c.To, to}} {
		for _, i := range list.nodes {
			*list.names = append(*list.names, node(i))
			c.Servers[node(i)] = s.connect(i)
		}
	}
	return c
}

// record is what a node says of the members.
func (s *site) record(i int) string {
	text, _ := s.minis[i].Get(quorums.MembersKey)
	return text
}

// Workers move from the nodes 0 to 4 to the nodes 0 to 3 and 5, one after the other, while the node 4 goes on and the node 5 has run for long: before, while and
// after the members change. At no time are there two holders, and each of them gets the lock.
func TestMembers_WorkersMoveToOtherNodes(t *testing.T) {
	virtual(t, 6, func(t *testing.T, s *site) {
		opts := together(rlock.WithLease(2*time.Second), quorum.WithMaxLease(2*time.Second))
		now, to := []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 5}
		ctx, cancel := context.WithCancel(t.Context())
		c := &crowd{t: t}
		var olds, news []func() int
		for range 3 {
			olds = append(olds, c.join(ctx, s.userOf(now, opts)))
		}
		time.Sleep(6 * time.Second)
		locktest.Equal(t, "the record of the first clients", s.record(0), "1 5 "+strings.Join([]string{node(0), node(1), node(2), node(3), node(4)}, " "))
		news = append(news, c.join(ctx, s.userOf(to, opts)))
		each := func(when string) {
			t.Helper()
			before := make([]int, 0, 6)
			for _, count := range append(olds, news...) {
				before = append(before, count())
			}
			time.Sleep(4 * time.Second)
			for i, count := range append(olds, news...) {
				if count() == before[i] {
					t.Errorf("%s, client %d got no lock", when, i)
				}
			}
		}
		each("before the change")
		done := make(chan error, 1)
		change := s.change(now, to)
		go func() { done <- change.Run(t.Context()) }()
		time.Sleep(time.Second)
		news = append(news, c.join(ctx, s.userOf(to, opts)))
		locktest.NoError(t, <-done)
		each("after the change")
		_, says, _ := strings.Cut(s.record(5), " ")
		locktest.Equal(t, "the record of the new node", says, "5 "+strings.Join([]string{node(0), node(1), node(2), node(3), node(5)}, " "))
		if !strings.Contains(s.record(4), "out") {
			t.Errorf("the node that has left says %q", s.record(4))
		}
		s.restart(1) // it gets the record again
		each("after a node has lost the record")
		locktest.Equal(t, "the record of the node that has lost it", s.record(1), s.record(5))
		cancel()
		c.all.Wait()
		t.Logf("%d holds", c.holds)
	})
}

// A client that has a majority of the members no more says which nodes it is to have; also one that begins with such nodes.
func TestMembers_StrangersAreNoMajority(t *testing.T) {
	virtual(t, 6, func(t *testing.T, s *site) {
		old := s.userOf([]int{0, 1, 2, 3, 4})
		teach(t, old.lock("l"))
		time.Sleep(10 * time.Second)
		for _, u := range []*user{s.userOf([]int{3, 4, 5}), s.userOf([]int{4, 5})} {
			began := time.Now()
			_, _, err := u.lock("l").LockAndGetToken(t.Context())
			locktest.IsError(t, err, quorum.ErrNoMajority)
			if !strings.Contains(err.Error(), "node5:6379: it is none of the quorum's nodes, which are node0:6379, node1:6379") {
				t.Errorf("the error does not say which nodes: %v", err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v: %v", took, err)
			}
		}
		teach(t, old.lock("l"))
	})
}

// Who has the lock by the votes of a node that leaves keeps it for its lease. As long as that lasts nobody gets the lock by the votes of the node that comes.
func TestMembers_AHoldOfANodeThatLeaves(t *testing.T) {
	virtual(t, 6, func(t *testing.T, s *site) {
		opts := together(rlock.WithLease(2*time.Second), quorum.WithMaxLease(2*time.Second))
		now, to := []int{0, 1, 2, 3, 4}, []int{0, 1, 2, 3, 5}
		a, b := s.userOf(now, opts), s.userOf(to, opts, rlock.WithPatience(100*time.Millisecond))
		teach(t, a.lock("l"))
		time.Sleep(6 * time.Second)
		a.down(2, 3)
		b.down(0, 1)
		held, first, err := a.lock("l").LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- s.change(now, to).Run(t.Context()) }()
		for {
			got, second, err := b.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
			if err != nil {
				locktest.IsError(t, err, quorum.ErrNoMajority)
				time.Sleep(time.Millisecond)
				continue
			}
			locktest.IsError(t, held.Err(), rlock.ErrLost)
			if second <= first {
				t.Errorf("the token %d after %d", second, first)
			}
			locktest.NoError(t, b.lock("l").Unlock(got))
			break
		}
		locktest.NoError(t, <-done)
	})
}

// A change that fails half-way leaves no server with a generation that another change, to other servers, does not know; and of two changes at once one fails.
func TestMembers_TwoChanges(t *testing.T) {
	now := []int{2, 3, 4}
	for name, changes := range map[string]func(t *testing.T, s *site, one, other *quorums.Change){
		"one after the other": func(t *testing.T, s *site, one, other *quorums.Change) {
			l := &link{}
			rdb := s.connect(3)
			rdb.AddHook(l)
			one.Servers[node(3)] = rdb
			one.Tell = func(text string) {
				if strings.HasSuffix(text, strings.Join(one.To, ", ")) {
					l.mu.Lock()
					l.down = true
					l.mu.Unlock()
				}
			}
			if err := one.Run(t.Context()); err == nil {
				t.Error("a change was made without a server that stays")
			}
			locktest.NoError(t, other.Run(t.Context()))
		},
		"at once": func(t *testing.T, s *site, one, other *quorums.Change) {
			failed := make(chan error, 1)
			go func() { failed <- one.Run(t.Context()) }()
			if first, second := other.Run(t.Context()), <-failed; (first == nil) == (second == nil) {
				t.Errorf("not one of them has failed: %v; %v", first, second)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 5, func(t *testing.T, s *site) {
				opts := together(rlock.WithLease(2*time.Second), quorum.WithMaxLease(2*time.Second), rlock.WithPatience(100*time.Millisecond))
				u := s.userOf(now, opts)
				teach(t, u.lock("l"))
				time.Sleep(10 * time.Second)
				teach(t, u.lock("l"))
				changes(t, s, s.change(now, []int{1, 3, 4}), s.change(now, []int{0, 3, 4}))
				if r := s.record(3); s.record(4) != r || len(strings.Fields(r)) != 5 || (s.record(0) == r) == (s.record(1) == r) {
					t.Errorf("the records are %q, %q, %q, %q", s.record(0), s.record(1), r, s.record(4))
				}
				a, b := s.userOf([]int{0, 3, 4}, opts), s.userOf([]int{1, 3, 4}, opts)
				a.down(1)
				b.down(2)
				one, _, err := a.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
				two, _, other := b.lock("l").TryLockAndGetToken(t.Context(), 0, 0)
				if err == nil && other == nil {
					t.Error("two holders")
				}
				_, _ = a.lock("l").Unlock(one), b.lock("l").Unlock(two)
			})
		})
	}
}

// A change that was interrupted has left its generation on one server alone. Another change ends where it meets that one. Where the server is away, and
// comes back while the other change waits, no client takes what is there for newer.
func TestMembers_AnInterruptedChange(t *testing.T) {
	now := []int{0, 1, 2}
	begin := func(t *testing.T, s *site) (interrupt func(), other *quorums.Change) {
		u := s.userOf(now)
		teach(t, u.lock("l"))
		time.Sleep(10 * time.Second)
		locktest.NoError(t, u.Close())
		return func() {
			c := s.change(now, []int{0, 1, 2, 3, 4})
			rdb := s.connect(1)
			rdb.AddHook(onRecord(func() error { return errRefused }))
			c.Servers[node(1)] = rdb
			locktest.IsError(t, c.Run(t.Context()), errRefused)
			locktest.Equal(t, "what the change has left", strings.Contains(s.record(0), " 4 ") && s.record(1)[:2] == "1 ", true)
		}, s.change(now, []int{1, 2, 4})
	}
	t.Run("is met", func(t *testing.T) {
		virtual(t, 5, func(t *testing.T, s *site) {
			interrupt, other := begin(t, s)
			other.Tell = func(text string) {
				if strings.HasPrefix(text, "generation") {
					other.Tell = func(string) {}
					interrupt()
				}
			}
			if err := other.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "somebody else") {
				t.Errorf("a change that met another one: %v", err)
			}
			locktest.Equal(t, "the record of a server that stays", s.record(1)[:2], "1 ")
		})
	})
	t.Run("comes back", func(t *testing.T) {
		virtual(t, 5, func(t *testing.T, s *site) {
			interrupt, other := begin(t, s)
			interrupt()
			time.Sleep(time.Minute)
			rdb := s.connect(0)
			rdb.AddHook(&link{down: true})
			other.Servers[node(0)] = rdb
			other.Tell = func(text string) {
				if strings.HasPrefix(text, "waiting") {
					teach(t, s.user().lock("l"))
					time.Sleep(time.Second)
					for _, i := range []int{1, 2} {
						if !strings.HasSuffix(s.record(i), " 3 "+node(1)+" "+node(2)) {
							t.Errorf("a server that stays says %q", s.record(i))
						}
					}
				}
			}
			locktest.NoError(t, other.Run(t.Context()))
		})
	})
}

// A list of servers with one of another quorum changes nothing.
func TestMembers_ServersOfTwoQuorums(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		teach(t, s.userOf([]int{0, 1, 2}).lock("l"))
		time.Sleep(10 * time.Second)
		other := "7 3 " + node(4) + " x y"
		locktest.NoError(t, s.minis[4].Set(quorums.MembersKey, other))
		before := s.record(0)
		err := s.change([]int{0, 1, 4}, []int{0, 1, 3}).Run(t.Context())
		locktest.ErrorSays(t, err, "of another quorum")
		locktest.Equal(t, "the records", [3]string{s.record(0), s.record(3), s.record(4)}, [3]string{before, "", other})
	})
}

// A server that was away when it left is told so when the change is run again.
func TestMembers_AServerThatLeavesIsToldLater(t *testing.T) {
	virtual(t, 4, func(t *testing.T, s *site) {
		now, to := []int{0, 1, 2}, []int{0, 1, 3}
		teach(t, s.userOf(now).lock("l"))
		time.Sleep(10 * time.Second)
		first := s.change(now, to)
		rdb := s.connect(2)
		rdb.AddHook(&link{down: true})
		first.Servers[node(2)] = rdb
		locktest.NoError(t, first.Run(t.Context()))
		locktest.Equal(t, "what a node says that was away", s.record(2)[:2], "1 ")
		locktest.NoError(t, s.change(now, to).Run(t.Context()))
		if !strings.Contains(s.record(2), "out") {
			t.Errorf("the node that has left says %q", s.record(2))
		}
	})
}

// A client that has other nodes than the members, before or after a change, loses none of its holds.
func TestMembers_UnlockWithOtherNodes(t *testing.T) {
	for name, lists := range map[string][2][]int{ // of those who wrote the record, and of the client
		"more nodes than members":  {{0, 1, 2}, {0, 1, 2, 3, 4}},
		"one node is another":      {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 5}},
		"fewer nodes than members": {{0, 1, 2, 3, 4}, {0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, 6, func(t *testing.T, s *site) {
				opts := together(rlock.WithLease(2*time.Second), quorum.WithMaxLease(2*time.Second))
				first := s.userOf(lists[0], opts)
				teach(t, first.lock("l"))
				time.Sleep(10 * time.Second)
				teach(t, first.lock("l"))
				var log locktest.Log
				u := s.userOf(lists[1], opts, withLog(&log))
				for _, long := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond, 3 * time.Second} {
					for range 3 {
						held, _, err := u.lock("l").LockAndGetToken(t.Context())
						locktest.NoError(t, err)
						time.Sleep(long)
						if err := u.lock("l").Unlock(held); err != nil {
							t.Errorf("a hold of %v: %v", long, err)
						}
					}
				}
				if strings.Count(log.String(), "members=") != 1 {
					t.Errorf("the log says:\n%s", log.String())
				}
			})
		})
	}
}

// A client whose nodes are mostly none of the members gets no lock on those, also with its first call, which hears of no member before it has a majority of its own.
func TestMembers_FirstCallOnStrangers(t *testing.T) {
	virtual(t, 5, func(t *testing.T, s *site) {
		first := s.userOf([]int{0, 1, 2})
		teach(t, first.lock("l"))
		time.Sleep(10 * time.Second)
		teach(t, first.lock("l"))
		for i := range 10 {
			u := s.userOf([]int{2, 3, 4})
			l := u.lock(fmt.Sprint("l", i))
			held, _, err := l.TryLockAndGetToken(t.Context(), 0, 0)
			locktest.IsError(t, err, quorum.ErrNoMajority)
			_ = l.Unlock(held)
		}
	})
}

// onRecord is a go-redis hook that does this in place of each write of the record.
type onRecord func() error

func (on onRecord) DialHook(next redis.DialHook) redis.DialHook { return next }

func (on onRecord) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (on onRecord) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "get" || !slices.Contains(cmd.Args(), any(quorums.MembersKey)) {
			return next(ctx, cmd)
		}
		cmd.SetErr(on())
		return cmd.Err()
	}
}

// A client that is closed while it writes the record says nothing of the node, whose connections its caller closes then.
func TestMembers_ClosedMeanwhile(t *testing.T) {
	virtual(t, 3, func(t *testing.T, s *site) {
		var log locktest.Log
		var u *user
		writes, connect := 0, s.connect
		s.connect = func(i int) *redis.Client {
			rdb := connect(i)
			if i == 0 {
				rdb.AddHook(onRecord(func() error {
					writes++
					_ = u.Close()
					return redis.ErrClosed
				}))
			}
			return rdb
		}
		u = s.user(withLog(&log))
		for range 10 {
			_ = u.lock("l").Do(t.Context(), func(context.Context, int64) error { return nil }) // one client of 16 is closed by the first
			time.Sleep(time.Second)
		}
		if writes == 0 || strings.Contains(log.String(), "cannot keep") {
			t.Errorf("%d writes, and the log says:\n%s", writes, log.String())
		}
	})
}
