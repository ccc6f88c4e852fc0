package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// processes are the workers of a round, each with so many clients, that want the first of these locks.
const (
	processes = 3
	clients   = 4
)

var lockNames = []string{"a", "b", "c", "d", "e", "f"}

// A plan is how long the parts of a round are, and what its workers run.
type plan struct {
	program string
	bug     int           // that is on in the program; 0 for none
	classes string        // of the JVM with Redisson; "": without
	load    time.Duration // with faults
	calm    time.Duration // after them

	// enough, if it is there, is asked a few times a second about what has been so far: true ends the round.
	enough func(trial) bool
}

// play plays one round. The error is of the machine, or of ctx; nothing is learned from such a round.
func play(ctx context.Context, sc scenario, seed uint64, p plan) (t trial, err error) {
	s := &stage{program: p.program, bug: p.bug, rng: rand.New(rand.NewPCG(seed, 0)), ops: make(map[int64]op)}
	s.dir, err = os.MkdirTemp("", "fencelock-verify")
	if err != nil {
		return t, err
	}
	defer s.strike()
	defer func() {
		if r := recover(); r != nil {
			said, is := r.(stageError)
			if !is {
				panic(r)
			}
			err = fmt.Errorf("%s, seed %d: %w", sc.name, seed, said)
		}
	}()
	stall := s.stallMeter()
	s.build(sc, seed, p.classes)
	s.trial = trial{Scenario: sc.name, Seed: seed, promise: sc.promises, poll: cmp.Or(sc.poll, pollInterval), Versions: s.version(), Calm: now()}
	if sc.faults != "" {
		s.trial.Calm = forever
	}
	round, end := context.WithCancel(ctx)
	defer end()
	if p.enough != nil {
		var watching sync.WaitGroup
		defer watching.Wait()
		defer end()
		watching.Go(func() {
			for ; round.Err() == nil; sleep(round, 250*time.Millisecond) {
				if p.enough(s.soFar(stall)) {
					end()
				}
			}
		})
	}
	var watch *lineWatch
	if sc.line {
		s.trial.Line = &seen{Redisson: s.java != nil}
		watch = s.watchLine(round, lockNames[0])
	}
	faults := s.play(round, sc, max(p.load, sc.load))
	s.note(func(t *trial) {
		t.Faults = faults
		if sc.faults != "" {
			t.Calm = now()
		}
	})
	if sc.line {
		s.come()
		watch.measure(round, max(p.calm, sc.calm))
	} else {
		sleep(round, max(p.calm, sc.calm))
	}
	if round.Err() == nil {
		s.note(func(t *trial) { t.End = now() })
		left, workers := s.settle(stall)
		s.note(func(t *trial) { t.Left = left })
		if p.enough == nil || !p.enough(s.soFar(stall)) {
			more, churned := s.close(workers, stall)
			s.note(func(t *trial) { t.Left, t.churned = append(t.Left, more...), churned })
		}
	}
	return s.soFar(stall), ctx.Err()
}

func (s *stage) note(what func(*trial)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.trial)
}

// soFar is the trial as it is known by now. What a process says takes a moment to get here.
func (s *stage) soFar(stall func() time.Duration) trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trial
	t.Stall = stall()
	t.Killed = maps.Clone(t.Killed)
	if t.Line != nil {
		line := *t.Line
		t.Line = &line
	}
	if t.End == 0 {
		t.End = now() - int64(500*time.Millisecond+t.Stall)
	}
	t.Ops = slices.SortedFunc(maps.Values(s.ops), func(a, b op) int { return cmp.Compare(a.Call, b.Call) })
	return t
}

// build starts the servers and the workers.
func (s *stage) build(sc scenario, seed uint64, classes string) {
	starting(func() { s.store = redistest.Real(s) })
	start := func() { s.locks = redistest.Real(s, sc.args...) }
	if sc.topology != "" {
		s.spread(sc.topology)
	} else if sc.has("server-clock") {
		s.clock = s.newServerClock()
		s.clock.start(start)
	} else {
		starting(start)
	}
	if sc.replica {
		starting(func() { s.replica = redistest.Real(s) })
		host, port, _ := strings.Cut(s.locks.Addr(), ":")
		rdb := s.direct(s.replica)
		s.must(rdb.ReplicaOf(context.Background(), host, port).Err())
		redistest.Eventually(s, 20*time.Second, func() bool {
			return strings.Contains(rdb.Info(context.Background(), "replication").Val(), "master_link_status:up")
		}, "the replica follows")
	}
	o := orders{Seed: seed, Locks: lockNames[:cmp.Or(sc.locks, 2)], Clients: max(clients, sc.locks), Floor: sc.floor, Stable: s.rng.IntN(4) == 0}
	if sc.hot {
		o.Locks = append(slices.Clone(o.Locks), hotLock)
	}
	if sc.pages {
		o.Locks = pages
	}
	if sc.permits && !sc.single { // a single client is to come back to its lock
		o.Locks = append(slices.Clone(o.Locks), anySlot)
	}
	o.Lease, o.Wait, o.Poll, o.Rest = sc.lease, sc.wait, cmp.Or(sc.poll, pollInterval), sc.rest
	o.Stays, o.Long, o.Churn = max(sc.stays, 4), sc.long, sc.churn
	if sc.single {
		o.Clients = 1
	}
	s.addrs(&o)
	n := processes
	if sc.line {
		o.Line, n = true, lineProcesses
		if classes != "" {
			s.java = s.startRedisson(classes)
			go s.java.run(o.Locks[0], time.Second, o.Lease)
		}
	}
	for i := range n {
		o.Process = i
		s.enter(o)
	}
	if sc.hot {
		s.enterHot(o)
	}
	if sc.permits {
		s.enterPermits(o)
	}
	s.silence(sc.mute)
	s.workers[0].link.delay.Store(int64(sc.late))
}

func (s *stage) version() string {
	info := s.direct(s.locks).InfoMap(context.Background(), "server").Val()["Server"]
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + info["redis_version"]
}

// A pending fault is one that has to be mended.
type pending struct {
	event
	fault
	at   int64
	mend func()
}

// play breaks things for so long, up to two at once, and mends them.
func (s *stage) play(ctx context.Context, sc scenario, load time.Duration) (events []event) {
	all := faultsCalled(sc.faults)
	end := now() + int64(load)
	var broken []pending
	mend := func(p pending) {
		if p.mend != nil {
			p.mend()
		}
		p.To = now()
		events = append(events, p.event)
	}
	next := now() + int64(300*time.Millisecond)
	for now() < end && ctx.Err() == nil {
		sleep(ctx, 5*time.Millisecond)
		broken = slices.DeleteFunc(broken, func(p pending) bool {
			if p.at > now() {
				return false
			}
			mend(p)
			return true
		})
		if len(all) == 0 || now() < next || len(broken) == 2 {
			continue
		}
		f := all[s.rng.IntN(len(all))]
		lasts := time.Duration(f.from+s.rng.IntN(f.to-f.from+1)) * time.Millisecond
		next = now() + int64(50+s.rng.IntN(700))*int64(time.Millisecond)
		if slices.ContainsFunc(broken, func(p pending) bool { return p.name == f.name || p.server && f.server }) {
			continue
		}
		p := pending{fault: f, event: event{Name: f.name, From: now()}, at: now() + int64(lasts)}
		p.mend, p.Process = f.begin(s)
		broken = append(broken, p)
	}
	for _, p := range broken {
		mend(p)
	}
	return events
}

// settle ends the load, and tells what is left of it in Redis, and which processes have come to its end.
func (s *stage) settle(stall func() time.Duration) (left []string, workers []*worker) {
	if s.java != nil {
		if err := s.java.leave(10*time.Second + grace + stall()); err != nil {
			left = append(left, "the JVM: "+err.Error())
		}
	}
	workers = s.living()
	for _, w := range s.workers {
		if _, killed := s.trial.Killed[w.Process]; w.dead() && !killed {
			left = append(left, fmt.Sprintf("process %d died:\n%s", w.Process, w.said))
		}
	}
	for _, w := range workers {
		w.tell("stop")
	}
	for _, w := range workers {
		select {
		case <-w.idle:
		case <-w.gone:
		case <-time.After(10*time.Second + grace + stall()):
			w.signal(syscall.SIGQUIT) // it says where it stands
			within(w.gone, grace)
			left = append(left, fmt.Sprintf("process %d does not come to an end:\n%s", w.Process, w.said))
		}
	}
	ctx := context.Background()
	masters := s.masters()
	patience := now() + int64(3*longestLease+2*time.Second+grace+stall())
	for _, server := range masters {
		rdb := s.direct(server)
		var there []string
		for there = onServer(ctx, rdb); len(there) > 0 && now() < patience; there = onServer(ctx, rdb) {
			time.Sleep(20 * time.Millisecond)
		}
		if lines := linesOf(there); len(lines) > 0 && len(lines) == len(there) {
			// Who cannot reach Redis to leave a line stays in it, until somebody comes to the lock (P19).
			there = comeToLocks(ctx, rdb, lines)
		}
		left = append(left, there...)
		left = append(left, s.connections(rdb, len(workers))...)
	}
	return left, workers
}

// close tells what is left in processes that are to come to their end, and how many calls nobody has written down.
func (s *stage) close(workers []*worker, stall func() time.Duration) (left []string, churned int64) {
	for _, w := range workers {
		w.tell("close")
	}
	for _, w := range workers {
		ended := within(w.gone, 4*grace+stall())
		switch {
		case ended && w.ended:
			left, churned = append(left, w.last.Left...), churned+w.last.Churned
		case ended:
			left = append(left, fmt.Sprintf("process %d died:\n%s", w.Process, w.said))
		default:
			left = append(left, fmt.Sprintf("process %d does not close", w.Process))
		}
	}
	return left, churned
}

// maxConnections is how many connections to the locks' server a process may have in the end: those of its pool, which
// keeps what was needed for a moment, and a few for messages.
const maxConnections = poolSize + 4

// connections tells of those that are too many.
func (s *stage) connections(rdb *redis.Client, workers int) []string {
	list := rdb.ClientList(context.Background()).Val()
	if n := strings.Count(list, "\n"); n > maxConnections*workers {
		return []string{fmt.Sprintf("%d connections of %d processes:\n%s", n, workers, list)}
	}
	return nil
}

// onServer returns the locks, channels and scripts' keys that are there although nobody wants a lock.
func onServer(ctx context.Context, rdb *redis.Client) (left []string) {
	keys, err := rdb.Keys(ctx, "*").Result()
	if err != nil {
		return []string{err.Error()}
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "redisson_unlock_latch:") {
			continue // a client of Redisson's that ends right after an unlock leaves it to expire
		}
		if !strings.HasPrefix(key, "redisson_lock_token:") && key != "fencelock:quorum" {
			left = append(left, "key "+key)
		}
	}
	channels := append(rdb.PubSubChannels(ctx, "redisson*").Val(), rdb.PubSubChannels(ctx, "fencelock*").Val()...)
	for _, channel := range append(channels, rdb.PubSubShardChannels(ctx, "*").Val()...) {
		left = append(left, "channel "+channel)
	}
	return left
}

// linesOf returns the names of the locks, and of a semaphore's slots, whose line is among what is there.
func linesOf(there []string) (names []string) {
	for _, one := range there {
		if name, is := strings.CutPrefix(one, "key fencelock_line:{"); is {
			names = append(names, strings.TrimSuffix(name, "}"))
		} else if name, is := strings.CutPrefix(one, "key fencelock_line_of:"); is {
			names = append(names, name)
		}
	}
	return names
}

// comeToLocks takes and unlocks each of the locks, and returns what is there afterwards.
func comeToLocks(ctx context.Context, rdb *redis.Client, names []string) (left []string) {
	client, err := rlock.New(rdb)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range names {
		switch name {
		case anySlot:
			err = semaphore(client).Do(ctx, func(context.Context, *fenced.Hold) error { return nil }, rlock.Wait(grace))
		case pageName:
			err = writePage(client)
		default:
			err = rlock.NewLock(client, name).Do(ctx, func(context.Context) error { return nil }, rlock.Wait(grace))
		}
		if err != nil {
			left = append(left, err.Error())
		}
	}
	client.Close()
	for until := now() + int64(grace); len(onServer(ctx, rdb)) > 0 && now() < until; {
		time.Sleep(20 * time.Millisecond)
	}
	return append(left, onServer(ctx, rdb)...)
}

// stallMeter measures, until the stage is struck, for how long this process did not get to run: on a machine that is busy
// others did not either.
func (s *stage) stallMeter() func() time.Duration {
	var most atomic.Int64
	stop := make(chan struct{})
	s.Cleanup(func() { close(stop) })
	go func() {
		const tick = 5 * time.Millisecond
		for last := now(); !within(stop, tick); {
			at := now()
			most.Store(max(most.Load(), at-last-int64(tick)))
			last = at
		}
	}()
	return func() time.Duration { return time.Duration(most.Load()) }
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
