package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A request is what one acquiring call asks for.
type request struct {
	op      string
	forever bool          // the context alone bounds the wait
	wait    time.Duration // 0: one try
	lease   time.Duration // 0: the watchdog's
	kept    bool          // by the watchdog; tryAcquire says so
	fenced  bool          // with a token
	stable  bool          // that stays the same through re-entries
	blocks  bool          // and may be one of a block
	floor   bool          // and is at least the server's time,
	expiry  time.Duration // of a counter that may expire; 0: never
}

// waits tells whether the call waits for others.
func (r request) waits() bool { return r.forever || r.wait > 0 }

// counted is the op with the request's way of counting tokens.
func (r *request) counted(op scripts.Op) scripts.Op {
	if r.floor {
		return op.WithFloor(r.expiry)
	}
	return op
}

// onceMore is for how long a call that does not wait says again what a broken connection swallowed.
const onceMore = time.Second

// minExpiry is the shortest expiry of a counter.
const minExpiry = time.Second

// errOvertaken tells that a call may not re-enter after all: another one of its holder was first.
var errOvertaken = errors.New("overtaken")

// errLate is an answer that came when the lease it tells of could no longer be trusted.
var errLate = errors.New("no answer from Redis before the lease was over")

// acquire is every acquiring call. On an error the context is the one passed in.
func (l *Lock) acquire(ctx context.Context, r request) (context.Context, *level, error) {
	held, lv, err := l.tryAcquire(ctx, r)
	if err != nil {
		return ctx, nil, l.wrap(r.op, err)
	}
	return held, lv, nil
}

func (l *Lock) tryAcquire(ctx context.Context, r request) (context.Context, *level, error) {
	if err := l.checkRequest(ctx, r); err != nil {
		return nil, nil, err
	}
	who := holderOf(ctx)
	if who == nil {
		who = &holder{base: ctx}
	}
	l.client.calls.Add(1) // before the look at closed: Close waits for those that it finds
	defer l.client.calls.Add(-1)
	if isClosed(l.client.draining) && (isClosed(l.client.closed) || !who.holdsAny(l.client)) {
		return nil, nil, ErrClosed
	}
	a, _ := l.client.acquisitions.Get().(*acquisition)
	if a == nil {
		a = new(acquisition)
	}
	a.Lock, a.request, a.ctx, a.who, a.bound, a.began = l, r, ctx, who, ctx, time.Now()
	if a.kept = r.lease == 0; a.kept {
		a.lease = l.client.lease
	}
	a.lease = a.lease.Truncate(time.Millisecond)
	if r.wait > 0 {
		var cancel context.CancelFunc
		a.bound, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	a.end = a.bound.Done()
	lv, err := a.run()
	*a = acquisition{}
	l.client.acquisitions.Put(a)
	if err != nil {
		return nil, nil, err
	}
	return newHoldContext(ctx, lv, who), lv, nil
}

func (l *Lock) checkRequest(ctx context.Context, r request) error {
	if err := l.checkName(); err != nil {
		return err
	}
	if r.wait < 0 {
		return fmt.Errorf("wait %v is negative: 0 tries once, Lock waits as long as its context", r.wait)
	}
	if r.wait > 0 && r.wait < minWait {
		return fmt.Errorf("wait %v: use %v or more, or 0 to try once%s", r.wait, minWait, meant(r.wait))
	}
	if r.lease != 0 {
		if err := checkLease(r.lease); err != nil {
			return err
		}
		if l.client.longest > 0 && r.lease > l.client.longest {
			return fmt.Errorf("lease %v: use %v or less, the longest that the client was made for (WithMaxLease)", r.lease, l.client.longest)
		}
		if err := l.client.checkConfirmed(r.lease); err != nil {
			return err
		}
	}
	if r.expiry != 0 && r.expiry < minExpiry {
		return fmt.Errorf("the counter's expiry %v is shorter than %v: take one that no clock will be set back by, such as 24 h", r.expiry, minExpiry)
	}
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	return nil
}

// An acquisition is one acquiring call under way.
type acquisition struct {
	*Lock
	request
	ctx   context.Context // the caller's
	bound context.Context // the caller's, and the end of the wait
	end   <-chan struct{} // bound's
	who   *holder

	began  time.Time
	queue  *queue
	fresh  *hold  // what it is to become; nil for one that has waited, until then
	trace  *trace // of the attempts
	tokens int    // that they ask for
	tries  int    // so many attempts, so far
	ticket string // with which the last one was in the line; "" for none
	why    error  // the last one was in vain; nil: another holder has the lock
	bell   *bell  // rung when a call is over, something below or queue.look has changed, or it is time

	// In line; guarded by queue.mu.
	prev, next *acquisition
	leads      bool
	busy       bool   // asks Redis, or has been promised the lock: there is nothing to promise
	offered    *call  // the lock is on its way from the hold before
	revoked    bool   // and Redis does not answer
	granted    *block // the lock is here, with the next token of this block
}

// run takes the lock, or re-enters it.
func (a *acquisition) run() (*level, error) {
	a.queue = a.client.use(a.name)
	defer func() {
		if a.fresh == nil || a.fresh.queue == nil {
			a.queue.done()
		} // otherwise the hold goes on using it
	}()
	a.bell = a.client.bell()
	defer a.client.hang(a.bell)
	lv, err := a.enter()
	if a.trace != nil && (err != nil || lv.hold.trace != a.trace) && a.trace.givenUp() {
		a.client.releaser.abandon(a.trace)
	}
	return lv, err
}

func (a *acquisition) enter() (*level, error) {
	own := a.who.find(a.client, a.name)
	if own != nil && own.admits(a.ctx) {
		if lv, err := a.reenter(own); err != errOvertaken {
			return lv, err
		}
	}
	a.fresh = new(hold)
	a.trace = &a.fresh.own
	a.trace.keys, a.trace.field, a.trace.lease = a.keys, a.client.field(), a.lease
	if !a.waits() {
		return a.once(own)
	}
	return a.stand()
}

// lighten drops the hold of a call that is to wait: only its trace is needed until then, and waiters may be many.
func (a *acquisition) lighten() {
	if a.fresh == nil || a.trace != &a.fresh.own || a.trace.open() || a.trace.doubtful() {
		return
	}
	a.trace = &trace{keys: a.keys, field: a.trace.field, lease: a.lease, refused: a.trace.refused}
	a.fresh = nil
}

// once is a call that does not wait.
func (a *acquisition) once(own *hold) (*level, error) {
	if own != nil {
		if err := own.state(); err != nil {
			return nil, err
		}
		return nil, ErrNotAcquired
	}
	if h := a.queue.held(); h != nil && h.state() == nil && h.lease.Deadline().Age() < time.Second {
		return nil, ErrNotAcquired // Redis could say nothing else
	}
	a.tokens = 1
	for backoff := firstBackoff; ; backoff *= 2 {
		lv, _, err := a.attempt()
		switch {
		case lv != nil:
			return lv, nil
		case a.ctx.Err() != nil:
			return nil, a.ended()
		case err == nil:
			return nil, notAcquired(a.why)
		case !passing(err) || errors.Is(err, ErrUnconfirmed) || time.Since(a.began) > min(onceMore, a.client.patience):
			return nil, err
		}
		sleep(a.ctx, backoff)
	}
}

// attempt asks Redis once. It returns the level if that took the lock, or how long another holder's lease lasts.
func (a *acquisition) attempt() (*level, time.Duration, error) {
	k := a.newAttempt()
	a.ask(k)
	for due := time.Now().Add(a.lease); !k.over.Load() && time.Now().Before(due); {
		a.bell.ringAt(due)
		select {
		case <-a.bell.rung:
			continue
		case <-a.end:
		case <-a.client.closed:
		}
		break
	}
	return a.outcome(k)
}

// askInTurn sends one acquire that others in the line come before. look, stale: see scripts.Turn.
func (a *acquisition) askInTurn(look bool, stale string) *call {
	k := a.newAttempt()
	if a.client.lined() {
		turn := a.queue.turn(look, stale)
		a.ticket = turn.Ticket
		k.inTurn(turn)
	}
	a.ask(k)
	return k
}

// newAttempt is one acquire, to be sent by ask. Operations are large values. Those that this function, and inTurn, keep on the
// stack are gone before the command is sent, so that the stack of a caller that waits stays at 4 KiB.
//
//go:noinline
func (a *acquisition) newAttempt() *call {
	return a.client.newCall(a.counted(scripts.Acquire(a.keys, a.fenced, a.trace.field, a.lease, a.tokens)), a.trace, a.bell)
}

//go:noinline
func (k *call) inTurn(t scripts.Turn) { k.Op = k.Op.InTurn(t) }

// ask sends one acquire.
func (a *acquisition) ask(k *call) {
	a.tries++
	if a.trace.doubtful() {
		a.client.sendAlone(context.Background(), k)
	} else {
		a.client.send(k)
	}
}

// outcome is what became of a call that is over, or is not waited for any longer.
func (a *acquisition) outcome(k *call) (*level, time.Duration, error) {
	lv, ttl, err := a.verdict(k)
	if lv == nil && a.client.apart && a.trace.doubtful() {
		// Some servers may have taken what others refused. That is released, and the next attempt has another field: a
		// late copy of the release must not meet it.
		old := a.trace
		a.fresh, a.trace = nil, &trace{keys: a.keys, field: a.client.field(), lease: a.lease}
		a.client.releaser.release(old)
	}
	return lv, ttl, err
}

func (a *acquisition) verdict(k *call) (*level, time.Duration, error) {
	if !k.over.Load() {
		a.client.withdraw(k)
		switch {
		case isClosed(a.client.closed):
			return nil, 0, ErrClosed
		case a.bound.Err() != nil:
			return nil, 0, a.bound.Err()
		}
		return nil, 0, errLate
	}
	if k.answer.Held && k.heir == nil {
		a.queue.tookPlace(a.ticket)
	}
	switch {
	case k.err != nil:
		return nil, 0, k.err
	case !k.answer.Held:
		a.why = k.answer.Why
		return nil, k.answer.TTL, nil
	case time.Until(watchdog.DeadlineOf(k.sent, a.lease).Time()) <= 0:
		return nil, 0, errLate
	}
	token := k.answer.Token
	var b *block
	if a.tokens > 1 {
		token -= int64(a.tokens) - 1
		b = &block{trace: a.trace, sent: k.sent, lease: a.lease, next: token + 1, last: k.answer.Token, bell: &bell{rung: make(chan struct{}, 1)}}
	}
	return a.hold(k.sent, a.lease, token, b, k.heir == nil)
}

// hold is what a call becomes that has got the lock: by a command that was sent at this time, for this long, with this
// token, and with a block if it is to be passed on with the others of it. begins: from others, so that a series begins.
func (a *acquisition) hold(sent watchdog.Instant, lease time.Duration, token int64, b *block, begins bool) (*level, time.Duration, error) {
	if a.ctx.Err() != nil {
		return nil, 0, a.ctx.Err()
	}
	if own := a.who.find(a.client, a.name); own != nil {
		// It was there when the call began to wait, and is gone from Redis without having been unlocked. A holder does
		// not get a new hold before it has learned of the loss.
		own.lose("the lock was free although it was held", true)
		return nil, 0, ErrLost
	}
	if a.fresh == nil {
		a.fresh = new(hold)
	}
	h := a.fresh
	h.client, h.trace = a.client, a.trace
	h.new, h.stable, h.token, h.block = a.who, a.stable, token, b
	h.lease.Owner = h
	h.alone = begins && b == nil && a.queue.place.Load() == nil
	lv := &h.first
	lv.begin(a.ctx, a.who, h, a.kept)
	lv.token = token
	h.levels = append(h.store[:0], lv)
	if !a.client.enter(h) {
		lv.end(&ended{lock: a.name, err: ErrClosed})
		return nil, 0, ErrClosed
	}
	h.queue = a.queue
	over := a.queue.took(h, sent, begins)
	a.who.add(h)
	a.client.dog.Add(&h.lease, sent, lease)
	if over {
		h.lose(forcedOpen, false) // a repeat of the attempt may have taken it anew: Unlock releases that
	}
	return lv, 0, nil
}

// notAcquired is the error of a call that another holder was the reason for, or something else.
func notAcquired(why error) error {
	if why != nil {
		return why
	}
	return ErrNotAcquired
}

// passing tells that an attempt is worth repeating.
func passing(err error) bool {
	return errors.Is(err, errLate) || scripts.Passing(err) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrLost)
}

// gaveUp is the error of a call whose wait or context is over.
func (a *acquisition) gaveUp() error {
	if a.ctx.Err() != nil {
		return a.ended()
	}
	return a.queue.verdict(a.began)
}

// ended is the error of a call whose context is over.
func (a *acquisition) ended() error {
	return with(contextError(a.ctx), a.queue.lastWord(a.began))
}
