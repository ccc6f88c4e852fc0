package main

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A fault breaks something.
type fault struct {
	name string
	text string
	// for how long, in ms: from one to the other, by the seed
	from, to int
	// server: it is done to the locks' server, one of these at a time
	server bool
	// begin breaks it, and returns what mends it, if anything has to; and the number of the process that stands still
	// meanwhile, does not hear, or is gone, counted from 1.
	begin func(s *stage) (mend func(), process int)
}

func plain(begin func(s *stage) func()) func(*stage) (func(), int) {
	return func(s *stage) (func(), int) { return begin(s), 0 }
}

// once is a fault that is over at once.
func once(do func(s *stage)) func(*stage) (func(), int) {
	return func(s *stage) (func(), int) { do(s); return nil, 0 }
}

var faults = append([]fault{
	{"freeze", "the server stands still (SIGSTOP), mostly for longer than a lease", 300, 2500, true, plain(func(s *stage) func() {
		s.locks.Freeze()
		return s.locks.Thaw
	})},
	{"stand-still", "the server stands still (SIGSTOP), for longer than a lease of 10 s and what a read may take", 12500, 12500, true, plain(func(s *stage) func() {
		s.locks.Freeze()
		return s.locks.Thaw
	})},
	{"kill", "the server is killed (SIGKILL) and started again", 20, 800, true, plain(func(s *stage) func() {
		s.locks.Kill()
		return func() { starting(s.locks.Restart) }
	})},
	{"scripts", "SCRIPT FLUSH", 0, 0, true, once(func(s *stage) { s.command("SCRIPT", "FLUSH") })},
	{"kill-pubsub", "CLIENT KILL TYPE pubsub", 0, 0, true, once(func(s *stage) { s.command("CLIENT", "KILL", "TYPE", "pubsub") })},
	{"kill-normal", "CLIENT KILL TYPE normal", 0, 0, true, once(func(s *stage) { s.command("CLIENT", "KILL", "TYPE", "normal") })},
	{"pause", "a client process stands still (SIGSTOP), mostly for longer than its leases", 300, 2500, false, func(s *stage) (func(), int) {
		w := s.someone()
		w.signal(syscall.SIGSTOP)
		return func() { w.signal(syscall.SIGCONT) }, w.Process + 1
	}},
	{"kill-client", "a client process is killed (SIGKILL), and another one starts", 100, 500, false, func(s *stage) (func(), int) {
		w := s.someone()
		s.kill(w)
		return func() { s.replace(w) }, w.Process + 1
	}},
	{"stop-called", "the process of a client that is called in its line stands still, right before it knows or a moment later", 50, 2600, false, func(s *stage) (func(), int) {
		w := s.calledThen(func(w *worker) { w.signal(syscall.SIGSTOP) })
		if w == nil {
			return nil, 0
		}
		return func() { w.signal(syscall.SIGCONT) }, w.Process + 1
	}},
	{"kill-called", "the same, and it is killed, and another one starts", 100, 500, false, func(s *stage) (func(), int) {
		w := s.calledThen(func(w *worker) { _ = w.cmd.Process.Kill() })
		if w == nil {
			return nil, 0
		}
		s.kill(w)
		return func() { s.replace(w) }, w.Process + 1
	}},
	{"lose-call", "the message that calls a client in its line is lost", 0, 0, false, func(s *stage) (func(), int) {
		w := s.called(func(*worker) bool { return false })
		if w == nil {
			return nil, 0
		}
		return nil, w.Process + 1
	}},
	{"lose-taken", "the replies to the process of a client that is called in its line are lost, right before or after it has asked for what it is called for", 20, 600, false, plain(func(s *stage) func() {
		var mend func()
		s.called(func(w *worker) bool {
			mend = loseReplies(w.link)
			return true
		})
		return mend
	})},
	{"cut", "the link of a client process is cut, and refuses connections", 50, 2000, false, plain(func(s *stage) func() {
		l := s.someone().link
		l.refuses.Store(true)
		l.cut(every)
		return func() { l.refuses.Store(false) }
	})},
	{"delay", "replies to a client process take 50 to 300 ms longer", 500, 2500, false, plain(func(s *stage) func() {
		l := s.someone().link
		l.delay.Store(int64(time.Duration(50+s.rng.IntN(250)) * time.Millisecond))
		return func() { l.delay.Store(0) }
	})},
	{"lose-replies", "commands of a client process arrive, their replies are lost", 20, 600, false, plain(func(s *stage) func() {
		return loseReplies(s.someone().link)
	})},
	{"lose-messages", "what is published does not arrive at a client process", 500, 2500, false, func(s *stage) (func(), int) {
		w := s.someone()
		w.link.messages.Store(true)
		return func() { w.link.messages.Store(false) }, w.Process + 1
	}},
	{"silence", "nothing that is published arrives anywhere", 500, 2500, false, plain(func(s *stage) func() {
		s.silence(true)
		return func() { s.silence(false) }
	})},
	{"store", "replies of the storage behind the guard are lost", 100, 1000, false, plain(func(s *stage) func() {
		return loseReplies(s.someone().store)
	})},
	{"memory", "the server is at maxmemory", 100, 1500, true, plain(func(s *stage) func() {
		s.command("CONFIG", "SET", "maxmemory", "1")
		return func() { s.command("CONFIG", "SET", "maxmemory", "0") }
	})},
	{"connections", "1,000 connections more than the server takes", 300, 1500, true, plain(crowd)},
	{"clock", "the wall clock of a client process jumps, by up to 3 s, forward or back", 0, 0, false, once(func(s *stage) {
		by := time.Duration(s.rng.IntN(6000)-3000) * time.Millisecond
		s.someone().tell("shift " + strconv.FormatInt(int64(by), 10))
	})},
	{"server-clock", "the wall clock of the locks' server jumps, by up to 6 s, forward or back", 0, 0, true, once(jump)},
	{"promote", "a replica is promoted after losing the last writes", 50, 500, true, plain(promote)},
	{"flush", "FLUSHALL: everything in the locks' server is lost", 0, 0, true, once(func(s *stage) { s.command("FLUSHALL") })},
	{"delete", "a lock's key is deleted by hand, which nobody is told of", 0, 0, true, once(func(s *stage) {
		locks := s.workers[0].Locks
		s.command("DEL", locks[s.rng.IntN(len(locks))])
	})},
}, topologyFaults...)

func faultsCalled(names string) []fault {
	var found []fault
	for name := range strings.FieldsSeq(names) {
		for _, f := range faults {
			if f.name == name {
				found = append(found, f)
			}
		}
	}
	return found
}

// command sends a command to the locks' server, and tries again while that is away for a moment.
func (s *stage) command(args ...any) {
	rdb := s.direct(s.locks)
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		err := rdb.Do(ctx, args...).Err()
		if err == nil || args[0] == "CLIENT" && (strings.Contains(err.Error(), "EOF") || strings.Contains(err.Error(), "reset")) {
			return
		}
		if ctx.Err() != nil {
			s.Fatalf("%v: %v", args, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// replace starts a process in place of one that was killed.
func (s *stage) replace(w *worker) {
	o := w.orders
	o.Process = len(s.workers)
	s.enter(o)
}

// calledThen does this to the process of a client that is called: before it knows, or up to a millisecond later, when it may
// have taken the lock.
func (s *stage) calledThen(do func(w *worker)) *worker {
	later := time.Duration(max(0, s.rng.IntN(2000)-1000)) * time.Microsecond
	var done sync.WaitGroup
	w := s.called(func(w *worker) bool {
		if later == 0 {
			do(w)
			return true
		}
		done.Go(func() {
			time.Sleep(later)
			do(w)
		})
		return true
	})
	done.Wait()
	return w
}

func (s *stage) silence(on bool) {
	for _, w := range s.workers {
		w.link.messages.Store(on)
	}
}

func loseReplies(l *link) func() {
	l.replies.Store(true)
	return func() {
		l.replies.Store(false)
		l.cut(holed)
	}
}

// crowd takes all connections that the server has to give, and knocks for 1,000 more.
func crowd(s *stage) func() {
	const room = 200
	s.command("CONFIG", "SET", "maxclients", strconv.Itoa(room))
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		var conns []net.Conn
		defer func() {
			for _, c := range conns {
				_ = c.Close()
			}
		}()
		for len(conns) < room+1000 {
			c, err := net.DialTimeout("tcp", s.locks.Addr(), time.Second)
			if err == nil {
				conns = append(conns, c)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
		<-stop
	}()
	return func() {
		close(stop)
		<-done
		s.command("CONFIG", "SET", "maxclients", "10000")
	}
}

// promote makes the replica a master, lets the old master take writes that it does not get, and then leads all links to
// the new one.
func promote(s *stage) func() {
	replica := s.replica
	if replica == nil {
		return nil // only once
	}
	rdb := s.direct(replica)
	s.must(rdb.ReplicaOf(context.Background(), "NO", "ONE").Err())
	return func() {
		for _, w := range s.workers {
			w.link.aim(replica.Addr())
		}
		s.locks.Kill()
		s.locks, s.replica = replica, nil
	}
}
