package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// A client is one process of the plan, from its start to its end.
type client struct {
	*world
	place   int // in the plan
	name    string
	ways    []*way          // to each server
	rdbs    []*redis.Client // and its clients there
	nodes   []int           // the servers that it knows, of a quorum
	locker  locker
	id      string
	locks   []lock // nil for what Redisson's client does not play
	reads   []lock // the sides that read; nil for other kinds
	books   *engine.Lock
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
	c.nodes = w.nodesOf(place)
	c.locks, c.reads = make([]lock, w.Locks), make([]lock, w.Locks)
	c.locker = c.newLocker()
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

// newLocker makes the client of the library, or Redisson's, and its locks.
func (c *client) newLocker() locker {
	p := c.Clients[c.place]
	if p.Redisson {
		r := newRedisson(c.rdbs[0])
		for i, name := range c.lockNames() {
			if c.kind(name) == plain {
				c.locks[i] = r.lock(name)
			}
		}
		return r
	}
	var opts []fenced.Option
	if c.Floor {
		opts = append(opts, fenced.WithClockFloor())
	}
	if c.Stable {
		opts = append(opts, fenced.WithStableToken())
	}
	with := []rlock.Option{rlock.WithLogger(nothing)}
	if p.Lease > 0 {
		with = append(with, rlock.WithLease(p.Lease))
	}
	if p.Handoffs >= 0 {
		with = append(with, rlock.WithHandoffs(p.Handoffs))
	}
	if p.Local > 0 {
		with = append(with, rlock.WithLocalHandoffs(p.Local))
	}
	if p.Presence {
		with = append(with, rlock.WithPresence("sim"))
	}
	if p.Traced {
		with = append(with, rlock.WithTrace(c.tally.trace()))
	}
	if len(c.nodes) > 1 {
		nodes := make([]redis.UniversalClient, len(c.nodes))
		for i, server := range c.nodes {
			nodes[i] = c.rdbs[server]
		}
		q, err := quorum.New(nodes, append(with, quorum.WithMaxLease(3*time.Minute))...)
		if err != nil {
			panic(err)
		}
		for i, name := range c.lockNames() {
			if c.locks[i] = (fencedLock{fenced.NewLock(q, name, opts...)}); c.Plain {
				c.locks[i] = plainLock{rlock.NewLock(q, name)}
			}
		}
		c.books = engine.LockOf(fenced.NewLock(q, "L0"))
		return q
	}
	r, err := rlock.New(c.rdbs[0], with...)
	if err != nil {
		panic(err)
	}
	for i, name := range c.lockNames() {
		switch kind := c.kind(name); {
		case kind > 0:
			c.locks[i] = permitLock{fenced.NewSemaphore(r, name, int(kind), opts...), r}
		case kind == pages && c.Plain:
			both := rlock.NewRWLock(r, name)
			c.locks[i], c.reads[i] = plainLock{both.Write()}, plainLock{both.Read()}
		case kind == pages:
			both := fenced.NewRWLock(r, name, opts...)
			c.locks[i], c.reads[i] = fencedLock{both.Write()}, fencedLock{both.Read()}
		case c.Plain:
			c.locks[i] = plainLock{rlock.NewLock(r, name)}
		default:
			c.locks[i] = fencedLock{fenced.NewLock(r, name, opts...)}
		}
	}
	c.books = engine.LockOf(fenced.NewLock(r, "L0"))
	return r
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
	h := c.asks(waitCtx, event{Caller: caller, Levels: 1}, one, one.Wait, longest)
	giveUp()
	if h == nil {
		return
	}
	c.holds(h.ctx, one.Hold/2)
	h.extends(one.Extend)
	c.holds(h.ctx, one.Hold-one.Hold/2)
	h.remains()
	if one.Travels > 0 && h.ctx.Err() == nil && h.travels(one) {
		return
	}
	if one.Hold > 10*time.Millisecond && h.ctx.Err() == nil {
		h.counts(h.ctx, 1)
	}
	if one.Stranger && h.ctx.Err() == nil { // it gets what has room for two
		if other := c.asks(rlock.NewHolder(h.ctx), event{Caller: caller, Levels: 2}, call{Lock: one.Lock, Reads: one.Reads}, 0, 0); other != nil {
			other.unlock()
		}
	}
	if one.Nested > 0 && h.ctx.Err() == nil && h.again != nil {
		if h.nests(h.ctx, one.Nested, 2, max(one.Depth, 1)+1) {
			h.counts(h.ctx, 1)
		}
	}
	if one.Other > one.Lock && len(h.es) == 1 && h.ctx.Err() == nil { // in one order: nobody waits for each other
		if other := c.asks(h.ctx, event{Caller: caller, Levels: 2}, call{Lock: one.Other, Reads: one.Reads}, time.Second, time.Second); other != nil {
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
	*taken
	again    reentrant   // the lock; nil for a semaphore
	es       []event     // what the events of each lock have in common: of two locks in a call byAll
	over     func() bool // ends the note of the context's end
	extended bool
}

// asks makes an acquiring call, and returns the hold; nil where there is none. e has the caller, and 2 levels where the call is made in a hold
// of another lock.
func (c *client) asks(ctx context.Context, e event, one call, wait, longest time.Duration) *hold {
	l := c.locks[one.Lock]
	if l == nil {
		return nil
	}
	h := &hold{client: c}
	if e.Reads = one.Reads && one.By != byTerm && c.reads[one.Lock] != nil; e.Reads { // nobody leads who reads
		l = c.reads[one.Lock]
	}
	which := []int{one.Lock}
	if e.All = one.By == byAll && one.Other > one.Lock && !c.Clients[c.place].Redisson; e.All {
		which = append(which, one.Other)
	} else {
		h.again, _ = l.(reentrant)
	}
	c.mu.Lock()
	for i, n := range which {
		c.calls++
		e.Lock, e.Call, e.Levels = c.lockNames()[n], c.calls, e.Levels+i
		h.es = append(h.es, e)
	}
	c.mu.Unlock()
	h.note(asks, func(e *event) { e.For = longest })
	var err error
	if e.All {
		h.taken, err = takesAll(ctx, l, c.locks[one.Other], wait, one.Lease)
	} else {
		h.taken, err = l.take(ctx, one.By, wait, one.Lease)
	}
	if !h.has(ctx, "acquire", one, err) {
		return nil
	}
	return h
}

// has notes what an acquiring call with this context has come to, and tells whether that is a hold.
func (h *hold) has(ctx context.Context, what string, one call, err error) bool {
	h.ends(what, err)
	if err != nil {
		h.note(refused, func(e *event) { e.Text = text(err) })
		return false
	}
	h.tally.did("hold of " + h.nameOf(one, h.es[0].Reads))
	h.note(got, func(e *event) {
		if e.Token, e.For, e.Slot = h.token, one.Lease, h.slot; e.Call > h.es[0].Call {
			e.Token = h.second
		}
	})
	h.watches()
	h.over = context.AfterFunc(h.ctx, func() {
		h.note(ended, func(e *event) {
			h.ends("the end of a context", context.Cause(h.ctx))
			if e.Text = text(context.Cause(h.ctx)); ctx.Err() != nil {
				e.Text = "with its parent"
			}
		})
	})
	return true
}

// travels exports the hold, and has another process import it, which holds it for a while then. It tells whether the hold is over.
func (h *hold) travels(one call) bool {
	h.mu.Lock()
	to := h.clients[one.Travels-1]
	h.mu.Unlock()
	if to == nil {
		return false
	}
	lock, can := to.locks[one.Lock].(importer)
	if !can || h.export == nil || h.es[0].Reads {
		return false
	}
	text, err := h.export()
	h.ends("Export", err)
	if err != nil {
		return false
	}
	h.note(exports, nil)
	to.takesOver(lock, h.es[0], one, text)
	h.unlock()
	return true
}

// takesOver imports the hold of this text, which the call of e has, and holds it for a while.
func (c *client) takesOver(lock importer, e event, one call, text string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.mu.Lock()
	c.calls++
	e.Import, e.Call, e.Caller, e.Levels = e.Call, c.calls, 0, 1
	c.mu.Unlock()
	h := &hold{client: c, es: []event{e}}
	h.note(asks, nil)
	var err error
	if h.taken, err = lock.imports(ctx, text, one.Lease); h.has(ctx, "Import", one, err) {
		c.holds(h.ctx, one.Hold)
		h.unlock()
	}
}

// nameOf is the kind of lock that the call takes, and the way.
func (c *client) nameOf(one call, reads bool) string {
	what := "a lock"
	switch kind := c.kind(c.lockNames()[one.Lock]); {
	case kind > 0:
		what = "a semaphore"
	case reads:
		what = "what is read"
	case kind == pages:
		what = "what is written"
	}
	return what + [...]string{"", " by Acquire", " by Do", " by a leader", " by DoAll"}[one.By]
}

func (h *hold) note(kind string, set func(*event)) {
	for _, e := range h.es {
		if e.Kind = kind; set != nil {
			set(&e)
		}
		h.client.note(e)
	}
}

// extends has the lease last for at least so long from now on.
func (h *hold) extends(d time.Duration) {
	if d == 0 || h.extend == nil {
		return
	}
	h.note(extends, func(e *event) { e.For = d })
	err := h.extend(h.ctx, d)
	h.ends("Extend", err)
	h.note(extended, func(e *event) { e.Text = text(err) })
	h.extended = err == nil
}

// watches notes when somebody waits for the lock, as the hold says. The holder goes on.
func (h *hold) watches() {
	if h.waited == nil {
		return
	}
	h.note(watches, nil)
	somebody := h.waited()
	go func() {
		select {
		case <-somebody:
			h.tally.did("Waited")
			h.note(waited, nil)
		case <-h.ctx.Done():
		}
	}()
}

// remains notes for how long an extended lease lasts still.
func (h *hold) remains() {
	if !h.extended || h.ctx.Err() != nil {
		return
	}
	if left, err := h.left(h.ctx); err == nil && h.ctx.Err() == nil {
		h.note(remains, func(e *event) { e.For = left })
	}
}

// nests re-enters the lock from the level of this context, and again from the new level, until so many are open. It tells whether the level below
// goes on as before.
func (h *hold) nests(ctx context.Context, d time.Duration, level, levels int) bool {
	l := h.again
	if read := h.reads[h.number()]; read != nil && level%2 == 0 { // who writes may read
		l = read.(reentrant)
	}
	if _, redisson := l.(*redissonLock); !redisson {
		without, _, _ := l.TryLockAndGetToken(ctx, 0, 1) // no lease is so short
		_ = l.Unlock(without)                            // the hold goes on
	}
	began := time.Now()
	fails := func(what string, err error) {
		if h.ends(what, err); err != nil {
			h.note(failed, func(e *event) { e.For, e.Text = time.Since(began), text(err) })
		}
	}
	if h.es[0].Reads {
		_, _, err := h.locks[h.number()].(reentrant).TryLockAndGetToken(ctx, 0, 0)
		if h.ends("writing while it reads", err); err == nil {
			err = errors.New("who reads has got it to write")
		} else if errors.Is(err, rlock.ErrUpgrade) {
			err = nil
		}
		fails("an upgrade", err)
	}
	inner, next, err := l.TryLockAndGetToken(ctx, 10*time.Second, 0)
	if fails("re-entry", err); err != nil {
		return false
	}
	h.note(nested, func(e *event) { e.Token, e.Levels = next, level })
	h.holds(inner, d)
	h.counts(inner, level)
	if level < levels && h.nests(inner, d, level+1, levels) {
		h.holds(inner, d)
		h.counts(inner, level)
	}
	began = time.Now()
	err = l.Unlock(inner)
	fails("Unlock of a level", err)
	return err == nil
}

// number is the number of the lock.
func (h *hold) number() int { return slices.Index(allLocks, h.es[0].Lock) }

// counts notes the hold count that Redis has, where so many levels are open.
func (h *hold) counts(ctx context.Context, levels int) {
	if h.again == nil {
		return
	}
	n, err := h.again.HoldCount(ctx)
	h.ends("HoldCount", err)
	if err == nil && ctx.Err() == nil {
		h.note(counted, func(e *event) { e.Count, e.Levels = n, levels })
	}
}

// ends counts how a call of the library has ended, or what it has got.
func (h *hold) ends(what string, err error) {
	if !h.Clients[h.place].Redisson {
		h.tally.ends(what, err)
	}
}

func (h *hold) unlock() {
	h.over()
	h.note(unlocks, nil)
	err := h.taken.unlock()
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
	case errors.Is(err, rlock.ErrNotHeld):
		return "not held"
	case errors.Is(err, rlock.ErrUpgrade):
		return "upgrade"
	case errors.Is(err, context.Canceled):
		return "gave up"
	}
	return strings.TrimPrefix(err.Error(), "rlock: ")
}
