package rlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// Client is what the locks of one process share: the connection to Redis, the watchdog, the subscriptions, and who holds
// or waits for what. Create one per process with New. It is safe for concurrent use.
type Client struct {
	options
	cluster  bool
	apart    bool                    // the store is several servers: one attempt may be taken by some of them
	longest  time.Duration           // of leases, where the store has a bound
	tries    int                     // of one call, where there is a bound
	owes     func(field string) bool // tells whether a store of several servers owes something of a field; nil for one
	store    seam.Store
	bus      seam.Bus
	dials    *dials // of one server; nil for others
	dog      *watchdog.Watchdog
	releaser *releaser
	id       string
	born     time.Time // for times that are kept as a number
	numbers  atomic.Int64
	followed atomic.Int64 // holds for which the client is subscribed
	calls    atomic.Int64 // acquiring calls and releases under way
	untold   atomic.Int64 // releases of which Redis refused to tell the waiters
	outside  atomic.Int64 // until when no line is used, as the user has no right to it, since born; 0 for never

	// What is used again and again. It is the client's own, as channels must not leave the bubble of a test in virtual time.
	bells        sync.Pool // of *bell that nobody waits for
	spareCalls   sync.Pool // of *call that are over
	acquisitions sync.Pool // of *acquisition that are over

	draining chan struct{} // closed when Shutdown or Close has begun
	closed   chan struct{} // closed when Close has

	mu     sync.Mutex
	queues map[string]*queue
	spare  []*queue // that nobody but their users knew
	first  *hold    // with an open level, and the others behind it
	held   int
	idle   chan struct{} // closed when nothing is held and nobody waits, for Shutdown
}

var errNilClient = errors.New("rlock: New: rdb is nil: pass a *redis.Client or a *redis.ClusterClient")

// New returns a client on rdb: a *redis.Client (a Sentinel failover client too) or a *redis.ClusterClient. It sends
// nothing. rdb stays the caller's: close it after this client. A *redis.Client gets a hook that notes why a dial failed, for
// the errors of calls that are over before go-redis tells; it leaves commands alone.
//
// Commands go through rdb, so that its hooks, credentials and limits hold for them. Those of many callers travel together,
// without the callers' contexts, on two or three connections of its pool, or five where ten or more call at once; in a
// cluster so many for each node, and while Redis hangs on more, up to 16. A command that has no answer after 5 s more than
// the ReadTimeout of rdb is given up, and its connection waited for by itself: leave a ReadTimeout in place, so that dead
// connections are closed. A pool that is kept busy by blocking commands (BLPOP, XREAD BLOCK) delays locks and renewals:
// give those a client of their own.
func New(rdb redis.UniversalClient, opts ...Option) (*Client, error) {
	switch r := rdb.(type) {
	case nil:
		return nil, errNilClient
	case *redis.Client:
		if r == nil {
			return nil, errNilClient
		}
	case *redis.Ring:
		return nil, errors.New("rlock: New: a *redis.Ring moves keys when a node is down, so that a lock can be taken twice: use one server, Sentinel or a cluster")
	case *redis.ClusterClient:
		if r == nil {
			return nil, errNilClient
		}
		if o := r.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return nil, errors.New("rlock: New: a cluster client that reads from replicas (ReadOnly, RouteByLatency, RouteRandomly) cannot ask who holds a lock: pass one without these options")
		}
	}
	c, err := newClient(opts)
	if err != nil {
		return nil, err
	}
	_, c.cluster = rdb.(*redis.ClusterClient)
	if err := c.checkReads(rdb); err != nil {
		return nil, err
	}
	store := scripts.New(rdb)
	if confirm := c.confirmation(); confirm != nil {
		store.Confirm(*confirm)
	}
	if one, is := rdb.(*redis.Client); is {
		c.dials = dialsOf(one)
	}
	c.store, c.bus = store, bus{pubsub.New(rdb, c.sharding, c.log)}
	return c, nil
}

func init() {
	seam.NewClient = func(opts any, parts func(seam.Settings) (seam.Parts, error)) (any, error) {
		c, err := newClient(opts.([]Option))
		if err != nil {
			return nil, err
		}
		if c.confirmation() != nil {
			return nil, errors.New("rlock: WithReplicas and WithFsync are for one Redis: leave them out where several have the lock")
		}
		p, err := parts(seam.Settings{Lease: c.lease, UnlockTimeout: c.unlockTimeout, Log: c.log})
		if err != nil {
			return nil, err
		}
		c.store, c.bus, c.longest, c.tries, c.owes, c.apart, c.handoffs = p.Store, p.Bus, p.Longest, p.Tries, p.Owes, true, 0
		return c, nil
	}
}

// newClient is New without what the client works with.
func newClient(opts []Option) (*Client, error) {
	c := &Client{
		options: options{
			lease:         30 * time.Second,
			poll:          time.Second,
			unlockTimeout: 5 * time.Second,
			patience:      10 * time.Second,
			handoffs:      32,
			log:           defaultLog(),
		},
		id:       uuid.NewString(),
		born:     time.Now(),
		draining: make(chan struct{}),
		closed:   make(chan struct{}),
		queues:   make(map[string]*queue),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("rlock: New: an option is nil: leave it out")
		}
		opt(&c.options)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.lease = c.lease.Truncate(time.Millisecond) // as it is sent
	c.dog = watchdog.New(c.renew)
	c.releaser = &releaser{client: c}
	return c, nil
}

// Close ends the client's work: calls that wait return ErrClosed, as new ones do; the contexts of held locks end with
// ErrClosed, and their leases are no longer renewed. Unlock still releases, also after Close.
//
// Close waits until what is under way has been answered, and what that has taken was released, so that no lock stays taken
// for others; but no longer than WithUnlockTimeout. What is not released by then is free at the end of its lease; Close
// logs it. So is what a command takes whose connection broke, and that arrives at Redis after Close has returned. To let the work in hand finish first, call Shutdown. Close may be called more than once; rdb stays open, and is
// to be closed after it.
func (c *Client) Close() error {
	c.mu.Lock()
	c.drain()
	if isClosed(c.closed) {
		c.mu.Unlock()
		return nil
	}
	close(c.closed)
	open := make([]*hold, 0, c.held)
	for h := c.first; h != nil; h = h.next {
		open = append(open, h)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.unlockTimeout)
	defer cancel()
	c.ring()
	for _, h := range open {
		h.finish(ErrClosed, "")
	}
	c.dog.Close()
	c.settle(ctx)
	c.bus.Close()
	c.releaser.close()
	c.log.Handler().(*throttle).flush()
	return nil
}

// settle waits until no call is under way, and nothing is taken that no release has freed, or ctx ends.
func (c *Client) settle(ctx context.Context) {
	for next := time.Now(); ; {
		if now := time.Now(); !now.Before(next) {
			c.releaser.hurry()
			next = now.Add(hurryAgain)
		}
		if c.calls.Load() == 0 && !c.releaser.owing() || !sleep(ctx, time.Millisecond) {
			return
		}
	}
}

// hurryAgain is how long after a release that failed Close sends it again.
const hurryAgain = 100 * time.Millisecond

// Shutdown stops taking locks for contexts that hold none, waits until the held ones are unlocked, and closes the
// client, as Close does. Meanwhile holders may re-enter and take further locks, and leases are renewed. When ctx ends
// first, the client is closed all the same, as it is when Close is called meanwhile; the error says how many holds were
// open. Shutdown then takes up to WithUnlockTimeout longer than ctx.
func (c *Client) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	c.drain()
	if c.idle == nil {
		c.idle = make(chan struct{})
		c.rest()
	}
	idle := c.idle
	c.mu.Unlock()
	c.ring()
	var why error
	select {
	case <-idle:
		return c.Close()
	case <-c.closed:
		why = ErrClosed
	case <-ctx.Done():
		why = contextError(ctx)
	}
	c.mu.Lock()
	open := c.held
	c.mu.Unlock()
	if err := c.Close(); err != nil || open == 0 {
		return err
	}
	return fmt.Errorf("rlock: Shutdown: closed with %d locks held: %w", open, why)
}

// drain refuses new holders from now on. With c.mu held.
func (c *Client) drain() {
	if !isClosed(c.draining) {
		close(c.draining)
	}
}

// ring makes all who wait for a lock look whether they still may.
func (c *Client) ring() {
	c.mu.Lock()
	queues := slices.Collect(maps.Values(c.queues))
	c.mu.Unlock()
	for _, q := range queues {
		q.ring()
		q.hush()
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// field returns a new hold's field. Its number is never used again.
func (c *Client) field() string {
	field := append(make([]byte, 0, 64), c.id...)
	return string(strconv.AppendInt(append(field, ':'), c.numbers.Add(1), 10))
}

// enter registers an open hold; false once the client is closed.
func (c *Client) enter(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isClosed(c.closed) {
		return false
	}
	if h.next = c.first; h.next != nil {
		h.next.prev = h
	}
	c.first = h
	c.held++
	return true
}

// exit forgets a hold with no open level, and its use of its queue.
func (c *Client) exit(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		c.first = h.next
	}
	h.prev, h.next = nil, nil
	c.held--
	c.unuse(h.queue)
}

// rest lets Shutdown go on when nothing is held, and nobody waits. With c.mu held.
func (c *Client) rest() {
	if c.idle != nil && len(c.queues) == 0 && !isClosed(c.idle) {
		close(c.idle)
	}
}

// told looks whether the waiters were told of a release, and says once that they never are.
func (c *Client) told(a scripts.Answer, keys *scripts.Keys) {
	if a.More {
		c.leaveLine(keys, "")
	}
	if a.Outside {
		c.toldOutside(keys)
	}
	if a.Untold && c.untold.Add(1) == 1 {
		command := "PUBLISH"
		if sharded, _ := c.bus.Known(); sharded {
			command = "SPUBLISH, and Redis 7 or later,"
		}
		go c.log.Warn("rlock: Redis released a lock and refused to tell its waiters, who come late: the Redis user needs "+command+" on the channel",
			"lock", keys.Lock, "channel", keys.Channel())
	}
}

// renew sends the watchdog's renewals.
func (c *Client) renew(ctx context.Context, batch []watchdog.Renewal) []error {
	renewals := make([]scripts.Renewal, len(batch))
	for i, r := range batch {
		h := r.Owner.(*hold)
		renewals[i] = scripts.Renewal{Keys: h.trace.keys, Field: h.trace.field, Lease: r.Length}
	}
	sent, ok := await(ctx, func() []scripts.Renewal {
		c.store.Renew(ctx, renewals)
		return renewals
	})
	if ok && !slices.ContainsFunc(sent, func(r scripts.Renewal) bool { return r.Err != nil }) {
		return nil
	}
	outcome := make([]error, len(batch))
	failed, last := 0, -1
	for i := range outcome {
		switch {
		case !ok:
			outcome[i] = ctx.Err()
		case sent[i].Err == scripts.ErrGone:
			outcome[i] = watchdog.ErrGone
			continue
		default:
			outcome[i] = sent[i].Err
		}
		if outcome[i] == nil {
			continue
		}
		batch[i].Owner.(*hold).failed(outcome[i])
		if errors.Is(outcome[i], scripts.ErrGone) {
			outcome[i] = watchdog.ErrGone
			continue
		}
		failed, last = failed+1, i
	}
	if failed > 0 && !isClosed(c.closed) {
		c.log.Warn("rlock: renewals failed, they are repeated until the leases are over",
			"locks", failed, "one", batch[last].Owner.(*hold).trace.keys.Lock, "error", outcome[last])
	}
	return outcome
}
