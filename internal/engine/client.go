package engine

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

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/dials"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/line"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/internal/tell"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// Client is what the locks of one process share. rlock.Client is this type with the methods that
// users have.
type Client struct {
	set      Settings
	id       string
	born     time.Time // for times that are kept as a number
	server             // where the locks are
	dog      *watchdog.Watchdog
	releaser *releases.Releaser
	lineUse

	commands command.Sender
	spares
	rooms room.Settings

	lastField     atomic.Int64
	followedHolds atomic.Int64 // holds for which the client is subscribed
	// how many acquiring calls, releases and leaves of the line are under way
	underWay atomic.Int64

	reports
	closing
	books
}

// spares are what is over, and is used again.
type spares struct {
	// of *waiter; the client's own, as channels must not leave the bubble of a test in virtual time
	spareWaiters sync.Pool
}

// A server is what a client works with: one Redis, or what takes its place.
type server struct {
	on         []redis.UniversalClient // where these are, a quorum's in its order
	limits     Limits
	cluster    bool
	store      Store
	readWrites *scripts.Scripts // store, of one server; nil for others
	bus        Bus
	dials      *dials.Dials  // why dials fail, of one server; nil for others
	movesSeen  atomic.Uint32 // of dials
	asksAgain  atomic.Bool   // askLately is due
}

// lineUse is what a client knows of all lines together.
type lineUse struct {
	distance line.Distance
	// until when no line is used, as the client cannot (see lineRefused), since born; 0 for never
	noLineUntil   atomic.Int64
	noLineTold    atomic.Uint32 // a bit for each scripts.Refusal that was logged
	uncountedAt   atomic.Int64  // when the server did not count the client, since born; 0 for never
	lineProven    atomic.Bool   // the client has been in a line: the user may do all that it takes
	handoffDenied atomic.Bool   // Redis has refused a handoff, as the user lacks a right
}

// reports is what a client tells its user, and others.
type reports struct {
	tracedHolds tracedHolds // empty where tellsOfHolds is false
	// what the trace is still to be told of other than by the caller's own goroutine
	events      tell.Outbox
	presenter   *presenter // nil without WithPresence
	outage      outage
	unpublished atomic.Int64 // how many releases Redis refused to publish
}

// closing is how far Shutdown and Close are.
type closing struct {
	draining   chan struct{} // closed when Shutdown or Close has begun
	closed     chan struct{} // closed when Close has begun
	closeEnded chan struct{} // closed when Close has ended
}

// books is what a client holds, and waits for.
type books struct {
	mu          sync.Mutex
	locks       map[stateKey]*lockState
	lately      *lately      // nil for none
	forced      []forcedHold // holds of its own that the client has released by force
	anyForced   atomic.Bool  // forced has some
	spareStates []*lockState // of locks that nothing refers to any more
	firstHold   *hold        // the list of the registered holds, linked by prev and next
	held        int
	// by the key of the semaphore, or of the side that reads; empty where nobody watches
	watched map[stateKey]map[*waited]struct{}
	// closed when nothing is held and nobody waits, for Shutdown
	idle chan struct{}
}

var errNilClient = errors.New("rlock: New: rdb is nil: pass a *redis.Client or a *redis.ClusterClient")

// CheckRedis refuses what New cannot work with.
func CheckRedis(rdb redis.UniversalClient) error {
	switch r := rdb.(type) {
	case nil:
		return errNilClient
	case *redis.Client:
		if r == nil {
			return errNilClient
		}
	case *redis.Ring:
		return errors.New("rlock: New: a *redis.Ring moves keys when a node is down, so that a lock can be taken twice: use one server, Sentinel or a cluster")
	case *redis.ClusterClient:
		if r == nil {
			return errNilClient
		}
		if o := r.Options(); o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
			return errors.New("rlock: New: a cluster client that reads from replicas (ReadOnly, RouteByLatency, RouteRandomly) cannot ask who holds a lock: pass one without these options")
		}
	default:
		return fmt.Errorf("rlock: New: whether a %T is a cluster's client cannot be seen: pass the *redis.Client or the *redis.ClusterClient itself, and what it is to do besides as a hook (AddHook)", rdb)
	}
	return nil
}

// New returns a client on rdb, which CheckRedis has accepted, as rlock.New says.
func New(rdb redis.UniversalClient, set Settings) (*Client, error) {
	if err := set.checkReads(rdb); err != nil {
		return nil, err
	}
	c := newClient(set)
	_, c.cluster = rdb.(*redis.ClusterClient)
	store := scripts.New(rdb)
	if confirm := set.confirmation(); confirm != nil {
		store.Confirm(*confirm)
	}
	if one, is := rdb.(*redis.Client); is {
		c.dials = dials.Of(one)
		c.dials.Moved(&c.movesSeen)
	}
	bus := pubsub.New(rdb, set.Sharding, set.Log)
	bus.OnChange(c.SubscriptionChanged)
	c.store, c.commands.Store, c.bus, c.readWrites = store, store, oneBus{bus}, store
	c.On(rdb)
	return c, nil
}

// NewOn returns a client on what takes the place of one Redis, with settings that CheckSeveral has
// accepted.
func NewOn(store Store, bus Bus, limits Limits, set Settings) *Client {
	if limits.several() {
		set.Handoffs = 0
	}
	c := newClient(set)
	if limits.several() {
		// whoever looks at one of them alone is told by each field
		c.id = quorums.NewID(limits.Servers)
	}
	c.store, c.commands.Store, c.bus, c.limits = store, store, bus, limits
	return c
}

// Store is what the client works with.
func (c *Client) Store() Store { return c.store }

// newClient is New without what the client works with.
func newClient(set Settings) *Client {
	c := &Client{
		set:     set,
		id:      uuid.NewString(),
		born:    time.Now(),
		closing: closing{draining: make(chan struct{}), closed: make(chan struct{}), closeEnded: make(chan struct{})},
		books:   books{locks: make(map[stateKey]*lockState)},
	}
	c.rooms = room.Settings{Poll: set.Poll, Patience: set.Patience, Silence: set.silence()}
	c.dog = watchdog.New(c.renewLeases)
	c.releaser = releases.New(releasing{c}, set.Log)
	c.commands.Heard = c.noteServer
	return c
}

// Close is rlock.Client.Close.
func (c *Client) Close() error {
	c.mu.Lock()
	c.drain()
	if isClosed(c.closed) {
		c.mu.Unlock()
		select {
		case <-c.closeEnded:
		// a trace's function, which that Close waits for, may have called this one
		case <-time.After(c.set.UnlockTimeout):
		}
		return nil
	}
	close(c.closed)
	defer close(c.closeEnded)
	open := make([]*hold, 0, c.held)
	for h := c.firstHold; h != nil; h = h.next {
		open = append(open, h)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.set.UnlockTimeout)
	defer cancel()
	c.notifyAll()
	for _, h := range open {
		h.stopMaxHold()
		if h.End(ErrClosed, "", nil) {
			h.tellDone(time.Now(), locktrace.Closed, ErrClosed)
		}
	}
	c.dog.Close()
	c.awaitReleases(ctx)
	c.presenter.end(ctx)
	c.bus.Close()
	c.releaser.Close()
	c.events.Flush()
	tell.Flush(c.set.Log)
	return nil
}

// Closed returns a channel that is closed when Close has begun, also by Shutdown.
func (c *Client) Closed() <-chan struct{} { return c.closed }

// awaitReleases waits until no call is under way, and nothing is taken that no release has freed,
// or ctx ends.
func (c *Client) awaitReleases(ctx context.Context) {
	for next := time.Now(); ; {
		if now := time.Now(); !now.Before(next) {
			c.releaser.SendAllNow()
			next = now.Add(hurryAgain)
		}
		if c.underWay.Load() == 0 && !c.releaser.OwesAny() || !command.Sleep(ctx, time.Millisecond) {
			return
		}
	}
}

// hurryAgain is how long after a release that failed Close sends it again.
const hurryAgain = 100 * time.Millisecond

// Shutdown is rlock.Client.Shutdown.
func (c *Client) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("rlock: Shutdown: %w", errNoContext)
	}
	c.mu.Lock()
	c.drain()
	if c.idle == nil {
		c.idle = make(chan struct{})
		c.idleIfUnused()
	}
	idle := c.idle
	c.mu.Unlock()
	c.notifyAll()
	var why error
	select {
	case <-idle:
		return c.Close()
	case <-c.closed:
		why = ErrClosed
	case <-ctx.Done():
		why = holder.ContextError(ctx)
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

// shutsOut tells whether calls of the holder end because the client is closed, or shutting down.
// Those that are nested in a hold, which Shutdown waits for, go on.
func (c *Client) shutsOut(who *holder.Holder) bool {
	return isClosed(c.draining) && (isClosed(c.closed) || !who.HoldsAny(c))
}

// notifyAll makes all who wait for a lock look whether they still may.
func (c *Client) notifyAll() {
	c.mu.Lock()
	states := slices.Collect(maps.Values(c.locks))
	c.mu.Unlock()
	for _, ls := range states {
		ls.notifyAll()
		ls.endLinger()
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

// newField returns a new hold's field. Its number is never used again.
func (c *Client) newField() string { return c.fieldOf(1) }

// newSharedField is newField for a hold of a semaphore or a read-write lock, whose fields have
// negative numbers. The state that the hold is to have has not heard of the field before the answer
// has, and nobody takes it for that of a hold which is over (owns).
func (c *Client) newSharedField(keys *scripts.Keys) string { return keys.FieldOf(c.fieldOf(-1)) }

// fieldOf returns a new field whose number has this sign.
func (c *Client) fieldOf(sign int64) string {
	field := append(make([]byte, 0, 64), c.id...)
	return string(strconv.AppendInt(append(field, ':'), sign*c.lastField.Add(1), 10))
}

// registerHold puts an open hold into the list of holds, and counts the hold as a user of the lock
// state: the call that has got the hold is another user, and the hold may outlive that call, or be
// lost before it returns. registerHold returns false, and does nothing, once the client is closed.
func (c *Client) registerHold(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if isClosed(c.closed) {
		return false
	}
	if h.next = c.firstHold; h.next != nil {
		h.next.prev = h
	}
	c.firstHold = h
	c.held++
	h.lockState.users++
	if h.isShare() {
		h.of.users++
	}
	return true
}

// unregisterHold takes the hold out of the list of holds, and removes it from the users of the lock
// state.
func (c *Client) unregisterHold(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.next != nil {
		h.next.prev = h.prev
	}
	if h.prev != nil {
		h.prev.next = h.next
	} else {
		c.firstHold = h.next
	}
	h.prev, h.next = nil, nil
	c.held--
	if !c.limits.several() && !h.isShare() {
		if c.lately == nil {
			c.lately = new(lately)
		}
		c.lately.note(h.lock.keys)
	}
	c.removeUserLocked(h.lockState)
	if h.isShare() {
		c.removeUserLocked(h.of)
	}
}

// idleIfUnused lets Shutdown go on when nothing is held, and nobody waits. With c.mu held.
func (c *Client) idleIfUnused() {
	if c.idle != nil && len(c.locks) == 0 && !isClosed(c.idle) {
		close(c.idle)
	}
}

// releaseAnswered does what the answer to a release asks for. More: the release has reached its
// bound before it called anybody, and the client goes on calling, by a leave (P29). Own: see
// releaseOver. Outside: see lineRefused. Untold: Redis refused to publish the release; the log
// tells of the first one.
func (c *Client) releaseAnswered(a scripts.Answer, keys *scripts.Keys) {
	if a.Own != "" {
		c.releaseOver(keys, a.Own)
	}
	if a.More {
		c.leaveLine(keys, "")
	}
	if a.Outside != 0 {
		c.lineRefused(keys, a.Outside)
	}
	if a.Untold && c.unpublished.Add(1) == 1 {
		command := "PUBLISH"
		if sharded, _ := c.bus.Known(); sharded {
			command = "SPUBLISH, and Redis 7 or later,"
		}
		c.set.Log.Warn("rlock: Redis released a lock and refused to tell its waiters, who come late: the Redis user needs "+command+" on the channel",
			"lock", keys.Lock, "channel", keys.Channel())
	}
}

// renewLeases sends the watchdog's renewals.
func (c *Client) renewLeases(ctx context.Context, batch []watchdog.Renewal) []error {
	if t := c.set.Trace; t == nil || t.RenewalDone == nil {
		return c.sendRenewals(ctx, batch)
	}
	began := time.Now()
	outcome := c.sendRenewals(ctx, batch)
	c.renewalDone(batch, outcome, began)
	return outcome
}

func (c *Client) sendRenewals(ctx context.Context, batch []watchdog.Renewal) []error {
	asked, renewals := time.Now(), make([]scripts.Renewal, len(batch))
	for i, r := range batch {
		h := r.Owner.(*hold)
		renewals[i] = scripts.Renewal{Keys: h.lock.keys, Field: h.attempts.Field, Lease: r.Length}
	}
	sent, ok := detach(ctx, func() []scripts.Renewal {
		c.store.Renew(ctx, renewals)
		return renewals
	})
	for i, r := range batch {
		err := ctx.Err()
		if ok {
			err = sent[i].Err
		}
		c.heard(r.Owner.Slot(), asked, err)
	}
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
		// Without a length it was the question whether the hold is there.
		gone, renews := errors.Is(outcome[i], scripts.ErrGone), batch[i].Length > 0
		if gone || renews {
			batch[i].Owner.(*hold).renewalFailed(outcome[i])
		}
		switch {
		case gone:
			outcome[i] = watchdog.ErrGone
		case renews:
			failed, last = failed+1, i
		}
	}
	if failed > 0 && !isClosed(c.closed) {
		c.set.Log.Warn("rlock: renewals failed, they are repeated until the leases are over",
			"locks", failed, "one", batch[last].Owner.(*hold).lock.keys.Lock, "error", outcome[last])
	}
	return outcome
}
