package scripts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

const (
	// silentAfter is how long a command may be without an answer before the client looks whether its server answers; maxSilentAfter how long where
	// that is far away (pace).
	silentAfter    = 300 * time.Millisecond
	maxSilentAfter = 5 * time.Second
	// maxCopies bounds the copies of all commands of a Scripts that are under way.
	maxCopies = 16
)

// A connection whose other end is gone without a word, as behind a firewall that has forgotten its connections, fails only after the
// ReadTimeout of go-redis, which hands out all of its idle connections before it dials. So no command waits for one connection alone. Where
// it has no answer for a while, and its server answers a PING, a copy of the command is sent, over the connection that has answered if
// go-redis hands that out. The first answer counts. Redis may execute several of the copies: all commands count once (invariant 5). Such
// requests are called hedged (Dean and Barroso, The Tail at Scale, 2013).

// again calls send for a copy of a command that has no answer, and after twice the pause each time again, until ctx ends. It calls send only
// when the server that has this key answers what was sent after the command, at this time. slow is how long the command takes on a server that answers.
func (s *Scripts) again(ctx context.Context, key string, sent time.Time, step, slow time.Duration, send func(context.Context)) {
	for pause := step; ; pause *= 2 {
		if s.alive(ctx, key, sent, step) {
			select {
			case s.copies <- struct{}{}:
				go func() {
					defer func() { <-s.copies }()
					send(ctx)
				}()
			default:
			}
		}
		select {
		case <-time.After(pause + slow):
		case <-ctx.Done():
			return
		}
	}
}

// The states of hedged.
const (
	single int32 = iota
	copied
	decided
)

// hedged calls send, and calls it again beside a call that has no outcome, as again says. The outcome is the one of the first call, or that
// of a later call that is final. copies tells whether there was a later call: one without an outcome may be executed still.
func hedged[T any](ctx context.Context, s *Scripts, key string, slow time.Duration, send func(context.Context) T, final func(T) bool) (outcome T, copies bool) {
	step := s.pace.silence()
	if deadline, bounded := ctx.Deadline(); bounded {
		step = max(min(step, time.Until(deadline)/5), time.Millisecond)
	}
	first, later, sent := make(chan T, 1), make(chan T, 1), time.Now()
	go func() { first <- send(ctx) }()
	var state atomic.Int32
	rest, cancel := context.WithCancel(ctx)
	defer cancel()
	look := time.AfterFunc(step+slow, func() {
		s.again(rest, key, sent, step, slow, func(ctx context.Context) {
			if !state.CompareAndSwap(single, copied) && state.Load() == decided {
				return
			}
			if o := send(ctx); final(o) {
				select {
				case later <- o:
				default:
				}
			}
		})
	})
	defer look.Stop()
	select {
	case outcome = <-first:
		s.pace.note(time.Since(sent) - slow)
	case outcome = <-later:
	}
	return outcome, state.Swap(decided) == copied
}

// final tells that err, of a copy, is the outcome of the command: the copy has been answered, and the same error would follow.
func final(err error) bool {
	return err == nil || errors.Is(err, ErrUnconfirmed) || answered(err) && !Passing(err)
}

// Renew extends the leases of the holds, and sets the Err of each. With lease 0 it only asks whether the hold is there.
// Where the Redis client is a cluster client, all locks must be in one slot. Where a command for several locks is refused as
// a whole, Renew goes on lock by lock, in one round trip. It remembers that a proxy refuses several slots in one command.
func (s *Scripts) Renew(ctx context.Context, holds []Renewal) {
	for i, r := range s.Renewed(ctx, holds) {
		holds[i].Err = r.Err
	}
}

// Renewed is Renew that leaves holds as they are, and returns what became of them.
func (s *Scripts) Renewed(ctx context.Context, holds []Renewal) []Renewal {
	if len(holds) == 0 {
		return nil
	}
	outcome, _ := hedged(ctx, s, holds[0].Keys.Lock, s.confirmTime(), func(ctx context.Context) []Renewal {
		own := make([]Renewal, len(holds))
		for i := range holds { // a late copy reads holds while the caller reads Err
			own[i] = Renewal{Keys: holds[i].Keys, Field: holds[i].Field, Lease: holds[i].Lease}
		}
		s.renewPastStale(ctx, own)
		return own
	}, func(o []Renewal) bool { return slices.ContainsFunc(o, Renewal.decided) })
	return outcome
}

// decided tells that Redis has said what became of the renewal.
func (r Renewal) decided() bool {
	return r.Err == nil || errors.Is(r.Err, ErrGone) || errors.Is(r.Err, ErrUnconfirmed)
}

// confirmTime returns how long an operation waits for its confirmation; 0 where none is asked for.
func (s *Scripts) confirmTime() time.Duration {
	if s.confirm == nil {
		return 0
	}
	return s.confirm.Timeout
}

// errOvertaken is the answer to an op that is sent once, where the server has answered over another connection what was sent later.
var errOvertaken = fmt.Errorf("no answer over a connection that may be dead: %w", context.DeadlineExceeded)

// watch sends copies of a batch that has no answer, until the batch is over. Who has sent an op of which there are no copies is told. With b.mu held.
func (b *batcher) watch(f *batch) {
	var rest context.Context
	rest, f.unwatch = context.WithCancel(context.Background())
	ops := f.ops
	if len(ops) == 0 {
		return // a cluster client loads the nodes of the cluster first
	}
	go b.scripts.again(rest, ops[0].keys.Lock, f.began, b.scripts.pace.silence(), b.slow, func(ctx context.Context) {
		var copies []*Op
		for _, op := range ops {
			if op.kind.ballot {
				continue // a node of a quorum is asked again in another round
			} else if op.isSentOnce() {
				op.tell(Answer{}, errOvertaken) // its caller asks anew, with another field (P43)
			} else if c := op.copied(); c != nil {
				copies = append(copies, c)
			}
		}
		if len(copies) > 0 {
			b.scripts.deliver(ctx, copies)
		}
		if !slices.ContainsFunc(ops, func(op *Op) bool { return atomic.LoadInt32(&op.state) != told }) {
			b.overtaken(ctx, f)
		}
	})
}

// overtaken takes a batch all of whose ops a copy has answered from the batches under way: others may leave in its place.
func (b *batcher) overtaken(ctx context.Context, f *batch) {
	b.mu.Lock()
	if ctx.Err() != nil { // the batch is over
		b.mu.Unlock()
		return
	}
	b.giveUp(f)
	b.startNext()
	b.mu.Unlock()
	close(f.end)
}

// copied returns a copy of the op that is to be sent beside the op; nil where the op has its answer.
func (op *Op) copied() *Op {
	if !atomic.CompareAndSwapInt32(&op.state, sent, doubled) && atomic.LoadInt32(&op.state) == told {
		return nil
	}
	c := op.another()
	c.beside = true
	return c
}

// another returns the op as one that stands for the same: one answer to both is told.
func (op *Op) another() *Op {
	of := op
	if op.of != nil {
		of = op.of
	}
	return &Op{
		kind: op.kind, keys: op.keys, fenced: op.fenced, floored: op.floored, outside: op.outside, request: op.request,
		caller: op.caller, batcher: op.batcher, of: of, beside: op.beside,
	}
}

// tell gives the op's caller the answer, unless the caller has one already. An error of a copy is told only if it is final.
func (op *Op) tell(a Answer, err error) {
	if op.beside && !final(err) {
		return
	}
	of := op
	if op.of != nil {
		of = op.of
	}
	switch atomic.SwapInt32(&of.state, told) {
	case told:
		return
	case doubled:
		a.Copies = op.batcher.bound
	}
	op.caller.Answered(a, err)
}
