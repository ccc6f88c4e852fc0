package main

import (
	"slices"
	"time"
)

// A promise is what is checked of a scenario.
type promise struct {
	exclusive bool // Redis keeps its data: invariant 1, as far as clients can
	tokens    bool // they grow; without data, because of WithClockFloor
	forced    bool // a hold whose key was deleted ends within a lease
	ghosts    bool // leases are so long that a lock that nobody knows of is seen, unless it is released
	wakes     bool // by a message: half of the waiters at least, soon
	line      bool // the clients in it get their turns, and a free lock is taken soon: see line.go
}

// A scenario is a kind of round.
type scenario struct {
	name     string
	text     string
	faults   string // some of them, by the seed, one after the other and at the same time
	args     []string
	floor    bool // locks have WithClockFloor
	replica  bool
	topology string        // of the locks' servers; "": one
	locks    int           // 0: two
	lease    time.Duration // of all holds; 0: one second and less
	wait     time.Duration // of all calls; 0: two seconds and less
	load     time.Duration // with faults, where it has to be longer
	calm     time.Duration // without, where it has to be longer
	poll     time.Duration // of all clients; 0: pollInterval
	rest     time.Duration // of all clients after a hold; 0: a moment
	mute     bool          // no message arrives anywhere
	late     time.Duration // by which replies to one process are late
	stays    int           // of 100 holds, how many stay for more than their lease, if it is not renewed
	long     bool          // and those that are renewed stay for many leases
	churn    bool          // nothing but locks and unlocks, of 1,000 locks, that nobody writes down: for what is left behind
	single   bool          // one client in each process, so that every handoff takes a message
	line     bool          // 60 processes with a client each, and one of Redisson's: see line.go
	hot      bool          // 24 processes more, with a client each, that want one lock: see topology.go
	permits  bool          // 6 processes more, with 4 clients each, that want permits of a semaphore: see permits.go
	pages    bool          // the clients want a read-write lock: see readwrite.go
	promises promise
}

var (
	keeps  = promise{exclusive: true, tokens: true}
	always = []string{"--appendonly", "yes", "--appendfsync", "always"}
)

// scenarios are those of a run, in the order of the rounds.
var scenarios = []scenario{
	{name: "calm", text: "no faults", single: true, promises: keeps},
	{name: "wake", text: "no faults; leases, waits and polls are long: only a message can wake a waiter", single: true, locks: 1, lease: time.Minute, wait: time.Minute,
		poll: 5 * time.Second, rest: 400 * time.Millisecond, permits: true, promises: promise{exclusive: true, tokens: true, wakes: true}},
	{name: "freeze", text: "the server stands still", faults: "freeze", promises: keeps},
	{name: "pause", text: "client processes stand still", faults: "pause", stays: 40, locks: 6, promises: keeps},
	{name: "replies", text: "replies are lost or late", faults: "lose-replies lose-replies delay", stays: 30, locks: 6, promises: keeps},
	{name: "late", text: "all replies to one process are late", late: 200 * time.Millisecond, stays: 40, locks: 6, promises: keeps},
	{name: "ghosts", text: "replies are lost, and leases are long", faults: "lose-replies lose-taken lose-taken freeze cut", lease: time.Minute, wait: 400 * time.Millisecond, calm: 10 * time.Second,
		permits: true, promises: promise{exclusive: true, tokens: true, ghosts: true}},
	{name: "thaw", text: "the server stands still for longer than the leases, callers give up meanwhile, and what lay in its sockets is released", faults: "stand-still",
		lease: 10 * time.Second, wait: 400 * time.Millisecond, load: 12800 * time.Millisecond, calm: 10 * time.Second,
		promises: promise{exclusive: true, tokens: true, ghosts: true}},
	{name: "silence", text: "all messages are lost, and leases and waits are long: only the poll can wake a waiter", mute: true, lease: time.Minute, wait: time.Minute,
		poll: 50 * time.Millisecond, rest: 8 * time.Second, promises: keeps},
	{name: "links", text: "links are cut, connections closed, messages lost", faults: "cut kill-pubsub kill-normal lose-messages", promises: keeps},
	{name: "restart", text: "the server is killed, and has everything in its AOF (always)", faults: "kill scripts", args: always, promises: keeps},
	{name: "line", text: "60 processes and a JVM want one lock; clients are killed and stopped while they are called, messages lost", line: true, single: true, locks: 1,
		faults: "kill-called stop-called stop-called lose-call kill-client pause lose-messages kill-pubsub", lease: lineLease, wait: 10 * time.Second, poll: time.Second,
		load: 8 * time.Second, calm: 8 * time.Second, promises: promise{exclusive: true, tokens: true, line: true}},
	{name: "full", text: "no memory, no connections", faults: "memory connections", promises: keeps},
	{name: "clients", text: "client processes are killed", faults: "kill-client pause", promises: keeps},
	{name: "storage", text: "the storage's replies are lost, client processes stand still", faults: "store pause", promises: keeps},
	{name: "clocks", text: "clients' clocks jump", faults: "clock clock delay", stays: 40, locks: 6, promises: keeps},
	{name: "mixed", text: "everything that keeps Redis's data", promises: keeps, args: always,
		faults: "freeze kill scripts kill-pubsub kill-normal pause kill-client cut delay lose-replies lose-messages store memory connections clock"},
	{name: "permits", text: "36 clients want five permits, 12 of them locks too; everything that keeps Redis's data", permits: true, promises: keeps, args: always,
		faults: "freeze kill scripts kill-pubsub kill-normal pause kill-client stop-called kill-called lose-call lose-taken cut delay lose-replies lose-messages store memory connections",
		calm:   8 * time.Second},
	{name: "readwrite", text: "24 clients read and write; everything that keeps Redis's data", pages: true, stays: 10, promises: keeps, args: always,
		faults: "freeze kill scripts kill-pubsub kill-normal pause kill-client lose-taken cut delay lose-replies lose-messages store memory connections clock",
		calm:   8 * time.Second},
	{name: "everysec", text: "the server is killed, its AOF is written every second", faults: "kill freeze", floor: true,
		args: []string{"--appendonly", "yes", "--appendfsync", "everysec"}, promises: promise{tokens: true}},
	{name: "loss", text: "the server is killed, and has nothing left", faults: "kill flush pause", floor: true, promises: promise{tokens: true}},
	{name: "failover", text: "a replica is promoted that lacks the last writes", faults: "promote pause lose-replies", floor: true, replica: true,
		promises: promise{tokens: true}},
	{name: "sentinel", text: "Sentinels promote a replica: the master is killed, stands still, or they are told to", topology: sentinels, floor: true, permits: true,
		faults: "master-kill master-freeze sentinel-failover pause", load: 15 * time.Second, promises: promise{tokens: true}},
	{name: "cluster", text: "the cluster's slots move, and replicas take over without loss", topology: cluster, locks: 6, permits: true,
		faults: "takeover reshard reshard reshard pause", load: 10 * time.Second, promises: keeps},
	{name: "cluster-loss", text: "the cluster's masters are killed, slots move", topology: failing, floor: true, locks: 6,
		faults: "node-kill node-kill takeover reshard", load: 15 * time.Second, promises: promise{tokens: true}},
	{name: "quorum", text: "of five servers some are killed and start again, stand still, are far away, or are cut off from some clients; 24 clients want one lock, and are stopped and killed", topology: majority, locks: 6, hot: true,
		faults: "node-restart node-restart node-restart node-restart node-freeze node-far node-cut node-cut node-cut node-cut line-delete pause stop-called kill-client kill-called lose-call",
		load:   15 * time.Second, promises: keeps},
	{name: "quorum-loss", text: "of five servers one after the other loses everything while it runs", topology: majority, locks: 6, hot: true,
		faults: "node-flush node-flush node-restart node-far node-cut node-cut pause kill-client kill-called", load: 15 * time.Second, promises: promise{tokens: true}},
	{name: "forgotten", text: "the server has nothing left, and tokens begin again: the guard alone protects", faults: "kill flush pause"},
	{name: "server-clock", text: "the server's clock jumps", faults: "server-clock pause", floor: true, promises: promise{tokens: true}},
	{name: "churn", text: "as many locks and unlocks as there can be", churn: true, promises: promise{exclusive: true}},
	{name: "deleted", text: "keys are deleted by hand", faults: "delete", stays: 40, long: true, promises: promise{tokens: true, forced: true}},
}

func scenarioCalled(name string) (scenario, bool) {
	i := slices.IndexFunc(scenarios, func(sc scenario) bool { return sc.name == name })
	if i < 0 {
		return scenario{}, false
	}
	return scenarios[i], true
}
