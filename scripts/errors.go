package scripts

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A several is an error of several servers. It says itself what Unanswered and Passing say of the error of one server.
type several interface {
	error
	Unanswered() bool
	Passing() bool
}

// oneNode is the error of a node of a cluster (MOVED, ASK) to a Redis client that talks to no other node. The error stays
// until somebody changes the client.
type oneNode struct{ error }

func (e *oneNode) Error() string {
	return e.error.Error() + " (the server is one node of a cluster: use redis.NewClusterClient)"
}

func (e *oneNode) Unwrap() error  { return e.error }
func (*oneNode) Unanswered() bool { return false }
func (*oneNode) Passing() bool    { return false }

// Unanswered tells that after err nobody knows whether the command was executed, or will be: no reply came, and the command
// may have been sent. Unanswered is false for nil.
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
		return false // there was no connection to send the command on
	}
	return true
}

// Refused tells that err is a refusal after which the command may have been executed all the same: a go-redis hook of the
// user's can return an error reply, or redis.ErrClosed, after the command has run. So whatever the command may have taken is
// to be released. Refused is false for nil, for an error of several servers, and for a server that asks for a password
// (NOAUTH, WRONGPASS): such a server has executed nothing, and would not take a release either.
func Refused(err error) bool {
	var of several
	return err != nil && !errors.As(err, &of) && (answered(err) || errors.Is(err, redis.ErrClosed)) &&
		!redis.HasErrorPrefix(err, "NOAUTH") && !redis.HasErrorPrefix(err, "WRONGPASS")
}

// answered tells that err is what Redis said: an error reply, after which the scripts have left nothing behind, or a reply
// that none of the scripts gives.
func answered(err error) bool {
	var said redis.Error
	if errors.As(err, &said) {
		return !strings.HasPrefix(said.Error(), proxyLost)
	}
	return errors.Is(err, errReply)
}

// proxyLost is what the proxy Envoy replies in place of a server that it has lost after the command was sent to it.
const proxyLost = "upstream failure"

// passingReplies has the error replies of a server that is starting, is being replaced, is busy, or cannot write to its disk, and of Envoy where it
// has no server. A server at maxmemory (OOM) stays so until somebody mends it. One that cannot save (MISCONF) tries again by itself every few
// seconds.
var passingReplies = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY ", "UNBLOCKED", "max number of clients reached",
	"MISCONF", "no upstream host",
}

// Passing tells that err goes away by itself in the ordinary life of a Redis installation: a restart, a failover, a
// connection that broke. Passing is false for an error that stays until somebody mends its cause (a password, a type,
// memory), and for nil.
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
	text := said.Error() // Redis's own words: those of err may have names in them, and a lock may be called LOADING
	for _, p := range passingReplies {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// crossSlot tells that a command was refused because its keys are not in one slot.
func crossSlot(err error) bool { return err != nil && strings.Contains(err.Error(), "CROSSSLOT") }

// forbidden tells that the Redis user has no right to the whole command, maybe for one of its keys, and that nothing was
// done. For a command inside a script that the user may not run Redis has other words.
func forbidden(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOPERM") }

// Denied tells that the Redis user lacks a right, to the whole command or to one that its script calls.
func Denied(err error) bool {
	return err != nil && slices.ContainsFunc(denials, func(words string) bool { return strings.Contains(err.Error(), words) })
}

// OtherType tells that err is what one server has said of a key that holds something else than it is to hold. After an op that takes no token that is the
// lock's own key: another object is there, and no hold.
func OtherType(err error) bool {
	var of several
	return err != nil && !errors.As(err, &of) && redis.HasErrorPrefix(err, wrongTypeReply)
}

// denials are the words in which servers refuse a command to a user: Redis 6.2 and 7 within a script, Redis 8 and Valkey within a script, and
// all of them elsewhere. lined in line.lua has the same.
var denials = []string{"user executing the script can't", "ACL failure in script", "NOPERM"}

// split tells that the slot of a command's keys is moving to another node, that only some of the keys are on this one, and
// that nothing was done.
func split(err error) bool { return err != nil && redis.HasErrorPrefix(err, "TRYAGAIN") }

const rights = "the Redis user needs EVALSHA, EVAL, HEXISTS, EXISTS, HGET, HMGET, HSET, HDEL, HKEYS, HINCRBY, GET, SET, INCRBY, TIME, PTTL, PEXPIRE, PUBLISH, ZADD, ZCARD, ZRANGE, ZRANK, ZREM, ZSCORE on the lock's keys and channels"

const noScripts = "locks are Lua scripts: use a server, or a way past the proxy, that knows EVALSHA and EVAL"

// hints say what to do about an error reply whose own words do not.
var hints = []struct{ reply, hint string }{
	{wrongTypeReply, "a key of this lock holds data of another type: choose a name that nothing else uses"},
	{notIntegerReply, "the fencing counter holds something that is not a number: choose a name that nothing else uses, or repair the counter"},
	{"READONLY", "the server is a replica: name the master, and leave ReplicaOnly of redis.FailoverOptions off"},
	{"OOM ", "Redis is at maxmemory: nothing was taken"},
	{"NOPERM", rights},
	{"user executing the script can't", rights}, // Redis 7, of a command in a script
	{"ACL failure in script", rights},           // Redis 8, Valkey
	{"nknown command", noScripts},
	{"unsupported command", noScripts}, // Envoy
	{"scripting support disabled", "start Garnet with --lua, and --lua-transaction-mode: locks are Lua scripts"},
	{"undeclared key", "start Dragonfly with --default_lua_flags=allow-undeclared-keys: the scripts of semaphores and read-write locks make names of keys"},
}

// These replies are about the counter, where a permit was asked for: a slot whose key is of another type counts as taken.
const wrongTypeReply, notIntegerReply = "WRONGTYPE", "not an integer"

func explain(keys *Keys, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, h := range hints {
		switch {
		case !strings.Contains(text, h.reply):
			continue
		case keys.side != NoSide && h.hint == rights: // Redis does not say which key it was
			return fmt.Errorf("%w (keys %q, %q, %q: %s)", err, keys.Lock, keys.Token, strings.TrimSuffix(keys.LeaseOf("*", 1), "1")+"*", h.hint)
		case keys.last == nil:
			return fmt.Errorf("%w (keys %q, %q: %s)", err, keys.Lock, keys.Token, h.hint)
		case h.reply == wrongTypeReply || h.reply == notIntegerReply:
			return fmt.Errorf("%w (%s)", err, keys.last.noCounter())
		}
		return fmt.Errorf("%w (%s: %s)", err, keys.last.keys(), h.hint)
	}
	return err
}
