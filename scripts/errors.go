package scripts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A several is an error of several servers, which says itself what the two functions below tell of others.
type several interface {
	error
	Unanswered() bool
	Passing() bool
}

// oneNode is what a node of a cluster says to a client that talks to no other: that does not go away.
type oneNode struct{ error }

func (e *oneNode) Error() string {
	return e.error.Error() + " (the server is one node of a cluster: use redis.NewClusterClient)"
}

func (e *oneNode) Unwrap() error  { return e.error }
func (*oneNode) Unanswered() bool { return false }
func (*oneNode) Passing() bool    { return false }

// Unanswered tells that after err nobody knows whether the command was, or will be, executed: no reply came, and it may
// have been sent.
func Unanswered(err error) bool {
	if err == nil {
		return false
	}
	var of several
	if errors.As(err, &of) {
		return of.Unanswered()
	}
	if answered(err) || errors.Is(err, ErrUnconfirmed) {
		return false
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return false // there was no connection to send it on
	}
	return true
}

// Refused tells that err says that the command was not executed, and may be wrong: a hook of the user's can return an
// error reply, or redis.ErrClosed, after the command has run. A server that asks for a password has run none, and takes no
// command as long as those of many ops together.
func Refused(err error) bool {
	var of several
	return err != nil && !errors.As(err, &of) && (answered(err) || errors.Is(err, redis.ErrClosed)) &&
		!redis.HasErrorPrefix(err, "NOAUTH") && !redis.HasErrorPrefix(err, "WRONGPASS")
}

// answered tells that err is what Redis said: an error reply, which the scripts make sure left nothing behind, or a
// reply that is none of theirs.
func answered(err error) bool {
	var said redis.Error
	return errors.As(err, &said) || errors.Is(err, errReply)
}

// passing are the error replies of a server that is on its way up, being replaced, or busy.
var passing = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY ", "UNBLOCKED", "max number of clients reached",
}

// Passing tells that err goes away by itself in the ordinary life of a Redis installation: a restart, a failover, a
// connection that broke. What stays wrong until somebody mends it (a password, a type, memory) is not.
func Passing(err error) bool {
	var of several
	if errors.As(err, &of) {
		return of.Passing()
	}
	var untrusted *tls.CertificateVerificationError
	if err == nil || errors.Is(err, redis.ErrClosed) || errors.Is(err, context.Canceled) || errors.As(err, &untrusted) {
		return false
	}
	if !answered(err) {
		return true
	}
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	if _, moved := redis.IsMovedError(err); moved {
		return true
	}
	if _, ask := redis.IsAskError(err); ask {
		return true
	}
	text := said.Error() // its own words: err's may hold names, and a lock may be called LOADING
	for _, p := range passing {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// crossSlot tells that a command was refused because its keys are not in one slot.
func crossSlot(err error) bool { return err != nil && strings.Contains(err.Error(), "CROSSSLOT") }

// forbidden tells that the user has no right to the whole command, maybe for one of its keys, and that nothing was done:
// what a script may not do has other words.
func forbidden(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOPERM") }

// split tells that the slot of a command's keys is on its way to another node, that only some of them are here, and that nothing was
// done.
func split(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

const rights = "the Redis user needs EVALSHA, EVAL, HEXISTS, EXISTS, HGET, HMGET, HSET, HDEL, HKEYS, HINCRBY, GET, SET, INCRBY, TIME, DEL, PTTL, PEXPIRE, PUBLISH, ZADD, ZCARD, ZRANGE, ZRANK, ZREM, ZSCORE on the lock's keys and channels"

// hints say what to do about an error reply whose own words don't.
var hints = []struct{ reply, hint string }{
	{"WRONGTYPE", "a key of this lock holds data of another type: choose a name that nothing else uses"},
	{"not an integer", "the fencing counter holds something that is not a number: choose a name that nothing else uses, or repair the counter"},
	{"OOM ", "Redis is at maxmemory: nothing was taken"},
	{"NOPERM", rights},
	{"can't run this command", rights}, // Redis 7, of a command in a script
	{"ACL failure in script", rights},  // Redis 8, Valkey
}

func explain(keys *Keys, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, h := range hints {
		if strings.Contains(text, h.reply) {
			return fmt.Errorf("%w (keys %q, %q: %s)", err, keys.Lock, keys.Token, h.hint)
		}
	}
	return err
}
