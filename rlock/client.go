package rlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	retains  bool                    // locks for callers that come back
	apart    bool                    // the store is several servers: one attempt may be taken by some of them
	longest  time.Duration           // of leases, where the store has a bound
	tries    int                     // of one call, where there is a bound
	owes     func(field string) bool // tells whether a store of several servers owes something of a field; nil for one
	store    seam.Store
	bus      seam.Bus
	dog      *watchdog.Watchdog
	behind   *behind
	id       string
	born     time.Time // for times that are kept as a number
	numbers  atomic.Int64
	followed atomic.Int64 // holds for which the client is subscribed

	// What is used again and again. It is the client's own, as channels must not leave the bubble of a test in virtual time.
	bells        sync.Pool // of *bell that nobody waits for
	calls        sync.Pool // of *call that are over
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
// nothing. rdb stays the caller's: close it after this client.
//
// Commands go through rdb, so that its hooks, credentials and limits hold for them. Those of many callers travel together,
// without the callers' contexts, on two or three connections of its pool, or five where ten or more call at once; in a
// cluster so many for each of 16 parts of the slots, and while Redis hangs on more, up to what the pool may have. A pool
// that is kept busy by blocking commands (BLPOP, XREAD BLOCK) delays locks and renewals: give those a client of their own.
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
	} else {
		c.retains = !c.cluster
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
			log:           slog.New(slog.DiscardHandler),
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
	c.behind = newBehind(c)
	return c, nil
}

// Close ends the client's work at once: calls that wait return ErrClosed, as new ones do; the contexts of held locks end
// with ErrClosed, and their leases are no longer renewed. Unlock still releases. What is retained for calls to come (see
// WithHandoffs) is released before Close returns, for which it waits as long as an Unlock would. To let the work in hand
// finish first, call Shutdown. Close may be called more than once; rdb stays open.
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
	c.ring()
	for _, h := range open {
		h.finish(ErrClosed, "")
	}
	c.dog.Close()
	c.forget()
	c.bus.Close()
	c.behind.close()
	return nil
}

// Shutdown stops taking locks for contexts that hold none, waits until the held ones are unlocked, and closes the
// client. Meanwhile holders may re-enter and take further locks, and leases are renewed. When ctx ends first, the client
// is closed all the same, as it is when Close is called meanwhile; the error says how many holds were open.
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
		c.behind.settle(ctx, c.unlockTimeout)
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
		case errors.Is(sent[i].Err, scripts.ErrGone):
			outcome[i] = watchdog.ErrGone
			continue
		default:
			outcome[i] = sent[i].Err
		}
		if outcome[i] != nil {
			failed, last = failed+1, i
		}
	}
	if failed > 0 && !isClosed(c.closed) {
		c.log.Warn("rlock: renewals failed, they are repeated until the leases are over",
			"locks", failed, "one", batch[last].Owner.(*hold).trace.keys.Lock, "error", outcome[last])
	}
	return outcome
}
