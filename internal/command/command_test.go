package command

import (
	"context"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/scripts"
)

// copies is a Store in which each copy of a command has an outcome of its own. What follows the
// last outcome has the last one's.
type copies struct {
	Store
	outcomes []copyOutcome
	sent     atomic.Int64
}

type copyOutcome struct {
	stays  bool          // no connection is free for the copy until it is taken back
	after  time.Duration // of the answer
	answer scripts.Answer
	err    error
}

func (s *copies) next() copyOutcome {
	n := int(s.sent.Add(1))
	return s.outcomes[min(n, len(s.outcomes))-1]
}

// Send implements Store.
func (s *copies) Send(_ *scripts.Op, caller scripts.Caller) {
	o := s.next()
	if o.stays {
		return
	}
	go func() {
		caller.Sending(nil)
		time.Sleep(o.after)
		caller.Answered(o.answer, o.err)
	}()
}

// TakeBack implements Store.
func (s *copies) TakeBack(*scripts.Op) bool { return s.outcomes[0].stays }

// Do implements Store.
func (s *copies) Do(ctx context.Context, _ scripts.Op) (scripts.Answer, error) {
	o := s.next()
	if !Sleep(ctx, max(o.after, 1)) {
		return scripts.Answer{}, ctx.Err()
	}
	return o.answer, o.err
}

// P12: what becomes of a command that is repeated until it is answered: the answer to any of its
// copies, and whether one without an answer may have been executed, so that a repeat which finds
// nothing to do is no loss.
func TestP12_CopiesOfACommand(t *testing.T) {
	const (
		bound, each = time.Second, 300 * time.Millisecond
		ms          = time.Millisecond
		loading     = locktest.Reply("LOADING Redis is loading the dataset in memory")
		wrongType   = locktest.Reply("WRONGTYPE Operation against a key holding the wrong kind of value")
	)
	done := scripts.Answer{Held: true}
	silence := copyOutcome{after: time.Minute, err: io.EOF}
	for _, c := range []struct {
		what          string
		outcomes      []copyOutcome
		until         time.Duration // when the caller's context ends; 0: never
		held          bool
		maybeExecuted bool
		err           error
		took          time.Duration
	}{
		{what: "it is answered", outcomes: []copyOutcome{{after: 10 * ms, answer: done}}, held: true, took: 10 * ms},
		{what: "an error that stays", outcomes: []copyOutcome{{err: wrongType}}, err: wrongType},
		{what: "refused, and answered", outcomes: []copyOutcome{{err: loading}, {answer: done}}, held: true, took: 10 * ms},
		{what: "refused twice, and it finds nothing", outcomes: []copyOutcome{{err: loading}, {err: loading}, {}}, took: 20 * ms},
		{what: "no answer, and it finds nothing", outcomes: []copyOutcome{{err: os.ErrDeadlineExceeded}, {}}, maybeExecuted: true, took: 10 * ms},
		{what: "no answer, refused, and it finds nothing", outcomes: []copyOutcome{{err: os.ErrDeadlineExceeded}, {err: loading}, {}}, maybeExecuted: true, took: 20 * ms},
		{what: "refused, no answer, and it finds nothing", outcomes: []copyOutcome{{err: loading}, {err: os.ErrDeadlineExceeded}, {}}, maybeExecuted: true, took: 20 * ms},
		{
			what: "refused, no answer, refused, and it finds nothing", outcomes: []copyOutcome{{err: loading}, {err: os.ErrDeadlineExceeded}, {err: loading}, {}},
			maybeExecuted: true, took: 40 * ms,
		},
		{what: "connections that have ended, and it finds nothing", outcomes: []copyOutcome{{err: io.EOF}, {err: io.EOF}, {err: io.EOF}, {}}, maybeExecuted: true, took: 3 * ms},
		{what: "it has not left, and its repeat finds nothing", outcomes: []copyOutcome{{stays: true}, {}}, took: 310 * ms},
		{what: "it is answered late, before its repeat", outcomes: []copyOutcome{{after: 305 * ms, answer: done}, silence}, held: true, took: 305 * ms},
		{what: "it is answered late, beside its repeat", outcomes: []copyOutcome{{after: 350 * ms, answer: done}, silence}, held: true, maybeExecuted: true, took: 350 * ms},
		{
			what: "it fails late, beside its repeat", outcomes: []copyOutcome{{after: 350 * ms, err: io.EOF}, {after: 100 * ms, answer: done}},
			held: true, maybeExecuted: true, took: 410 * ms,
		},
		{what: "refused, and silence", outcomes: []copyOutcome{{err: loading}, silence}, maybeExecuted: true, err: loading, took: bound},
		{what: "silence", outcomes: []copyOutcome{silence}, maybeExecuted: true, err: context.DeadlineExceeded, took: bound},
		{what: "silence, and the caller leaves", outcomes: []copyOutcome{silence}, until: 50 * ms, maybeExecuted: true, err: context.DeadlineExceeded, took: 50 * ms},
	} {
		redistest.Bubble(t, func(t *testing.T) {
			ctx := t.Context()
			if c.until > 0 {
				short, cancel := context.WithTimeout(ctx, c.until)
				defer cancel()
				ctx = short
			}
			s, began := &Sender{Store: &copies{outcomes: c.outcomes}}, time.Now()
			answer, maybeExecuted, err := s.Do(ctx, began, bound, each, scripts.Op{})
			took := time.Since(began).Truncate(ms)
			if answer.Held != c.held || maybeExecuted != c.maybeExecuted || !errors.Is(err, c.err) || took != c.took {
				t.Errorf("%s: held %v, maybe executed %v, %v, after %v", c.what, answer.Held, maybeExecuted, err, took)
			}
			time.Sleep(2 * time.Minute) // what is answered later changes nothing
		})
	}
}

// P19: what is to follow a command, such as a leave of the line, is done when the command is over,
// or at once where it is, and once.
func TestP19_AfterACommand(t *testing.T) {
	for what, over := range map[string]bool{"while the command is under way": false, "when it is over": true} {
		called := 0
		f := new(Sender).New(scripts.Op{}, nil, new(Sender).Wakeup())
		if over {
			f.finish()
		}
		f.AfterFunc(func() { called++ })
		if !over {
			locktest.Equal(t, what+": called before the end", called, 0)
			f.finish()
		}
		locktest.Equal(t, what+": called", called, 1)
	}
}
