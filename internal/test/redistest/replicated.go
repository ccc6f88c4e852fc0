package redistest

import (
	"strconv"
	"strings"
	"time"
)

// Replication is a master and its replicas.
type Replication struct {
	Master   *Server
	Replicas []*Server
}

// Replicated starts a master and n replicas of it (see [Real]), all with these
// arguments, and waits until they are in sync.
func Replicated(t Owner, n int, args ...string) *Replication {
	t.Helper()
	r := &Replication{Master: Real(t, replicating(args)...)}
	for range n {
		r.Replicas = append(r.Replicas, Real(t, replicating(args, "--replicaof", "127.0.0.1", r.Master.Port())...))
	}
	r.Sync()
	return r
}

// replicating adds to the arguments what makes a master serve a new replica at
// once. With a synchronization over the socket it may say that a replica is
// online, and still send it nothing for a second.
func replicating(args []string, more ...string) []string {
	return append(append([]string{"--repl-diskless-sync", "no"}, more...), args...)
}

// Sync waits until every replica is connected to the master and has all that
// the master has written before the call.
func (r *Replication) Sync() {
	r.Master.t.Helper()
	written := r.Master.offset("master_repl_offset")
	for _, replica := range r.Replicas {
		Settles(r.Master.t, settled, func() bool {
			return replica.Info("replication", "master_port") == r.Master.Port() &&
				replica.Info("replication", "master_link_status") == "up" &&
				replica.offset("slave_repl_offset") >= written && r.Master.serves(replica)
		}, "the replica at %s has what the master at %s has", replica.Addr(), r.Master.Addr())
	}
}

// offset is a replication offset, -1 where the server does not say it.
func (s *Server) offset(field string) int64 {
	n, err := strconv.ParseInt(s.Info("replication", field), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// serves reports whether the replica is one of this master's, and past its
// first synchronization.
func (s *Server) serves(replica *Server) bool {
	info, _ := s.ask("info", "replication")
	text, _ := info.(string)
	for line := range strings.Lines(text) {
		if strings.Contains(line, ",port="+replica.Port()+",") && strings.Contains(line, "state=online") {
			return true
		}
	}
	return false
}

// Follow makes the server a replica of the master. A Sentinel that does so at the
// same time ends the connections of the server's clients.
func (s *Server) Follow(master *Server) {
	s.t.Helper()
	Settles(s.t, settled, func() bool {
		_, _ = s.ask("replicaof", "127.0.0.1", master.Port())
		return s.Info("replication", "master_port") == master.Port()
	}, "the server at %s is a replica of %s", s.Addr(), master.Addr())
}

// Detach cuts the server, a replica, off from its master: it gets nothing that
// is written after Detach has returned, keeps what it has, and can be promoted.
func (s *Server) Detach() {
	s.t.Helper()
	s.Do("config", "set", "masteruser", "nobody") // its next connections are refused
	s.Do("config", "set", "masterauth", "none")
	s.Do("client", "kill", "type", "master")
	Settles(s.t, settled, func() bool { return s.Info("replication", "master_link_status") == "down" },
		"the replica at %s has lost its master", s.Addr())
}

// Attach ends what [Server.Detach] did. The replica is back within a second or
// two: see [Replication.Sync].
func (s *Server) Attach() {
	s.t.Helper()
	s.Do("config", "set", "masterauth", "")
	s.Do("config", "set", "masteruser", "")
}

// settled is how long a topology is waited for.
const settled = 2 * time.Minute
