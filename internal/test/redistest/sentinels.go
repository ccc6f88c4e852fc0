package redistest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// MasterName is what the Sentinels of [Watched] call their master.
const MasterName = "locks"

// Sentinels is a master with its replicas, and three Sentinels that watch them.
// They take a master for down after five seconds, and have promoted a replica
// one or two seconds later. After one second they promote replicas unasked on a
// busy machine, and writes are lost. They promote no replica that has lost its
// master for longer than ten times that.
type Sentinels struct {
	t         Owner
	Nodes     []*Server // the first master, then its first replicas
	Sentinels []*Server
}

// Watched starts a master, n replicas and three Sentinels, and waits until the
// Sentinels know of all of them and of each other. The arguments are those of
// the master and the replicas.
func Watched(t Owner, n int, args ...string) *Sentinels {
	t.Helper()
	inRealTime(t, "Sentinels, and what they have seen")
	r := Replicated(t, n, args...)
	s := &Sentinels{t: t, Nodes: append([]*Server{r.Master}, r.Replicas...)}
	for range 3 {
		s.Sentinels = append(s.Sentinels, launch(t, func(sentinel *redisserver.Server) ([]string, error) {
			return sentinelArgs(sentinel, r.Master.Port())
		}))
		s.hurry(len(s.Sentinels) - 1)
	}
	s.Settle()
	return s
}

// sentinelArgs writes a Sentinel's configuration and returns its arguments. The
// Sentinel keeps there what it learns.
func sentinelArgs(s *redisserver.Server, master string) ([]string, error) {
	path := filepath.Join(s.Dir(), "sentinel.conf")
	conf := "bind 127.0.0.1\nport " + s.Port() + "\ndir " + s.Dir() + "\n" +
		"sentinel monitor " + MasterName + " 127.0.0.1 " + master + " 2\n" +
		"sentinel down-after-milliseconds " + MasterName + " 5000\n" +
		"sentinel failover-timeout " + MasterName + " 2000\n" +
		"sentinel parallel-syncs " + MasterName + " 9\n"
	return []string{path, "--sentinel"}, os.WriteFile(path, []byte(conf), 0o600)
}

// hurry makes a Sentinel ask and tell more often than its usual one to ten
// seconds, and makes it less wary of a machine that is busy. What it tells the
// others must not be faster still: for four periods they take a replica that
// says that it is a master for one that has to be put right, and who promotes
// it asks it only once a second.
func (s *Sentinels) hurry(i int) {
	s.t.Helper()
	if s.Sentinels[i].Redis6() { // and takes its time
		return
	}
	s.Sentinels[i].Do("sentinel", "debug", "ping-period", 200, "info-period", 300, "publish-period", 700,
		"ask-period", 200, "tilt-trigger", 10000, "tilt-period", 1000)
}

// Slow reports whether the Sentinels take some ten seconds for what others do in
// one or two: those of Redis 6 cannot be hurried.
func (s *Sentinels) Slow() bool { return s.Sentinels[0].Redis6() }

// RestartSentinel restarts a Sentinel with what it knew (see [Server.Restart]).
func (s *Sentinels) RestartSentinel(i int) {
	s.t.Helper()
	s.Sentinels[i].Restart()
	s.hurry(i)
}

// Client returns a client that asks the Sentinels where the master is. It is
// closed when the test ends.
func (s *Sentinels) Client(opts ...func(*redis.FailoverOptions)) *redis.Client {
	c := redis.NewFailoverClient(s.options(opts))
	s.t.Cleanup(func() { _ = c.Close() }) // the test may have closed it already
	return c
}

// ClusterClient is Client with the interface of a cluster client: all slots are
// the master's.
func (s *Sentinels) ClusterClient(opts ...func(*redis.FailoverOptions)) *redis.ClusterClient {
	c := redis.NewFailoverClusterClient(s.options(opts))
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Sentinels) options(opts []func(*redis.FailoverOptions)) *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: MasterName}
	for _, sentinel := range s.Sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, sentinel.Addr())
	}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// Master returns the node that the Sentinels call the master, nil while those
// that answer do not agree on one.
func (s *Sentinels) Master() *Server {
	addr := ""
	for _, sentinel := range s.Sentinels {
		said, err := sentinel.master()
		if err != nil {
			continue
		}
		if addr == "" {
			addr = said
		}
		if said == "" || said != addr {
			return nil
		}
	}
	for _, node := range s.Nodes {
		if node.Addr() == addr {
			return node
		}
	}
	return nil
}

// master returns the address of what a Sentinel calls the master, "" for none.
func (s *Server) master() (string, error) {
	got, err := s.ask("sentinel", "get-master-addr-by-name", MasterName)
	if pair, ok := got.([]any); ok && len(pair) == 2 {
		return fmt.Sprint(pair[0], ":", pair[1]), err
	}
	return "", err
}

// AwaitMaster waits until the Sentinels agree on a master other than the given
// one, and that node says that it is one.
func (s *Sentinels) AwaitMaster(not *Server) *Server {
	s.t.Helper()
	var master *Server
	Settles(s.t, settled, func() bool {
		master = s.Master()
		return master != nil && master != not && master.Info("replication", "role") == "master"
	}, "the Sentinels have another master than %s", not.Addr())
	return master
}

// Failover asks for a failover by command and returns the new master. It waits
// until a failover is possible.
func (s *Sentinels) Failover() *Server {
	s.t.Helper()
	s.Settle()
	return s.FailoverFrom(s.Master())
}

// FailoverFrom is Failover from this master without the wait. A failover that
// the Sentinels have begun by themselves will do.
func (s *Sentinels) FailoverFrom(old *Server) *Server {
	s.t.Helper()
	// A Sentinel that has not heard from the replicas for a moment, on a busy machine, gives the failover up, and is told again. It
	// refuses that while one is under way.
	Settles(s.t, settled, func() bool {
		switch said, _ := s.Sentinels[0].master(); said {
		case old.Addr():
			_, _ = s.Sentinels[0].ask("sentinel", "failover", MasterName)
			return false
		case "": // no answer
			return false
		}
		return true
	}, "the Sentinel at %s fails over", s.Sentinels[0].Addr())
	return s.AwaitMaster(old)
}

// Settle waits until all nodes run, are in sync with one master, and all three
// Sentinels know of them and of each other.
func (s *Sentinels) Settle() {
	s.t.Helper()
	var said string
	Settles(s.t, settled, func() bool {
		said = s.unsettled()
		return said == ""
	}, "%s", late{&said})
}

// late is text that is looked at when it is printed.
type late struct{ text *string }

func (l late) String() string { return *l.text }

// unsettled says what is missing until the Sentinels can promote a replica.
func (s *Sentinels) unsettled() string {
	master := s.Master()
	if master == nil || master.Info("replication", "role") != "master" {
		return "the Sentinels agree on a master"
	}
	for _, node := range s.Nodes {
		if node != master && (node.Info("replication", "master_port") != master.Port() || !master.serves(node)) {
			return fmt.Sprintf("the node at %s is in sync with the master at %s", node.Addr(), master.Addr())
		}
	}
	for _, sentinel := range s.Sentinels {
		state := sentinel.fields("sentinel", "master", MasterName)
		if len(state) != 1 || state[0]["flags"] != "master" || state[0]["num-other-sentinels"] != fmt.Sprint(len(s.Sentinels)-1) {
			return fmt.Sprintf("the Sentinel at %s knows of the others: %v", sentinel.Addr(), state)
		}
		fit := 0
		for _, replica := range sentinel.fields("sentinel", "replicas", MasterName) {
			if replica["flags"] == "slave" && replica["master-link-status"] == "ok" && replica["master-port"] == master.Port() {
				fit++
			}
		}
		if fit != len(s.Nodes)-1 {
			return fmt.Sprintf("the Sentinel at %s knows of %d replicas that it could promote", sentinel.Addr(), fit)
		}
	}
	return ""
}

// fields returns a reply that is a list of names and values, or a list of such
// lists, as maps.
func (s *Server) fields(args ...any) []map[string]string {
	got, _ := s.ask(args...)
	list, _ := got.([]any)
	if len(list) > 0 {
		if _, nested := list[0].([]any); !nested {
			list = []any{list}
		}
	}
	var all []map[string]string
	for _, one := range list {
		pairs, _ := one.([]any)
		m := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			m[fmt.Sprint(pairs[i])] = fmt.Sprint(pairs[i+1])
		}
		all = append(all, m)
	}
	return all
}
