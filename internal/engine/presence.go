package engine

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/scripts"
)

// A presenter writes into Redis what the client says of itself (WithPresence), from its first
// acquire until it is closed.
type presenter struct {
	client *Client
	began  sync.Once
	first  time.Duration // when it was, since client.born
	done   chan struct{} // closed when the presenter has ended, or will never begin
	soon   chan struct{} // has a value when a lease may outlast what was written
	until  atomic.Int64  // until when what was written last is there, since client.born
	failed bool          // the last write has failed, and was logged
}

// On says on which servers the client is. It says of itself there what WithPresence wants, if that
// is given.
func (c *Client) On(servers ...redis.UniversalClient) {
	c.on = servers
	if c.set.Presence != "" {
		c.presenter = &presenter{client: c, done: make(chan struct{}), soon: make(chan struct{}, 1)}
	}
}

// ID is rlock.Client.ID.
func (c *Client) ID() string { return c.id }

// begin begins to write, with the first call.
func (p *presenter) begin() {
	if p != nil {
		p.began.Do(func() { go p.run() })
	}
}

// end waits until what was written is removed, or ctx ends. The client is closed.
func (p *presenter) end(ctx context.Context) {
	if p == nil {
		return
	}
	p.began.Do(func() { close(p.done) })
	select {
	case <-p.done:
	case <-ctx.Done():
	}
}

// takes has the client write soon if a lease of this length, from now on, outlasts what was
// written.
func (p *presenter) takes(lease time.Duration) {
	if p == nil || int64(time.Since(p.client.born)+lease) <= p.until.Load() {
		return
	}
	select {
	case p.soon <- struct{}{}:
	default:
	}
}

func (p *presenter) run() {
	defer close(p.done)
	p.first = time.Since(p.client.born)
	next, pause := time.NewTimer(presence.Every), soonAfter
	defer next.Stop()
	// when the timer fires, and when the client writes in any case
	due, regular := time.Now(), time.Now()
	look := func() {
		if now := time.Now(); !now.Before(regular) {
			p.write()
			regular = now.Add(pause)
			pause = presence.Every
		} else if p.outlasted() {
			p.write()
		}
		due = regular
		next.Reset(max(time.Until(due), 1)) // as of the watchdog
	}
	look()
	for {
		select {
		case <-next.C:
			look()
		case <-p.soon:
			if at := time.Now().Add(soonAfter); at.Before(due) {
				due = at
				next.Reset(soonAfter)
			}
		case <-p.client.closed:
			_ = p.onAll(removeTimeout, func(ctx context.Context, rdb redis.UniversalClient) error {
				return presence.Remove(ctx, rdb, p.client.id)
			})
			return
		}
	}
}

// soonAfter is when the client writes again after its first call: what that has got is not in the
// first write, and a program that takes one lock and works is seen with it. It is the same after
// the acquire of a lease that outlasts what was written, if the lock is held still.
const soonAfter = time.Second

// outlasted tells whether a lease may outlast what was written.
func (p *presenter) outlasted() bool {
	return int64(time.Since(p.client.born)+longestLease(p.client.holdsByAge())) > p.until.Load()
}

// longestLease is for how long Redis keeps the last of these holds from now on, if none is renewed.
func longestLease(holds []*hold) (longest time.Duration) {
	for _, h := range holds {
		longest = max(longest, h.Lease.Deadline().Left())
	}
	return longest
}

// write writes once. A failure is logged when it begins: until it is over others see less, and no
// lock suffers.
func (p *presenter) write() {
	now, said := time.Since(p.client.born), p.client.present()
	said.There = now - p.first
	err := p.onAll(presence.Every/2, func(ctx context.Context, rdb redis.UniversalClient) error { return presence.Write(ctx, rdb, said) })
	if err != nil && !p.failed && !isClosed(p.client.closed) {
		text := "rlock: what WithPresence tells of this client is not written, others do not see it; locks work all the same"
		if scripts.Denied(err) {
			text += ". The Redis user needs HSET, HSETNX, ZADD, ZREMRANGEBYSCORE and the keys fencelock_client*"
		}
		p.client.set.Log.Warn(text, "error", err)
	}
	if p.failed = err != nil; !p.failed {
		p.until.Store(int64(now + said.Lasts))
	}
}

// removeTimeout bounds what Close waits for, for the removal of what expires by itself anyway.
const removeTimeout = 500 * time.Millisecond

// onAll calls do for all servers at once, and returns one of the errors.
func (p *presenter) onAll(within time.Duration, do func(ctx context.Context, rdb redis.UniversalClient) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), min(p.client.set.UnlockTimeout, within))
	defer cancel()
	errs := make(chan error, len(p.client.on))
	for _, rdb := range p.client.on {
		go func() { errs <- do(ctx, rdb) }()
	}
	var err error
	for range p.client.on {
		if one := <-errs; one != nil {
			err = one
		}
	}
	return err
}

// present is what the client says of itself now.
func (c *Client) present() *presence.Client {
	host, _ := os.Hostname()
	said := &presence.Client{ID: c.id, Name: c.set.Presence, Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0])}
	type named struct {
		*lockState
		key stateKey // read while the state cannot be used for another lock
	}
	var states []named
	c.mu.Lock()
	for _, ls := range c.locks {
		states = append(states, named{ls, ls.key})
	}
	c.mu.Unlock()
	now := time.Now()
	holds := c.holdsByAge()
	// Each of them may be renewed until the client writes again.
	said.Lasts = max(presence.Lasts, max(c.set.Lease, longestLease(holds))+presence.Every)
	said.MoreHolds = max(len(holds)-presence.MaxNames, 0)
	for _, h := range holds[:len(holds)-said.MoreHolds] {
		age, lasting := c.tracedHolds.age(h, now)
		said.Holds = append(said.Holds, presence.Hold{Lock: h.lock.keys.Lock, Mode: h.lock.keys.Side().Mode(), Field: h.attempts.Field, Token: h.Token(), For: age, Lasting: lasting})
	}
	for _, ls := range states {
		if calls, began, lasting := ls.waiting(); calls > 0 {
			said.Waits = append(said.Waits, presence.Wait{Lock: ls.key.name, Mode: ls.key.side.Mode(), Calls: calls, For: now.Sub(began), Lasting: lasting})
		}
	}
	slices.SortFunc(said.Waits, func(a, b presence.Wait) int { return cmp.Compare(b.For, a.For) })
	said.MoreWaits = max(len(said.Waits)-presence.MaxNames, 0)
	said.Waits = said.Waits[:len(said.Waits)-said.MoreWaits]
	return said
}

// holdsByAge are the client's holds, the oldest one first: somebody who looks for a lock that is
// stuck needs it.
func (c *Client) holdsByAge() []*hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	holds := make([]*hold, 0, c.held)
	for h := c.firstHold; h != nil; h = h.next {
		holds = append(holds, h)
	}
	slices.Reverse(holds)
	return holds
}

// waiting is how many calls of this client ask or wait for the lock, when the first of them began,
// and its word of rlock.Lasting. A call that waits for a hold which is meant to last is the first
// one only where there are no others.
func (ls *lockState) waiting() (calls int, began time.Time, lasting string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for w := ls.first; w != nil; w = w.next {
		calls++
		word := w.request.Lasting
		if same := (word == "") == (lasting == ""); began.IsZero() || same && w.began.Before(began) || !same && word == "" {
			began, lasting = w.began, word
		}
	}
	return calls, began, lasting
}
