package inspect_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

func TestMain(m *testing.M) { os.Exit(locktest.Main(m, 2)) }

func newClient(t *testing.T, rdb redis.UniversalClient, opts ...rlock.Option) *rlock.Client {
	t.Helper()
	c, err := rlock.New(rdb, opts...)
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newInspector(t *testing.T, rdb redis.UniversalClient) *inspect.Inspector {
	t.Helper()
	in, err := inspect.New(rdb)
	locktest.NoError(t, err)
	return in
}

// look is one lock, as the Inspector shows it.
func look(t *testing.T, in *inspect.Inspector, name string) inspect.Lock {
	t.Helper()
	all, err := in.Look(t.Context(), name)
	locktest.NoError(t, err)
	if len(all) != 1 || all[0].Name != name {
		t.Fatalf("Look of %q shows %+v", name, all)
	}
	return all[0]
}

// names are those of the locks.
func names(locks []inspect.Lock) (all []string) {
	for _, l := range locks {
		all = append(all, l.Name)
	}
	return all
}

// A client in the line listens on a channel of its own, by which its lock is found, whatever braces its name has.
func TestContendedByTheLine(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	holder, waiter, third := newClient(t, rdb), newClient(t, redistest.Client(t, rdb.Options().Addr)), newClient(t, redistest.Client(t, rdb.Options().Addr))
	want := []string{"a", "b{c}", "d:e"}
	ctx, stop := context.WithCancel(t.Context())
	var waits []<-chan locktest.Result
	for _, name := range want {
		_, err := rlock.NewLock(holder, name).LockLease(t.Context(), time.Minute)
		locktest.NoError(t, err)
		for _, c := range []*rlock.Client{waiter, third} {
			waits = append(waits, locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(c, name).Lock(ctx) }))
		}
	}
	redistest.Eventually(t, time.Minute, func() bool {
		locks, err := in.Contended(t.Context())
		locktest.NoError(t, err)
		return slices.Equal(names(locks), want) && !slices.ContainsFunc(locks, func(l inspect.Lock) bool { return l.Waiting != 2 })
	}, "the locks that are waited for")
	found, err := in.ContendedNames(t.Context())
	locktest.NoError(t, err)
	locktest.DeepEqual(t, "names", found, want)
	stop()
	for _, w := range waits {
		<-w
	}
}

// Each waiter of a fair lock of Redisson's listens on a channel of its own: by all of them the one lock is found.
// A lock named {} has the channel that an empty name would have: that is no lock beside it.
func TestContendedOfALockNamedByBraces(t *testing.T) {
	rdb := redistest.New(t)
	heard := rdb.Subscribe(t.Context(), "redisson_lock__channel:{}")
	t.Cleanup(func() { _ = heard.Close() })
	_, err := heard.Receive(t.Context())
	locktest.NoError(t, err)
	found, err := newInspector(t, rdb).ContendedNames(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "the locks", fmt.Sprintf("%q", found), `["{}"]`)
}

func TestContendedByFairWaiters(t *testing.T) {
	rdb := redistest.New(t)
	for _, waiter := range []string{"6b1f0d1e-0000-4000-8000-000000000001:7", "6b1f0d1e-0000-4000-8000-000000000002:33"} {
		for _, lock := range []string{"{l}", "a{b}c}"} {
			sub := rdb.Subscribe(t.Context(), "redisson_lock__channel:"+lock+":"+waiter)
			t.Cleanup(func() { _ = sub.Close() })
			_, err := sub.Receive(t.Context()) // the server has it
			locktest.NoError(t, err)
		}
	}
	found, err := newInspector(t, rdb).ContendedNames(t.Context())
	locktest.NoError(t, err)
	locktest.DeepEqual(t, "names", found, []string{"a{b}c}", "l"})
}

// Listeners of very many locks are asked for in parts.
func TestListenersOfMany(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	var all []string
	for i := range 1201 {
		all = append(all, fmt.Sprint("lock", i))
	}
	listened := map[string]bool{all[0]: true, all[499]: true, all[500]: true, all[1200]: true}
	for name := range listened {
		sub := rdb.Subscribe(t.Context(), "redisson_lock__channel:{"+name+"}")
		t.Cleanup(func() { _ = sub.Close() })
		_, err := sub.Receive(t.Context())
		locktest.NoError(t, err)
	}
	listeners, err := in.Listeners(t.Context(), all...)
	locktest.NoError(t, err)
	for _, name := range all {
		if is := listeners[name] == 1; is != listened[name] {
			t.Errorf("%s has %d listeners", name, listeners[name])
		}
	}
	listeners, err = in.Listeners(t.Context())
	locktest.NoError(t, err)
	locktest.Equal(t, "listeners of no lock", len(listeners), 0)
}

func TestNewRefuses(t *testing.T) {
	_, err := inspect.New(nil)
	locktest.ErrorSays(t, err, "inspect", "rdb is nil")
	ring := redis.NewRing(&redis.RingOptions{})
	t.Cleanup(func() { _ = ring.Close() })
	_, err = inspect.New(ring)
	locktest.ErrorSays(t, err, "Ring")
}

func TestPresenceName(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { _ = rdb.Close() })
	for _, name := range []string{"", strings.Repeat("x", 201)} {
		_, err := rlock.New(rdb, rlock.WithPresence(name))
		locktest.ErrorSays(t, err, "WithPresence", "1 to 200")
	}
	for _, name := range []string{"x", strings.Repeat("x", 200)} {
		_, err := rlock.New(rdb, rlock.WithPresence(name))
		locktest.NoError(t, err)
	}
}

// A lease that somebody has made longer than a time.Duration can tell is a long one, and none that never ends or is over.
func TestLookAtALeaseOfCenturies(t *testing.T) {
	server := redistest.Real(t)
	rdb := server.Client()
	locktest.NoError(t, rdb.HSet(t.Context(), "l", "6b1f0d1e-0000-4000-8000-000000000001:83", 1).Err())
	for _, ms := range []int64{9223372036855, 1e16} { // 292 years, where the sign changes
		server.Do("pexpire", "l", ms)
		l := look(t, newInspector(t, rdb), "l")
		locktest.Equal(t, "TTL", l.TTL, 100*365*24*time.Hour)
	}
}

// The locks of Redisson and of clients without presence, free ones, and what is no lock.
func TestLook(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	client := newClient(t, rdb)
	held, token, err := fenced.NewLock(client, "ours").LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	const theirs = "6b1f0d1e-0000-4000-8000-000000000001:83"
	locktest.NoError(t, rdb.HSet(t.Context(), "theirs", theirs, 3).Err())
	locktest.NoError(t, rdb.PExpire(t.Context(), "theirs", time.Minute).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), "forever", theirs, 1).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), "rw", "mode", "read", theirs, 1).Err())
	locktest.NoError(t, rdb.HSet(t.Context(), "user", "name", "Ada").Err())
	locktest.NoError(t, rdb.HSet(t.Context(), "counts", "user:42", 7).Err())
	locktest.NoError(t, rdb.Set(t.Context(), "text", "x", 0).Err())

	if l := look(t, in, "ours"); l.Holder == nil || l.Holder.Client != client.ID() || l.Holder.By != nil || l.Token != token || l.TTL <= 0 {
		t.Errorf("ours: %+v", l)
	}
	with, err := in.LookWith(t.Context(), []inspect.Client{{ID: client.ID(), Name: "asked before"}}, "ours", "theirs")
	locktest.NoError(t, err)
	if len(with) != 2 || with[0].Holder == nil || with[0].Holder.By == nil || with[0].Holder.By.Name != "asked before" || with[1].Holder == nil || with[1].Holder.By != nil {
		t.Errorf("with the client known: %+v", with)
	}
	if l := look(t, in, "theirs"); l.Holder == nil || l.Holder.Field != theirs || l.Holder.Count != 3 || l.TTL <= 0 || l.TTL > time.Minute || l.Token != 0 {
		t.Errorf("theirs: %+v", l)
	}
	if l := look(t, in, "forever"); l.Holder == nil || l.TTL != inspect.NoExpiry {
		t.Errorf("for ever: %+v", l)
	}
	if l := look(t, in, "free"); l.Holder != nil || l.TTL != 0 || l.Other != "" || l.Waiting != 0 {
		t.Errorf("free: %+v", l)
	}
	for name, want := range map[string]string{"rw": "read-write lock", "user": "no lock", "counts": "no lock", "text": "no hash"} {
		if l := look(t, in, name); l.Holder != nil || !strings.Contains(l.Other, want) || strings.Contains(l.Other, "name") || strings.Contains(l.Other, "42") {
			t.Errorf("%s: %+v", name, l)
		}
	}
	freed, err := in.Free(t.Context(), look(t, in, "counts"))
	locktest.NoError(t, err)
	locktest.Equal(t, "freed, of a hash that is no lock", freed, false)
	locktest.Equal(t, "what that hash has", rdb.HGet(t.Context(), "counts", "user:42").Val(), "7")
	locktest.NoError(t, fenced.NewLock(client, "ours").Unlock(held))
	redistest.Eventually(t, 20*time.Second, func() bool { // on a busy machine a late copy of the acquire is released first (P3)
		l := look(t, in, "ours")
		return l.Holder == nil && l.Token == token
	}, "ours is free")
	var found []string
	for l, err := range in.Scan(t.Context(), "*", inspect.Pace{Count: 2, Pause: time.Millisecond}) {
		locktest.NoError(t, err)
		found = append(found, l.Name)
	}
	slices.Sort(found)
	locktest.Equal(t, "what Scan finds", fmt.Sprint(found), "[forever theirs]")
	for range in.Scan(t.Context(), "*", inspect.Pace{}) {
		break
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	for _, err := range in.Scan(ended, "*", inspect.Pace{}) {
		locktest.IsError(t, err, context.Canceled)
	}
}

// Free releases the hold that was shown, and no other one; the waiter gets the lock at once.
func TestFree(t *testing.T) {
	rdb := redistest.New(t)
	in := newInspector(t, rdb)
	l := rlock.NewLock(newClient(t, rdb), "l")
	held, err := l.Lock(t.Context())
	locktest.NoError(t, err)
	shown := look(t, in, "l")
	other := rlock.NewLock(newClient(t, rdb), "l")
	waits := locktest.StartLock(func() (context.Context, error) { return other.Lock(t.Context()) })
	redistest.Eventually(t, time.Minute, func() bool {
		locks, err := in.Contended(t.Context())
		locktest.NoError(t, err)
		return slices.Contains(names(locks), "l") && locks[0].Waiting == 1
	}, "a waiter is seen")
	redistest.Eventually(t, time.Minute, func() bool { // the first one in the line listens there after a moment
		listeners, err := in.Listeners(t.Context(), "l", "free")
		locktest.NoError(t, err)
		return listeners["l"] > 0 && listeners["free"] == 0
	}, "somebody listens on the lock's own channel")
	began := time.Now()
	freed, err := in.Free(t.Context(), shown)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed", freed, true)
	r := redistest.Await(t, time.Minute, waits, "the waiter gets the lock")
	locktest.NoError(t, r.Err)
	locktest.TookAtMost(t, began, time.Second, time.Second, "the waiter")
	redistest.Eventually(t, time.Minute, func() bool { return held.Err() != nil }, "the former holder learns of it")
	locktest.IsError(t, l.Unlock(held), rlock.ErrLost)

	freed, err = in.Free(t.Context(), shown)
	locktest.NoError(t, err)
	locktest.Equal(t, "freed, of a holder that is gone", freed, false)
	locktest.NoError(t, r.Ctx.Err())
	locktest.NoError(t, other.Unlock(r.Ctx))
	freed, err = in.Free(t.Context(), look(t, in, "l"))
	locktest.NoError(t, err)
	locktest.Equal(t, "freed, of nobody", freed, false)
}

// In a cluster each lock is on its own node, and so are its channel and the clients.
func TestCluster(t *testing.T) {
	cluster := redistest.Clustered(t, 3, 0)
	rdb := cluster.Client()
	in := newInspector(t, rdb)
	client := newClient(t, rdb, rlock.WithPresence("billing"))
	other := newClient(t, cluster.Client())
	var want []string
	for i := range 9 {
		name := fmt.Sprint("lock", i)
		want = append(want, name)
		held, err := rlock.NewLock(client, name).Lock(t.Context())
		locktest.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		waits := locktest.StartLock(func() (context.Context, error) { return rlock.NewLock(other, name).Lock(ctx) })
		defer func() {
			stop()
			locktest.IsError(t, (<-waits).Err, context.Canceled)
			locktest.NoError(t, rlock.NewLock(client, name).Unlock(held))
		}()
	}
	redistest.Eventually(t, time.Minute, func() bool {
		locks, err := in.Contended(t.Context())
		locktest.NoError(t, err)
		return slices.Equal(names(locks), want)
	}, "all locks are found by their channels")
	redistest.Eventually(t, time.Minute, func() bool {
		locks, err := in.Known(t.Context())
		locktest.NoError(t, err)
		return slices.Equal(names(locks), want)
	}, "all locks are found by what the client says")
	locks, err := in.Look(t.Context(), want...)
	locktest.NoError(t, err)
	for _, l := range locks {
		if l.Holder == nil || l.Holder.By == nil || l.Holder.By.Name != "billing" {
			t.Errorf("%+v", l)
		}
	}
	redistest.Eventually(t, time.Minute, func() bool {
		listeners, err := in.Listeners(t.Context(), want...)
		locktest.NoError(t, err)
		return !slices.ContainsFunc(want, func(name string) bool { return listeners[name] == 0 })
	}, "somebody listens for each lock")
	for range in.Scan(t.Context(), "lock*", inspect.Pace{Count: 1}) {
		break // and no other master goes on
	}
	var scanned []string
	for l, err := range in.Scan(t.Context(), "lock*", inspect.Pace{}) {
		locktest.NoError(t, err)
		scanned = append(scanned, l.Name)
	}
	slices.Sort(scanned)
	locktest.Equal(t, "what Scan finds", fmt.Sprint(scanned), fmt.Sprint(want))
}

// Whoever may look may name any key: of a hash with very many fields only the beginning is read.
func TestLookAtALargeHash(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t))
	large := make([]any, 0, 20_000)
	for i := range cap(large) / 2 {
		large = append(large, fmt.Sprintf("user:%d", i), i)
	}
	locktest.NoError(t, rdb.HSet(t.Context(), "users", large...).Err())
	asked := &commands{}
	rdb.AddHook(asked)
	in, err := inspect.New(rdb)
	locktest.NoError(t, err)
	if l := look(t, in, "users"); l.Holder != nil || l.Other != "a hash that is no lock" {
		t.Errorf("got %+v", l)
	}
	for _, cmd := range asked.all {
		if cmd.Name() == "hgetall" && cmd.Args()[1] == "users" {
			t.Errorf("asked with %v", cmd.Args())
		}
	}
	if len(asked.all) == 0 {
		t.Error("nothing was asked")
	}
}

// commands keeps what travels in pipelines.
type commands struct{ all []redis.Cmder }

func (c *commands) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (c *commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (c *commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.all = append(c.all, cmds...)
		return next(ctx, cmds)
	}
}

// A lock that the Redis user may not read hides no other one. Where there is no other, the error is Redis's.
func TestLockThatMayNotBeRead(t *testing.T) {
	server := redistest.Real(t)
	locktest.NoError(t, server.Client().Do(t.Context(), "acl", "setuser", "reader", "on", ">secret", "+@all", "allchannels", "~*account:1*", "~fencelock_client*").Err())
	in := newInspector(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "reader", "secret" }))
	held, err := rlock.NewLock(newClient(t, server.Client()), "account:1").Lock(t.Context())
	locktest.NoError(t, err)
	locks, err := in.Look(t.Context(), "account:1", "job:1")
	locktest.NoError(t, err)
	if locks[0].Holder == nil || locks[0].Other != "" || locks[1].Holder != nil || !strings.Contains(locks[1].Other, "may not read") {
		t.Errorf("shown: %+v", locks)
	}
	if _, err := in.Look(t.Context(), "job:1"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("of this lock alone: %v", err)
	}
	locktest.NoError(t, held.Err())
}
