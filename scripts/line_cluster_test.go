package scripts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/redistest"
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

// migrate begins to move a slot to the next node, and moves those of its keys that are given. more moves others, finish
// ends it.
func (c *cluster) migrate(keys *Keys, moved ...string) (more func(...string), finish func()) {
	c.t.Helper()
	slot, i := int(keys.Slot), c.node(keys)
	from, to := c.Nodes[i], c.Nodes[(i+1)%len(c.Nodes)]
	c.BeginMove(slot, from, to)
	c.MoveKeys(slot, from, to, moved...)
	return func(moved ...string) { c.MoveKeys(slot, from, to, moved...) }, func() { c.EndMove(slot, from, to) }
}

// spread are the keys of locks in many slots, on every node.
func (c *cluster) spread(n int) []*Keys {
	c.t.Helper()
	var all []*Keys
	nodes, lines := map[int]bool{}, map[*line]bool{}
	s := New(c.rdb)
	for i := range n {
		k := KeysOf(newKeys(c.t).Lock + "-" + strconv.Itoa(i))
		nodes[c.node(k)], lines[s.lineOf(&Op{keys: k})] = true, true
		all = append(all, k)
	}
	if len(nodes) != len(c.Nodes) || len(lines) < 2 {
		c.t.Fatalf("the locks are on nodes %v, in %d lines", nodes, len(lines))
	}
	return all
}

// round takes each lock for a new hold, passes it on and releases it, all locks at once.
func round(t *testing.T, s *Scripts, locks []*Keys, token int64) {
	t.Helper()
	first, second := newField(), newField()
	for _, step := range []struct {
		op   func(*Keys) Op
		want Answer
	}{
		{func(k *Keys) Op { return Acquire(k, true, first, lease, 1) }, Answer{Held: true, Token: token + 1}},
		{func(k *Keys) Op { return Level(k, true, first, lease, 2, 1) }, Answer{Held: true, Token: token + 2}},
		{func(k *Keys) Op { return Transfer(k, true, second, lease, 2, first) }, Answer{Held: true, Token: token + 4}},
		{func(k *Keys) Op { return Unlock(k, first, true) }, Answer{}},
		{func(k *Keys) Op { return Unlock(k, second, true) }, Answer{Held: true}},
	} {
		var all []*passenger
		for _, k := range locks {
			all = append(all, send(s, step.op(k)))
		}
		for i, x := range all {
			if got := <-x.heard; got.err != nil || got.Answer != step.want {
				t.Errorf("%s for %s hears %+v, want %+v", x.op.kind.name, locks[i].Lock, got, step.want)
			}
		}
	}
}

func TestLineCluster_OpsInManySlots(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	g := &gate{}
	c.rdb.AddHook(g)
	s := New(c.rdb)
	locks := c.spread(200)
	for i := range 3 {
		round(t, s, locks, int64(4*i))
	}
	sum, sizes := 0, g.sizes()
	for _, n := range sizes {
		sum += n
	}
	if sum < 3*5*200 || len(sizes) > sum/4 { // some came twice, to a node that did not know the script yet
		t.Errorf("%d flights for %d ops", len(sizes), sum)
	}

	// A slot's ops are one command of its pipeline.
	var tagged []Op
	for i := range 6 {
		tagged = append(tagged, Acquire(KeysOf(fmt.Sprintf("{tag-%d}-%d", i%2, i)), true, newField(), lease, 1))
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
	round(t, s, locks, 12)

	// What is wrong with one op is no other's business.
	bad := Acquire(locks[0], true, newField(), lease, 1)
	c.rdb.Set(t.Context(), locks[0].Lock, "x", 0)
	ops := slices.Clone(tagged)
	said := together(s, slices.Insert(ops, 3, bad)...)
	judge(t, said[3].err, false, false)
	mustHaveAll(t, slices.Delete(said, 3, 4), tagged)
}

func TestLineCluster_ASlotThatMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	s := New(c.rdb)
	tag := newKeys(t).Lock
	var locks []*Keys
	for i := range 3 { // in one slot
		locks = append(locks, KeysOf(fmt.Sprintf("{%s}-%d", tag, i)))
	}
	others := c.spread(50)
	all := slices.Concat(others[:25], locks, others[25:])
	round(t, s, all, 0)

	// On its way (ASK): those that have moved, and those that have not.
	first := newField()
	hold := func(k *Keys) Op { return Acquire(k, true, first, lease, 1) }
	var ops []Op
	for _, k := range all {
		ops = append(ops, hold(k))
	}
	for _, o := range together(s, ops...) {
		if o.err != nil || o.Token != 5 {
			t.Fatalf("%+v", o)
		}
	}
	more, finish := c.migrate(locks[0], locks[0].Lock, locks[0].Token)
	for name, op := range map[string]Op{"moved": hold(locks[0]), "not yet": hold(locks[1])} {
		ops := []Op{hold(others[0]), op, hold(others[49])}
		for i, o := range together(s, ops...) {
			if o.err != nil || o.Token != 5 {
				t.Errorf("%s: op %d hears %+v", name, i, o)
			}
		}
	}
	// In one command they are neither here nor there, and who asks again is told later.
	for i, o := range together(s, hold(locks[0]), hold(locks[1]), hold(others[0])) {
		if i == 2 {
			if o.err != nil || o.Token != 5 {
				t.Errorf("an op on another slot hears %+v", o)
			}
			continue
		}
		judge(t, o.err, false, true)
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
	round(t, s, all, 5)
	var same []Op
	for _, k := range locks {
		same = append(same, hold(k))
	}
	for i, o := range together(s, same...) {
		if o.err != nil || o.Token != 10 {
			t.Errorf("a batch in the slot that has moved: op %d hears %+v", i, o)
		}
	}
}

// As TestP14_AForbiddenKeyDoesNotFailItsNeighbours, for a slot's ops in a pipeline.
func TestLineCluster_AForbiddenKey(t *testing.T) {
	t.Parallel()
	server := alone(t)
	prefix := newKeys(t).Lock
	as(t, server, "some-keys", "~{"+prefix+"}*", "~redisson_lock_token:{"+prefix+"}*", "&*", "+@all")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, Username: "some-keys", Password: "secret"})
	t.Cleanup(func() { _ = rdb.Close() })
	load(t, server.Client())
	s := New(rdb)
	own := func(i int) Op { return Acquire(KeysOf(fmt.Sprintf("{%s}-%d", prefix, i)), true, newField(), lease, 1) }
	ops := []Op{own(1), own(2), own(3)}
	forbidden := Acquire(KeysOf("x{"+prefix+"}"), true, newField(), lease, 1) // in the same slot
	elsewhere := Acquire(newKeys(t), true, newField(), lease, 1)
	said := together(s, ops[0], forbidden, elsewhere, ops[1], ops[2])
	for _, i := range []int{1, 2} {
		judge(t, said[i].err, false, false)
	}
	mustHaveAll(t, []outcome{said[0], said[3], said[4]}, ops)
}

// A node has whole ranges of slots: while it hangs, the lines that have none of its slots go on.
func TestLineCluster_ANodeThatHangs(t *testing.T) {
	t.Parallel()
	server := alone(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	t.Cleanup(func() { _ = rdb.Close() })
	g := newGate(t, rdb)
	s := New(rdb)
	var theirs, others []*Keys // of a node that has the first third of the slots
	g.only = map[string]bool{}
	for len(others) < 80 {
		switch k := newKeys(t); {
		case k.Slot < slots/3:
			theirs, g.only[k.Lock] = append(theirs, k), true
		case k.Slot >= slots/3+slots/clusterLines:
			others = append(others, k)
		}
	}
	g.close(false)
	var hanging []*passenger
	for _, k := range theirs {
		hanging = append(hanging, send(s, Acquire(k, true, newField(), lease, 1)))
	}
	round(t, s, others, 0)
	for _, x := range hanging {
		if len(x.heard) > 0 {
			t.Fatalf("%+v: this test no longer shows why", <-x.heard)
		}
	}
	go g.open(math.MaxInt) // ends with the test
	mustHear(t, hanging...)
}
