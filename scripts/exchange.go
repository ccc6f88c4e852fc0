package scripts

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// A parcel is what one command of an exchange carries: some ops, or some renewals. The exchange ends with failed, or with read and
// then confirmed.
type parcel interface {
	script() *script
	args() []any

	several() bool            // it is for more than one lock
	apart() []parcel          // one for each of them
	unlined(err error) parcel // what does the same without the line, where that may be why it was refused; otherwise nil

	failed(err error)            // an error came in place of the reply
	early() bool                 // it reads the reply before those behind it are there, and the confirmation
	read(reply any)              // the reply is there; confirmed follows
	confirmed(unconfirmed error) // nil: what was done is to count
}

// A postedCommand has its parcel read the reply as soon as that is there, where the parcel does.
type postedCommand struct {
	command
	parcel parcel
	isRead bool
}

// SetErr implements redis.Cmder.
func (c *postedCommand) SetErr(err error) {
	c.command.SetErr(err)
	if reply := c.Val(); err == nil && reply != nil && !c.isRead && c.parcel.early() {
		c.isRead = true
		c.parcel.read(reply)
	}
}

// exchange sends a command for each parcel by this route, in one round trip, and with confirm behind them the request for their
// confirmation. A parcel is sent again where the server has not got its script, refuses a command for several locks, or the line,
// and where it has given the keys to another node.
func (s *Scripts) exchange(ctx context.Context, to route, parcels []parcel, confirm bool) {
	pipe := to.on.Pipeline()
	cmds := make([]*postedCommand, len(parcels))
	for i, p := range parcels {
		cmds[i] = &postedCommand{command: command{redis.NewCmd(ctx, to.args(ctx, pipe, p.script(), p.args())...)}, parcel: p}
		_ = pipe.Process(ctx, cmds[i])
	}
	var failed, unconfirmed error
	if confirm {
		failed, unconfirmed = s.exec(ctx, pipe)
	} else {
		_, failed = pipe.Exec(ctx)
	}
	var again, split, unlined []parcel
	moved := make(map[string][]parcel)
	for _, cmd := range cmds {
		p := cmd.parcel
		if cmd.isRead {
			p.confirmed(unconfirmed)
			continue
		}
		reply, err := cmd.Result()
		if err == nil && reply == nil {
			err = failed // a hook of the user's did not let the command through
		}
		err = s.astray(err)
		addr, ask := s.asked(to, err)
		var without parcel
		several := p.several()
		if err != nil && !several {
			without = p.unlined(err)
		}
		switch {
		case err == nil:
			p.read(reply)
			p.confirmed(unconfirmed)
		case unknown(err) && !to.text:
			again = append(again, p)
		case several && (s.refused(err) || ask): // Redis 6 says ASK also while some of the keys are on this node
			split = append(split, p.apart()...)
		case without != nil:
			unlined = append(unlined, without)
		case ask:
			moved[addr] = append(moved[addr], p)
		default:
			p.failed(err)
		}
	}
	if len(again) > 0 {
		s.exchange(ctx, route{on: to.on, asking: to.asking, from: to.from, text: true}, again, confirm)
	}
	if len(split) > 0 {
		s.exchange(ctx, route{on: to.on}, split, confirm)
	}
	if len(unlined) > 0 {
		on := to.on
		if to.asking {
			on = to.from // Redis 6 says ASK also where the lock is on that node, and the line is not
		}
		s.exchange(ctx, route{on: on}, unlined, confirm)
	}
	for addr, parcels := range moved {
		s.follow(to, addr, func(to route) { s.exchange(ctx, to, parcels, confirm) })
	}
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
