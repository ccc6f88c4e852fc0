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

// A pipeliner makes pipelines. For one server, the commands of a pipeline go over one connection.
type pipeliner interface{ Pipeline() redis.Pipeliner }

// A route is how commands go to the one server that has their keys. A server confirms what came over the same connection as
// the request for the confirmation, and a cluster client would send that request to any node.
type route struct {
	on     pipeliner
	text   bool      // the commands carry the text of their scripts
	asking bool      // on is to get the slot of the commands, and has their keys already: each needs an ASKING before it
	from   pipeliner // with asking, the node that still has the slot
}

// args returns the script's command as it is to be added to the pipe next. On a route with asking it adds an ASKING first.
func (to route) args(ctx context.Context, pipe redis.Pipeliner, sc *script, args []any) []any {
	if to.asking {
		_ = pipe.Process(ctx, command{redis.NewCmd(ctx, "asking")})
	}
	if to.text {
		return sc.whole(args)
	}
	return args
}

// asked tells that a command's slot is moving from the node of the route to another one, which has the command's keys by
// now, and returns the address of that. Without confirmations the cluster client finds the node, and follows by itself.
func (s *Scripts) asked(to route, err error) (addr string, ask bool) {
	if s.cluster == nil || s.confirm == nil || to.asking {
		return "", false
	}
	return redis.IsAskError(err)
}

// follow calls send with a route to the node at this address, by a Redis client of its own. The cluster client may not know
// that node yet, and returns no client for an address.
func (s *Scripts) follow(from route, addr string, send func(route)) {
	o := *from.on.(*redis.Client).Options()
	o.Addr, o.MinIdleConns = addr, 0
	node := s.cluster.Options().NewClient(&o)
	defer func() { _ = node.Close() }()
	send(route{on: node, asking: true, from: from.on})
}

// deliverConfirmed is deliver of ops some of which need a confirmation. It asks for one confirmation for all ops that go to
// the same server.
func (s *Scripts) deliverConfirmed(ctx context.Context, ops []*Op) {
	if s.cluster == nil {
		s.sendConfirmed(ctx, route{on: s.rdb}, s.group(ops))
		return
	}
	s.byNode(ctx, s.group(ops), func(on *redis.Client, groups []group) { s.sendConfirmed(ctx, route{on: on}, groups) })
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

// sendConfirmed sends a command for each group, and behind them the request for their confirmation.
func (s *Scripts) sendConfirmed(ctx context.Context, to route, groups []group) {
	pipe := to.on.Pipeline()
	cmds := make([]*prompt, len(groups))
	for i, g := range groups {
		args := to.args(ctx, pipe, g.script(), g.args())
		cmds[i] = &prompt{command: command{redis.NewCmd(ctx, args...)}, group: g}
		_ = pipe.Process(ctx, cmds[i])
	}
	failed, unconfirmed := s.exec(ctx, pipe)
	var again, split, unlined []group
	moved := make(map[string][]group)
	for _, cmd := range cmds {
		reply, err := cmd.Result()
		err = s.astray(err)
		if err == nil && !cmd.read {
			if reply != nil {
				cmd.look(reply)
			} else {
				err = failed // a hook of the user's did not let the command through
			}
		}
		addr, ask := s.asked(to, err)
		switch g := cmd.group; {
		case cmd.read:
			for _, p := range cmd.promises {
				p.op.tell(p.answer, unconfirmed)
			}
		case unknown(err) && !to.text:
			again = append(again, g)
		case len(g) > 1 && (s.refused(err) || ask): // Redis 6 says ASK also while some of the keys are on this node
			split = append(split, apart(g)...)
		case len(g) == 1 && g[0].lineRefused(err):
			unlined = append(unlined, group{g[0].withoutLine(err)})
		case ask:
			moved[addr] = append(moved[addr], g)
		default:
			g.answered(nil, err)
		}
	}
	if len(again) > 0 {
		s.sendConfirmed(ctx, route{on: to.on, asking: to.asking, from: to.from, text: true}, again)
	}
	if len(split) > 0 {
		s.sendConfirmed(ctx, route{on: to.on}, split)
	}
	if len(unlined) > 0 {
		on := to.on
		if to.asking {
			on = to.from // Redis 6 says ASK also where the lock is on that node, and the line is not
		}
		s.sendConfirmed(ctx, route{on: on}, unlined)
	}
	for addr, groups := range moved {
		s.follow(to, addr, func(to route) { s.sendConfirmed(ctx, to, groups) })
	}
}

// A prompt is the command of a group. go-redis sets the command's error as soon as it has read the reply, and goes on to
// wait for the confirmation. In between the prompt answers the ops that need no confirmation, or have got nothing.
type prompt struct {
	command
	group    group
	read     bool
	promises []promise
}

// A promise is an op whose answer waits for the confirmation.
type promise struct {
	op     *Op
	answer Answer
}

// SetErr implements redis.Cmder.
func (p *prompt) SetErr(err error) {
	p.command.SetErr(err)
	if reply := p.Val(); err == nil && reply != nil && !p.read {
		p.look(reply)
	}
}

// look reads the reply, and answers the ops that do not wait for the confirmation.
func (p *prompt) look(reply any) {
	p.read = true
	tell := func(op *Op, a Answer, err error) {
		if err == nil && a.Held && op.promises() {
			p.promises = append(p.promises, promise{op, a})
		} else {
			op.tell(a, err)
		}
	}
	if len(p.group) > 1 {
		parseBatch(p.group, reply, nil, tell)
		return
	}
	op := p.group[0]
	a, err := op.parse(reply, nil)
	tell(op, a, err)
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

// confirmHints say what to do about an error reply to a request for a confirmation.
var confirmHints = []struct{ reply, hint string }{
	{"unknown command", "WAIT needs Redis, WAITAOF Redis 7.2 or later, or Valkey; a proxy may have neither: leave WithFsync out, or use another server"},
	{"appendonly is disabled", "set appendonly yes on the server, or do without its own disk"},
	{"NOPERM", "the Redis user needs WAIT, or WAITAOF"},
}

func (c *Confirmation) refused(err error) error {
	for _, h := range confirmHints {
		if strings.Contains(err.Error(), h.reply) {
			return fmt.Errorf("%w: %w (%s)", ErrUnconfirmed, err, h.hint)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}
