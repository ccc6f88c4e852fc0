package scripts

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// deliver sends the ops in one round trip, and gives each caller its answer. What was refused as a whole, or whose script
// the server has not got, is sent again.
func (s *Scripts) deliver(ctx context.Context, ops []*Op) {
	if s.confirm != nil && slices.ContainsFunc(ops, (*Op).promises) {
		s.deliverConfirmed(ctx, ops)
		return
	}
	if len(ops) == 1 {
		op := ops[0]
		op.tell(s.do(ctx, op))
		return
	}
	groups := s.group(ops)
	if len(groups) == 1 {
		g := groups[0]
		reply, err := s.send(ctx, g.script(), g.args)
		if !s.refused(err) {
			g.answered(reply, err)
			return
		}
		groups = apart(ops)
	}
	if s.cluster != nil && (ops[0].batcher == nil || ops[0].batcher.mixed) {
		s.byNode(ctx, groups, func(_ *redis.Client, groups []group) { s.exchange(ctx, route{on: s.rdb}, posted(groups, false), false) })
		return
	}
	s.exchange(ctx, route{on: s.rdb}, posted(groups, false), false)
}

// byNode calls send for each node of the cluster, with the groups whose keys are there. The calls run at the same time: no
// node's ops wait for another node.
func (s *Scripts) byNode(ctx context.Context, groups []group, send func(on *redis.Client, groups []group)) {
	nodes := make(map[*redis.Client][]group)
	for _, g := range groups {
		on, err := s.cluster.MasterForKey(ctx, g[0].keys.Lock)
		if err != nil {
			s.astray(err)
			g.answered(nil, err)
			continue
		}
		nodes[on] = append(nodes[on], g)
	}
	var all sync.WaitGroup
	for on, groups := range nodes {
		all.Go(func() { send(on, groups) })
	}
	all.Wait()
}

// A group is the ops that travel in one command.
type group []*Op

// group divides the ops into groups: one for each family, which has a batch script of its own, in a cluster one for each
// slot, and one for each op where something on the way refuses several slots in one command.
func (s *Scripts) group(ops []*Op) []group {
	if s.single.Load() {
		return apart(ops)
	}
	if s.cluster == nil && !slices.ContainsFunc(ops, func(op *Op) bool { return op.kind.family != ops[0].kind.family }) {
		return []group{ops}
	}
	type shared struct {
		slot   uint16 // 0 for one server
		family family
	}
	all := make(map[shared]group)
	for _, op := range ops {
		with := shared{family: op.kind.family}
		if s.cluster != nil {
			with.slot = op.keys.Slot
		}
		all[with] = append(all[with], op)
	}
	return slices.Collect(maps.Values(all))
}

// apart makes a group of each op.
func apart(ops []*Op) []group {
	groups := make([]group, len(ops))
	for i := range ops {
		groups[i] = ops[i : i+1]
	}
	return groups
}

func (g group) script() *script {
	if len(g) == 1 {
		return g[0].kind.script
	}
	if g[0].kind.ballot {
		return &ballots
	}
	return families[g[0].kind.family].batch
}

func (g group) args() []any {
	keys, args := 0, 0
	for _, op := range g {
		keys += op.keyCount()
		args += 1 + op.argCount()
	}
	barrier := ""
	if g[0].kind.family != locks {
		barrier = g[0].keys.barrier() // in a cluster it is in the hash slot of all the group's keys
		keys++
	}
	all := g.script().args(keys, args)
	for _, op := range g {
		all = op.appendKeys(all)
	}
	if barrier != "" {
		all = append(all, barrier)
	}
	for _, op := range g {
		if len(g) > 1 {
			all = append(all, op.name())
		}
		all = op.appendArgs(all)
	}
	return all
}

// answered gives each caller of the group its part of the reply, or an error in place of the reply.
func (g group) answered(reply any, err error) {
	if len(g) == 1 {
		g[0].tell(g[0].parse(reply, err))
		return
	}
	parseBatch(g, reply, err, (*Op).tell)
}

// refused tells that a command for several locks was refused as a whole, with nothing done, for a reason that may not hold
// for each of the locks: what it asked for is to be sent lock by lock. After CROSSSLOT refused remembers that something on
// the way takes no command for several slots. TRYAGAIN, of a slot that is moving to another node with some of its keys,
// passes.
func (s *Scripts) refused(err error) bool {
	if crossSlot(err) {
		s.single.Store(true)
		return true
	}
	return forbidden(err) || split(err)
}

// A mail is a group of ops in an exchange.
type mail struct {
	group
	confirm  bool      // the exchange ends with a confirmation
	promises []promise // that wait for it
}

// A promise is an op whose answer waits for the confirmation.
type promise struct {
	op     *Op
	answer Answer
}

// posted are the groups as parcels.
func posted(groups []group, confirm bool) []parcel {
	all := make([]parcel, len(groups))
	for i, g := range groups {
		all[i] = &mail{group: g, confirm: confirm}
	}
	return all
}

func (m *mail) several() bool    { return len(m.group) > 1 }
func (m *mail) apart() []parcel  { return posted(apart(m.group), m.confirm) }
func (m *mail) failed(err error) { m.answered(nil, err) }
func (m *mail) early() bool      { return true }

func (m *mail) unlined(err error) parcel {
	if op := m.group[0]; op.lineRefused(err) {
		return &mail{group: group{op.withoutLine(err)}, confirm: m.confirm}
	}
	return nil
}

// read answers the ops that do not wait for the confirmation: they need none, or have got nothing.
func (m *mail) read(reply any) {
	tell := func(op *Op, a Answer, err error) {
		if m.confirm && err == nil && a.Held && op.promises() {
			m.promises = append(m.promises, promise{op, a})
		} else {
			op.tell(a, err)
		}
	}
	if m.several() {
		parseBatch(m.group, reply, nil, tell)
		return
	}
	op := m.group[0]
	a, err := op.parse(reply, nil)
	tell(op, a, err)
}

func (m *mail) confirmed(unconfirmed error) {
	for _, p := range m.promises {
		p.op.tell(p.answer, unconfirmed)
	}
}
