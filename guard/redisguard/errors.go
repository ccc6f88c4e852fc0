package redisguard

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ErrUnknown tells that the write may or may not have happened, now or later: no reply came, and it may have been sent.
// The cause is in the error too. From Do and Eval of a Writer. Repeat the write only if doing it twice is the same as
// once, or through Once. To look whether it was written take a new token first, and read through a Writer with that: under
// the old token the write may still arrive after the look, and be accepted.
var ErrUnknown = errors.New("the write may or may not have happened")

// errNoContext refuses a nil context, which would panic further in.
var errNoContext = errors.New("ctx is nil: pass the caller's, or context.Background() where there is none")

// errReply tells of a reply that the scripts do not give: something that is not Redis, or a key that somebody else wrote.
var errReply = errors.New("unexpected reply")

func wrap(op, resource string, err error) error {
	var said redis.Error
	if errors.As(err, &said) {
		for _, words := range []string{"nknown command 'eval", "unsupported command 'eval", "scripting support disabled"} {
			if strings.Contains(strings.ReplaceAll(strings.ToLower(said.Error()), "`", "'"), words) { // as Redis 6.2 has them
				err = fmt.Errorf("%w (the guard is a Lua script: use a server, or a way past the proxy, that runs scripts)", err)
			}
		}
	}
	return fmt.Errorf("redisguard: %s of %q: %w", op, resource, err)
}

// unanswered tells that after err nobody knows whether the command was, or will be, executed.
func unanswered(err error) bool {
	var said redis.Error // an error reply: the scripts make sure that nothing was done
	if errors.As(err, &said) {
		return false
	}
	var op *net.OpError
	switch {
	case strings.Contains(err.Error(), "redis: can't marshal"):
		return false // an argument of a type that go-redis cannot write: the command was not sent to its end
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return false // there was no connection to send it on
	}
	return true
}

// undeclared tells that the server has refused a script because of a key that it had not declared, in the words of Dragonfly.
func undeclared(err error) bool {
	var said redis.Error
	return errors.As(err, &said) && strings.Contains(said.Error(), "undeclared key")
}
