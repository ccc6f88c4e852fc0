package main

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// lease is how long a lock outlives a dead holder, for contenders that must be told. No round comes near it.
const lease = 30 * time.Second

// Contenders that others are compared with, or that are compared.
const (
	baseline = "rueidislock" // ratios are to it, where nothing else is said: see mode.baseline
	ours     = "fencelock"
	tuned    = "rueidislock-tuned"
	bound    = "sync.Mutex" // no contender, but what a lock would be that costs nothing: where sections take all the time
)

// A contender is one way of locking.
type contender struct {
	name string
	note string // one line for the report

	can   func(mode) bool // whether it can take part in a mode; nil: in all
	usual string          // the modes it takes part in unless -only asks for it, in the words of -modes; "" for all

	// dial makes one client of it, with connections of its own.
	dial dialFunc

	// kinds make one of what it has beside locks, by kind; nil where run replaces the measuring.
	kinds map[string]dialFunc

	// quorum makes one of the lock that it has on several servers; nil: it has none.
	quorum func(addrs []string) (*client, error)

	// run replaces the measuring in this process, for a contender that is a program of its own (Redisson on the JVM):
	// it puts the load of the round on the server, and fills in what it can see. dial is not used then.
	run func(ctx context.Context, r round) (result, error)

	// server is what it locks with instead of Redis; nil: it locks with Redis.
	server *ownServer

	// prepare makes it ready, once, for rounds like this one, and returns the versions it consists of. On an error the run
	// goes on without the contender; the error is for the report, and progress for what only the user needs to see.
	prepare func(ctx context.Context, r round, progress io.Writer) (versions map[string]string, err error)
	finish  func()
}

// What contenders can take part in.
func severalServers(m mode) bool { return m.nodes > 0 }
func besideOthers(m mode) bool   { return m.others }
func permitsOnly(m mode) bool    { return m.kind == semaphore }

type dialFunc func(addr string) (*client, error)

// A client is what a process using the contender would have one of.
type client struct {
	lock  func(key string) lockFunc // may be called before the load starts; it is not measured
	read  func(key string) lockFunc // of a read-write lock; lock writes then
	close func()
}

// A lockFunc waits for the lock of one key. The token is 0 for a contender without tokens.
type lockFunc func(ctx context.Context) (token int64, unlock func() error, err error)

// Words of -modes for what not all take part in. Rounds are what a run's time goes to.
const (
	plainOwn = "own/g=1,own/g=64,own/g=1024"
	emptyOne = "one/g=4/empty,one/g=64/empty,one/g=512/empty"
)

// contenders are in the order of the report, and of the rounds: what is compared is measured soon after each other, because
// the machine is not the same all the time.
var contenders = []contender{
	{name: ours, note: "fenced.Lock, fenced.Semaphore and fenced.RWLock, default options; on several servers package quorum with a lease of 2 s",
		dial: dialFenced, quorum: dialQuorum, kinds: map[string]dialFunc{semaphore: dialSemaphore, readWrite: dialReadWrite}},
	{name: "fencelock-local", note: "fenced.Lock, WithLocalHandoffs(256)", usual: "one,quorum/n=4x16", dial: dialLocal, quorum: dialLocalQuorum},
	{name: baseline, note: "rueidislock as it comes, but KeyMajority 1, as one server needs", dial: dialRueidislock},
	{name: "fencelock-unfenced", note: "rlock.Lock, default options", usual: plainOwn + "," + emptyOne, dial: dialUnfenced},
	{name: tuned, note: "rueidislock with NoLoopTracking, MaxFlushDelay 20 us and TryNextAfter 1 s",
		usual: "own," + emptyOne + ",hot", dial: dialRueidislockTuned},
	{name: "redislock", note: "bsm/redislock; tries again every 10 ms",
		usual: plainOwn + "," + emptyOne + ",one/g=64,hot,slow,clients", dial: dialRedislock},
	{name: "redsync", note: "go-redsync/redsync, default options; begins again after its 32 tries",
		usual: plainOwn + "," + emptyOne + ",hot,clients,quorum", dial: dialRedsync, quorum: dialRedsyncQuorum},
	{name: "redsync-failfast", note: "the same with WithFailFast: a majority of the servers is waited for",
		can: severalServers, quorum: dialRedsyncFailFast},
	{name: "redisson", note: "Redisson's RFencedLock and RReadWriteLock on the JVM, default options, and RPermitExpirableSemaphore, a lease of 30 s; a platform thread for each goroutine, all clients in one JVM",
		usual: plainOwn + "," + emptyOne + ",one/g=64,slow,clients/n=4/,clients/n=16/,clients/n=64",
		kinds: map[string]dialFunc{semaphore: nil, readWrite: nil}, prepare: redisson.prepare, run: redisson.run, finish: redisson.stop},
	{name: "etcd", note: "etcd's concurrency.Mutex, a session for each client; one member, in a process of its own, settings as they come",
		can: besideOthers, dial: etcd.dialEtcd, server: &etcd, prepare: etcd.prepare, finish: etcd.stop},
	{name: "etcd-nosync", note: "the same with unsafe-no-fsync: the member does not wait for its disk",
		can: besideOthers, dial: etcdNoSync.dialEtcd, server: &etcdNoSync, prepare: etcdNoSync.prepare, finish: etcdNoSync.stop},
	{name: "postgres", note: "pg_advisory_lock and pg_advisory_unlock, over a connection for each holder, which waits on it too; one server, settings as they come but max_connections",
		can: besideOthers, dial: postgres.dialPostgres, server: &postgres, prepare: postgres.prepare, finish: postgres.stop},
	{name: bound, note: "a mutex of the process, without Redis: what is left when a lock costs nothing",
		usual: "one/g=64/1ms,one/g=512/1ms", dial: dialMutex},
	{name: "sorted-set", note: "a script that enters permits into a sorted set, as Go libraries have it; tries again every 10 ms",
		can: permitsOnly, kinds: map[string]dialFunc{semaphore: dialSortedSet}},
}

// takesPart tells whether there are rounds of it in the mode; asked: -only names contenders.
func (c contender) takesPart(m mode, asked bool) bool {
	if c.can != nil && !c.can(m) || m.nodes > 0 && c.quorum == nil || !c.has(m) {
		return false
	}
	switch {
	case asked || m.kind != "":
		return true
	case m.others:
		return c.name == ours || c.server != nil
	case m.alone() && c.name != ours:
		return false
	case c.usual == "":
		return true
	}
	usual, err := selected(modes(), mode.name, c.usual)
	if err != nil {
		panic(c.name + " usually takes part in modes that there are not: " + err.Error())
	}
	return slices.Contains(usual, m)
}

// open returns a go-redis client with the library's defaults.
func open(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

// openAll opens a client for each address.
func openAll(addrs []string) (rdbs []redis.UniversalClient, closeAll func()) {
	for _, addr := range addrs {
		rdbs = append(rdbs, open(addr))
	}
	return rdbs, func() {
		for _, rdb := range rdbs {
			_ = rdb.Close()
		}
	}
}
