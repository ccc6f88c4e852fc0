package scripts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Confirmation says who must have a change before the change counts: replicas in memory (WAIT), or the append-only files
// of the server and of replicas on disk (WAITAOF).
type Confirmation struct {
	Fsync    bool          // on disk; otherwise in memory
	Local    int           // with Fsync: 1 for the server's own file, 0 to do without it
	Replicas int           // how many replicas
	Timeout  time.Duration // how long the server waits for the confirmation, in whole milliseconds
}

// ErrUnconfirmed tells that an operation was done and is not to count: too few servers have confirmed it in time, or the
// request for the confirmation failed.
var ErrUnconfirmed = errors.New("not confirmed")

// Confirm asks from now on for a confirmation of every op that takes a lock or a token, or extends a lease. Where the
// confirmation is not given, the caller gets the op's Answer, with Held true, and an error that is ErrUnconfirmed. Confirm
// sends nothing. It is to be called before anything is sent.
func (s *Scripts) Confirm(c Confirmation) {
	s.confirm = &c
	s.confirmed = newBatchers(s, batchBound(s.rdb)+c.Timeout, c.Timeout)
}

// promises tells whether somebody will rely on what the op has done, so that the op needs a confirmation. A release needs
// none: if a failover forgets the release, the lock stays taken until the lease is over, which is late, and safe.
func (op *Op) promises() bool {
	return !op.isUnlock() && !op.onlyLine() && (op.kind.verb != ToLevel || op.fenced || op.lease > 0)
}

// deliverConfirmed is deliver of ops some of which need a confirmation. It asks for one confirmation for all ops that go to
// the same server.
func (s *Scripts) deliverConfirmed(ctx context.Context, ops []*Op) {
	if s.cluster == nil {
		s.exchange(ctx, route{on: s.rdb}, posted(s.group(ops), true), true)
		return
	}
	s.byNode(ctx, s.group(ops), func(on *redis.Client, groups []group) { s.exchange(ctx, route{on: on}, posted(groups, true), true) })
}

// sole is the Caller of an op that goes alone, and keeps the answer for doConfirmed.
type sole struct {
	answer Answer
	err    error
}

func (*sole) Sending(Caller) {}

func (o *sole) Answered(a Answer, err error) { o.answer, o.err = a, err }

// doConfirmed is Do of an op that needs a confirmation.
func (s *Scripts) doConfirmed(ctx context.Context, op Op) (Answer, error) {
	var heard sole
	op.caller, op.state = &heard, sent
	s.deliverConfirmed(ctx, []*Op{&op})
	return heard.answer, heard.err
}

// exec sends the pipeline, and at its end the request for the confirmation of all that is in it. failed is the first error.
// unconfirmed says why nothing in the pipeline is to count, or is nil.
func (s *Scripts) exec(ctx context.Context, pipe redis.Pipeliner) (failed, unconfirmed error) {
	ask := s.confirm.command(ctx)
	_ = pipe.Process(ctx, ask)
	_, failed = pipe.Exec(ctx)
	failed = s.astray(failed)
	reply, err := ask.Result()
	if err == nil && reply == nil {
		err = failed // a hook of the user's did not let the command through
	}
	return failed, s.confirm.verdict(reply, err)
}

// command is the request for the confirmation of all that went before it over its connection.
func (c *Confirmation) command(ctx context.Context) command {
	ms := c.Timeout.Milliseconds()
	if c.Fsync {
		return command{redis.NewCmd(ctx, "waitaof", c.Local, c.Replicas, ms)}
	}
	return command{redis.NewCmd(ctx, "wait", c.Replicas, ms)}
}

// verdict reads the reply to command. It is nil if the confirmation was given, and otherwise says what is missing.
func (c *Confirmation) verdict(reply any, err error) error {
	if err != nil {
		return c.refused(err)
	}
	var local, replicas int64
	if c.Fsync {
		pair, ok := reply.([]any)
		if !ok || len(pair) != 2 {
			return fmt.Errorf("%w: %w", ErrUnconfirmed, unexpected(reply))
		}
		if local, err = integer(pair[0]); err == nil {
			replicas, err = integer(pair[1])
		}
	} else {
		replicas, err = integer(reply)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	case local >= int64(c.Local) && replicas >= int64(c.Replicas):
		return nil
	case !c.Fsync:
		return fmt.Errorf("%w: %d of %d replicas had it within %v", ErrUnconfirmed, replicas, c.Replicas, c.Timeout)
	}
	return fmt.Errorf("%w: %d of %d replicas, and %d of %d servers themselves, had it on disk within %v",
		ErrUnconfirmed, replicas, c.Replicas, local, c.Local, c.Timeout)
}

// confirmHints say what to do about an error reply to a request for a confirmation, by WAIT and by WAITAOF.
var confirmHints = []struct{ reply, memory, disk string }{
	{"unknown command", noWait, noWaitAOF},
	{"unsupported command", noWait, noWaitAOF}, // Envoy
	{"appendonly is disabled", "", "set appendonly yes on the server, or do without its own disk"},
	{"NOPERM", "the Redis user needs WAIT", "the Redis user needs WAITAOF"},
}

const (
	noWait    = "the server, or a proxy in front of it, has no WAIT: leave WithReplicas out, or use another server"
	noWaitAOF = "WAITAOF needs Redis 7.2 or later, or Valkey, and a proxy that knows it: leave WithFsync out, or use another server"
)

func (c *Confirmation) refused(err error) error {
	for _, h := range confirmHints {
		hint := h.memory
		if c.Fsync {
			hint = h.disk
		}
		if hint != "" && strings.Contains(err.Error(), h.reply) {
			return fmt.Errorf("%w: %w (%s)", ErrUnconfirmed, err, hint)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}
