package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/redisguard"
	"github.com/fencelock/fencelock/rlock"
)

// A caller is one client: a goroutine that takes locks, writes, and writes down what came of it.
type caller struct {
	orders
	number int
	rec    *recorder
	client shutter
	locks  func(name string, opts ...fenced.Option) *fenced.Lock
	guard  *redisguard.Guard
	rng    *rand.Rand
	stop   chan struct{}

	churned *atomic.Int64
	resting *resting
}

// possession is what a caller knows of a hold of its own.
type possession struct {
	*caller
	name   string // of the lock, in the history
	lock   *fenced.Lock
	held   context.Context
	unlock func(context.Context) error
	id     int64 // of the acquire
	token  int64 // the current one
	value  int64 // of the register, as it was read under the token; -1: not known
	from   int64
	last   int64 // when its context was last seen alive
	lease  time.Duration
	clean  bool // no call of it has failed so far
}

func (c *caller) run() {
	for {
		select {
		case <-c.stop:
			return
		default:
		}
		switch {
		case c.Churn:
			c.churn()
		case c.Line:
			c.turn()
		default:
			c.round()
		}
	}
}

// wanted is the name of a lock, or that of all slots, and how its tokens are.
func (c *caller) wanted() (name string, opts []fenced.Option) {
	if c.Stable {
		opts = append(opts, fenced.WithStableToken())
	}
	if c.Floor {
		opts = append(opts, fenced.WithClockFloor())
	}
	return c.Locks[c.rng.IntN(len(c.Locks))], opts
}

// churn locks and unlocks, twice nested one time of four.
func (c *caller) churn() {
	l := c.locks("churn:"+strconv.Itoa(c.rng.IntN(1000)), fenced.WithCounterExpiry(time.Hour))
	held, _, err := l.LockAndGetToken(context.Background())
	if err != nil {
		return
	}
	if c.rng.IntN(4) == 0 {
		if inner, _, err := l.LockAndGetToken(held); err == nil {
			_ = l.Unlock(inner)
			c.churned.Add(2)
		}
	}
	_ = l.Unlock(held)
	c.churned.Add(2)
}

// round is one try to take a lock, and what is done with it.
func (c *caller) round() {
	wait := time.Duration(c.rng.IntN(10)) * 200 * time.Millisecond
	if c.Wait > 0 {
		wait = c.Wait
	}
	var lease time.Duration // the watchdog's
	if c.Lease == 0 && c.rng.IntN(2) == 0 {
		lease = time.Duration(200+c.rng.IntN(600)) * time.Millisecond
	}
	if p := c.take(wait, lease); p != nil {
		if p.name == pageRead {
			p.read()
		} else {
			p.use()
		}
		p.leave()
		c.rest()
	}
}

// take tries to take a lock, or a permit. It returns nil where that is in vain.
func (c *caller) take(wait, lease time.Duration) *possession {
	name, opts := c.wanted()
	p := &possession{caller: c, value: -1, lease: lease, clean: true}
	if lease == 0 {
		p.lease = max(c.Lease, clientLease)
	}
	o := c.rec.begin(op{Client: c.number, Kind: acquire, Lock: name, Value: int64(wait)})
	var err error
	switch name {
	case anySlot:
		err = p.takePermit(wait, lease, opts)
	case pageRead, pageName:
		p.lock = page(c.client.(*rlock.Client), name, opts...)
	default:
		p.lock = c.locks(name, opts...)
	}
	if name != anySlot {
		p.unlock = p.lock.Unlock
		p.held, p.token, err = p.lock.TryLockAndGetToken(context.Background(), wait, lease)
	}
	if err != nil {
		outcome := unknown
		if errors.Is(err, rlock.ErrNotAcquired) {
			outcome = refused
		}
		c.rec.end(o, outcome, err)
		c.pause(20)
		return nil
	}
	if p.name = p.lock.Name(); name == pageRead {
		p.name = pageRead
	}
	o.Lock, o.Token = p.name, p.token
	o = c.rec.end(o, done, nil)
	p.id, p.from, p.last = o.ID, o.Return, o.Return
	return p
}

// rest is what a client does after a hold, until the load ends.
func (c *caller) rest() {
	if c.Rest == 0 {
		c.pause(2)
		return
	}
	select {
	case <-time.After(c.Rest/2 + time.Duration(c.rng.Int64N(int64(c.Rest/2)))):
	case <-c.stop:
	}
}

// pause sleeps for less than so many milliseconds.
func (c *caller) pause(ms int) { time.Sleep(time.Duration(c.rng.IntN(ms*1000)) * time.Microsecond) }

// look tells whether the context is alive, and remembers when it was. The time is from before it is asked, so that a
// process that is stopped in between claims nothing.
func (p *possession) look() bool {
	at := now()
	if p.held.Err() != nil {
		return false
	}
	p.last = at
	return true
}

// use is what is done while the lock is held, and by some after it.
func (p *possession) use() {
	p.look()
	if p.rng.IntN(4) > 0 {
		p.levels(1)
	}
	if !p.increment() {
		return
	}
	switch n := p.rng.IntN(100); {
	case n < p.Stays: // stays until the context ends, if it does, and writes all the same, some time later
		d := min(p.lease, clientLease)
		if p.Long {
			d *= 4
		}
		p.stay(d + d/4)
		p.pause(100)
		p.write()
	case n < p.Stays+20:
		p.nest()
	case n < p.Stays+40:
		p.stay(time.Duration(p.rng.IntN(20)) * time.Millisecond)
		p.write()
	}
}

// stay watches the context until it ends, or for so long. It looks once more when the time is over: the process may have
// been stopped meanwhile.
func (p *possession) stay(d time.Duration) {
	for end := now() + int64(d); p.look() && now() < end; {
		time.Sleep(200 * time.Microsecond)
	}
}

// nest takes the lock again inside, and writes under the inner token.
func (p *possession) nest() {
	p.levels(1)
	o := p.rec.begin(p.op(reenter))
	inner, token, err := p.lock.LockAndGetToken(p.held)
	if err != nil {
		p.clean = false
		p.rec.end(o, unknown, err)
		return
	}
	o.Token = token
	if p.Stable || p.name == pageName {
		o.Kind = "reenter stable" // it takes no token
	}
	p.rec.end(o, done, nil)
	p.token = token
	p.levels(2)
	p.increment()
	if err := p.lock.Unlock(inner); err != nil {
		p.clean = false
	}
	p.look()
	p.levels(1)
}

// levels asks Redis how many levels of the hold are open. The answer is good if the hold is still there after it.
func (p *possession) levels(want int64) {
	if !p.clean {
		return
	}
	o := p.op(count)
	o.Want = want
	o = p.rec.begin(o)
	n, err := p.lock.HoldCount(p.held)
	o.Value = int64(n)
	outcome := unknown
	if err == nil && p.look() {
		outcome = done
	}
	p.rec.end(o, outcome, err)
}

// increment reads the register under the token and writes one more. It returns false where a write may come later: what
// is written after that has to have another token.
func (p *possession) increment() bool {
	o := p.rec.begin(p.op(read))
	n, err := p.writer().Do(p.held, "GET", p.register()).Int64()
	if isNil(err) {
		n, err = 0, nil
	}
	o.Value = n
	o = p.rec.end(o, outcomeOf(err), err)
	p.look()
	p.value = -1
	if o.Outcome == done {
		p.value = n
	}
	return p.write()
}

// write writes one more than what was read, whether the context is alive or not, as a process does that was stopped
// right before the write.
func (p *possession) write() bool {
	if p.value < 0 {
		return true
	}
	o := p.op(write)
	o.Value = p.value + 1
	o = p.rec.begin(o)
	err := p.writer().Do(context.WithoutCancel(p.held), "SET", p.register(), o.Value).Err()
	o = p.rec.end(o, outcomeOf(err), err)
	p.look()
	if o.Outcome == done {
		p.value = o.Value
	} else {
		p.value = -1
	}
	return o.Outcome != unknown
}

// leave unlocks.
func (p *possession) leave() {
	p.look()
	p.rec.emit(op{
		ID: -p.id, Client: p.number, Kind: alive, Lock: p.name, Hold: p.id, Token: p.token, Value: int64(p.lease),
		Call: p.from, Return: p.last, Outcome: done,
	})
	o := p.rec.begin(p.op(unlock))
	err := p.unlock(p.held)
	outcome := unknown
	switch {
	case err == nil:
		outcome = done
	case errors.Is(err, rlock.ErrLost):
		outcome = refused
	}
	p.rec.end(o, outcome, err)
}

func (p *possession) op(kind string) op {
	return op{Client: p.number, Kind: kind, Lock: p.name, Hold: p.id, Token: p.token}
}

func (p *possession) writer() redisguard.Writer { return p.guard.Writer(p.lock.Name(), p.token) }

func (p *possession) register() string { return "register:{" + p.lock.Name() + "}" }

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return done
	case errors.Is(err, guard.ErrStale):
		return refused
	case errors.Is(err, redisguard.ErrUnknown):
		return unknown
	}
	return failed
}
