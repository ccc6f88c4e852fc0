package docs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// useLocks does with locks what locks can do.
func useLocks(u *rightsUse) {
	var quiet sync.WaitGroup // what takes seconds, because nothing happens in them
	failed := make(chan any, 1)
	quiet.Go(func() {
		defer func() { failed <- recover() }()
		listen(u)
	})
	defer func() {
		quiet.Wait()
		if f := <-failed; f != nil && u.ctx.Err() == nil {
			panic(f)
		}
	}()
	takeAndRelease(u)
	passOn(u)
	passOnWithin(u)
	force(u)
	renew(u)
}

// takeAndRelease takes a lock twice, asks for it, and releases it; with each kind of tokens.
func takeAndRelease(u *rightsUse) {
	c := u.client()
	for what, opts := range map[string][]fenced.Option{
		"counted": nil, "floor": {fenced.WithClockFloor()}, "expiry": {fenced.WithCounterExpiry(time.Hour)}, "stable": {fenced.WithStableToken()},
	} {
		l := fenced.NewLock(c, u.prefix+what, opts...)
		outer, token, err := l.LockAndGetToken(u.ctx)
		u.must(err, "acquire, %s", what)
		inner, again, err := l.LockAndGetToken(outer)
		u.must(err, "re-entry, %s", what)
		if again < token {
			u.must(fmt.Errorf("%d after %d", again, token), "tokens, %s", what)
		}
		count, err := l.HoldCount(inner)
		u.must(err, "HoldCount")
		ttl, err := l.TTL(inner)
		u.must(err, "TTL")
		held, err := l.IsHeld(inner)
		u.must(err, "IsHeld")
		if count != 2 || ttl < time.Second || !held {
			u.must(fmt.Errorf("count %d, time to live %v, held %v", count, ttl, held), "what Redis says")
		}
		u.must(l.Unlock(inner), "inner unlock, %s", what)
		u.must(l.Unlock(outer), "unlock, %s", what)
		locked, err := l.IsLocked(u.ctx)
		u.must(err, "IsLocked")
		if locked {
			u.must(fmt.Errorf("still locked"), "unlock, %s", what)
		}
	}
}

// lasting is a lease that no try sees the end of: a waiter that gets the lock was told.
const lasting = time.Hour

// passOn has two clients wait in the line for a third.
func passOn(u *rightsUse) {
	name := u.prefix + "line"
	first, rest := fenced.NewLock(u.client(), name), []*fenced.Lock{fenced.NewLock(u.client(), name), fenced.NewLock(u.client(), name)}
	held, _, err := first.LockLeaseAndGetToken(u.ctx, lasting)
	u.must(err, "acquire")
	waiting := make(chan error, len(rest))
	for i, l := range rest {
		go func() {
			mine, _, err := l.LockLeaseAndGetToken(u.ctx, lasting)
			if err == nil {
				err = l.Unlock(mine)
			}
			waiting <- err
		}()
		u.eventually(func() bool { return u.inLine(name) > i }, "waiter %d is in the line", i)
	}
	u.must(first.Unlock(held), "unlock with waiters")
	for range rest {
		u.must(await(u, waiting, "a waiter is woken"), "a waiter")
	}
	u.eventually(func() bool { return u.inLine(name) == 0 }, "the line is empty")
}

// passOnWithin has calls of one client wait for each other, until one has handed the lock to the next. On a busy machine a release may come too late for
// that.
func passOnWithin(u *rightsUse) {
	name := u.prefix + "within"
	var handoffs atomic.Int32
	l := fenced.NewLock(u.client(rlock.WithTrace(&locktrace.Trace{AcquireDone: func(e locktrace.AcquireDone) {
		if e.By == locktrace.FromHandoff {
			handoffs.Add(1)
		}
	}})), name)
	for handoffs.Load() == 0 {
		calls := make(chan error, 8)
		for range cap(calls) {
			go func() {
				mine, _, err := l.LockLeaseAndGetToken(u.ctx, lasting)
				if err == nil {
					err = l.Unlock(mine)
				}
				calls <- err
			}()
		}
		for range cap(calls) {
			u.must(await(u, calls, "a call"), "a call beside others of its client")
		}
	}
}

// force frees a lock of another client, while somebody waits.
func force(u *rightsUse) {
	name := u.prefix + "forced"
	_, err := rlock.NewLock(u.client(), name).LockLease(u.ctx, lasting)
	u.must(err, "acquire")
	waits := rlock.NewLock(u.client(), name)
	next := make(chan error, 1)
	go func() {
		mine, err := waits.LockLease(u.ctx, lasting)
		if err == nil {
			err = waits.Unlock(mine)
		}
		next <- err
	}()
	u.eventually(func() bool { return u.inLine(name) > 0 }, "the waiter is in the line")
	freed, err := rlock.NewLock(u.client(), name).ForceUnlock(u.ctx)
	u.must(err, "ForceUnlock")
	if !freed {
		u.must(fmt.Errorf("nothing was freed"), "ForceUnlock")
	}
	u.must(await(u, next, "the waiter is woken"), "the waiter")
}

// renew holds a lock until its lease was extended.
func renew(u *rightsUse) {
	renewed := make(chan error, 100)
	c := u.client(rlock.WithLease(1500*time.Millisecond), rlock.WithTrace(&locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { renewed <- e.Err }}))
	l := rlock.NewLock(c, u.prefix+"renewed")
	held, err := l.Lock(u.ctx)
	u.must(err, "acquire")
	u.must(await(u, renewed, "a renewal"), "the renewal")
	u.must(l.Check(held), "the hold after its renewal")
	u.must(l.Unlock(held), "unlock")
}

// listen waits for locks for so long that the client asks whether its connection is alive, and then gives a subscription up.
func listen(u *rightsUse) {
	unsubscribe := "unsubscribe"
	if u.sharded {
		unsubscribe = "sunsubscribe"
	}
	pings, leaves := u.called("ping"), u.called(unsubscribe)
	holder, waiter := u.client(), u.client()
	names := u.neighbours(2, "quiet")
	lock := func(c *rlock.Client, i int) *rlock.Lock { return rlock.NewLock(c, names[i]) }
	var held [2]context.Context
	done := make(chan error, len(held))
	for i := range held {
		var err error
		held[i], err = lock(holder, i).LockLease(u.ctx, lasting)
		u.must(err, "acquire")
		go func() {
			mine, err := lock(waiter, i).LockLease(u.ctx, lasting)
			if err == nil {
				err = lock(waiter, i).Unlock(mine)
			}
			done <- err
		}()
	}
	u.eventually(func() bool { return u.called("ping") > pings }, "the waiter's client asks whether the connection is alive")
	u.must(lock(holder, 0).Unlock(held[0]), "unlock")
	u.must(await(u, done, "the waiter is woken after some quiet seconds"), "the waiter")
	u.eventually(func() bool { return u.called(unsubscribe) > leaves }, "the waiter's client unsubscribes")
	u.must(lock(holder, 1).Unlock(held[1]), "unlock")
	u.must(await(u, done, "the other waiter is woken"), "the other waiter")
}

// neighbours returns so many names of locks that one node has.
func (u *rightsUse) neighbours(n int, suffix string) (names []string) {
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprint(u.prefix, suffix, i)
		if len(names) == 0 || u.nodeOf == nil || u.nodeOf(name) == u.nodeOf(names[0]) {
			names = append(names, name)
		}
	}
	return names
}

func TestRightsServer(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	s.exact(lists["server"], s.identity(lists), useLocks)
}

// What go-redis says of itself is refused otherwise, but for one that is told to say nothing.
func TestRightsIdentity(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	loud := s.connect
	s.connect = func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{
			Addr: s.nodes[0].Addr(), Username: rightsUser, Password: rightsPass, DisableIdentity: true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
	}
	locktest.NoError(t, s.try(lists["server"], rightsBound/4, takeAndRelease))
	s.connect = loud
	list := s.identity(lists)
	if len(list) == 0 {
		s.withoutIt(t, "there is no right to what go-redis says of itself, and nothing is refused for want of it", "7.0.")
	}
	s.exact(list, lists["server"], takeAndRelease)
}

// A connection with a database, or with a name, begins with a command of its own.
func TestRightsConnection(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	for list, set := range map[string]func(o *redis.Options){
		"database":    func(o *redis.Options) { o.DB = 1 },
		"client-name": func(o *redis.Options) { o.ClientName = "billing" },
	} {
		s.connect = func() redis.UniversalClient {
			o := &redis.Options{Addr: s.nodes[0].Addr(), Username: rightsUser, Password: rightsPass}
			set(o)
			return redis.NewClient(o)
		}
		s.exact(lists[list], slices.Concat(lists["server"], s.identity(lists)), takeAndRelease)
	}
}

// readAndWrite has clients read, and write, and wait for each other.
func readAndWrite(u *rightsUse) {
	name := u.prefix + "page"
	page := func() *fenced.RWLock { return fenced.NewRWLock(u.client(), name, fenced.WithClockFloor()) }
	first, second := page(), page()
	held, _, err := first.Read().LockLeaseAndGetToken(u.ctx, lasting)
	u.must(err, "acquire to read")
	beside, _, err := second.Read().LockLeaseAndGetToken(u.ctx, lasting)
	u.must(err, "acquire to read beside it")
	u.must(second.Read().Unlock(beside), "unlock beside others")
	for i, side := range []*fenced.Lock{page().Write(), page().Read()} {
		waiting := make(chan error, 1)
		go func() {
			mine, _, err := side.LockLeaseAndGetToken(u.ctx, lasting)
			if err == nil {
				err = side.Unlock(mine)
			}
			waiting <- err
		}()
		u.eventually(func() bool { return u.inLine(name) == 1 }, "a waiter is in the line")
		if i == 0 {
			u.must(first.Read().Unlock(held), "the last reader unlocks")
		} else {
			u.must(first.Write().Unlock(held), "the writer unlocks")
		}
		u.must(await(u, waiting, "a waiter is woken"), "a waiter")
		held, _, err = first.Write().LockLeaseAndGetToken(u.ctx, lasting)
		u.must(err, "acquire to write")
	}
	locked, err := second.Write().IsLocked(u.ctx)
	u.must(err, "IsLocked")
	if !locked {
		u.must(fmt.Errorf("free"), "what Redis says")
	}
	u.must(first.Write().Unlock(held), "unlock")
	u.must(first.Read().Do(u.ctx, func(ctx context.Context, _ int64) error {
		<-time.After(1100 * time.Millisecond) // it listens by then for a release by force
		return ctx.Err()
	}), "read for longer")
}

func TestRightsOfReadWriteLocks(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	node := redistest.Real(t)
	s := newRightsSite(t, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: node.Addr(), Username: rightsUser, Password: rightsPass})
	}, node)
	s.exact(lists["rwlocks"], slices.Concat(lists["server"], s.identity(lists)), readAndWrite)
}

func TestRightsReplicas(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	r := redistest.Replicated(t, 1)
	s := newRightsSite(t, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: r.Master.Addr(), Username: rightsUser, Password: rightsPass})
	}, r.Master)
	use := func(u *rightsUse) {
		u.opts = []rlock.Option{rlock.WithReplicas(1, 2*time.Second)}
		takeAndRelease(u)
		passOn(u)
		passOnWithin(u)
	}
	s.exact(lists["replicas"], slices.Concat(lists["server"], s.identity(lists)), use)

	c := redistest.Clustered(t, 1, 1)
	if !c.Sharded() {
		return
	}
	s = newRightsSite(t, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Username: rightsUser, Password: rightsPass})
	}, c.Nodes...)
	s.exact(lists["replicas"], slices.Concat(lists["cluster"], s.identity(lists)), use)
}

func TestRightsFsync(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t, "--appendonly", "yes", "--appendfsync", "always")
	if err := s.admin[0].Do(t.Context(), "waitaof", 1, 0, 100).Err(); err != nil {
		s.withoutIt(t, "there is no WAITAOF: "+err.Error(), "6.", "7.0.")
	}
	s.exact(lists["fsync"], slices.Concat(lists["server"], s.identity(lists)), func(u *rightsUse) {
		u.opts = []rlock.Option{rlock.WithFsync(1, 0, 2*time.Second)}
		takeAndRelease(u)
		passOn(u)
	})
}

// A command of a lock's scripts is in the lists: tries do not come to each of them.
func TestRightsOfAllScripts(t *testing.T) {
	lists := rightsLists(t)
	rare := map[string]string{
		"del":    "repairs what a user without the right to PEXPIRE has done",
		"info":   "a quorum's, and of read-write locks",
		"pubsub": "a quorum's only, which does without",
	}
	for name, script := range map[string][]string{
		"server": {"scripts/*.lua"}, "cluster": {"scripts/*.lua"}, "presence": {"internal/presence/*.lua"}, "guard": {"guard/redisguard/*.lua"},
	} {
		rights := slices.Concat(lists[name], map[string][]string{"presence": lists["server"]}[name])
		commands := commandsOf(t, script...)
		if len(commands) < 4 {
			t.Errorf("%s: the commands %v of the scripts %v", name, commands, script)
		}
		for _, command := range commands {
			if rare[command] == "" && !slices.Contains(rights, "+"+command) {
				t.Errorf("%s lacks %s, which scripts use", name, command)
			}
		}
	}
}

var commandCalled = regexp.MustCompile(`(?:redis\.p?call|lined)\('([A-Z]+)'`)

// commandsOf returns the commands that the scripts of these names call.
func commandsOf(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		locktest.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			locktest.NoError(t, err)
			for _, call := range commandCalled.FindAllStringSubmatch(string(text), -1) {
				all = append(all, strings.ToLower(call[1]))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
