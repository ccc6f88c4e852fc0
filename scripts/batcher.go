package scripts

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxOps bounds the ops in one batch: so many hold the server for 0.2 to 0.6 ms.
	maxOps = 128
	// maxInFlight bounds the batches of a batcher that are under way: while one is answered the next one fills, and the more
	// there are, the fewer ops share each.
	maxInFlight = 2
	// manyOps is how many ops are enough for a batch that leaves before one of those is back, and maxExtra how many such
	// batches there may be: with so many callers the server would wait for the next command otherwise.
	manyOps  = 8
	maxExtra = 2
	// stallAfter is how long batches may take before they no longer keep other ops waiting.
	stallAfter = 100 * time.Millisecond
	// maxStalled bounds the batches under way where earlier ones have stalled, and with them the connections that a server
	// that hangs can take.
	maxStalled = 16
	// stackSize is what a command needs of a batch's stack. Less grows the stack in the depth of a call, more only costs memory
	// while batches are under way.
	stackSize = 6 << 10
)

// Caller is who an op is sent for. It is called from the batcher's goroutines, and must not block. Once it is answered, the
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

// A batcher sends ops in batches: a batch is one round trip that its ops share. No op waits to share one: an op that finds
// fewer than maxInFlight batches under way leaves at once, alone if no other has come. What comes meanwhile leaves with the
// next batch, or as soon as there are manyOps.
type batcher struct {
	*batchers
	mixed bool // its ops may be of several nodes

	mu       sync.Mutex
	waiting  []*Op
	gone     int      // how many of these were withdrawn
	inFlight []*batch // under way
	most     int      // how many may be: maxInFlight, and one more for each that has stalled
	started  uint64   // how many batches have left
	guarded  bool     // a timer will look whether batches have stalled
	shared   bool     // the last batch had more than one op
	overdue  *time.Timer
	watched  bool // overdue will look for batches to be abandoned
}

// A batch is some ops that travel together. It is their context too, which ends when the batch is abandoned: what go-redis
// has not sent by then it does not send any more.
type batch struct {
	context.Context
	batcher *batcher
	store   []Op // copies: a caller that is answered uses its op again, and an abandoned batch is not done with it
	ops     []*Op
	began   time.Time
	left    atomic.Bool   // and began is known
	end     chan struct{} // closed when it is abandoned
}

// Send sends the op together with others that are sent at the same time. It does not block.
func (s *Scripts) Send(op *Op, caller Caller) {
	b := s.batcherOf(op)
	op.caller, op.state, op.batcher = caller, waiting, b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, op)
	if len(b.inFlight) < b.room() {
		b.start()
	} else if !b.guarded {
		b.guard()
	}
}

// Withdraw takes an op back that was given to Send, and tells whether it did: after Sending it is too late, and once is
// enough.
func (s *Scripts) Withdraw(op *Op) bool {
	b := op.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if op.state != waiting {
		return false
	}
	op.state = withdrawn
	if b.gone++; b.gone > maxOps && b.gone > len(b.waiting)/2 {
		b.waiting = slices.DeleteFunc(b.waiting, func(op *Op) bool { return op.state == withdrawn })
		b.gone = 0
	}
	return true
}

// idle tells that no op is in the batcher. A caller that has found the batcher before may use it still.
func (b *batcher) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) == 0 && len(b.inFlight) == 0
}

// start begins a batch. With b.mu held.
func (b *batcher) start() {
	f, _ := b.scripts.spare.Get().(*batch)
	if f == nil {
		f = &batch{Context: context.Background(), end: make(chan struct{})}
	}
	f.batcher = b
	b.inFlight = append(b.inFlight, f)
	if !b.watched {
		b.lookAfter(b.bound)
	}
	go f.run()
}

// run sends batch after batch until no op waits in the batcher.
func (f *batch) run() {
	growStack()
	b := f.batcher
	for {
		if b.yields() {
			runtime.Gosched()
		}
		unknown := b.scripts.learn(f)
		if !b.fill(f) {
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
		b.scripts.deliver(f, f.ops)
	}
}

// Done implements context.Context.
func (f *batch) Done() <-chan struct{} { return f.end }

// Err implements context.Context.
func (f *batch) Err() error {
	if f.abandoned() {
		return context.Canceled
	}
	return nil
}

func (f *batch) abandoned() bool {
	select {
	case <-f.end:
		return true
	default:
		return false
	}
}

// growStack gives its goroutine a stack on which go-redis has room. The stack is still empty here: to move a full one later
// costs more than the whole command does.
//
//go:noinline
func growStack() byte {
	var room [stackSize]byte
	return room[runtime.NumCPU()%stackSize]
}

// yields tells whether the callers that the last batch has answered run first: where there were several they may have the
// next ops already. Where many ops wait they leave before that, so that the server does not wait for the next command.
func (b *batcher) yields() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shared && !b.hasMany()
}

// hasMany tells whether many ops wait. With b.mu held.
func (b *batcher) hasMany() bool { return len(b.waiting)-b.gone >= manyOps }

// room is how many batches may be under way now. With b.mu held.
func (b *batcher) room() int {
	if b.most == maxInFlight && b.hasMany() {
		return maxInFlight + maxExtra
	}
	return b.most
}

// fill takes the next ops into the batch, and tells whether there are any: otherwise the batch is over.
func (b *batcher) fill(f *batch) bool {
	stalled := f.left.Load() && time.Since(f.began) >= stallAfter
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.abandoned() {
		return false // it is not in flight any more, and is not used again
	}
	f.left.Store(false)
	if stalled {
		b.most = max(b.most-1, maxInFlight)
	}
	clear(f.store)
	f.store, f.ops = f.store[:0], f.ops[:0]
	taken := 0
	if len(b.inFlight) <= b.room() {
		f.store = slices.Grow(f.store, min(len(b.waiting)-b.gone, maxOps)) // it must not move below
		for taken < len(b.waiting) && len(f.ops) < maxOps {
			if op := b.waiting[taken]; op.state == waiting {
				op.state = sent
				f.store = append(f.store, *op)
				f.ops = append(f.ops, &f.store[len(f.store)-1])
			} else {
				b.gone--
			}
			taken++
		}
	}
	if rest := copy(b.waiting, b.waiting[taken:]); rest == 0 && cap(b.waiting) > 16*maxOps {
		b.waiting = nil
	} else {
		clear(b.waiting[rest:])
		b.waiting = b.waiting[:rest]
	}
	if len(f.ops) == 0 {
		b.inFlight = slices.DeleteFunc(b.inFlight, func(g *batch) bool { return g == f })
		b.most = max(maxInFlight, min(b.most, len(b.inFlight)+1)) // raised for ops that were withdrawn since
		f.batcher = nil
		b.scripts.spare.Put(f)
		return false
	}
	b.started++
	b.shared = len(f.ops) > 1
	return true
}

// guard sees to it that batches that have stalled do not keep other ops waiting. With b.mu held.
func (b *batcher) guard() {
	b.guarded = true
	before := b.started
	time.AfterFunc(stallAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.guarded = false
		if len(b.waiting) == 0 {
			return
		}
		if b.started == before && max(b.most, len(b.inFlight)) < maxStalled {
			b.most = max(b.most+1, len(b.inFlight)+1)
			b.start()
		}
		b.guard()
	})
}

// lookAfter looks for batches that are to be abandoned, then and as long as there are batches. With b.mu held.
func (b *batcher) lookAfter(d time.Duration) {
	b.watched = true
	if b.overdue == nil {
		b.overdue = time.AfterFunc(d, b.abandon)
	} else {
		b.overdue.Reset(d)
	}
}

// abandon gives up the batches whose time is over: a connection may be dead, and go-redis wait for it without an end. Their
// ops are answered, others may leave in their place, and their goroutines end when go-redis lets go of the connection, so
// that there are no more of them than connections in its pool.
func (b *batcher) abandon() {
	var over []*batch
	b.mu.Lock()
	now, next := time.Now(), b.bound
	b.inFlight = slices.DeleteFunc(b.inFlight, func(f *batch) bool {
		if !f.left.Load() {
			return false
		}
		left := b.bound - now.Sub(f.began)
		if left > 0 {
			next = min(next, left)
			return false
		}
		close(f.end)
		over = append(over, f)
		return true
	})
	b.most = max(b.most-len(over), maxInFlight)
	if b.watched = len(b.inFlight) > 0; b.watched {
		b.lookAfter(next)
	}
	if len(b.waiting) > b.gone && len(b.inFlight) < b.room() {
		b.start()
	}
	b.mu.Unlock()
	if len(over) == 0 {
		return
	}
	err := fmt.Errorf("no answer from Redis within %v: the connection may be dead, and a ReadTimeout of the Redis client ends it sooner", b.bound)
	b.scripts.astray(err)
	for _, f := range over {
		group(f.ops).answered(nil, err)
	}
}
