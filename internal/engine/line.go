package engine

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// usesLine tells whether clients wait in a line in Redis. They do not where there is none, where
// the user has no right to the line, and where the server does not count them. There they listen
// for releases, and all try.
func (c *Client) usesLine() bool { return !c.lineForbidden() && c.hasLine(c.bus.Known()) }

// hasLine tells whether there is a line: a message reaches no more connections than the server
// counts, as it does in a cluster without sharded channels.
func (c *Client) hasLine(sharded, known bool) bool { return known && (sharded || !c.cluster) }

// lineForbidden tells whether the client does without the line for a while, as the user lacks a
// right to it (P30), or the server does not count the client (P33).
func (c *Client) lineForbidden() bool {
	until := c.noLineUntil.Load()
	return until != 0 && until > int64(time.Since(c.born))
}

const (
	// noLineTime is how long a client that cannot use the line does without it.
	noLineTime = time.Minute
	// uncountedOnce is for how long it does where the server has not counted it once: a connection
	// of which the server knows that it has ended, and the client does not, is replaced by then
	// (P10).
	uncountedOnce = 10 * time.Second
	// uncountedAgain is for how long a second time says that the server does not count.
	uncountedAgain = 10 * time.Minute
)

// whyNoLine is what the log says of a client that does without the line.
var whyNoLine = map[scripts.Refusal]string{
	scripts.Forbidden: "rlock: the Redis user lacks a right to the line in which clients wait for a lock, or the server does not do in scripts what the line takes: " +
		"waiters listen and poll instead, which costs more the more they are. It needs TIME, and ZADD, ZCARD, ZRANGE, ZRANK, ZREM and ZSCORE on the line's key, and PUBLISH on the channels that begin like it; ACL LOG on the server says what was refused",
	scripts.Renamed: "rlock: a hook of the Redis client, or a proxy, changes the names of keys, and of no channel: clients cannot be called by the line in which they wait for a lock. " +
		"Waiters listen and poll instead, which costs more the more they are",
	scripts.Uncounted: "rlock: PUBLISH in a script does not count this client, which listens, as on servers that have a proxy in front of them: clients cannot be called by the line in which they wait for a lock. " +
		"Waiters listen and poll instead, which costs more the more they are",
}

// lineRefused notes an answer that says that Redis did something without the line, and logs why,
// once for each reason (P30, P33).
func (c *Client) lineRefused(keys *scripts.Keys, why scripts.Refusal) {
	c.lineProven.Store(false)
	now, lasts := time.Since(c.born), noLineTime
	if why == scripts.Uncounted {
		before := time.Duration(c.uncountedAt.Load())
		if before == 0 || now-before > uncountedAgain {
			lasts = uncountedOnce
		} else if now-before < uncountedOnce { // several locks have found it at once
			return
		}
		c.uncountedAt.Store(max(int64(now), 1))
	}
	c.noLineUntil.Store(int64(now + lasts))
	if lasts == noLineTime && c.noLineTold.Or(1<<why)&(1<<why) == 0 {
		c.set.Log.Warn(whyNoLine[why], "lock", keys.Lock, "line", keys.Line)
	}
}

// othersHeard is how many connections heard of a release, by what the server has counted. One that
// does not count may have told others.
func (c *Client) othersHeard(receivers int) int {
	if c.uncountedAt.Load() != 0 && c.lineForbidden() {
		return receivers + 2 // more than the client itself
	}
	return receivers
}

// callingFirst is a release that calls the first client in the line. known: see scripts.Op.Calling.
func (c *Client) callingFirst(op scripts.Op, again string, known int) scripts.Op {
	if !c.usesLine() {
		return op
	}
	return op.Calling(again, known)
}

// callingFirst is the hold's release, which calls the first client in the line. again: the ticket
// with which this one enters, or "".
func (h *hold) callingFirst(op scripts.Op, again string) scripts.Op {
	if h.isShare() {
		return h.lockState.client.callingFirst(op, "", max(h.of.ownListeners(h.lock.releaseKeys), h.lockState.ownListeners(h.lock.releaseKeys)))
	}
	known := h.lockState.ownListeners(h.lock.keys)
	if h.uncontended && again == "" && known == 0 && h.lockState.client.usesLine() {
		return op.CallingNewcomers()
	}
	return h.lockState.client.callingFirst(op, again, known)
}

// A leaveOp takes a ticket of this client out of the line, or goes on with a call that has reached
// its bound (P29). No call waits for its answer.
type leaveOp struct {
	client *Client
	op     scripts.Op
	keys   *scripts.Keys
	stood  bool // Redis has said that the ticket was in the line
	began  time.Time
	pauses command.Backoff // after errors
	again  bool            // it was sent before
}

const (
	// leaveTime is how long a leave that was not done is sent again. A line that nobody uses any
	// more is gone by then.
	leaveTime = 10 * time.Minute
	// lastLeavePause is the longest pause between two of them.
	lastLeavePause = 10 * time.Second
)

// leaveLine takes the ticket out of the line in Redis. With "" it calls the first client there. A
// leave that gets no answer is sent again: a release may call the client for the ticket that stays,
// and the client hears nothing, as it listens no more, but Redis does not know that where its
// connection has died without a word (P19). So is a leave that is refused, where the ticket was in
// the line: those behind two such tickets hear of no release that calls nobody, such as Redisson's.
// Other tickets are left once, as failing calls can make thousands of them.
func (c *Client) leaveLine(keys *scripts.Keys, ticket string) { c.newLeave(keys, ticket, false).send() }

func (c *Client) newLeave(keys *scripts.Keys, ticket string, stood bool) *leaveOp {
	sharded, _ := c.bus.Known()
	return &leaveOp{client: c, op: scripts.Leave(keys, ticket, sharded), keys: keys, stood: stood, began: time.Now()}
}

func (l *leaveOp) send() {
	l.client.underWay.Add(1)
	l.client.store.Send(&l.op, l)
}

// Sending implements scripts.Caller.
func (*leaveOp) Sending(scripts.Caller) {}

// Answered implements scripts.Caller.
func (l *leaveOp) Answered(a scripts.Answer, err error) {
	// the repeats are not to keep the client from the lines of other locks
	if a.Outside != 0 && !l.again {
		l.client.lineRefused(l.keys, a.Outside)
	}
	refused := l.stood && (a.Stays || err != nil && !errors.Is(err, redis.ErrClosed))
	switch {
	case err == nil && a.More:
		l.client.leaveLine(l.keys, "")
	case (refused || scripts.Passing(err)) && time.Since(l.began) < leaveTime:
		time.AfterFunc(l.pauses.Next(err, lastLeavePause), l.sendAgain)
	}
	l.client.underWay.Add(-1)
}

// sendAgain sends a leave that was not done. Close does not wait for it.
func (l *leaveOp) sendAgain() {
	if l.again = true; !isClosed(l.client.closed) {
		l.send()
	}
}
