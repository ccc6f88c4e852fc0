package scripts

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxBatch bounds the ops in one flight: so many hold the server for 0.2 to 0.6 ms.
	maxBatch = 128
	// maxFlying bounds the flights of a line that are under way: while one is answered the next one fills, and the more
	// there are, the less company each op has.
	maxFlying = 2
	// crowd is how many ops have company enough to leave before one of those flights is back, and maxCrowded how many
	// flights there may be more for them: with so many callers the server would wait for the next command otherwise.
	crowd      = 8
	maxCrowded = 2
	// stallAfter is when flights that are not answered no longer keep others on the ground.
	stallAfter = 100 * time.Millisecond
	// maxStalled bounds those others, and with them the connections that a server that hangs can take.
	maxStalled = 16
	// abandonAfter is when a flight is given up, beyond the client's ReadTimeout, which ends it first where there is one.
	abandonAfter = 5 * time.Second
	// maxLines is the number of lines from which on the ones in which nothing is are forgotten: nodes come and go.
	maxLines = 1024
	// stackRoom is what a command needs of a flight's stack. Less grows it in the depth of a call, more only costs memory
	// while flights are under way.
	stackRoom = 6 << 10
)

// Caller is who an op is sent for. It is called from the line's goroutines, and must not block. Once it is answered, the
// op is its own again.
type Caller interface {
	// Sending tells that the op is about to be written, together with that of another caller, which was told just before;
	// with is nil for the first one. It is not called for an op that was withdrawn.
	Sending(with Caller)
	// Answered tells what came of it, once after each Sending.
	Answered(Answer, error)
}

// state is what has become of an op.
type state = int32

const (
	waiting state = iota
	sent
	withdrawn
	told // its caller knows
)

// lines are where ops wait: one line, or one for each node of a cluster, so that a node that hangs keeps nobody else's ops.
type lines struct {
	scripts *Scripts
	bound   time.Duration // of a flight
	first   *line         // of the server; in a cluster, of the ops whose node is not known yet

	mu    sync.Mutex
	nodes map[string]*line // of a cluster, by the address of the master
}

// A line is the ops that wait for a flight: a round trip that they share. Nothing waits for company: an op that finds
// less than maxFlying flights under way leaves at once, alone if nobody else has come; what comes meanwhile goes
// together with the next one, or when it is a crowd.
type line struct {
	*lines
	mixed bool // its ops may be of several nodes

	mu      sync.Mutex
	waiting []*Op
	gone    int       // of these, the ones that were withdrawn
	flying  []*flight // under way
	most    int       // maxFlying, and one more for each flight that stalled
	flights uint64    // that have left
	guarded bool      // somebody will look whether the flights have stalled
	company bool      // the last flight had more than one op
	watch   *time.Timer
	watched bool // watch will look for flights to be abandoned
}

// A flight is some ops that travel together. It is their context too, which ends when the flight is abandoned: what
// go-redis has not sent by then it does not send any more.
type flight struct {
	context.Context
	line  *line
	store []Op // copies: a caller that is answered uses its op again, and an abandoned flight is not done with it
	ops   []*Op
	began time.Time
	left  atomic.Bool   // and began is known
	end   chan struct{} // closed when it is abandoned
}

func newLines(s *Scripts, bound time.Duration) *lines {
	ls := &lines{scripts: s, bound: bound, nodes: make(map[string]*line)}
	ls.first = &line{lines: ls, most: maxFlying, mixed: s.cluster != nil}
	return ls
}

// flightBound is how long a flight may take.
func flightBound(rdb redis.UniversalClient) time.Duration {
	var reads time.Duration
	switch r := rdb.(type) {
	case *redis.Client:
		reads = r.Options().ReadTimeout
	case *redis.ClusterClient:
		reads = r.Options().ReadTimeout
	}
	return abandonAfter + max(reads, 0)
}

// lineOf is the line that the op is to wait in. What is to be confirmed has lines of its own, so that nothing else waits
// for replicas. It does not block: where the cluster client knows the nodes it has them in memory, and sees to it that
// they are up to date.
func (s *Scripts) lineOf(op *Op) *line {
	ls := s.lines
	if s.confirm != nil && op.promises() {
		ls = s.confirmed
	}
	if s.known.Load() {
		if on, err := s.cluster.MasterForKey(context.Background(), op.keys.Lock); err == nil {
			return ls.of(on.Options().Addr)
		}
	}
	return ls.first
}

// of is the line of a node.
func (ls *lines) of(node string) *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.nodes[node]
	if l == nil {
		if len(ls.nodes) >= maxLines {
			maps.DeleteFunc(ls.nodes, func(_ string, l *line) bool { return l.idle() })
		}
		l = &line{lines: ls, most: maxFlying}
		ls.nodes[node] = l
	}
	return l
}

// idle tells that nothing is in the line. Who has found it before may use it still.
func (l *line) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) == 0 && len(l.flying) == 0
}

// Send sends the op in company with others that are sent at the same time. It does not block.
func (s *Scripts) Send(op *Op, caller Caller) {
	l := s.lineOf(op)
	op.caller, op.state, op.line = caller, waiting, l
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, op)
	if len(l.flying) < l.room() {
		l.launch()
	} else if !l.guarded {
		l.guard()
	}
}

// Withdraw takes an op back that was given to Send, and tells whether it did: after Sending it is too late, and once is
// enough.
func (s *Scripts) Withdraw(op *Op) bool {
	l := op.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if op.state != waiting {
		return false
	}
	op.state = withdrawn
	if l.gone++; l.gone > maxBatch && l.gone > len(l.waiting)/2 {
		l.waiting = slices.DeleteFunc(l.waiting, func(op *Op) bool { return op.state == withdrawn })
		l.gone = 0
	}
	return true
}

// launch begins a flight. With l.mu held.
func (l *line) launch() {
	f, _ := l.scripts.flights.Get().(*flight)
	if f == nil {
		f = &flight{Context: context.Background(), end: make(chan struct{})}
	}
	f.line = l
	l.flying = append(l.flying, f)
	if !l.watched {
		l.lookAfter(l.bound)
	}
	go f.fly()
}

// fly serves the line until nothing waits in it.
func (f *flight) fly() {
	roomy()
	l := f.line
	for {
		if l.awaits() {
			runtime.Gosched()
		}
		unknown := l.scripts.learn(f)
		if !l.board(f) {
			return
		}
		f.began = time.Now()
		var first Caller
		for _, op := range f.ops {
			op.caller.Sending(first)
			first = f.ops[0].caller
		}
		if unknown != nil {
			group(f.ops).answered(nil, unknown)
			continue
		}
		f.left.Store(true)
		l.scripts.deliver(f, f.ops)
	}
}

// learn makes the cluster client know its nodes, before any ops are on the flight: a node that hangs may be asked for them.
func (s *Scripts) learn(f *flight) error {
	if s.cluster == nil || s.known.Load() {
		return nil
	}
	f.began = time.Now()
	f.left.Store(true)
	if _, err := s.cluster.MasterForKey(f, ""); err != nil {
		s.astray(err)
		return err
	}
	s.known.Store(true)
	return nil
}

// Done implements context.Context.
func (f *flight) Done() <-chan struct{} { return f.end }

// Err implements context.Context.
func (f *flight) Err() error {
	if f.abandoned() {
		return context.Canceled
	}
	return nil
}

func (f *flight) abandoned() bool {
	select {
	case <-f.end:
		return true
	default:
		return false
	}
}

// roomy gives its goroutine a stack on which go-redis has room: here nothing is on it yet that would have to be moved,
// which otherwise costs more than the whole command does.
//
//go:noinline
func roomy() byte {
	var room [stackRoom]byte
	return room[runtime.NumCPU()%stackRoom]
}

// awaits tells whether those that the last flight has woken come first: where it had company they may have the next ops
// already. A crowd that waits leaves before them, so that the server does not wait for the next command.
func (l *line) awaits() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.company && !l.crowded()
}

// crowded tells whether a crowd waits. With l.mu held.
func (l *line) crowded() bool { return len(l.waiting)-l.gone >= crowd }

// room is how many flights there may be now. With l.mu held.
func (l *line) room() int {
	if l.most == maxFlying && l.crowded() {
		return maxFlying + maxCrowded
	}
	return l.most
}

// board takes the next ops from the line. None: this flight's goroutine is not needed any more.
func (l *line) board(f *flight) bool {
	stalled := f.left.Load() && time.Since(f.began) >= stallAfter
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.abandoned() {
		return false // it has no place any more, and is not used again
	}
	f.left.Store(false)
	if stalled {
		l.most = max(l.most-1, maxFlying)
	}
	clear(f.store)
	f.store, f.ops = f.store[:0], f.ops[:0]
	taken := 0
	if len(l.flying) <= l.room() {
		f.store = slices.Grow(f.store, min(len(l.waiting)-l.gone, maxBatch)) // it must not move below
		for taken < len(l.waiting) && len(f.ops) < maxBatch {
			if op := l.waiting[taken]; op.state == waiting {
				op.state = sent
				f.store = append(f.store, *op)
				f.ops = append(f.ops, &f.store[len(f.store)-1])
			} else {
				l.gone--
			}
			taken++
		}
	}
	if rest := copy(l.waiting, l.waiting[taken:]); rest == 0 && cap(l.waiting) > 16*maxBatch {
		l.waiting = nil
	} else {
		clear(l.waiting[rest:])
		l.waiting = l.waiting[:rest]
	}
	if len(f.ops) == 0 {
		l.flying = slices.DeleteFunc(l.flying, func(g *flight) bool { return g == f })
		l.most = max(maxFlying, min(l.most, len(l.flying)+1)) // raised for ops that were withdrawn since
		f.line = nil
		l.scripts.flights.Put(f)
		return false
	}
	l.flights++
	l.company = len(f.ops) > 1
	return true
}

// guard sees to it that what waits is not kept on the ground by flights that have stalled. With l.mu held.
func (l *line) guard() {
	l.guarded = true
	before := l.flights
	time.AfterFunc(stallAfter, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.guarded = false
		if len(l.waiting) == 0 {
			return
		}
		if l.flights == before && max(l.most, len(l.flying)) < maxStalled {
			l.most = max(l.most+1, len(l.flying)+1)
			l.launch()
		}
		l.guard()
	})
}

// lookAfter looks for flights that are to be abandoned, then and as long as there are flights. With l.mu held.
func (l *line) lookAfter(d time.Duration) {
	l.watched = true
	if l.watch == nil {
		l.watch = time.AfterFunc(d, l.look)
	} else {
		l.watch.Reset(d)
	}
}

// look abandons the flights whose time is over: a connection may be dead, and go-redis wait for it without an end. Their
// ops are answered, their places are free, and their goroutines end when go-redis lets go of the connection, so that there
// are no more of them than connections in its pool.
func (l *line) look() {
	var over []*flight
	l.mu.Lock()
	now, next := time.Now(), l.bound
	l.flying = slices.DeleteFunc(l.flying, func(f *flight) bool {
		if !f.left.Load() {
			return false
		}
		left := l.bound - now.Sub(f.began)
		if left > 0 {
			next = min(next, left)
			return false
		}
		close(f.end)
		over = append(over, f)
		return true
	})
	l.most = max(l.most-len(over), maxFlying)
	if l.watched = len(l.flying) > 0; l.watched {
		l.lookAfter(next)
	}
	if len(l.waiting) > l.gone && len(l.flying) < l.room() {
		l.launch()
	}
	l.mu.Unlock()
	if len(over) == 0 {
		return
	}
	err := fmt.Errorf("no answer from Redis within %v: the connection may be dead, and a ReadTimeout of the Redis client ends it sooner", l.bound)
	l.scripts.astray(err)
	for _, f := range over {
		group(f.ops).answered(nil, err)
	}
}

// deliver sends the ops in one round trip, and tells each caller.
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
		reply, err := s.send(ctx, g.script(), g.line())
		if !s.refused(err) {
			g.answered(reply, err)
			return
		}
		groups = apart(ops)
	}
	if s.cluster != nil && (ops[0].line == nil || ops[0].line.mixed) {
		s.byNode(ctx, groups, func(_ *redis.Client, groups []group) { s.pipeline(ctx, groups, false) })
		return
	}
	s.pipeline(ctx, groups, false)
}

// byNode sends the groups for each node of the cluster by themselves: no node's ops wait for another one.
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

// group divides the ops into those that may.
func (s *Scripts) group(ops []*Op) []group {
	if s.single.Load() {
		return apart(ops)
	}
	if s.cluster == nil {
		return []group{ops}
	}
	bySlot := make(map[uint16]group)
	for _, op := range ops {
		bySlot[op.keys.Slot] = append(bySlot[op.keys.Slot], op)
	}
	groups := make([]group, 0, len(bySlot))
	for _, g := range bySlot {
		groups = append(groups, g)
	}
	return groups
}

// apart is a group for each op.
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
	return g[0].kind.batch
}

func (g group) line() []any {
	if len(g) == 1 {
		return g[0].alone()
	}
	keys, args := 0, 0
	for _, op := range g {
		keys += op.keyCount()
		args += 1 + op.argCount()
	}
	line := g.script().line(keys, args)
	for _, op := range g {
		line = op.appendKeys(line)
	}
	for _, op := range g {
		line = op.appendArgs(append(line, op.name()))
	}
	return line
}

// answered tells each caller what a reply to the group says, or an error in place of it.
func (g group) answered(reply any, err error) {
	if len(g) == 1 {
		g[0].tell(g[0].parse(reply, err))
		return
	}
	parseBatch(g, reply, err, (*Op).tell)
}

// tell tells the op's caller what came of it, unless it has been told already.
func (op *Op) tell(a Answer, err error) {
	if atomic.SwapInt32(&op.state, told) != told {
		op.caller.Answered(a, err)
	}
}

// pipeline sends a command for each group.
func (s *Scripts) pipeline(ctx context.Context, groups []group, whole bool) {
	pipe := s.rdb.Pipeline()
	cmds := make([]command, len(groups))
	for i, g := range groups {
		line := g.line()
		if whole {
			line = g.script().whole(line)
		}
		cmds[i] = command{redis.NewCmd(ctx, line...)}
		_ = pipe.Process(ctx, cmds[i])
	}
	_, failed := pipe.Exec(ctx)
	var again, split []group
	for i, g := range groups {
		reply, err := cmds[i].Result()
		if err == nil && reply == nil {
			err = failed // a hook of the user's that did not let it through
		}
		err = s.astray(err)
		switch {
		case unknown(err) && !whole:
			again = append(again, g)
		case len(g) > 1 && s.refused(err):
			split = append(split, apart(g)...)
		case len(g) == 1 && g[0].withoutLine(err):
			split = append(split, g)
		default:
			g.answered(reply, err)
		}
	}
	if len(again) > 0 {
		s.pipeline(ctx, again, true)
	}
	if len(split) > 0 {
		s.pipeline(ctx, split, false)
	}
}

// refused tells that a command for several locks was refused as a whole, with nothing done, for a reason that may not be
// one of each lock's: they are to be sent one by one. Where something on the way takes no commands for several slots that
// is remembered. A slot on its way to another node, some of whose keys have moved, passes (TRYAGAIN).
func (s *Scripts) refused(err error) bool {
	if crossSlot(err) {
		s.single.Store(true)
		return true
	}
	return forbidden(err) || split(err)
}
