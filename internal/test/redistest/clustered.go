package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// Slots is the number of slots in a cluster.
const Slots = 16384

// Cluster is masters with all slots between them, and their replicas. A node
// that does not answer for a second is taken for down; its replica has taken
// over one or two seconds later.
type Cluster struct {
	t     Owner
	Nodes []*Server // the first masters, then the first replicas: the first one of each master, the second ones
	ids   []string
	buses []int // the ports for the other nodes
}

// Clustered starts a cluster of so many masters, each with so many replicas,
// and waits until all nodes know of all slots and the replicas are in sync. The
// arguments, which come after this package's, are those of every node.
func Clustered(t Owner, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	inRealTime(t, "a cluster whose nodes hear of each other")
	c := &Cluster{t: t}
	for range masters * (1 + replicas) {
		bus := 0
		node := launch(t, func(s *redisserver.Server) ([]string, error) {
			settings := replicating([]string{
				"--cluster-enabled", "yes", "--cluster-node-timeout", "1000",
				"--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0",
				"--cluster-allow-replica-migration", "no",
			})
			var err error
			if s.Redis6() {
				port, _ := strconv.Atoi(s.Port())
				bus = port + redisserver.BusOffset // nothing else is possible; where it is taken the server does not start, and gets another
			} else if bus, err = redisserver.FreePort(); err == nil {
				settings = append(settings, "--cluster-port", strconv.Itoa(bus))
			}
			return s.Plain(append(settings, args...)...), err
		})
		c.Nodes, c.ids, c.buses = append(c.Nodes, node), append(c.ids, fmt.Sprint(node.Do("cluster", "myid"))), append(c.buses, bus)
	}
	for i, node := range c.Nodes {
		if i < masters {
			slots := []any{"cluster", "addslots"}
			for slot := Slots * i / masters; slot < Slots*(i+1)/masters; slot++ {
				slots = append(slots, slot)
			}
			node.Do(slots...)
		}
		node.Do("cluster", "set-config-epoch", i+1)
		for j, other := range c.Nodes[:i] {
			node.Do("cluster", "meet", "127.0.0.1", other.Port(), c.buses[j])
		}
	}
	c.eventually("all nodes have met", func(node *Server) bool { return len(node.view()) == len(c.Nodes) })
	for i, node := range c.Nodes[masters:] {
		node.Do("cluster", "replicate", c.ids[i%masters])
	}
	c.Settle()
	return c
}

// eventually waits until cond is true of every node.
func (c *Cluster) eventually(what string, cond func(node *Server) bool) {
	c.t.Helper()
	for _, node := range c.Nodes {
		Settles(c.t, settled, func() bool { return cond(node) }, "the node at %s: %s", node.Addr(), what)
	}
}

// Settle waits until all nodes run, agree on who is a master and who a replica,
// know of all slots, and the replicas are in sync.
func (c *Cluster) Settle() {
	c.t.Helper()
	c.eventually("all nodes are up and agree", func(node *Server) bool {
		view := node.view()
		for i, other := range c.Nodes {
			mine, theirs := other.self(), view[c.ids[i]]
			if mine.master != theirs.master || !theirs.linked || theirs.failing {
				return false
			}
		}
		return len(view) == len(c.Nodes)
	})
	c.eventually("all slots are served", func(node *Server) bool {
		info, _ := node.ask("cluster", "info")
		return strings.Contains(fmt.Sprint(info), "cluster_state:ok") && strings.Contains(fmt.Sprint(info), "cluster_slots_ok:16384")
	})
	c.eventually("the replicas are in sync", func(node *Server) bool {
		if node.Info("replication", "role") == "master" {
			return true
		}
		master := node.self().master // no node's where the node does not answer, or has just become a master
		return node.Info("replication", "master_link_status") == "up" && slices.Contains(c.ids, master) && c.byID(master).serves(node)
	})
}

// Client returns a client of the cluster. It is closed when the test ends.
func (c *Cluster) Client(opts ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	o := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClusterClient(o)
	c.t.Cleanup(func() { _ = rdb.Close() }) // the test may have closed it already
	return rdb
}

// Sharded reports whether the servers know sharded channels, as Redis 6 does
// not.
func (c *Cluster) Sharded() bool {
	c.t.Helper()
	return !c.Nodes[0].Redis6()
}

// Addrs returns the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// byID is the node with this id.
func (c *Cluster) byID(id string) *Server { return c.Nodes[slices.Index(c.ids, id)] }

// id is the node's id.
func (c *Cluster) id(node *Server) string { return c.ids[slices.Index(c.Nodes, node)] }

// SlotOf returns the slot of a key.
func (c *Cluster) SlotOf(key string) int {
	c.t.Helper()
	for _, node := range c.Nodes { // one may be down
		if slot, err := node.ask("cluster", "keyslot", key); err == nil {
			return int(slot.(int64))
		}
	}
	c.t.Fatalf("redistest: no node of the cluster answers")
	return 0
}

// MasterOf returns the node that has the slot of a key: of those that answer
// and claim it, the one with the highest epoch. It waits until there is one.
func (c *Cluster) MasterOf(key string) *Server {
	c.t.Helper()
	slot := c.SlotOf(key)
	var owner *Server
	Settles(c.t, settled, func() bool {
		highest := -1
		for _, node := range c.Nodes {
			if self := node.self(); self.epoch > highest && slices.ContainsFunc(self.slots, func(r [2]int) bool {
				return r[0] <= slot && slot <= r[1]
			}) {
				owner, highest = node, self.epoch
			}
		}
		return highest >= 0
	}, "a node serves the slot of %q", key)
	return owner
}

// Masters returns the nodes that have slots, as they say themselves.
func (c *Cluster) Masters() []*Server {
	var masters []*Server
	for _, node := range c.Nodes {
		if len(node.self().slots) > 0 {
			masters = append(masters, node)
		}
	}
	return masters
}

// ReplicaOf returns a replica of the master.
func (c *Cluster) ReplicaOf(master *Server) *Server {
	c.t.Helper()
	for _, node := range c.Nodes {
		if node.self().master == c.id(master) {
			return node
		}
	}
	c.t.Fatalf("redistest: the node at %s has no replica", master.Addr())
	return nil
}

// Failover makes the replica take over from its master, by command and without
// loss, and waits until all nodes know.
func (c *Cluster) Failover(replica *Server) {
	c.t.Helper()
	var asked time.Time
	Settles(c.t, settled, func() bool {
		if len(replica.self().slots) > 0 {
			return true
		}
		if time.Since(asked) > manualFailover { // a replica that has not got its votes by then, on a busy machine, gives up
			_, _ = replica.ask("cluster", "failover")
			asked = time.Now()
		}
		return false
	}, "the node at %s takes over by command", replica.Addr())
	c.Settle()
}

// manualFailover is longer than the five seconds after which a failover by
// command is given up.
const manualFailover = 7 * time.Second

// AwaitMaster waits until the node is a master with slots.
func (c *Cluster) AwaitMaster(node *Server) {
	c.t.Helper()
	Settles(c.t, settled, func() bool { return len(node.self().slots) > 0 }, "the node at %s is a master", node.Addr())
}

// Move moves a slot with its keys to another master and waits until all nodes
// know.
func (c *Cluster) Move(slot int, from, to *Server) {
	c.t.Helper()
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to)
	c.EndMove(slot, from, to)
}

// BeginMove begins to move a slot: from here on the new master takes the keys
// that the old one does not have.
func (c *Cluster) BeginMove(slot int, from, to *Server) {
	c.t.Helper()
	to.Do("cluster", "setslot", slot, "importing", c.id(from))
	from.Do("cluster", "setslot", slot, "migrating", c.id(to))
}

// MoveKeys moves these keys of a slot that is being moved, or all of them if
// none is given.
func (c *Cluster) MoveKeys(slot int, from, to *Server, keys ...string) {
	c.t.Helper()
	for {
		more := keys
		if len(keys) == 0 {
			for _, key := range from.Do("cluster", "getkeysinslot", slot, 100).([]any) {
				more = append(more, key.(string))
			}
		}
		if len(more) == 0 {
			return
		}
		args := []any{"migrate", "127.0.0.1", to.Port(), "", 0, 5000, "keys"}
		for _, key := range more {
			args = append(args, key)
		}
		from.Do(args...)
		if len(keys) > 0 {
			return
		}
	}
}

// EndMove ends what BeginMove began, when all keys have moved, and waits until
// all nodes know.
func (c *Cluster) EndMove(slot int, from, to *Server) {
	c.t.Helper()
	// The one that gets the slot first: nobody must send keys to a node that does not yet say that it has it.
	to.Do("cluster", "setslot", slot, "node", c.id(to))
	from.Do("cluster", "setslot", slot, "node", c.id(to))
	c.eventually(fmt.Sprintf("slot %d has moved", slot), func(node *Server) bool {
		return slices.ContainsFunc(node.view()[c.id(to)].slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
	})
}

// member is what a node knows of a node.
type member struct {
	self    bool
	master  string // the id of its master; "-" of a master
	epoch   int
	linked  bool
	failing bool
	slots   [][2]int
}

// view is what the node knows of the cluster's nodes, by their ids; nothing if
// it does not answer. A node that it does not know yet is left out.
func (s *Server) view() map[string]member {
	got, _ := s.ask("cluster", "nodes")
	text, _ := got.(string)
	all := map[string]member{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line) // id, address, flags, master, ping, pong, epoch, link, slots
		if len(f) < 8 || strings.Contains(f[2], "handshake") || strings.Contains(f[2], "noaddr") {
			continue
		}
		epoch, _ := strconv.Atoi(f[6])
		m := member{
			self: strings.Contains(f[2], "myself"), master: f[3], epoch: epoch,
			linked: f[7] == "connected", failing: strings.Contains(f[2], "fail"),
		}
		for _, r := range f[8:] {
			if strings.HasPrefix(r, "[") { // on its way
				continue
			}
			first, last, ok := strings.Cut(r, "-")
			if !ok {
				last = first
			}
			var bounds [2]int
			bounds[0], _ = strconv.Atoi(first)
			bounds[1], _ = strconv.Atoi(last)
			m.slots = append(m.slots, bounds)
		}
		all[f[0]] = m
	}
	return all
}

// self is what the node says of itself.
func (s *Server) self() member {
	for _, m := range s.view() {
		if m.self {
			return m
		}
	}
	return member{epoch: -1}
}
