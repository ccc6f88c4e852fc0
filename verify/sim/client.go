package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// A client is one process of the plan, from its start to its end.
type client struct {
	*world
	place   int // in the plan
	name    string
	ways    []*way
	rdbs    []*redis.Client
	locker  locker
	id      string
	locks   []lock
	gone    atomic.Bool   // the process is dead: what its callers see nobody sees
	leaving chan struct{} // closed when its callers are to begin no more calls
	leave   sync.Once
	callers sync.WaitGroup
}

// A locker is what a client closes.
type locker interface {
	ID() string
	Close() error
	Shutdown(context.Context) error
}

// A lock is what callers use.
type lock interface {
	TryLockAndGetToken(ctx context.Context, wait, lease time.Duration) (context.Context, int64, error)
	LockAndGetToken(ctx context.Context) (context.Context, int64, error)
	LockLeaseAndGetToken(ctx context.Context, lease time.Duration) (context.Context, int64, error)
	HoldCount(ctx context.Context) (int, error)
	Unlock(ctx context.Context) error
}

// start starts the process that has this place in the plan.
func (w *world) start(place int) {
	w.mu.Lock()
	n := 1
	for _, c := range w.everyone {
		if c.place == place {
			n++
		}
	}
	w.mu.Unlock()
	c := &client{world: w, place: place, name: fmt.Sprintf("c%d.%d", place, n), leaving: make(chan struct{})}
	for _, s := range w.servers {
		one := &way{net: w.net, server: s, number: uint64(place)<<32 | uint64(n)<<16 | uint64(s.number)}
		c.ways = append(c.ways, one)
		c.rdbs = append(c.rdbs, redis.NewClient(one.options()))
	}
	c.locker, c.locks = w.newLocker(place, c.rdbs)
	c.id = c.locker.ID()
	w.mu.Lock()
	w.clients[place] = c
	w.everyone = append(w.everyone, c)
	w.noteLocked(event{Kind: started, Client: c.name, Text: c.id})
	w.mu.Unlock()
	for i, p := range w.Clients[place].Callers {
		c.callers.Go(func() { c.plays(i, p) })
	}
}

func (w *world) newLocker(place int, rdbs []*redis.Client) (locker, []lock) {
	var locks []lock
	if w.Clients[place].Redisson {
		r := newRedisson(rdbs[0])
		for _, name := range w.plan.lockNames() {
			locks = append(locks, r.lock(name))
		}
		return r, locks
	}
	var opts []fenced.Option
	if w.Floor {
		opts = append(opts, fenced.WithClockFloor())
	}
	if w.Stable {
		opts = append(opts, fenced.WithStableToken())
	}
	client := []rlock.Option{rlock.WithLogger(nothing)}
	if lease := w.Clients[place].Lease; lease > 0 {
		client = append(client, rlock.WithLease(lease))
	}
	if n := w.Clients[place].Handoffs; n >= 0 {
		client = append(client, rlock.WithHandoffs(n))
	}
	if w.Clients[place].Presence {
		client = append(client, rlock.WithPresence("sim"))
	}
	if w.Clients[place].Traced {
		client = append(client, rlock.WithTrace(w.tally.trace()))
	}
	if len(rdbs) > 1 {
		nodes := make([]redis.UniversalClient, len(rdbs))
		for i, rdb := range rdbs {
			nodes[i] = rdb
		}
		q, err := quorum.New(nodes, quorum.WithMaxLease(3*time.Minute), quorum.WithLockOptions(client...))
		if err != nil {
			panic(err)
		}
		for _, name := range w.plan.lockNames() {
			locks = append(locks, quorum.NewLock(q, name, opts...))
		}
		return q, locks
	}
	r, err := rlock.New(rdbs[0], client...)
	if err != nil {
		panic(err)
	}
	for _, name := range w.plan.lockNames() {
		if w.Plain {
			locks = append(locks, plainLock{rlock.NewLock(r, name)})
			continue
		}
		locks = append(locks, fenced.NewLock(r, name, opts...))
	}
	return r, locks
}

func (p plan) lockNames() []string { return allLocks[:p.Locks] }

// allLocks are the names of all locks that a plan can have.
var allLocks = func() []string {
	names := make([]string, crowdLocks)
	for i := range names {
		names[i] = fmt.Sprintf("L%d", i)
	}
	return names
}()

func (c *client) note(e event) {
	e.Client = c.name
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone.Load() {
		c.noteLocked(e)
	}
}

// close closes the client, or shuts it down, and then its clients of Redis.
func (c *client) close(graceful bool) {
	how := "Close"
	if graceful {
		how = "Shutdown"
	}
	c.note(event{Kind: closes, Text: how})
	var err error
	if graceful {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownFor)
		err = c.locker.Shutdown(ctx)
		cancel()
	} else {
		err = c.locker.Close()
	}
	c.note(event{Kind: closed, Text: text(err)})
	if !c.Clients[c.place].Redisson {
		c.tally.ends(how, err)
	}
	for _, rdb := range c.rdbs {
		_ = rdb.Close()
	}
}

// shutdownFor is how long a process that is told to end waits for its holds.
const shutdownFor = 30 * time.Second

func (c *client) stop() { c.leave.Do(func() { close(c.leaving) }) }

// waits waits so long, and tells whether the caller is to go on.
func (c *client) waits(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.leaving:
	case <-c.stopped:
	}
	return false
}

// plays is one goroutine of the process.
func (c *client) plays(caller int, p callerPlan) {
	for _, one := range p.Calls {
		pause := one.Pause
		if one.Beat {
			pause += crowdBeat - c.now()%crowdBeat
		}
		if !c.waits(pause) {
			return
		}
		c.makes(caller, one)
	}
}

// makes makes one call, with what follows it.
func (c *client) makes(caller int, one call) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	waitCtx, giveUp := ctx, func() {}
	longest := one.Wait
	if one.GiveUp > 0 {
		var end context.CancelFunc
		waitCtx, end = context.WithCancel(ctx)
		t := time.AfterFunc(one.GiveUp, end)
		giveUp = func() { t.Stop() }
		if one.Wait < 0 || one.GiveUp < one.Wait {
			longest = one.GiveUp
		}
	}
	// When callers stop, waits end. A hold that the call has got by then ends with its context, and is unlocked.
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-c.leaving:
		case <-c.stopped:
		case <-over:
		}
		cancel()
	}()
	h := c.asks(waitCtx, event{Caller: caller, Levels: 1}, one.Lock, one.Wait, one.Lease, longest)
	giveUp()
	if h == nil {
		return
	}
	c.holds(h.ctx, one.Hold)
	if one.Hold > 10*time.Millisecond && h.ctx.Err() == nil {
		h.counts(h.ctx, 1)
	}
	if one.Stranger && h.ctx.Err() == nil {
		if other := c.asks(rlock.NewHolder(h.ctx), event{Caller: caller, Levels: 2}, one.Lock, 0, 0, 0); other != nil { // the hold was lost a moment ago
			other.unlock()
		}
	}
	if one.Nested > 0 && h.ctx.Err() == nil {
		if h.nests(h.ctx, one.Nested, 2, max(one.Depth, 1)+1) {
			h.counts(h.ctx, 1)
		}
	}
	if one.Other > one.Lock && h.ctx.Err() == nil { // in one order: nobody waits for each other
		if other := c.asks(h.ctx, event{Caller: caller, Levels: 2}, one.Other, time.Second, 0, time.Second); other != nil {
			c.holds(other.ctx, time.Second)
			other.unlock()
		}
	}
	if one.Ends {
		cancel()
		c.holds(context.Background(), 10*time.Millisecond)
	}
	h.unlock()
}

// A hold is what a call has got.
type hold struct {
	*client
	lock lock
	e    event // what its events have in common
	ctx  context.Context
	over func() bool // ends the note of the context's end
}

// asks makes an acquiring call, and returns the hold; nil where there is none. e has the caller, and 2 levels where the call is made in a hold
// of another lock.
func (c *client) asks(ctx context.Context, e event, which int, wait, lease, longest time.Duration) *hold {
	c.mu.Lock()
	c.calls++
	e.Lock, e.Call = c.lockNames()[which], c.calls
	h := &hold{client: c, lock: c.locks[which], e: e}
	c.mu.Unlock()
	h.note(asks, func(e *event) { e.For = longest })
	var token int64
	var err error
	switch {
	case wait >= 0:
		h.ctx, token, err = h.lock.TryLockAndGetToken(ctx, wait, lease)
	case lease > 0:
		h.ctx, token, err = h.lock.LockLeaseAndGetToken(ctx, lease)
	default:
		h.ctx, token, err = h.lock.LockAndGetToken(ctx)
	}
	h.ends("acquire", err)
	if err != nil {
		h.note(refused, func(e *event) { e.Text = text(err) })
		return nil
	}
	h.note(got, func(e *event) { e.Token, e.For = token, lease })
	h.over = context.AfterFunc(h.ctx, func() {
		h.note(ended, func(e *event) {
			h.ends("the end of a context", context.Cause(h.ctx))
			if e.Text = text(context.Cause(h.ctx)); ctx.Err() != nil {
				e.Text = "with its parent"
			}
		})
	})
	return h
}

func (h *hold) note(kind string, set func(*event)) {
	e := h.e
	e.Kind = kind
	if set != nil {
		set(&e)
	}
	h.client.note(e)
}

// nests re-enters the lock from the level of this context, and again from the new level, until so many are open. It tells whether the level below
// goes on as before.
func (h *hold) nests(ctx context.Context, d time.Duration, level, levels int) bool {
	if _, redisson := h.lock.(*redissonLock); !redisson {
		failed, _, _ := h.lock.TryLockAndGetToken(ctx, 0, 1) // no lease is so short
		_ = h.lock.Unlock(failed)                            // the hold goes on
	}
	inner, next, err := h.lock.TryLockAndGetToken(ctx, 10*time.Second, 0)
	h.ends("re-entry", err)
	if err != nil {
		return false
	}
	h.note(nested, func(e *event) { e.Token, e.Levels = next, level })
	h.holds(inner, d)
	h.counts(inner, level)
	if level < levels && h.nests(inner, d, level+1, levels) {
		h.holds(inner, d)
		h.counts(inner, level)
	}
	err = h.lock.Unlock(inner)
	h.ends("Unlock of a level", err)
	return err == nil
}

// counts notes the hold count that Redis has, where so many levels are open.
func (h *hold) counts(ctx context.Context, levels int) {
	n, err := h.lock.HoldCount(ctx)
	h.ends("HoldCount", err)
	if err == nil && ctx.Err() == nil {
		h.note(counted, func(e *event) { e.Count, e.Levels = n, levels })
	}
}

// ends counts how a call of the library has ended, or what it has got.
func (h *hold) ends(what string, err error) {
	if _, redisson := h.lock.(*redissonLock); !redisson {
		h.tally.ends(what, err)
	}
}

func (h *hold) unlock() {
	h.over()
	h.note(unlocks, nil)
	err := h.lock.Unlock(h.ctx)
	h.ends("Unlock", err)
	h.note(unlocked, func(e *event) { e.Text = text(err) })
}

// holds waits so long, or until the context has ended.
func (c *client) holds(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-c.leaving:
	case <-c.stopped:
	}
}

// text is what the error says; "" for none.
func text(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, rlock.ErrLost):
		return "lost"
	case errors.Is(err, rlock.ErrNotAcquired):
		return "another has it"
	case errors.Is(err, rlock.ErrUnlocked):
		return "unlocked"
	case errors.Is(err, context.Canceled):
		return "gave up"
	}
	return strings.TrimPrefix(err.Error(), "rlock: ")
}
