package docs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// onCluster returns a site on a cluster of two masters.
func onCluster(t *testing.T) (*rightsSite, *redistest.Cluster) {
	t.Helper()
	c := redistest.Clustered(t, 2, 0)
	s := newRightsSite(t, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Username: rightsUser, Password: rightsPass})
	}, c.Nodes...)
	s.sharded = c.Sharded()
	half := redistest.Slots / len(c.Nodes)
	s.nodeOf = func(name string) string { return fmt.Sprint(c.SlotOf(name) / half) }
	return s, c
}

func TestRightsCluster(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s, c := onCluster(t)
	if !c.Sharded() {
		s.exact(lists["cluster-6.2"], slices.Concat(lists["server"], s.identity(lists)), func(u *rightsUse) {
			takeAndRelease(u)
			duringAMove(u, c)
		})
		return
	}
	s.exact(lists["cluster"], s.identity(lists), func(u *rightsUse) {
		useLocks(u)
		duringAMove(u, c)
	})
}

// duringAMove takes and releases a lock whose slot is on its way from one node to the other.
func duringAMove(u *rightsUse, c *redistest.Cluster) {
	name := u.prefix + "moves"
	l := rlock.NewLock(u.client(), name)
	u.must(l.Do(u.ctx, func(context.Context) error { return nil }), "before the slot moves")
	slot, from := c.SlotOf(name), c.MasterOf(name)
	to := c.Nodes[1-slices.Index(c.Nodes, from)]
	c.BeginMove(slot, from, to)
	defer c.EndMove(slot, from, to)
	asked := u.called("asking")
	u.must(l.Do(u.ctx, func(context.Context) error { return nil }), "while the slot moves")
	if u.called("asking") == asked && u.ctx.Err() == nil {
		u.must(errors.New("no node was asked for a slot that it gets"), "while the slot moves")
	}
}

// userPings finds a connection of the user in CLIENT LIST whose last command was PING.
var userPings = regexp.MustCompile(`(?m)^.* cmd=ping .*user=` + rightsUser + `\b`)

func TestRightsSentinel(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	w := redistest.Watched(t, 1)
	nodes := newRightsSite(t, nil, w.Nodes...)
	locktest.NoError(t, nodes.grant(slices.Concat(lists["server"], nodes.identity(lists))))
	sentinels := newRightsSite(t, func() redis.UniversalClient {
		return w.Client(func(o *redis.FailoverOptions) {
			o.SentinelUsername, o.SentinelPassword = rightsUser, rightsPass
			o.Username, o.Password = rightsUser, rightsPass
		})
	}, w.Sentinels...)
	sentinels.exact(lists["sentinel"], sentinels.identity(lists), func(u *rightsUse) {
		takeAndRelease(u)
		u.eventually(func() bool {
			return slices.ContainsFunc(u.admin, func(admin *redis.Client) bool {
				return userPings.MatchString(admin.ClientList(u.ctx).Val())
			})
		}, "go-redis asks whether its connection to the Sentinel is alive")
	})
	if refused := nodes.refused(); len(refused) > 0 {
		t.Errorf("the servers behind the Sentinels have refused %v", refused)
	}
}

func TestRightsPresence(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	s.exact(lists["presence"], slices.Concat(lists["server"], s.identity(lists)), func(u *rightsUse) {
		c := u.client(rlock.WithPresence("billing"))
		u.must(rlock.NewLock(c, u.prefix).Do(u.ctx, func(context.Context) error { return nil }), "Do")
		said := "fencelock_client:{" + c.ID() + "}"
		admin := u.admin[0]
		u.eventually(func() bool { return admin.HGet(u.ctx, said, "name").Val() == "billing" }, "the client says its name")
		u.eventually(func() bool { return admin.ZScore(u.ctx, "fencelock_clients", c.ID()).Val() > 0 }, "the client is in the index")
		u.must(c.Close(), "Close")
		if n := admin.Exists(u.ctx, said).Val(); n != 0 {
			u.must(errors.New("what the client said of itself is left"), "Close")
		}
	})
}

// shownLocks has an admin's clients hold a lock, and wait for it.
func shownLocks(u *rightsUse, admin redis.UniversalClient) (name string) {
	name = u.prefix + "shown"
	client := func(presence string) *fenced.Lock {
		c, err := rlock.New(admin, rlock.WithPresence(presence), rlock.WithUnlockTimeout(time.Second))
		u.must(err, "New")
		u.atEnd(func() { _ = c.Close() })
		return fenced.NewLock(c, name)
	}
	_, _, err := client("holder").LockLeaseAndGetToken(u.ctx, lasting)
	u.must(err, "acquire")
	ctx, stop := context.WithCancel(u.ctx)
	done := make(chan error, 2)
	u.atEnd(func() { stop(); <-done; <-done })
	for i := range cap(done) {
		l := client(fmt.Sprint("waiter", i))
		go func() {
			held, _, err := l.LockLeaseAndGetToken(ctx, lasting)
			if err == nil {
				err = l.Unlock(held)
			}
			done <- err
		}()
		u.eventually(func() bool { return u.inLine(name) > i }, "waiter %d is in the line", i)
	}
	return name
}

// see looks at locks in each way there is.
func see(u *rightsUse, admin redis.UniversalClient) {
	name := shownLocks(u, admin)
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	all, err := in.Look(u.ctx, name)
	u.must(err, "Look")
	if l := all[0]; l.Holder == nil || l.Holder.By == nil || l.Holder.By.Name != "holder" || l.Waiting != 2 || l.Token == 0 || l.TTL <= 0 {
		u.must(fmt.Errorf("%+v", l), "Look")
	}
	has := func(locks []inspect.Lock) bool {
		return slices.ContainsFunc(locks, func(l inspect.Lock) bool { return l.Name == name && l.Holder != nil })
	}
	clients, err := in.Clients(u.ctx)
	u.must(err, "Clients")
	u.eventually(func() bool {
		known, err := in.Known(u.ctx)
		u.must(err, "Known")
		return has(known)
	}, "the lock is known")
	with, err := in.LookWith(u.ctx, clients, name)
	u.must(err, "LookWith")
	contended, err := in.Contended(u.ctx)
	u.must(err, "Contended")
	names, err := in.ContendedNames(u.ctx)
	u.must(err, "ContendedNames")
	if !has(with) || !has(contended) || !slices.Contains(names, name) {
		u.must(fmt.Errorf("%+v; %+v; %v", with, contended, names), "what is contended")
	}
	found := false
	for l, err := range in.Scan(u.ctx, "account:*", inspect.Pace{Pause: time.Millisecond}) {
		u.must(err, "Scan")
		found = found || l.Name == name
	}
	if !found {
		u.must(errors.New("not found"), "Scan")
	}
	u.eventually(func() bool { // the first one in the line listens there after a moment
		listeners, err := in.Listeners(u.ctx, name)
		u.must(err, "Listeners")
		return listeners[name] > 0
	}, "somebody listens on the lock's own channel")
}

func TestRightsInspect(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	more := s.identity(lists)
	s.exact(lists["inspect"], more, func(u *rightsUse) {
		see(u, u.admin[0])
		seePermits(u, u.admin[0])
		seeReaders(u, u.admin[0])
	})
	s.exact(lists["free"], slices.Concat(lists["inspect"], more), func(u *rightsUse) {
		free(u, u.admin[0])
		freePermit(u, u.admin[0])
		freeReaders(u, u.admin[0])
	})
}

// seeReaders looks at a read-write lock that many read, and at one that one reads, and returns the second one.
func seeReaders(u *rightsUse, rdb redis.UniversalClient) inspect.Lock {
	many, one := u.prefix+"many", u.prefix+"one"
	field := func(i int) string { return fmt.Sprintf("6b1f0d1e-0000-4000-8000-%012d:1", i) }
	key := func(name string) string { return "{" + name + "}:" + field(1) + ":rwlock_timeout:1" }
	for _, name := range []string{many, one} {
		u.must(rdb.HSet(u.ctx, name, "mode", "read", field(1), 1).Err(), "a reader")
		u.must(rdb.Set(u.ctx, key(name), 1, time.Hour).Err(), "its lease")
	}
	for i := 1; ; i++ { // the server's own seed of hashes decides which of the fields HSCAN shows first
		u.must(rdb.HSet(u.ctx, many, field(i+1), 1).Err(), "other readers")
		u.must(rdb.Set(u.ctx, "{"+many+"}:"+field(i+1)+":rwlock_timeout:1", 1, time.Hour).Err(), "their lease")
		if i%600 != 0 {
			continue
		}
		shown, _, err := rdb.HScan(u.ctx, many, 0, "", 40).Result() // of more than Look asks for
		u.must(err, "HSCAN")
		if !slices.Contains(shown, "mode") {
			break
		}
	}
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	all, err := in.Look(u.ctx, many, one)
	u.must(err, "Look")
	for _, l := range all {
		if l.Mode != "read" || l.Holder == nil || l.Readers[0].TTL < time.Minute {
			u.must(fmt.Errorf("%+v", l), "Look")
		}
	}
	return all[1]
}

// freeReaders frees a read-write lock that is read.
func freeReaders(u *rightsUse, admin redis.UniversalClient) {
	l := seeReaders(u, admin)
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	freed, err := in.Free(u.ctx, l)
	u.must(err, "Free")
	if n, err := admin.Exists(u.ctx, l.Name).Result(); !freed || err != nil || n != 0 {
		u.must(fmt.Errorf("freed is %v, and there are %d, %v", freed, n, err), "Free")
	}
}

// free frees a lock that others wait for, and one that nobody waits for.
func free(u *rightsUse, admin redis.UniversalClient) {
	name, alone := shownLocks(u, admin), u.prefix+"alone"
	u.must(admin.HSet(u.ctx, alone, "6b1f0d1e-0000-4000-8000-000000000001:1", 1).Err(), "a lock that nobody waits for")
	u.must(admin.ZAdd(u.ctx, "fencelock_line:{"+name+"}", redis.Z{Score: 1, Member: "gone:1"}).Err(), "a client that is gone")
	in, err := inspect.New(u.rdb())
	u.must(err, "New")
	all, err := in.Look(u.ctx, name, alone)
	u.must(err, "Look")
	for i, want := range []bool{true, true, false} {
		freed, err := in.Free(u.ctx, all[min(i, 1)])
		u.must(err, "Free")
		if freed != want {
			u.must(fmt.Errorf("freed is %v, want %v", freed, want), "Free")
		}
	}
	u.eventually(func() bool { return u.inLine(name) == 0 }, "the waiters have got the lock")
}

func TestRightsInspectCluster(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s, c := onCluster(t)
	if !c.Sharded() {
		s.withoutIt(t, "the list is for clusters with sharded channels", "6.")
	}
	s.exact(lists["inspect-cluster"], s.identity(lists), func(u *rightsUse) {
		see(u, c.Client())
		seePermits(u, c.Client())
		seeReaders(u, c.Client())
	})
	list := slices.Clone(lists["free"])
	list[slices.Index(list, "+publish")] = "+spublish"
	s.exact(list, slices.Concat(lists["inspect-cluster"], s.identity(lists)), func(u *rightsUse) {
		free(u, c.Client())
		freePermit(u, c.Client())
		freeReaders(u, c.Client())
	})
}

// useGuard does with a guard what it can do.
func useGuard(u *rightsUse) {
	g, err := redisguard.New(u.rdb(), redisguard.WithExpiry(time.Hour))
	u.must(err, "New")
	resource, key := u.prefix, "balance:{"+u.prefix+"}"
	w := g.Writer(resource, 7)
	u.must(w.Do(u.ctx, "INCRBY", key, 10).Err(), "Do")
	u.must(w.Eval(u.ctx, "return redis.call('INCRBY', KEYS[1], ARGV[1])", []string{key}, 10).Err(), "Eval")
	for range 2 {
		balance, err := w.Once("payment").Do(u.ctx, "INCRBY", key, 10).Int()
		u.must(err, "Once")
		if balance != 30 {
			u.must(fmt.Errorf("the balance is %d", balance), "Once")
		}
	}
	if err := g.Writer(resource, 6).Do(u.ctx, "INCRBY", key, 10).Err(); !errors.Is(err, guard.ErrStale) {
		u.must(fmt.Errorf("an older token: %w", err), "Do")
	}
	seen, err := g.Seen(u.ctx, resource)
	u.must(err, "Seen")
	if seen != 7 {
		u.must(fmt.Errorf("%d", seen), "Seen")
	}
}

func TestRightsGuard(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	s := onServer(t)
	s.exact(lists["guard"], s.identity(lists), useGuard)
	c, _ := onCluster(t)
	c.exact(lists["guard-cluster"], slices.Concat(lists["guard"], c.identity(lists)), useGuard)
}

// quorumLease is short, because a server counts only when it has been up for longer.
const quorumLease = 5 * time.Second

func TestRightsQuorum(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	var servers []*redistest.Server
	for range 3 {
		servers = append(servers, redistest.Real(t, "--appendonly", "yes", "--appendfsync", "always"))
	}
	s := newRightsSite(t, nil, servers...)
	for _, server := range servers {
		redistest.Eventually(t, rightsBound, func() bool {
			up, err := strconv.Atoi(server.Info("server", "uptime_in_seconds"))
			return err == nil && time.Duration(up)*time.Second > quorumLease+time.Second
		}, "the server is old enough to count")
	}
	s.exact(lists["quorum"], s.identity(lists), useQuorum)
}

// useQuorum does with the locks of a quorum what they can do.
func useQuorum(u *rightsUse) {
	renewed := make(chan error, 1000)
	trace := rlock.WithTrace(&locktrace.Trace{RenewalDone: func(e locktrace.RenewalDone) { renewed <- e.Err }})
	client := func(opts ...rlock.Option) *rlock.Client {
		opts = append([]rlock.Option{
			rlock.WithLease(quorumLease), rlock.WithLogger(u.log.Logger()), rlock.WithUnlockTimeout(u.patience), rlock.WithPatience(rightsBound),
		}, opts...)
		var nodes []redis.UniversalClient
		for _, server := range u.nodes {
			rdb := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: rightsUser, Password: rightsPass})
			u.atEnd(func() { _ = rdb.Close() })
			nodes = append(nodes, rdb)
		}
		c, err := quorum.New(nodes, append(opts, quorum.WithNodeTimeout(quorumLease/4))...)
		u.must(err, "New")
		u.atEnd(func() { _ = c.Close() })
		return c
	}
	mark := func(appendfsync string, there int64) { // the key by which a server shows that it keeps its data
		for _, admin := range u.admin {
			u.must(admin.ConfigSet(u.ctx, "appendfsync", appendfsync).Err(), "CONFIG SET")
		}
		l := fenced.NewLock(client(), u.prefix+"mark")
		for i, admin := range u.admin {
			u.eventually(func() bool { // the client asks a node when its answer counts, and a majority is enough for a call
				u.must(l.Do(u.ctx, func(context.Context, int64) error { return nil }), "Do")
				return admin.Exists(u.ctx, "fencelock:quorum").Val() == there
			}, "appendfsync %s: node %d has the key for a server that keeps its data: %d", appendfsync, i, there)
		}
	}
	mark("always", 1)
	mark("everysec", 0)

	pings, leaves := u.called("ping"), u.called("unsubscribe")
	holder, waiter := client(trace), client()
	var held [4]context.Context // one more than nodes: the waiter listens for two of them on one node, and then for one
	lock := func(c *rlock.Client, i int) *fenced.Lock { return fenced.NewLock(c, fmt.Sprint(u.prefix, "held", i)) }
	done := make(chan error, len(held))
	for i := range held {
		outer, token, err := lock(holder, i).LockAndGetToken(u.ctx)
		u.must(err, "acquire")
		inner, again, err := lock(holder, i).LockAndGetToken(outer)
		u.must(err, "re-entry")
		if again <= token {
			u.must(fmt.Errorf("%d after %d", again, token), "tokens")
		}
		count, err := lock(holder, i).HoldCount(inner)
		u.must(err, "HoldCount")
		if count != 2 {
			u.must(fmt.Errorf("%d", count), "HoldCount")
		}
		u.must(lock(holder, i).Unlock(inner), "inner unlock")
		held[i] = outer
		go func() {
			mine, _, err := lock(waiter, i).LockAndGetToken(u.ctx)
			if err == nil {
				err = lock(waiter, i).Unlock(mine)
			}
			done <- err
		}()
	}
	u.must(await(u, renewed, "a renewal"), "the renewal")
	u.eventually(func() bool { return u.called("ping") > pings }, "the waiter's client asks whether the connection is alive")
	left := len(held)
	for left > 1 && u.called("unsubscribe") == leaves {
		left--
		u.must(lock(holder, left).Unlock(held[left]), "unlock")
		u.must(await(u, done, "the waiter gets the lock"), "the waiter")
		for began := time.Now(); time.Since(began) < unsubscribes && u.called("unsubscribe") == leaves; {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if u.called("unsubscribe") == leaves {
		u.must(errors.New("it listens for all that it has waited for"), "the waiter's client")
	}
	for i := range left {
		freed, err := lock(client(), i).ForceUnlock(u.ctx)
		u.must(err, "ForceUnlock")
		if !freed {
			u.must(errors.New("nothing was freed"), "ForceUnlock")
		}
		u.must(await(u, done, "another waiter gets the lock"), "another waiter")
	}
}

// unsubscribes is longer than a client stays subscribed for callers that come back.
const unsubscribes = 4 * time.Second
