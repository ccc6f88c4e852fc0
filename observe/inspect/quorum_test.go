package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// five is five servers, and an inspector on all.
type five struct {
	*inspect.Inspector
	servers []*redistest.Server
	direct  []*redis.Client
}

const longest = time.Second // a lease; a server counts after two seconds

func newFive(t *testing.T) *five {
	t.Helper()
	f := &five{}
	var onlooker []redis.UniversalClient
	for range 5 {
		s := redistest.Real(t)
		f.servers, f.direct = append(f.servers, s), append(f.direct, s.Client())
		onlooker = append(onlooker, redistest.Client(t, s.Addr()))
	}
	in, err := inspect.NewQuorum(onlooker, inspect.WithMaxLease(longest))
	locktest.NoError(t, err)
	f.Inspector = in
	f.counting(t, 5)
	return f
}

// counting waits until so many servers count, and returns all.
func (f *five) counting(t *testing.T, n int) (all []inspect.Server) {
	t.Helper()
	redistest.Eventually(t, 20*time.Second, func() bool {
		var err error
		all, err = f.Servers(t.Context())
		locktest.NoError(t, err)
		counting := 0
		for _, s := range all {
			if s.Counts {
				counting++
			}
		}
		return counting == n
	}, "%d servers count", n)
	return all
}

// have makes some servers have this hold, and this token, for so many seconds each.
func (f *five) have(t *testing.T, name, field string, token int64, seconds map[int]int) {
	t.Helper()
	for i, s := range seconds {
		locktest.NoError(t, f.direct[i].HSet(t.Context(), name, field, 1).Err())
		locktest.NoError(t, f.direct[i].Expire(t.Context(), name, time.Duration(s)*time.Second).Err())
		locktest.NoError(t, f.direct[i].Set(t.Context(), "redisson_lock_token:{"+name+"}", token, 0).Err())
	}
}

// Who has a majority has the lock, as long as it has that; what a minority has is a leftover. A server that stands still, is dead or has started lately holds nobody up.
func TestQuorum(t *testing.T) {
	f := newFive(t)
	owner, other := quorums.NewID(5)+":1", quorums.NewID(5)+":2"
	f.have(t, "held", owner, 7, map[int]int{0: 100, 1: 300, 2: 200})
	f.have(t, "held", other, 9, map[int]int{4: 400})
	f.have(t, "left", other, 3, map[int]int{0: 100, 1: 100})
	l := look(t, f.Inspector, "held")
	if l.Holder == nil || l.Holder.Field != owner || l.TTL > 100*time.Second || l.TTL < 90*time.Second || l.Token != 7 || l.Quorum != 5 || l.Unknown != "" || l.IsPart() {
		t.Errorf("%+v, %+v", l, l.Holder)
	}
	homes := 0
	for i, p := range l.Servers {
		want := []string{owner, owner, owner, "", other}[i]
		if h := p.Lock.Holder; p.Server != f.servers[i].Addr() || (h == nil) != (want == "") || h != nil && h.Field != want {
			t.Errorf("server %d says %+v", i, p)
		}
		if p.Home {
			homes++
		}
	}
	locktest.Equal(t, "homes", homes, 1)
	if l := look(t, f.Inspector, "left"); l.Holder != nil || l.Unknown != "" || l.Quorum != 5 || l.Servers[0].Lock.Holder.Field != other {
		t.Errorf("what two of five have: %+v", l)
	}
	var walked []string
	for l, err := range f.Scan(t.Context(), "*", inspect.Pace{Count: 1}) {
		locktest.NoError(t, err)
		walked = append(walked, l.Name)
	}
	if text := fmt.Sprint(walked); text != "[held left]" && text != "[left held]" {
		t.Errorf("Scan finds %s", text)
	}

	var blind []redis.UniversalClient
	for i, rdb := range f.direct {
		locktest.NoError(t, rdb.Do(t.Context(), "acl", "setuser", "blind", "on", ">x", "~*", "&*", "+@all", "-info", "-config").Err())
		blind = append(blind, redistest.Client(t, f.servers[i].Addr(), func(o *redis.Options) { o.Username, o.Password = "blind", "x" }))
	}
	in, err := inspect.NewQuorum(blind)
	locktest.NoError(t, err)
	seen, err := in.Servers(t.Context())
	locktest.NoError(t, err)
	if s := seen[0]; !s.Counts || !strings.Contains(s.Why, "the Redis user needs INFO") {
		t.Errorf("without the right to INFO: %+v", s)
	}
	if l := look(t, in, "left"); l.Holder != nil || l.Unknown != "" {
		t.Errorf("without the right to INFO: %+v", l)
	}

	f.servers[4].Freeze()
	t.Cleanup(f.servers[4].Thaw)
	began := time.Now()
	l = look(t, f.Inspector, "held")
	if l.Holder == nil || l.Holder.Field != owner || l.Servers[4].Err == nil {
		t.Errorf("one stands still: %+v", l)
	}
	locktest.TookAtMost(t, began, time.Second, 3*time.Second, "the first look with a server that stands still")
	began = time.Now()
	if l := look(t, f.Inspector, "left"); !strings.Contains(l.Unknown, "2 of 5 servers name the holder "+other) {
		t.Errorf("two of five have it, and one stands still: %+v", l)
	}
	locktest.TookAtMost(t, began, 100*time.Millisecond, 800*time.Millisecond, "the next look")

	f.servers[2].Restart() // empty
	servers, err := f.Servers(t.Context())
	locktest.NoError(t, err)
	if s := servers[2]; s.Counts || s.CountsIn <= 0 || s.CountsIn > 2*time.Second || !strings.Contains(s.Why, "started") {
		t.Errorf("one has started: %+v", s)
	}
	if s := servers[4]; s.Counts || s.Err == nil || !strings.Contains(s.Why, "it does not answer in time") {
		t.Errorf("one stands still: %+v", s)
	}
	if l := look(t, f.Inspector, "held"); !strings.Contains(l.Unknown, "2 of 5 servers name the holder") || l.Holder != nil {
		t.Errorf("one has forgotten it, and one stands still: %+v", l)
	}
	f.counting(t, 4)
	f.servers[0].Kill()
	f.servers[1].Kill()
	if l := look(t, f.Inspector, "held"); !strings.Contains(l.Unknown, "2 of 5 servers answer and count, 3 are needed") {
		t.Errorf("two are dead, and one stands still: %+v", l)
	}
	f.servers[2].Kill()
	f.servers[3].Kill()
	_, err = f.Look(t.Context(), "held")
	locktest.ErrorSays(t, err, "none of 5 servers answers")
}

// A hold of a quorum is not released on one of its servers alone. On all it is over, also while one is away, and does not come back.
func TestFreeOfAQuorum(t *testing.T) {
	f := newFive(t)
	var nodes []redis.UniversalClient
	for _, s := range f.servers {
		nodes = append(nodes, redistest.Client(t, s.Addr()))
	}
	newUser := func() *rlock.Client {
		c, err := quorum.New(nodes, rlock.WithLease(longest), rlock.WithPresence("user"), quorum.WithNodeTimeout(200*time.Millisecond))
		locktest.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	held, _, err := fenced.NewLock(newUser(), "l").LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	one := newInspector(t, f.direct[0])
	var l inspect.Lock
	redistest.Eventually(t, 20*time.Second, func() bool {
		all := look(t, f.Inspector, "l").Servers
		return !slices.ContainsFunc(all, func(p inspect.ServerPart) bool { return p.Lock.Holder == nil })
	}, "a hold that is 10 ms old comes to all")
	l = look(t, one, "l")
	if l.Quorum != 5 || !l.IsPart() {
		t.Errorf("one of five servers: %+v", l)
	}
	freed, err := one.Free(t.Context(), l)
	locktest.IsError(t, err, inspect.ErrPart)
	locktest.Equal(t, "freed", freed, false)
	part, err := one.FreeEach(t.Context(), l)
	locktest.NoError(t, err)
	locktest.Equal(t, "on one", part.String(), "released on 1 of 5 servers; a majority may have it still")
	if l := look(t, f.Inspector, "l"); l.Holder == nil || held.Err() != nil {
		t.Fatalf("after a release on one of five: %+v, %v", l, held.Err())
	}
	waits := make(chan error, 1)
	next := fenced.NewLock(newUser(), "l")
	var got context.Context
	go func() {
		var err error
		got, _, err = next.LockAndGetToken(t.Context())
		waits <- err
	}()
	redistest.Eventually(t, 20*time.Second, func() bool {
		l = look(t, f.Inspector, "l")
		return l.Waiting == 1 && len(l.Line) == 1 && l.Line[0].By != nil
	}, "somebody waits at the home, with presence")

	f.servers[3].Freeze()
	t.Cleanup(f.servers[3].Thaw)
	all, err := f.FreeEach(t.Context(), l)
	locktest.NoError(t, err)
	if text := all.String(); !all.Over() || !strings.Contains(text, "of 5 servers") || !strings.Contains(text, f.servers[3].Addr()+": no answer in time") || !strings.HasSuffix(text, "; no majority has it any more") {
		t.Errorf("all but one: %s", text)
	}
	redistest.Await(t, 20*time.Second, held.Done(), "the holder hears of it")
	locktest.IsError(t, context.Cause(held), rlock.ErrLost)
	locktest.NoError(t, redistest.Await(t, 20*time.Second, waits, "the next one has the lock"))
	f.servers[3].Thaw()
	before := l.Holder.Field
	redistest.Eventually(t, 20*time.Second, func() bool { l = look(t, f.Inspector, "l"); return l.Holder != nil && l.Servers[3].Err == nil }, "all answer")
	if l.Holder.Field == before || got.Err() != nil {
		t.Errorf("the hold is back: %+v, %v", l.Holder, got.Err())
	}
	locktest.NoError(t, next.Unlock(got))
}

// NewQuorum refuses what cannot be a server of a quorum.
func TestNewQuorumRefuses(t *testing.T) {
	a := redistest.Client(t, "127.0.0.1:1")
	for why, servers := range map[string][]redis.UniversalClient{
		"no servers":          nil,
		"the client is nil":   {a, nil},
		"are the same client": {a, a},
		"is not one server":   {a, redis.NewRing(&redis.RingOptions{})},
	} {
		_, err := inspect.NewQuorum(servers)
		locktest.ErrorSays(t, err, why)
	}
}
