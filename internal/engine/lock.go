package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// LockOptions says whether a lock gives tokens, and how.
type LockOptions struct {
	Fenced bool          // it gives them
	Stable bool          // a hold keeps its first
	Floor  bool          // they are at least the server's time in microseconds,
	Expiry time.Duration // and their counter expires so long after the last one; 0: never
}

// Lock is a lock of one name, of which rlock.Lock and fenced.Lock are the two forms that users
// have.
type Lock struct {
	client  *Client
	id      holder.Lock
	kind    kind
	keys    *scripts.Keys
	options LockOptions

	// of the side that reads the one that writes, whose holder reads too; nil for another lock
	within      *holder.Lock
	releaseKeys *scripts.Keys // by which a hold is released; keys, but for a permit
	slot        int           // of a permit; noSlot for another lock
}

// counted is the op, which takes so many tokens, with the lock's way of counting them.
func (l *Lock) counted(op scripts.Op, tokens int) scripts.Op {
	if tokens > 1 {
		op = op.TakingTokens(tokens)
	}
	if l.options.Floor {
		op = op.WithFloor(l.options.Expiry)
	}
	return op
}

// reserves is how many tokens an op takes, with those for local handoffs where calls of the client
// wait.
func (l *Lock) reserves(wait bool) int {
	n := l.client.set.LocalHandoffs
	switch {
	case !wait || l.kind.shared() || !l.options.Fenced:
		return 1
	case l.options.Floor:
		return min(n, mostOnFloor) + 1
	}
	return n + 1
}

// terms are on what a hold has the lock that was taken with this lease.
func (l *Lock) terms(lease time.Duration) room.Terms {
	o := &l.options
	return room.Terms{Lease: lease, Fenced: o.Fenced, Stable: o.Stable, Floor: o.Floor, Expiry: o.Expiry, Permits: int32(l.keys.Permits())}
}

// NewLock returns the lock of this name. It asks no one.
func NewLock(client *Client, name string, options LockOptions) *Lock {
	return newLock(client, holder.Lock{Client: client, Name: name}, plain{}, scripts.KeysOf(name), options)
}

func newLock(client *Client, id holder.Lock, k kind, keys *scripts.Keys, options LockOptions) *Lock {
	return &Lock{client: client, id: id, kind: k, keys: keys, releaseKeys: keys, slot: noSlot, options: options}
}

// NewSemaphore returns the semaphore of this name with n permits, as a lock of which Hold takes any
// slot. It asks no one.
func NewSemaphore(client *Client, name string, n int, options LockOptions) *Lock {
	l := &Lock{client: client, id: holder.Lock{Client: client, Name: name}, kind: permits{n: n}, options: options}
	if name != "" && n >= 1 && n <= scripts.MostPermits {
		l.keys = scripts.PermitsOf(name, n)
		l.id.Name = l.keys.Lock
	}
	return l
}

// Name returns the lock's name.
func (l *Lock) Name() string {
	if l == nil {
		return ""
	}
	return l.id.Name
}

// checkMade refuses a lock that NewLock did not make, or not with a client and a name.
func (l *Lock) checkMade() error {
	switch {
	case l == nil || l.keys == nil:
		return errors.New("the lock is nil or a zero value: make it with NewLock")
	case l.client == nil || l.client.dog == nil:
		return errors.New("the lock's client is nil or a zero value: make one with rlock.New")
	case l.id.Name == "":
		return errors.New("the lock's name is empty: give it one")
	}
	return nil
}

// CheckUse is why no acquire of the lock can succeed, whatever Redis says; nil if that is not
// known.
func (l *Lock) CheckUse() error {
	if err := l.checkName(); err != nil {
		return err
	}
	if err := l.kind.refuses(l); err != nil {
		return err
	}
	if l.options.Expiry != 0 && l.options.Expiry < minExpiry {
		return fmt.Errorf("the counter's expiry %v is shorter than %v: take one that no clock will be set back by, such as 24 h", l.options.Expiry, minExpiry)
	}
	return nil
}

// Draining returns the channel that is closed when Shutdown or Close of the lock's client has
// begun.
func (l *Lock) Draining() <-chan struct{} { return l.client.draining }

func (l *Lock) checkName() error {
	if err := l.checkMade(); err != nil || !l.client.cluster {
		return err
	}
	return l.keys.CheckCluster()
}

// Request is what one acquiring call asks for.
type Request struct {
	Forever bool          // the context alone bounds the wait
	Wait    time.Duration // 0: one try
	Lease   time.Duration // 0: the watchdog's

	Reenter bool // of Hold: for the holder of the call's context, if that carries one

	imports *importing // nil for a call that asks for the lock

	Capped  bool          // the hold ends
	MaxHold time.Duration // after so long, whatever its holder does

	Lasts   bool   // the hold is meant to last,
	Lasting string // and this says what its holder does meanwhile; "" for another hold
}

// MakeRequest returns the request of these options of Acquire, which is one that waits as long as
// its context lives.
func MakeRequest[O ~func(*Request)](opts []O) (Request, error) {
	r := Request{Forever: true}
	for _, opt := range opts {
		if opt == nil {
			return r, errors.New("an option is nil: leave it out")
		}
		opt(&r)
	}
	return r, nil
}

// Acquire takes the lock, and returns the token of this acquire, 0 for a lock without tokens. On an
// error the context is the one passed in, and knows that this acquire has failed: no Unlock with it
// releases a level of a hold outside.
func (l *Lock) Acquire(ctx context.Context, r Request) (context.Context, int64, error) {
	held, lv, err := l.acquire(ctx, nil, r)
	switch {
	case err == nil:
		return held, lv.Token, nil
	case ctx == nil || l.checkMade() != nil:
		return ctx, 0, err
	}
	return holder.Failed(ctx, &l.id), 0, err
}

// Check is rlock.Lock.Check.
func (l *Lock) Check(ctx context.Context) error {
	_, err := l.held(ctx)
	return err
}

// held returns the hold that ctx belongs to, if it can be trusted.
func (l *Lock) held(ctx context.Context) (*hold, error) {
	lv, err := l.levelFor(ctx)
	if err != nil {
		return nil, err
	}
	return holdOfLevel(lv), lv.Err()
}

// IsLocked is rlock.Lock.IsLocked.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	state, err := l.inspect(ctx, "")
	return state.Locked, err
}

// IsHeld is rlock.Lock.IsHeld.
func (l *Lock) IsHeld(ctx context.Context) (bool, error) {
	count, err := l.HoldCount(ctx)
	return count > 0, err
}

// HoldCount is rlock.Lock.HoldCount.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	if err := l.checkName(); err != nil {
		return 0, err
	}
	if ctx == nil {
		return 0, errNoContext
	}
	who := holder.Of(ctx)
	if who == nil || holder.HasFailed(ctx, &l.id, l.levelOf(ctx)) {
		return 0, nil
	}
	h := l.ownHold(who)
	if h == nil {
		return 0, nil
	}
	// a level that reads may be one of a hold that writes
	state, err := h.lock.inspect(ctx, h.attempts.Field)
	if state.Count > 0 && !h.lock.kind.counts() {
		return h.Count(), err
	}
	return state.Count, err
}

// Remaining is rlock.Lock.Remaining.
func (l *Lock) Remaining(ctx context.Context) (time.Duration, error) {
	h, err := l.held(ctx)
	if err != nil {
		return 0, err
	}
	return h.left(time.Now()), nil
}

// TTL is rlock.Lock.TTL.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	state, err := l.inspect(ctx, "")
	return state.TTL, err
}

// Token returns the current token of the hold that ctx belongs to.
func (l *Lock) Token(ctx context.Context) (int64, error) {
	h, err := l.held(ctx)
	if err != nil {
		return 0, err
	}
	token, ok := h.CurrentToken()
	if !ok || token == 0 {
		return 0, fmt.Errorf("%w by a fenced lock: the hold was taken without a token", ErrNotHeld)
	}
	return token, nil
}

// inspect asks who has the lock.
func (l *Lock) inspect(ctx context.Context, field string) (scripts.State, error) {
	if err := l.checkAsk(ctx); err != nil {
		return scripts.State{}, err
	}
	bound, cancel := context.WithTimeout(ctx, l.client.set.Patience)
	defer cancel()
	began := time.Now()
	state, err := l.look(bound, field)
	if err != nil && ctx.Err() != nil {
		return state, holder.ContextError(ctx)
	}
	return state, l.client.withDial(err, began)
}

// checkAsk is why Redis need not be asked; nil if it is to be.
func (l *Lock) checkAsk(ctx context.Context) error {
	if err := l.checkName(); err != nil {
		return err
	}
	return checkContext(ctx)
}

// checkContext is why a call with ctx has nothing to do; nil if it has.
func checkContext(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errNoContext
	case ctx.Err() != nil:
		return holder.ContextError(ctx)
	}
	return nil
}

// look is inspect within this bound.
func (l *Lock) look(bound context.Context, field string) (scripts.State, error) {
	state, _, err := command.Repeat(bound, l.client.set.Patience/3, func(ctx context.Context) (scripts.State, error) {
		return l.kind.look(ctx, l, field)
	})
	return state, err
}
