package rlock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// story is one account and how its writers exclude each other.
type story struct {
	what    string
	fence   bool // the account checks tokens
	options []fenced.Option

	key          string
	first, other *fenced.Lock
	held         context.Context // the first writer's
	token        int64
	read         int // what it has read
}

func (s *story) balance(t *testing.T, g *redisguard.Guard, store *redis.Client, token int64) (n int, err error) {
	t.Helper()
	if !s.fence {
		n, err = store.Get(t.Context(), s.key).Int()
	} else {
		n, err = g.Writer(s.key, token).Do(t.Context(), "GET", s.key).Int()
	}
	if err == redis.Nil {
		err = nil
	}
	return n, err
}

func (s *story) write(t *testing.T, g *redisguard.Guard, store *redis.Client, token int64, n int) error {
	t.Helper()
	if !s.fence {
		return store.Set(t.Context(), s.key, n, 0).Err()
	}
	return g.Writer(s.key, token).Do(t.Context(), "SET", s.key, n).Err()
}

// The story this library is for, on real processes: the master dies before a replica has heard of the lock, the replica
// is promoted, and two holders have it at once. No lock on Redis can prevent that. A holder notices when it next hears of
// the new master: with a renewal, a third of the lease later at most; one that does not reach it, at the end of its lease.
// With a plain lock the second writer's deposit is lost; with ours too, if the account checks no tokens; and even if it
// does, as the counter was lost with the lock and gives both the same token. Where the clock is the tokens' floor, the
// account refuses the late write.
func TestSentinelAsynchronousFailover(t *testing.T) {
	t.Parallel()
	s := redistest.Watched(t, 1)
	store := redistest.Real(t).Client()
	g, err := redisguard.New(store)
	locktest.NoError(t, err)
	opts := []rlock.Option{rlock.WithLease(failoverLease), rlock.WithPatience(failoverBound)}
	one, two := newClient(t, s.Client(), opts...), newClient(t, s.Client(), opts...)
	var parted atomic.Bool
	away := newClient(t, s.Client(func(o *redis.FailoverOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if parted.Load() {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	}), opts...)
	stories := []*story{
		{what: "no guard"},
		{what: "guard", fence: true},
		{what: "guard and floor", fence: true, options: []fenced.Option{fenced.WithClockFloor()}},
	}

	old, replica := s.Nodes[0], s.Nodes[1]
	replica.Detach()
	plainOne, plainTwo := s.Client(), s.Client()
	plain := func(c *redis.Client, owner string) bool {
		ok, err := c.SetNX(t.Context(), "plain", owner, longLease).Result()
		return err == nil && ok
	}
	if !plain(plainOne, "one") || plain(plainTwo, "two") {
		t.Fatal("the plain lock does not exclude")
	}
	for i, st := range stories {
		st.key = fmt.Sprint("balance:", i)
		st.first, st.other = fenced.NewLock(away, st.key, st.options...), fenced.NewLock(two, st.key, st.options...)
		st.held, st.token, err = st.first.LockLeaseAndGetToken(t.Context(), longLease)
		locktest.NoError(t, err)
		st.read, err = st.balance(t, g, store, st.token)
		locktest.NoError(t, err)
	}
	gone, taken := rlock.NewLock(one, "gone"), rlock.NewLock(one, "taken") // these are renewed
	goneCtx, err := gone.Lock(t.Context())
	locktest.NoError(t, err)
	takenCtx, err := taken.Lock(t.Context())
	locktest.NoError(t, err)

	parted.Store(true) // the first writers hear of nothing any more
	old.Kill()
	s.AwaitMaster(old)

	redistest.Settles(t, failoverBound, func() bool { return plain(plainTwo, "two") }, "the plain lock is free")
	for _, st := range stories {
		held, token, err := st.other.LockAndGetToken(t.Context())
		locktest.NoError(t, err)
		if st.held.Err() != nil || held.Err() != nil {
			t.Fatalf("%s: there are no two holders: %v, %v", st.what, st.held.Err(), held.Err())
		}
		n, err := st.balance(t, g, store, token)
		locktest.NoError(t, err)
		locktest.NoError(t, st.write(t, g, store, token, n+10))

		late := st.write(t, g, store, st.token, st.read+5) // the first writer goes on
		end, err := store.Get(t.Context(), st.key).Int()
		locktest.NoError(t, err)
		switch floor := st.options != nil; {
		case !floor && (late != nil || end != 5):
			t.Errorf("%s: the late write was expected to go through, and the other deposit to be lost: %v, balance %d", st.what, late, end)
		case !floor && token > st.token:
			t.Errorf("%s: token %d after %d: the counter was not lost", st.what, token, st.token)
		case floor && token <= st.token:
			t.Errorf("Inv2: %s: token %d after %d", st.what, token, st.token)
		case floor && end != 10:
			t.Errorf("Inv4: %s: balance %d", st.what, end)
		case floor:
			locktest.IsError(t, late, guard.ErrStale)
		}
		locktest.NoError(t, st.other.Unlock(held))
	}
	parted.Store(false)
	for _, st := range stories {
		locktest.IsError(t, st.first.Unlock(st.held), rlock.ErrLost)
	}

	// What was refused is done again, from the read on and under a new token.
	st := stories[len(stories)-1]
	locktest.NoError(t, st.first.Do(t.Context(), func(_ context.Context, token int64) error {
		n, err := st.balance(t, g, store, token)
		if err != nil {
			return err
		}
		return st.write(t, g, store, token, n+5)
	}))
	if end := store.Get(t.Context(), st.key).Val(); end != "15" {
		t.Errorf("the balance is %s after both deposits", end)
	}

	// The holds that are renewed: one lock is free at the new master, the other one somebody else's by now.
	theirs, err := rlock.NewLock(two, "taken").Lock(t.Context())
	locktest.NoError(t, err)
	for l, ctx := range map[*rlock.Lock]context.Context{gone: goneCtx, taken: takenCtx} {
		redistest.Await(t, failoverBound, ctx.Done(), "the loss is noticed")
		cause := context.Cause(ctx)
		locktest.IsError(t, cause, rlock.ErrLost)
		if !strings.Contains(cause.Error(), "its key is gone") { // and not: the lease ran out
			t.Errorf("no renewal has found out: %v", cause)
		}
		locktest.IsError(t, l.Check(ctx), rlock.ErrLost)
		locktest.IsError(t, l.Unlock(ctx), rlock.ErrLost)
	}
	locktest.NoError(t, theirs.Err())
	if held, err := rlock.NewLock(two, "taken").IsHeld(theirs); err != nil || !held {
		t.Errorf("the other holder has the lock: %v, %v", held, err)
	}
	locktest.NoError(t, rlock.NewLock(two, "taken").Unlock(theirs))
	plainTwo.Del(t.Context(), "plain")
	wantClean(t, []*rlock.Client{one, two, away}, replica)
}
