package scripts

import (
	"context"
	"runtime"
	"slices"
	"sync"
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
	// clusterLines is how many lines a cluster's slots are divided among. Nodes have whole ranges of slots, so that a
	// node that hangs keeps the lines of the others' slots going.
	clusterLines = 16
	// stackRoom is what a command needs of a flight's stack. Less grows it in the depth of a call, more only costs memory
	// while flights are under way.
	stackRoom = 6 << 10
)

// Caller is who an op is sent for. It is called from the line's goroutines, and must not block.
type Caller interface {
	// Sending tells that the op is about to be written, together with that of another caller, which was told just before;
	// with is nil for the first one. It is not called for an op that was withdrawn.
	Sending(with Caller)
	// Answered tells what came of it, once after each Sending.
	Answered(Answer, error)
}

type state int8

const (
	waiting state = iota
	sent
	withdrawn
)

// A line is the ops that wait for a flight: a round trip that they share. Nothing waits for company: an op that finds
// less than maxFlying flights under way leaves at once, alone if nobody else has come; what comes meanwhile goes
// together with the next one, or when it is a crowd.
type line struct {
	scripts *Scripts

	mu      sync.Mutex
	waiting []*Op
	gone    int // of these, the ones that were withdrawn
	flying  int
	most    int    // maxFlying, and one more for each flight that stalled
	flights uint64 // that have left
	guarded bool   // somebody will look whether the flights have stalled
	company bool   // the last flight had more than one op
}

func newLines(s *Scripts) []*line {
	n := 1
	if _, cluster := s.rdb.(*redis.ClusterClient); cluster {
		n = clusterLines
	}
	lines := make([]*line, n)
	for i := range lines {
		lines[i] = &line{scripts: s, most: maxFlying}
	}
	return lines
}

// lineOf is the line that the op waits in. What is to be confirmed has lines of its own, so that nothing else waits for
// replicas.
func (s *Scripts) lineOf(op *Op) *line {
	lines := s.lines
	if s.confirm != nil && op.promises() {
		lines = s.confirmed
	}
	return lines[int(op.keys.Slot)*len(lines)/slots]
}

// Send sends the op in company with others that are sent at the same time. It does not block.
func (s *Scripts) Send(op *Op, caller Caller) {
	op.caller, op.state = caller, waiting
	l := s.lineOf(op)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, op)
	if l.flying < l.room() {
		l.flying++
		go l.fly()
	} else if !l.guarded {
		l.guard()
	}
}

// Withdraw takes an op back, and tells whether it did: after Sending it is too late, and once is enough.
func (s *Scripts) Withdraw(op *Op) bool {
	l := s.lineOf(op)
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

// fly serves the line until nothing waits in it.
func (l *line) fly() {
	roomy()
	ops := make([]*Op, 0, 4)
	for {
		if l.awaits() {
			runtime.Gosched()
		}
		if ops = l.board(ops[:0]); len(ops) == 0 {
			return
		}
		began := time.Now()
		var first Caller
		for _, op := range ops {
			op.caller.Sending(first)
			first = ops[0].caller
		}
		l.scripts.deliver(ops)
		if time.Since(began) >= stallAfter {
			l.mu.Lock()
			l.most = max(l.most-1, maxFlying)
			l.mu.Unlock()
		}
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
func (l *line) board(ops []*Op) []*Op {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := 0
	if l.flying <= l.room() {
		for taken < len(l.waiting) && len(ops) < maxBatch {
			if op := l.waiting[taken]; op.state == waiting {
				op.state = sent
				ops = append(ops, op)
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
	if len(ops) == 0 {
		l.flying--
		l.most = max(maxFlying, min(l.most, l.flying+1)) // raised for ops that were withdrawn since
	} else {
		l.flights++
		l.company = len(ops) > 1
	}
	return ops
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
		if l.flights == before && max(l.most, l.flying) < maxStalled {
			l.flying++
			l.most = max(l.most+1, l.flying)
			go l.fly()
		}
		l.guard()
	})
}

// deliver sends the ops in one round trip, and tells each caller.
func (s *Scripts) deliver(ops []*Op) {
	ctx := context.Background()
	if s.confirm != nil && slices.ContainsFunc(ops, (*Op).promises) {
		s.deliverConfirmed(ctx, ops)
		return
	}
	if len(ops) == 1 {
		op := ops[0]
		op.caller.Answered(s.Do(ctx, *op))
		return
	}
	groups := s.group(ops)
	if len(groups) == 1 {
		g := groups[0]
		reply, err := s.send(ctx, g.script(), g.line())
		if !s.refused(err) && !forbidden(err) {
			g.answered(reply, err)
			return
		}
		groups = apart(ops)
	}
	s.pipeline(ctx, groups, false)
}

// A group is the ops that travel in one command.
type group []*Op

// group divides the ops into those that may.
func (s *Scripts) group(ops []*Op) []group {
	if s.single.Load() {
		return apart(ops)
	}
	if len(s.lines) == 1 {
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

func (g group) answered(reply any, err error) {
	if len(g) == 1 {
		g[0].caller.Answered(g[0].parse(reply, err))
		return
	}
	parseBatch(g, reply, err, func(op *Op, a Answer, err error) { op.caller.Answered(a, err) })
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
	var again []group
	for i, g := range groups {
		reply, err := cmds[i].Result()
		if err == nil && reply == nil {
			err = failed // a hook of the user's that did not let it through
		}
		s.astray(err)
		if unknown(err) && !whole {
			again = append(again, g)
			continue
		}
		if len(g) > 1 && forbidden(err) {
			again = append(again, apart(g)...)
			continue
		}
		g.answered(reply, err)
	}
	if len(again) > 0 {
		s.pipeline(ctx, again, true)
	}
}

// refused tells that something on the way takes no commands for several slots, and remembers it.
func (s *Scripts) refused(err error) bool {
	if !crossSlot(err) {
		return false
	}
	s.single.Store(true)
	return true
}
