package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// The topologies that a scenario can have for its locks; else they are on one server.
const (
	sentinels = "sentinels" // a master, two replicas, three Sentinels
	cluster   = "cluster"   // three masters, a replica each; nobody takes over by itself for a stall of the machine
	majority  = "majority"  // five servers that know nothing of each other: package quorum
	failing   = "failing"   // the same as cluster, and a replica takes over from a master that is away for a second
)

// What there is in a quorum where many want one lock.
const (
	hotLock      = "hot"
	hotProcesses = 24              // with a client each, that want this lock alone
	hotWait      = 5 * time.Second // of most of their calls
	durable      = 1               // so many of the five servers keep everything when they are killed
)

// The users of the servers of a quorum who lack the right to the line of a lock: to the commands, and to the keys and channels.
const (
	noCommands   = "no-commands"
	noKeys       = "no-keys"
	userPassword = "secret"
)

var lineless = []string{
	"--user", noCommands, "on", ">" + userPassword, "~*", "&*", "+@all", "-@sortedset",
	"--user", noKeys, "on", ">" + userPassword, "~" + hotLock, "~redisson_lock_token:{" + hotLock + "}", "~fencelock:quorum",
	"&redisson_lock__channel:{" + hotLock + "}*", "+@all",
}

// enterHot starts the processes that want hotLock alone. Of six, one has each of the users without a right.
func (s *stage) enterHot(o orders) {
	o.Locks, o.Clients, o.Line, o.Wait = []string{hotLock}, 1, true, hotWait
	for i := range hotProcesses {
		o.Process = len(s.workers)
		o.User = map[int]string{0: noCommands, 1: noKeys}[i%6]
		s.enter(o)
	}
}

// spread starts the servers of a topology.
func (s *stage) spread(topology string) {
	switch topology {
	case sentinels:
		starting(func() { s.watched = redistest.Watched(s, 2) })
		s.locks = s.watched.Nodes[0]
	case cluster:
		starting(func() { s.clustered = redistest.Clustered(s, 3, 1, "--cluster-node-timeout", "30000") })
		s.locks = s.clustered.Nodes[0]
	case majority:
		for i := range 5 {
			args := slices.Clone(lineless)
			if i < durable {
				args = append(args, always...)
			}
			starting(func() { s.nodes = append(s.nodes, redistest.Real(s, args...)) })
		}
		s.locks = s.nodes[0]
	case failing:
		starting(func() { s.clustered = redistest.Clustered(s, 3, 1) })
		s.locks = s.clustered.Nodes[0]
	}
}

// masters are the servers that have locks now.
func (s *stage) masters() []*redistest.Server {
	switch {
	case s.watched != nil:
		s.watched.Settle()
		s.locks = s.watched.Master()
	case s.clustered != nil:
		s.clustered.Settle()
		return s.clustered.Masters()
	case len(s.nodes) > 0:
		return s.nodes
	}
	return []*redistest.Server{s.locks}
}

// addrs tells a worker how to find the servers, where it is not by one link.
func (s *stage) addrs(o *orders) {
	switch {
	case s.watched != nil:
		for _, server := range s.watched.Sentinels {
			o.Sentinels = append(o.Sentinels, server.Addr())
		}
	case s.clustered != nil:
		o.Nodes = s.clustered.Addrs()
	}
}

// dial connects a worker to the servers of the locks.
func (o orders) dial() redis.UniversalClient {
	switch {
	case len(o.Sentinels) > 0:
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: o.Sentinels, PoolSize: poolSize,
			DialTimeout: answerTimeout, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout})
	case len(o.Nodes) > 0:
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: o.Nodes, PoolSize: poolSize,
			DialTimeout: answerTimeout, ReadTimeout: answerTimeout, WriteTimeout: answerTimeout})
	}
	return dial(o.Addr)
}

// topologyFaults are those of several servers. While one is mended the next one waits: each takes seconds.
var topologyFaults = []fault{
	{"master-kill", "the master is killed (SIGKILL), and its replicas may lack its last writes; when the Sentinels have promoted one it is started again", 0, 1000, true, plain(func(s *stage) func() {
		old := s.watched.Master()
		mend := s.detach(slices.DeleteFunc(slices.Clone(s.watched.Nodes), func(server *redistest.Server) bool { return server == old })...)
		old.Kill()
		return func() {
			s.watched.AwaitMaster(old)
			mend()
			starting(old.Restart)
			s.watched.Settle()
		}
	})},
	{"master-freeze", "the master stands still (SIGSTOP), for less or more than it takes the Sentinels to promote a replica", 300, 4000, true, plain(func(s *stage) func() {
		old := s.watched.Master()
		old.Freeze()
		return func() {
			old.Thaw()
			s.watched.Settle()
		}
	})},
	{"sentinel-failover", "SENTINEL FAILOVER", 0, 0, true, once(func(s *stage) {
		s.watched.Failover()
		s.watched.Settle()
	})},
	{"node-restart", "a node of the quorum is killed (SIGKILL), and starts with nothing, or with everything if it is the one with an AOF (always)", 20, 800, true, plain(func(s *stage) func() {
		n := s.node()
		n.Kill()
		return func() { starting(n.Restart) }
	})},
	{"node-flush", "FLUSHALL on a node of the quorum", 0, 0, true, once(func(s *stage) {
		rdb := s.direct(s.node())
		defer func() { _ = rdb.Close() }()
		s.must(rdb.FlushAll(context.Background()).Err())
	})},
	{"node-freeze", "a node of the quorum stands still (SIGSTOP)", 300, 2500, true, plain(func(s *stage) func() {
		n := s.node()
		n.Freeze()
		return n.Thaw
	})},
	{"node-far", "a node of the quorum is 30 ms away from all client processes, or from about half of them, so that not all ask the same node first", 500, 3000, true, plain(func(s *stage) func() {
		i, all, away := slices.Index(s.nodes, s.node()), s.rng.IntN(2) == 0, s.living()
		away = slices.DeleteFunc(away, func(*worker) bool { return s.rng.IntN(2) == 0 && !all })
		delay := func(d time.Duration) {
			for _, w := range away {
				w.ways[i].delay.Store(int64(d))
			}
		}
		delay(30 * time.Millisecond)
		return func() { delay(0) }
	})},
	{"line-delete", "the key of the line of clients that wait for the lock that most want is deleted on a node of the quorum", 0, 0, true, once(func(s *stage) {
		rdb := s.direct(s.node())
		defer func() { _ = rdb.Close() }()
		s.must(rdb.Del(context.Background(), "fencelock_line:{"+hotLock+"}").Err())
	})},
	{"node-cut", "the links of a client process to two nodes of the quorum are cut, and refuse connections", 300, 4000, false, plain(func(s *stage) func() {
		ways := s.someone().ways
		first := s.rng.IntN(len(ways))
		for _, i := range []int{first, (first + 1 + s.rng.IntN(len(ways)-1)) % len(ways)} {
			ways[i].refuses.Store(true)
			ways[i].cut(every)
		}
		return func() {
			for _, way := range ways {
				way.refuses.Store(false)
			}
		}
	})},
	{"node-kill", "a master of the cluster is killed (SIGKILL), and its replica may lack its last writes; when that has taken over it is started again", 0, 1000, true, plain(func(s *stage) func() {
		old := s.lockedMaster()
		replica := s.clustered.ReplicaOf(old)
		mend := s.detach(replica)
		old.Kill()
		return func() {
			s.clustered.AwaitMaster(replica)
			mend()
			starting(old.Restart)
			s.clustered.Settle()
		}
	})},
	{"takeover", "CLUSTER FAILOVER: a replica takes over from its master, without loss", 0, 0, true, once(func(s *stage) {
		s.clustered.Failover(s.clustered.ReplicaOf(s.lockedMaster()))
	})},
	{"reshard", "the slot of a lock moves to another master, with some time between the steps", 0, 0, true, once(func(s *stage) {
		locks := s.someone().Locks
		name := strings.Replace(locks[s.rng.IntN(len(locks))], anySlot, slotBase+"0", 1) // the first slot of a semaphore
		slot, from := s.clustered.SlotOf(name), s.clustered.MasterOf(name)
		others := slices.DeleteFunc(s.clustered.Masters(), func(server *redistest.Server) bool { return server == from })
		to := others[s.rng.IntN(len(others))]
		s.clustered.BeginMove(slot, from, to)
		time.Sleep(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		if s.rng.IntN(2) == 0 { // the lock without its counter
			s.clustered.MoveKeys(slot, from, to, name)
			time.Sleep(time.Duration(s.rng.IntN(300)) * time.Millisecond)
		}
		s.clustered.MoveKeys(slot, from, to)
		s.clustered.EndMove(slot, from, to)
	})},
}

// detach keeps the last writes from the replicas, or does nothing, by the seed. It returns what ends that.
func (s *stage) detach(replicas ...*redistest.Server) (mend func()) {
	if s.rng.IntN(3) == 0 {
		return func() {}
	}
	for _, replica := range replicas {
		replica.Detach()
	}
	time.Sleep(time.Duration(s.rng.IntN(200)) * time.Millisecond)
	return func() {
		for _, replica := range replicas {
			replica.Attach()
		}
	}
}

// node is one of the quorum's, by the seed: every second time the one that most clients listen to that wait for hotLock, which is the first
// that they ask.
func (s *stage) node() *redistest.Server {
	n, home := s.nodes[s.rng.IntN(len(s.nodes))], s.rng.IntN(2) == 0
	if !home {
		return n
	}
	most := 0
	for _, server := range s.nodes {
		if waiting := s.waiting(server); waiting > most {
			n, most = server, waiting
		}
	}
	return n
}

// waiting is how many channels of hotLock there are on the server.
func (s *stage) waiting(server *redistest.Server) int {
	rdb := s.direct(server)
	defer func() { _ = rdb.Close() }()
	return len(rdb.PubSubChannels(context.Background(), "*{"+hotLock+"}*").Val())
}

// lockedMaster is the one that has a lock, by the seed.
func (s *stage) lockedMaster() *redistest.Server {
	locks := s.workers[0].Locks
	return s.clustered.MasterOf(locks[s.rng.IntN(len(locks))])
}
