package scripts

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// cluster is real servers with all slots between them.
type cluster struct {
	*redistest.Cluster
	t   *testing.T
	rdb *redis.ClusterClient
}

func newCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	c := redistest.Clustered(t, nodes, 0, "--cluster-node-timeout", "2000")
	return &cluster{c, t, c.Client()}
}

// node is the one that had the slot at first.
func (c *cluster) node(keys *Keys) int { return int(keys.Slot) * len(c.Nodes) / slots }

// migrate begins to move a slot to the next node, and moves those of its keys that are given. more moves others, or without any all that are left;
// finish ends it.
func (c *cluster) migrate(keys *Keys, moved ...string) (more func(...string), finish func()) {
	c.t.Helper()
	slot, i := int(keys.Slot), c.node(keys)
	from, to := c.Nodes[i], c.Nodes[(i+1)%len(c.Nodes)]
	c.BeginMove(slot, from, to)
	if len(moved) > 0 {
		c.MoveKeys(slot, from, to, moved...)
	}
	return func(moved ...string) { c.MoveKeys(slot, from, to, moved...) }, func() { c.EndMove(slot, from, to) }
}

// spread are the keys of locks on every node, each in a slot of its own, and in none of those that are taken.
func (c *cluster) spread(n int, taken ...uint16) []*Keys {
	c.t.Helper()
	var all []*Keys
	nodes := map[int]bool{}
	for i := 0; len(all) < n; i++ {
		k := KeysOf(newKeys(c.t).Lock + "-" + strconv.Itoa(i))
		if slices.Contains(taken, k.Slot) {
			continue
		}
		taken = append(taken, k.Slot)
		nodes[c.node(k)] = true
		all = append(all, k)
	}
	if len(nodes) != len(c.Nodes) {
		c.t.Fatalf("the locks are on nodes %v", nodes)
	}
	return all
}

// knowsSharded is whether the servers of these tests know sharded channels, as Redis 6 does not.
var knowsSharded struct {
	sync.Once
	yes bool
}

// round takes each lock for a new hold, passes it on and releases it, all locks at once.
func round(t *testing.T, s *Scripts, locks []*Keys, token int64) {
	t.Helper()
	first, second := newField(), newField()
	knowsSharded.Do(func() { // of the first one, for a node may hang later
		knowsSharded.yes = s.rdb.PubSubShardNumSub(t.Context(), "any").Err() == nil
	})
	sharded := knowsSharded.yes
	for _, step := range []struct {
		op   func(*Keys) Op
		want Answer
	}{
		{func(k *Keys) Op { return Acquire(k, true, first, lease) }, Answer{Held: true, Token: token + 1}},
		{func(k *Keys) Op { return Level(k, true, first, lease, 2, 1) }, Answer{Held: true, Token: token + 2}},
		{func(k *Keys) Op { return Transfer(k, true, second, lease, first) }, Answer{Held: true, Token: token + 3}},
		{func(k *Keys) Op { return Unlock(k, first, sharded) }, Answer{Own: second}},
		{func(k *Keys) Op { return Unlock(k, second, sharded) }, Answer{Held: true}},
	} {
		var all []*passenger
		for _, k := range locks {
			all = append(all, send(s, step.op(k)))
		}
		for i, x := range all {
			if got := <-x.heard; got.err != nil || got.Answer != step.want {
				t.Errorf("%s for %s hears %+v, want %+v", x.op.kind.names[0], locks[i].Lock, got, step.want)
			}
		}
	}
}

func TestBatcherCluster_OpsInManySlots(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	g := &gate{}
	c.rdb.AddHook(g)
	s := patient(c.rdb)
	locks := c.spread(200)
	for i := range 3 {
		round(t, s, locks, int64(3*i))
	}
	sum, sizes := 0, g.sizes()
	for _, n := range sizes {
		sum += n
	}
	if sum < 3*5*200 || len(sizes) > sum/4 { // some came twice, to a node that did not know the script yet
		t.Errorf("%d batches for %d ops", len(sizes), sum)
	}

	// A slot's ops are one command of its node's pipeline.
	near := slices.IndexFunc(locks[1:], func(k *Keys) bool { return c.node(k) == c.node(locks[0]) && k.Slot != locks[0].Slot }) + 1
	var tagged []Op
	for i := range 6 {
		tagged = append(tagged, Acquire(KeysOf(fmt.Sprintf("{%s}-%d", locks[i%2*near].Lock, i)), true, newField(), lease))
	}
	together(s, tagged...) // the nodes know the script now
	g.seen()
	mustHaveAll(t, together(s, tagged...), tagged)
	if got := fmt.Sprint(g.seen()); got != "[[pipeline batch+acquire+acquire+acquire batch+acquire+acquire+acquire]]" {
		t.Errorf("two slots were served by %s", got)
	}
	mustHaveAll(t, together(s, tagged[0], tagged[2], tagged[4]), tagged)
	if got := fmt.Sprint(g.seen()); got != "[[batch acquire acquire acquire]]" {
		t.Errorf("one slot was served by %s", got)
	}

	// No node knows a script.
	for _, node := range c.Nodes {
		node.Do("script", "flush")
	}
	round(t, s, locks, 9)

	// What is wrong with one op is no other's business.
	bad := Acquire(locks[0], true, newField(), lease)
	c.rdb.Set(t.Context(), locks[0].Lock, "x", 0)
	ops := slices.Clone(tagged)
	said := together(s, slices.Insert(ops, 3, bad)...)
	judge(t, said[3].err, false, false)
	mustHaveAll(t, slices.Delete(said, 3, 4), tagged)
}

func TestBatcherCluster_ASlotThatMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	s := patient(c.rdb)
	tag := newKeys(t).Lock
	var locks []*Keys
	for i := range 3 { // in one slot
		locks = append(locks, KeysOf(fmt.Sprintf("{%s}-%d", tag, i)))
	}
	others := c.spread(50, locks[0].Slot)
	all := slices.Concat(others[:25], locks, others[25:])
	round(t, s, all, 0)

	// On its way (ASK): those that have moved, and those that have not.
	first := newField()
	hold := func(k *Keys) Op { return Acquire(k, true, first, lease) }
	var ops []Op
	for _, k := range all {
		ops = append(ops, hold(k))
	}
	for _, o := range together(s, ops...) {
		if o.err != nil || o.Token != 4 {
			t.Fatalf("%+v", o)
		}
	}
	more, finish := c.migrate(locks[0], locks[0].Lock, locks[0].Token)
	for name, op := range map[string]Op{"moved": hold(locks[0]), "not yet": hold(locks[1])} {
		ops := []Op{hold(others[0]), op, hold(others[49])}
		for i, o := range together(s, ops...) {
			if o.err != nil || o.Token != 4 {
				t.Errorf("%s: op %d hears %+v", name, i, o)
			}
		}
	}
	// In one command they are neither here nor there: it is refused, and each is served where it is.
	for i, o := range together(s, hold(locks[0]), hold(locks[1]), hold(others[0])) {
		if o.err != nil || o.Token != 4 {
			t.Errorf("op %d, of two in a slot that moves and one elsewhere, hears %+v", i, o)
		}
	}
	if one := together(s, hold(locks[0]), hold(locks[1])); one[0].err != nil || one[1].err != nil {
		t.Errorf("two in a slot that moves hear %+v", one)
	}
	if s.single.Load() {
		t.Error("what passes is remembered")
	}
	for _, k := range locks[1:] {
		more(k.Lock, k.Token)
	}
	finish()

	// It has moved (MOVED): the client learns of it by the way.
	for _, k := range all {
		x := send(s, Unlock(k, first, false))
		if got := <-x.heard; got.err != nil || !got.Held {
			t.Errorf("unlock of %s hears %+v", k.Lock, got)
		}
	}
	_, finish = c.migrate(others[7], others[7].Lock, others[7].Token)
	finish()
	round(t, s, all, 4)
	var same []Op
	for _, k := range locks {
		same = append(same, hold(k))
	}
	for i, o := range together(s, same...) {
		if o.err != nil || o.Token != 8 {
			t.Errorf("a batch in the slot that has moved: op %d hears %+v", i, o)
		}
	}
}

// As TestP14_AForbiddenKeyDoesNotFailItsNeighbours, for a slot's ops in a pipeline.
func TestBatcherCluster_AForbiddenKey(t *testing.T) {
	t.Parallel()
	server := oneMaster(t)
	prefix := newKeys(t).Lock
	as(t, server, "some-keys", "~{"+prefix+"}*", "~redisson_lock_token:{"+prefix+"}*", "&*", "+@all")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, Username: "some-keys", Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	load(t, server.Client())
	s := patient(rdb)
	own := func(i int) Op { return Acquire(KeysOf(fmt.Sprintf("{%s}-%d", prefix, i)), true, newField(), lease) }
	ops := []Op{own(1), own(2), own(3)}
	forbidden := Acquire(KeysOf("x{"+prefix+"}"), true, newField(), lease) // in the same slot
	elsewhere := Acquire(newKeys(t), true, newField(), lease)
	said := together(s, ops[0], forbidden, elsewhere, ops[1], ops[2])
	for _, i := range []int{1, 2} {
		judge(t, said[i].err, false, false)
	}
	mustHaveAll(t, []outcome{said[0], said[3], said[4]}, ops)
}

// neighbours are locks of the first node and of another one, in slots that are near each other.
func (c *cluster) neighbours(n int) (hanging, others []*Keys) {
	const sixteenth = slots / 16
	border := slots / len(c.Nodes)
	for len(hanging) < n || len(others) < n {
		k := newKeys(c.t)
		switch {
		case int(k.Slot)/sixteenth != border/sixteenth:
		case int(k.Slot) < border:
			hanging = append(hanging, k)
		default:
			others = append(others, k)
		}
	}
	return hanging, others
}

// A node that hangs keeps the ops of no other node, from the first ones on. The client's reads end much later.
func TestBatcherCluster_ANodeThatHangs(t *testing.T) {
	t.Parallel()
	for what, warm := range map[string]bool{"from the first op on": false, "later": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 3)
			rdb := c.Client(func(o *redis.ClusterOptions) { o.ReadTimeout = time.Hour })
			rdb.Get(t.Context(), "x") // with the first command go-redis asks any node for COMMAND, and all others wait
			s := patient(rdb)
			theirs, others := c.neighbours(30)
			if warm {
				round(t, s, slices.Concat(theirs, others), 0)
				round(t, s, theirs, 3)
				round(t, s, others, 3)
			} else {
				round(t, patient(c.rdb), others, 0) // by another client
				round(t, patient(c.rdb), others, 3)
			}
			c.Nodes[0].Freeze()
			var hanging []*passenger
			for i := range 20 { // each time one batch more may hang
				for _, k := range theirs {
					hanging = append(hanging, send(s, Acquire(k, true, newField(), lease)))
				}
				round(t, s, others, int64(6+3*i))
			}
			for _, x := range hanging {
				if len(x.heard) > 0 {
					t.Fatalf("%+v: this test no longer shows why", <-x.heard)
				}
			}
			for _, b := range s.batchers.nodes {
				b.mu.Lock()
				if n := len(b.inFlight); n > maxStalled {
					t.Errorf("%d batches hang", n)
				}
				b.mu.Unlock()
			}
			c.Nodes[0].Thaw()
		})
	}
}

// Batchers are by node, wherever a slot goes, and bounded in their number where nodes come and go.
func TestBatcherCluster_BatchersFollowTheSlots(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	s := patient(c.rdb)
	keys := newKeys(t)
	x := send(s, Acquire(keys, true, newField(), lease))
	mustHear(t, x)
	if x.op.batcher != s.batchers.first || len(s.batchers.nodes) != 0 {
		t.Error("the first op was not sent before the nodes were known")
	}
	from, to := c.Nodes[c.node(keys)].Addr(), c.Nodes[1-c.node(keys)].Addr()
	if b := s.batcherOf(&x.op); b != s.batchers.of(from) || b == s.batchers.of(to) {
		t.Error("the op is not with the batcher of its node")
	}
	_, finish := c.migrate(keys, keys.Lock, keys.Token)
	if b := s.batcherOf(&x.op); b != s.batchers.of(from) {
		t.Error("the batcher of a slot that moves is another one already")
	}
	finish()
	redistest.Eventually(t, 20*time.Second, func() bool {
		<-send(s, Unlock(keys, newField(), false)).heard // is told where the slot is
		return s.batcherOf(&x.op) == s.batchers.of(to)
	}, "the batcher is that of the new node")
}

func TestBatcherCluster_FewBatchersAreKept(t *testing.T) {
	bs := newBatchers(New(redistest.New(t)), time.Second, 0)
	busy := bs.of("busy")
	busy.waiting = []*Op{{}}
	for i := range 5 * maxBatchers {
		bs.of(fmt.Sprint("node ", i))
		if len(bs.nodes) > maxBatchers {
			t.Fatalf("%d batchers after %d nodes", len(bs.nodes), i)
		}
	}
	if bs.of("busy") != busy {
		t.Error("the batcher of what waits is forgotten")
	}
}
