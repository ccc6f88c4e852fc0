package rlock

import (
	"context"
	"errors"
	"fmt"
	"time"
	"weak"

	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// A request is what one acquiring call asks for.
type request struct {
	op     string
	wait   time.Duration // seam.Forever: as long as the context
	lease  time.Duration // 0: the watchdog's
	fenced bool          // with a token
	stable bool          // that stays the same through re-entries
}

// onceMore is for how long a call that does not wait says again what a broken connection swallowed.
const onceMore = time.Second

// errOvertaken tells that a call may not re-enter after all: another one of its holder was first.
var errOvertaken = errors.New("overtaken")

// errLate is an answer that came when the lease it tells of could no longer be trusted.
var errLate = errors.New("no answer from Redis before the lease was over")

// acquire is every acquiring call. On an error the context is the one passed in.
func (l *Lock) acquire(ctx context.Context, r request) (context.Context, *level, error) {
	held, lv, err := l.tryAcquire(ctx, r)
	if err != nil {
		return ctx, nil, &Error{r.op, l.name, err}
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
	if isClosed(l.client.draining) && (isClosed(l.client.closed) || !who.holdsAny(l.client)) {
		return nil, nil, ErrClosed
	}
	a := &acquisition{Lock: l, request: r, ctx: ctx, who: who, bound: ctx, kept: r.lease == 0, began: time.Now()}
	if a.kept {
		a.lease = l.client.lease
	}
	a.lease = a.lease.Truncate(time.Millisecond)
	if r.wait > 0 {
		var cancel context.CancelFunc
		a.bound, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	lv, err := a.run()
	if err != nil {
		return nil, nil, err
	}
	return newHoldContext(ctx, lv, who), lv, nil
}

func (l *Lock) checkRequest(ctx context.Context, r request) error {
	if err := l.checkName(); err != nil {
		return err
	}
	if r.wait < 0 && r.wait != seam.Forever {
		return fmt.Errorf("wait %v is negative: 0 tries once, Lock waits as long as its context", r.wait)
	}
	if r.lease != 0 {
		if err := checkLease(r.lease); err != nil {
			return err
		}
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
	who   *holder
	kept  bool

	began time.Time
	queue *queue
	trace *trace // of the attempts, once there is one
}

// run takes the lock, or re-enters it.
func (a *acquisition) run() (*level, error) {
	a.queue = a.client.use(a.name)
	defer a.queue.done()
	lv, err := a.enter()
	if err != nil && a.trace != nil && a.trace.open() {
		a.client.behind.release(a.trace)
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
	if a.wait == 0 {
		return a.once(own)
	}
	return a.stand()
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
	for backoff := firstBackoff; ; backoff *= 2 {
		lv, _, err := a.attempt()
		switch {
		case lv != nil:
			return lv, nil
		case a.ctx.Err() != nil:
			return nil, contextError(a.ctx)
		case err == nil:
			return nil, ErrNotAcquired
		case !passing(err) || time.Since(a.began) > min(onceMore, a.client.patience):
			return nil, err
		}
		sleep(a.ctx, backoff)
	}
}

// stand waits in line, and as the first in it tries.
func (a *acquisition) stand() (*level, error) {
	w, took := a.queue.join(), false
	defer func() { a.queue.leave(w, took) }()
	var (
		lead     = w.lead
		draining = (<-chan struct{})(a.client.draining)
		wake     <-chan struct{} // the leader's
		looks    = time.NewTimer(a.client.poll)
		quiet    = 0 // looks in a row that nothing but the timer asked for
		backoff  = firstBackoff
	)
	defer looks.Stop()
	for try := false; ; {
		// A hold of the same holder, taken through another context: the call may become a nested one.
		own := a.who.find(a.client, a.name)
		var changed <-chan struct{}
		if own != nil {
			changed = own.watch()
			if err := own.state(); err != nil {
				return nil, err
			}
			if own.admits(a.ctx) {
				if lv, err := a.reenter(own); err != errOvertaken {
					return lv, err
				}
				continue
			}
		}
		if try {
			try = false
			a.queue.asks()
			lv, ttl, err := a.attempt()
			pause := a.client.poll
			switch {
			case lv != nil:
				took = true
				return lv, nil
			case a.bound.Err() != nil:
				return nil, a.gaveUp()
			case err == nil:
				a.queue.answered()
				backoff = firstBackoff
				if a.queue.listen(a.keys.Channel) && ttl != scripts.NoExpiry {
					pause = min(pause<<min(quiet, 4), 10*pause)
				}
				if ttl >= 0 && ttl < pause {
					pause = ttl + time.Millisecond
				}
			case !passing(err):
				return nil, err
			default:
				a.queue.failed(err)
				if err := a.queue.exhausted(a.began, a.client.patience); err != nil {
					return nil, err
				}
				pause = backoff
				backoff = min(2*backoff, lastBackoff)
			}
			looks.Reset(pause)
		}
		select {
		case <-lead:
			lead, wake = nil, a.queue.wake
			if err := a.queue.exhausted(a.began, a.client.patience); err != nil {
				return nil, err
			}
			// The one before may have just taken the lock: then a message, or its loss, is soon enough.
			if try = a.queue.held() == nil; !try {
				a.queue.listen(a.keys.Channel)
				looks.Reset(a.client.poll)
			}
		case <-wake:
			try, quiet = true, 0
		case <-looks.C:
			if own != nil {
				own.warnOnce()
			}
			if try = wake != nil; try {
				quiet++
			}
		case <-changed:
		case <-a.bound.Done():
			return nil, a.gaveUp()
		case <-draining:
			if isClosed(a.client.closed) || !a.who.holdsAny(a.client) {
				return nil, ErrClosed
			}
			draining = a.client.closed
		}
	}
}

// passing tells that an attempt is worth repeating.
func passing(err error) bool {
	return errors.Is(err, errLate) || scripts.Passing(err) && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrLost)
}

// gaveUp is the error of a call whose wait or context is over.
func (a *acquisition) gaveUp() error {
	if a.ctx.Err() != nil {
		return contextError(a.ctx)
	}
	return a.queue.verdict(a.began)
}

// attempt sends one acquire. It returns the level if that took the lock, or how long another holder's lease lasts.
func (a *acquisition) attempt() (*level, time.Duration, error) {
	if a.trace == nil {
		a.trace = &trace{keys: a.keys, field: a.client.field(), lease: a.lease}
	}
	t := a.trace
	sent := watchdog.Now()
	ctx, cancel := context.WithDeadline(a.bound, watchdog.DeadlineOf(sent, a.lease).Time())
	defer cancel()
	t.sent()
	got, ok := await(ctx, a.client.closed, func() outcome[scripts.Answer] {
		answer, err := a.client.scripts.Acquire(ctx, a.keys, a.fenced, t.field, a.lease)
		t.came(answer, err)
		return outcome[scripts.Answer]{answer, err}
	})
	switch {
	case !ok && isClosed(a.client.closed):
		return nil, 0, ErrClosed
	case !ok && a.bound.Err() != nil:
		return nil, 0, a.bound.Err()
	case !ok:
		return nil, 0, errLate
	case got.err != nil:
		return nil, 0, got.err
	case !got.value.Held:
		return nil, got.value.TTL, nil
	case watchdog.DeadlineOf(sent, a.lease).Passed():
		return nil, 0, errLate
	case a.ctx.Err() != nil:
		return nil, 0, a.ctx.Err()
	}
	if own := a.who.find(a.client, a.name); own != nil {
		// It was there when the call began to wait, and is gone from Redis without having been unlocked. A holder does
		// not get a new hold before it has learned of the loss.
		own.lose("the lock was free although it was held", true)
		return nil, 0, ErrLost
	}
	lv := a.hold(sent, got.value.Token)
	if lv == nil {
		return nil, 0, ErrClosed
	}
	return lv, 0, nil
}

// hold is what an acquire that took the lock becomes. Nil: the client was closed meanwhile.
func (a *acquisition) hold(sent watchdog.Instant, token int64) *level {
	h := &hold{
		client: a.client,
		queue:  a.queue,
		keys:   a.keys,
		field:  a.trace.field,
		holder: weak.Make(a.who),
		trace:  a.trace,
		turn:   make(chan struct{}, 1),
		stable: a.stable,
		token:  token,
	}
	lv := newLevel(a.ctx, a.who, h, a.kept)
	lv.token = token
	h.levels = append(h.levels, lv)
	h.lease.Owner = h
	if !a.client.enter(h) {
		lv.end(&ended{lock: a.name, err: ErrClosed})
		return nil
	}
	a.queue.answered()
	a.queue.again()
	a.queue.took(h)
	a.who.add(h)
	a.client.dog.Add(&h.lease, sent, a.lease)
	return lv
}

// reenter adds a level to a hold of the caller's own.
func (a *acquisition) reenter(h *hold) (*level, error) {
	if err := h.state(); err != nil {
		return nil, err
	}
	patience := a.client.patience // with Redis; nobody else is waited for
	if a.wait == 0 {
		patience = min(patience, onceMore)
	}
	bound, cancel := context.WithTimeout(a.bound, patience)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-bound.Done():
		if a.ctx.Err() != nil {
			return nil, contextError(a.ctx)
		}
		return nil, fmt.Errorf("no answer from Redis to another change of this hold: %w", context.DeadlineExceeded)
	}
	if !h.admits(a.ctx) {
		return nil, errOvertaken
	}
	h.mu.Lock()
	h.op++
	op, count := h.op, len(h.levels)+1
	token := a.fenced && !(h.stable && h.token != 0)
	h.mu.Unlock()

	h.trace.longer(a.lease) // whether an answer comes or not
	sent := watchdog.Now()  // of the first attempt: a repeat of one that was executed extends nothing
	answer, _, err := insist(bound, max(a.client.unlockTimeout/3, time.Millisecond), func(ctx context.Context) (scripts.Answer, error) {
		return a.client.scripts.Level(ctx, a.keys, token, h.field, a.lease, count, op)
	})
	switch {
	case err != nil:
		h.correct()
		if a.ctx.Err() != nil {
			err = contextError(a.ctx)
		}
		return nil, err
	case !answer.Held && h.newest() == nil:
		return nil, ErrUnlocked // meanwhile
	case !answer.Held:
		h.lose("a re-entry found the lock gone", true)
		return nil, ErrLost
	}
	a.client.dog.Extend(&h.lease, sent, a.lease)
	lv := newLevel(a.ctx, a.who, h, a.kept)
	h.mu.Lock()
	if token {
		h.token = answer.Token
	}
	lv.token = h.token
	h.mu.Unlock()
	if err := h.push(lv); err != nil {
		return nil, err
	}
	a.client.dog.Extend(&h.lease, sent, a.lease) // again: with the new level there may be something to renew
	return lv, nil
}

// push opens a level that Redis has counted, if the hold is still there.
func (h *hold) push(lv *level) error {
	h.passed()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.end != nil:
		lv.end(h.end)
		return h.end.err
	case len(h.levels) == 0:
		lv.end(&ended{lock: h.keys.Lock, err: ErrUnlocked})
		return ErrUnlocked
	}
	h.levels = append(h.levels, lv)
	h.announce()
	return nil
}

// correct sets the count in Redis right behind a re-entry whose outcome is not known. It is a courtesy to those who read
// the count: the next change sets it anyway, and the last Unlock deletes it.
func (h *hold) correct() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.levels) == 0 || h.end != nil {
		return
	}
	h.op++
	op, count := h.op, len(h.levels)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.client.unlockTimeout)
		defer cancel()
		_, _ = h.client.scripts.Level(ctx, h.keys, false, h.field, 0, count, op)
	}()
}
