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
	// maxOps bounds the ops in one batch. A batch of so many ops keeps the server busy for 0.2 to 0.6 ms.
	maxOps = 128
	// maxInFlight bounds the batches of one batcher that are under way. While a batch is under way the next one fills; with
	// more batches under way fewer ops would share each.
	maxInFlight = 2
	// manyOps is how many waiting ops are enough for a batch to leave although maxInFlight batches are under way. maxExtra
	// is how many such batches there may be. Without them the server would, with so many callers, wait for the next command.
	manyOps  = 8
	maxExtra = 2
	// stallAfter is how long batches may take before the batcher sends one more, so that they keep no other ops waiting.
	stallAfter = 100 * time.Millisecond
	// maxStalled bounds the batches under way once earlier ones have stalled, and so the connections that a server that
	// hangs can take.
	maxStalled = 16
	// stackSize is how many bytes of stack a batch needs to send a command. With less the stack grows in the depth of a
	// call; more only costs memory while batches are under way.
	stackSize = 6 << 10
)

// A Caller is who an op is sent for. Goroutines of the batcher call its methods, which must not block. After Answered the
// caller may use its op again.
type Caller interface {
	// Sending tells the caller that its op is about to be written. with is the caller of the first op in the same batch,
	// whose Sending came just before; with is nil for that first one. Sending is not called for an op that was taken back.
	Sending(with Caller)
	// Answered gives the caller the answer to its op, or the error, once after each Sending.
	Answered(Answer, error)
}

// state is what has become of an op.
type state = int32

const (
	waiting state = iota
	sent
	takenBack
	doubled // a copy of it was sent, and its caller has no answer
	told    // its caller has the answer
)

// A batcher sends ops in batches. The ops of a batch share one round trip. No op waits in order to share one: an op that
// finds fewer than maxInFlight batches under way leaves at once, alone if no other op waits. Otherwise the op leaves with
// the next batch: after one of those under way, or as soon as manyOps ops wait.
type batcher struct {
	*batchers
	mixed bool // its ops may be for several nodes of a cluster

	mu       sync.Mutex
	waiting  []*Op
	gone     int         // how many ops in waiting were taken back
	inFlight []*batch    // the batches under way
	most     int         // how many batches may be under way: maxInFlight, and one more for each that has stalled
	started  uint64      // how many batches have left
	guarded  bool        // the timer of guard is set
	shared   bool        // the last batch had more than one op
	look     *time.Timer // calls lookAtBatches
	watched  bool        // look is set
}

// A batch is some ops that travel together. The batch is also the context of their commands, and ends when it is given up:
// go-redis then sends none of the commands that it has not sent yet.
type batch struct {
	context.Context
	batcher *batcher
	store   []Op          // copies: a caller with its answer uses its op again, and a batch that was given up still reads the copy
	ops     []*Op         // the elements of store
	began   time.Time     // when the batch left, or began to ask for the nodes of the cluster
	left    atomic.Bool   // began is set, and the time of the batch is bounded
	unwatch func()        // ends the copies of the batch; nil for none. Guarded by the batcher's mu, as givenUp is
	givenUp bool          // it is not in inFlight, and is not used again
	end     chan struct{} // closed when the batch is given up, and its callers have their answers
}

// Send sends the op together with others that are sent at the same time. It does not block. The caller gets the answer, or
// the error, by Answered. Where Redis does not answer, that is the error of go-redis, or the one of a batch that is
// abandoned: 5 s after the ReadTimeout of the Redis client and the Timeout of a Confirmation.
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

// TakeBack takes back an op that was given to Send and is in no batch yet, and tells whether it did. It returns false when a
// batch has the op already, so that its Sending comes or has come, and when the op was taken back before.
func (s *Scripts) TakeBack(op *Op) bool {
	b := op.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if op.state != waiting {
		return false
	}
	op.state = takenBack
	if b.gone++; b.gone > maxOps && b.gone > len(b.waiting)/2 {
		b.waiting = slices.DeleteFunc(b.waiting, func(op *Op) bool { return op.state == takenBack })
		b.gone = 0
	}
	return true
}

// idle tells that no op waits in the batcher or is under way. A Send that has looked the batcher up before may still add
// one.
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
		b.lookAfter(b.scripts.pace.silence() + b.slow)
	}
	go f.run()
}

// run fills and sends the batch again and again, until there are no ops for it.
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
		b.scripts.pace.note(time.Since(f.began) - b.slow)
	}
}

// Done implements context.Context.
func (f *batch) Done() <-chan struct{} { return f.end }

// Err implements context.Context.
func (f *batch) Err() error {
	select {
	case <-f.end:
		return context.Canceled
	default:
		return nil
	}
}

// growStack gives its goroutine a stack on which go-redis has room. It runs while the stack is still empty: to move a full
// stack later costs more than the whole command does.
//
//go:noinline
func growStack() byte {
	var room [stackSize]byte
	return room[runtime.NumCPU()%stackSize]
}

// yields tells whether the batcher lets the callers of the last batch run before it fills the next one. Several callers may
// have their next ops at once. Where many ops wait they leave before that, so that the server does not wait for a command.
func (b *batcher) yields() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shared && !b.hasMany()
}

// hasMany tells whether manyOps or more ops wait. With b.mu held.
func (b *batcher) hasMany() bool { return len(b.waiting)-b.gone >= manyOps }

// room is how many batches may be under way now. With b.mu held.
func (b *batcher) room() int {
	if b.most == maxInFlight && b.hasMany() {
		return maxInFlight + maxExtra
	}
	return b.most
}

// fill takes the next ops into the batch, and tells whether there are any. A batch without ops is over.
func (b *batcher) fill(f *batch) bool {
	stalled := f.left.Load() && time.Since(f.began) >= stallAfter
	b.mu.Lock()
	defer b.mu.Unlock()
	if f.givenUp {
		return false
	}
	f.left.Store(false)
	if stalled {
		b.most = max(b.most-1, maxInFlight)
	}
	if f.unwatch != nil {
		f.unwatch()
		f.unwatch, f.store, f.ops = nil, nil, nil // the copies refer to them
	}
	clear(f.store)
	f.store, f.ops = f.store[:0], f.ops[:0]
	taken := 0
	if len(b.inFlight) <= b.room() {
		f.store = slices.Grow(f.store, min(len(b.waiting)-b.gone, maxOps)) // ops points into store, which must not move below
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
		b.most = max(maxInFlight, min(b.most, len(b.inFlight)+1)) // guard may have raised most for ops that were taken back since
		f.batcher = nil
		b.scripts.spare.Put(f)
		return false
	}
	b.started++
	b.shared = len(f.ops) > 1
	return true
}

// guard lets one more batch leave, up to maxStalled, where ops wait and no batch has left for stallAfter: batches that have
// stalled do not keep other ops waiting. It looks again after each stallAfter as long as ops wait. With b.mu held.
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

// lookAfter has lookAtBatches called after d, which calls lookAfter as long as batches are under way. With b.mu held.
func (b *batcher) lookAfter(d time.Duration) {
	b.watched = true
	if b.look == nil {
		b.look = time.AfterFunc(d, b.lookAtBatches)
	} else {
		b.look.Reset(d)
	}
}

// lookAtBatches watches the batches that have no answer for a while, and gives up those that have been under way for b.bound: go-redis
// may wait for a dead connection without an end. The callers of their ops get an error, and other batches may leave in their place. The
// goroutine of a batch that was given up ends when go-redis lets go of the connection, so there are no more such goroutines than connections
// in the pool of go-redis.
func (b *batcher) lookAtBatches() {
	var over []*batch
	b.mu.Lock()
	silent := b.scripts.pace.silence() + b.slow
	now, next := time.Now(), silent
	for _, f := range slices.Clone(b.inFlight) {
		if !f.left.Load() {
			continue
		}
		took := now.Sub(f.began)
		switch {
		case took >= b.bound:
			b.giveUp(f)
			over = append(over, f)
		case took < silent:
			next = min(next, silent-took)
		case f.unwatch == nil:
			b.watch(f)
			fallthrough
		default:
			next = min(next, b.bound-took)
		}
	}
	if b.watched = len(b.inFlight) > 0; b.watched {
		b.lookAfter(next)
	}
	b.startNext()
	b.mu.Unlock()
	if len(over) == 0 {
		return
	}
	err := fmt.Errorf("no answer from Redis within %v: the connection may be dead, and a ReadTimeout of the Redis client ends it sooner", b.bound)
	b.scripts.astray(err)
	for _, f := range over {
		group(f.ops).answered(nil, err)
		close(f.end)
	}
}

// giveUp takes the batch from those under way. With b.mu held.
func (b *batcher) giveUp(f *batch) {
	b.inFlight = slices.DeleteFunc(b.inFlight, func(g *batch) bool { return g == f })
	b.most = max(b.most-1, maxInFlight)
	f.givenUp = true
	if f.unwatch != nil {
		f.unwatch()
	}
}

// startNext begins a batch where ops wait and there is room for one. With b.mu held.
func (b *batcher) startNext() {
	if len(b.waiting) > b.gone && len(b.inFlight) < b.room() {
		b.start()
	}
}
