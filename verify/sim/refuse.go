package main

import (
	"slices"
	"time"
)

// A refusal is what a server answers for a while in place of doing what it is told, as Redis 7 has it.
type refusal struct {
	text   string
	passes []string // the commands that it does all the same, of those that it would refuse
	of     []string // the commands that it refuses; nil for all
	first  bool     // a script that has written may go on
}

// The commands of the scripts, and of Redisson's, that write; and those of them that need memory.
var (
	growing = []string{"HSET", "HINCRBY", "INCR", "INCRBY", "SET", "ZADD"}
	writing = append([]string{"DEL", "EXPIRE", "HDEL", "PEXPIRE", "PERSIST", "UNLINK", "ZREM"}, growing...)
)

// The refusals. EVAL and EVALSHA of a script without flags are refused by a server that loads or is busy; others refuse commands in the script.
var (
	isReplica = &refusal{text: "READONLY You can't write against a read only replica.", of: writing}
	isFull    = &refusal{text: "OOM command not allowed when used memory > 'maxmemory'.", of: growing, first: true}
	isLoading = &refusal{text: "LOADING Redis is loading the dataset in memory",
		passes: []string{"AUTH", "CLIENT", "HELLO", "INFO", "PUBLISH", "SPUBLISH", "PUBSUB", "SELECT", "SUBSCRIBE", "SSUBSCRIBE", "TIME", "UNSUBSCRIBE", "SUNSUBSCRIBE"}}
	isBusy = &refusal{text: "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", passes: []string{"AUTH", "HELLO"}}
)

// refuses tells whether the command is refused. wrote: it is one of a script that has written. SCRIPT is the world's own (newRun).
func (r *refusal) refuses(cmd string, wrote bool) bool {
	return cmd != "SCRIPT" && (r.of == nil || slices.Contains(r.of, cmd)) && !slices.Contains(r.passes, cmd) && !(wrote && r.first)
}

// refusedBy is the refusal of this command; nil for none. Several faults may be there at once. With the network's mu held.
func (s *server) refusedBy(cmd string) *refusal {
	if cmd == "EVAL" || cmd == "EVALSHA" {
		s.wrote = false
	}
	for _, r := range s.refusing {
		if r.refuses(cmd, s.wrote) {
			return r
		}
	}
	s.wrote = s.wrote || slices.Contains(writing, cmd)
	return nil
}

// answersBy makes the server answer with the refusal, until the end.
func (w *world) answersBy(s *server, r *refusal) (ends func()) {
	w.set(func() { s.refusing = append(s.refusing, r) })
	return func() {
		w.set(func() {
			i := slices.Index(s.refusing, r)
			s.refusing = slices.Delete(s.refusing, i, i+1)
		})
	}
}

// lastsAtMost are the faults that are over by themselves. To each call that meets a replica go-redis makes a hundred connections (P8).
var lastsAtMost = map[string]time.Duration{"readonly": 20 * time.Second}

// refusals are the faults of servers that answer, and do not do what they are told.
var refusals = []faultKind{
	{"readonly", "a server is a replica for a while", soon, false, false, theServer, func(w *world, f fault) func() {
		return w.answersBy(w.servers[f.Server], isReplica)
	}},
	{"loading", "a server restarts, and loads its data for a while", soon, false, true, theServer, func(w *world, f fault) func() {
		ends := w.answersBy(w.servers[f.Server], isLoading)
		back := w.away(f, (*server).newRun)
		time.Sleep(time.Second)
		back()
		return ends
	}},
	{"full", "a server is at maxmemory", soon, false, false, theServer, func(w *world, f fault) func() {
		return w.answersBy(w.servers[f.Server], isFull)
	}},
	{"busy", "a server runs a script of somebody else's for a while", soon, false, false, theServer, func(w *world, f fault) func() {
		s := w.servers[f.Server]
		w.net.close(&s.frozen)
		time.Sleep(5 * time.Second) // busy-reply-threshold
		ends := w.answersBy(s, isBusy)
		w.net.open(&s.frozen)
		return ends
	}},
}
