package redisguard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// maxArgs bounds the arguments of a command in Do: Lua cannot pass on many more, and says so too late.
const maxArgs = 7000

// Writer writes to one resource under one token. It is a value that may be kept for as long as its token, copied, and
// used by any number of goroutines.
type Writer struct {
	guard    *Guard
	resource string
	token    int64
	once     bool
	id       string
}

// Do runs one command, if no larger token was accepted for the resource, and remembers the token: w.Do(ctx, "SET", key,
// value). The arguments and the Cmd are as those of rdb.Do, and the command's name is a string; nil is redis.Nil.
//
// Errors: guard.ErrStale and guard.ErrToken, this call has written nothing; [ErrUnknown], it may have done so, or may do so later; what Redis says of the
// command (an error reply, found by errors.As as a redis.Error), the connection or the context, wrapped with the command
// and the resource: nothing was written, but for what few commands (MIGRATE) do before they fail. The token counts where
// the command was begun. Commands that Redis does not allow in scripts (SUBSCRIBE, MULTI, EVAL) are an error, and so are
// SELECT, SWAPDB, FLUSHDB and FLUSHALL; for Lua there is Eval. A command that blocks (BLPOP, XREAD BLOCK) does not wait in a
// script: by the server's version it answers as if its time were over, or is an error. A command that deletes or changes the
// marker is done, and is an error all the same.
func (w Writer) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	reply, err := w.command(ctx, args)
	return settle(cmd, reply, err)
}

// Eval runs a Lua script, if no larger token was accepted for the resource, and remembers the token. keys and args are
// KEYS and ARGV of the script, as in rdb.Eval; it is sent by its digest where the server knows it. Let the text be a
// constant, with what changes in args: Redis keeps each text. It may not begin with a #! line, and
// has to be a script by itself, which nobody checks: it becomes the body of a function, and with an end of its own too
// many what follows runs without the check.
//
// The script must not use SELECT, SWAPDB, FLUSHDB or FLUSHALL, nor change the marker: that is an error after the script
// has run, and what it did stays. It must not use redis.setresp, above all with Once, which does not keep the replies of
// RESP3. SCRIPT KILL cannot end it, because the marker was written before it began: let it be short.
//
// The errors are those of Do. What the script wrote before it raised or returned an error stays, as with rdb.Eval, and the
// token counts, so that no older one gets in over the half: let it check first and write then.
func (w Writer) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	line := append(make([]any, 0, 3+len(keys)+len(args)), "eval", script, len(keys))
	for _, k := range keys {
		line = append(line, k)
	}
	cmd := redis.NewCmd(ctx, append(line, args...)...)
	if strings.HasPrefix(script, "#!") {
		return settle(cmd, nil, wrap("eval", w.resource, errors.New("a guarded script cannot have a #! line: leave it out")))
	}
	if err := w.check(ctx, "eval"); err != nil {
		return settle(cmd, nil, err)
	}
	reply, err := w.run(ctx, "eval", newEval(script), keys, args)
	return settle(cmd, reply, err)
}

// Once returns a Writer whose write is done at most once for this id, among all writers of the resource, whatever their
// tokens. An id is for one Do or Eval. The same call may then be repeated after [ErrUnknown], also by a later holder that
// takes over the job. A repeat does nothing and returns the reply of the first time, even if its token is stale by now: do
// not take that for a read. A repeat is no write: its token is not remembered, and shuts out no older holder. The id is
// remembered together with the write (see WithOnceMemory). After a write that fails the id may be used again. Choose an id
// that says what is done: that of the message, the order, the job.
func (w Writer) Once(id string) Writer {
	w.once, w.id = true, id
	return w
}

func settle(cmd *redis.Cmd, reply any, err error) *redis.Cmd {
	cmd.SetVal(reply)
	cmd.SetErr(err)
	return cmd
}

func (w Writer) command(ctx context.Context, args []any) (any, error) {
	if len(args) == 0 {
		return nil, wrap("Do", w.resource, errors.New("name a command"))
	}
	op, err := name(args[0])
	if err != nil {
		return nil, wrap("Do", w.resource, err)
	}
	if err := w.check(ctx, op); err != nil {
		return nil, err
	}
	switch strings.ToLower(op) {
	case "select", "swapdb", "flushdb", "flushall":
		return nil, wrap(op, w.resource, errors.New("it would leave the marker in another database, or delete it: use the client itself"))
	}
	if len(args) > maxArgs {
		return nil, wrap(op, w.resource, fmt.Errorf("%d arguments are too many for one command in a script: use %d or less, or Eval", len(args), maxArgs))
	}
	named := append([]any{markerOf(w.resource)}, args...)
	if !w.guard.sharded && !w.guard.insists.Load() {
		reply, err := w.run(ctx, op, do, nil, named)
		if !undeclared(err) {
			return reply, err
		}
		w.guard.insists.Store(true) // the command was refused, and so not done
	}
	keys, err := w.guard.keysOf(ctx, args)
	if err != nil {
		return nil, wrap(op, w.resource, err)
	}
	if err := ctx.Err(); err != nil { // again: the server may have been asked
		return nil, wrap(op, w.resource, err)
	}
	return w.run(ctx, op, do, keys, named)
}

// check looks at what is known before anything is sent.
func (w Writer) check(ctx context.Context, op string) error {
	if err := guard.Check(w.resource, w.token); err != nil {
		return err
	}
	if ctx == nil {
		return wrap(op, w.resource, errNoContext)
	}
	if w.once && w.id == "" {
		return wrap(op, w.resource, errors.New("name the operation: Once needs an id"))
	}
	if err := ctx.Err(); err != nil {
		return wrap(op, w.resource, err) // go-redis might find out after it has begun
	}
	return nil
}

// run sends the script and reads its reply.
func (w Writer) run(ctx context.Context, op string, sc script, keys []string, args []any) (any, error) {
	if w.guard.sharded {
		if err := checkSlot(w.resource, keys); err != nil {
			return nil, wrap(op, w.resource, err)
		}
	}
	all := append(make([]string, 0, 2+len(keys)), markerOf(w.resource))
	head := append(make([]any, 0, 3+len(args)), w.token, int64(0), int64(0))
	if w.guard.expiry != forever {
		head[1] = w.guard.expiry.Milliseconds()
	}
	if w.once {
		all = append(all, onceOf(w.resource, w.id))
		head[2] = w.guard.memory.Milliseconds()
	}
	reply, err := w.guard.run(ctx, sc, append(all, keys...), append(head, args...))
	if err == nil {
		reply, err = w.parse(reply)
	} else if unanswered(err) {
		err = fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	var stale *guard.StaleError
	if errors.As(err, &stale) {
		w.guard.trace.Refused(locktrace.WriteRefused{Context: ctx, Guard: "redis", Resource: stale.Resource, Token: stale.Token, Seen: stale.Seen})
		return reply, err
	}
	if err == nil || err == redis.Nil {
		return reply, err
	}
	return nil, wrap(op, w.resource, err)
}
