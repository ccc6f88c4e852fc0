package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// Election is the part of one process in who leads. New makes one. It is safe for concurrent use; of two calls of Campaign or Run in one process
// one leads at a time. They wait in one place in the line, so that terms by turns go by processes.
type Election struct {
	lock   *fenced.Lock
	log    *slog.Logger
	pause  time.Duration
	turn   time.Duration // 0: a term does not end because others wait
	most   time.Duration // of WithMaxTerm,
	capped bool          // where that was given

	mu      sync.Mutex
	resumed *fenced.Hold  // of Resume, until Campaign returns its term; nil for none
	resumes chan struct{} // closed by the next Resume
	latest  *fenced.Hold  // of this process's latest term; nil where that was lost
	began   time.Time     // when that term began
	lostAt  time.Time     // when this process found that it was lost; zero where it was not
	token   int64         // of that term; 0 for none
}

// Option changes a default of New, which returns an error for a value out of the option's range.
type Option func(*Election)

// WithPause sets how long this process does not campaign after it has lost a term: 5 s by default. A process that was paused, or had lost its
// connection, is likely to be again; the pause gives the term to another one. Where the lost term began longer than d ago this process
// stands in the line once before, for a second: it leads again at once where nobody else campaigns. 0 is no pause, and a day is the most.
func WithPause(d time.Duration) Option { return func(e *Election) { e.pause = d } }

// WithTurns makes Run step down when others wait, once the term has lasted for d: terms go round. Without this option a term lasts until it
// is given up or lost. d is a millisecond or more. Of who waits a leader knows what fenced.Hold.Waited says.
func WithTurns(d time.Duration) Option {
	return func(e *Election) {
		if e.turn = d; d <= 0 {
			e.turn = -1
		}
	}
}

// WithMaxTerm ends a term after d, whatever lead does, so that another process leads where this one's work hangs: see rlock.MaxHold. The term counts as lost.
// Without this option a term is renewed for as long as its process lives. d is from 10 ms to 100 years.
func WithMaxTerm(d time.Duration) Option { return func(e *Election) { e.most, e.capped = d, true } }

// WithLogger sets where Run tells, as Info, of terms that begin and end, and, as Warn, of errors after which it tries again. Campaign warns where
// Redis has lost the counter of tokens. By default that is slog.Default. Of a term that was lost the lock's client warns, in its own log
// (rlock.WithLogger); Run warns where only StepDown has found it.
func WithLogger(log *slog.Logger) Option { return func(e *Election) { e.log = log } }

// New returns an election for which processes campaign that have a lock of this name. It asks nobody. Where tokens of terms are shown to storage
// make the lock with fenced.WithClockFloor: without it storage refuses every leader after a loss of the counter. A lock that can never be taken,
// such as one without a name, is an error.
func New(lock *fenced.Lock, opts ...Option) (*Election, error) {
	if lock == nil {
		return nil, errors.New("leader: New: the lock is nil: make one with fenced.NewLock")
	}
	e := &Election{lock: lock, log: slog.Default(), pause: 5 * time.Second, resumes: make(chan struct{})}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("leader: New: an option is nil: leave it out")
		}
		opt(e)
	}
	switch {
	case e.pause < 0 || e.pause > 24*time.Hour:
		return nil, fmt.Errorf("leader: New: WithPause(%v): use 0 to 24 h", e.pause)
	case e.turn != 0 && e.turn < time.Millisecond:
		return nil, errors.New("leader: New: WithTurns: use a millisecond or more, or leave the option out")
	case e.capped && (e.most < 10*time.Millisecond || e.most > 100*365*24*time.Hour):
		return nil, fmt.Errorf("leader: New: WithMaxTerm(%v): use 10 ms or more, and 100 years or less, or leave the option out", e.most)
	case e.engine().CheckUse() != nil:
		return nil, fmt.Errorf("leader: New: %w", e.engine().CheckUse())
	case e.engine().Reads():
		return nil, fmt.Errorf("leader: New: %q is the side of a read-write lock that reads, and several would lead: use another lock, or Write()", e.lock.Name())
	case e.log == nil:
		return nil, errors.New("leader: New: WithLogger(nil): leave the option out, or use slog.New(slog.DiscardHandler)")
	}
	return e, nil
}

// engine is what is in the lock.
func (e *Election) engine() *engine.Lock { return engine.LockOf(e.lock) }

// Campaign waits until this process leads, and returns its term. ctx bounds how long this call waits, and not the term, which goes on when ctx
// ends later, until StepDown or its loss. Of ctx the term has the values, as fenced.Hold.Context says. Where
// this process has lost a term, Campaign heeds WithPause first.
//
// On an error there is no term. The error is that of fenced.Lock.Acquire: ctx's own, rlock.ErrClosed, or what Redis said after
// rlock.WithPatience.
func (e *Election) Campaign(ctx context.Context) (*Term, error) { return e.campaign(ctx) }

// campaign is Campaign, with options of the acquire.
func (e *Election) campaign(ctx context.Context, opts ...rlock.AcquireOption) (*Term, error) {
	opts = append(opts, e.options()...)
	for {
		hold, early, err := e.acquire(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("leader: Campaign: %w", err)
		}
		if last, may := e.mayLead(hold, early); may {
			if hold.Token() <= last {
				e.log.Warn("leader: this term's token is not larger than that of the last one: Redis has lost the counter of tokens, and guards refuse this leader. "+
					"Set the counter, and make the lock with fenced.WithClockFloor", "lock", e.lock.Name(), "token", hold.Token(), "last token", last)
			}
			e.engine().TellTerm()
			return &Term{election: e, hold: hold, since: time.Now()}, nil
		}
		_ = hold.Unlock(ctx) // another term of this process was lost while this call waited
	}
}

// Resume takes over the term that Term.Export has named: the Campaign or Run of this Election that is under way, or the next one, returns, or leads,
// with it at once, with a larger token. Use it when one process of a deployment takes over from another, or after a restart within the lease. A pause (WithPause) does
// not count. The term is a new holder's, with the values of this ctx, also in Run. When the term is lost before that, or given back by the end of its client, Campaign waits as without it.
//
// The error is that of fenced.Lock.Import: rlock.ErrNotHeld where the exported term is over; then campaign.
func (e *Election) Resume(ctx context.Context, exported string) error {
	hold, err := e.lock.Import(ctx, exported, e.options()...)
	if err != nil {
		return fmt.Errorf("leader: Resume: %w", err)
	}
	e.mu.Lock()
	before := e.resumed
	e.resumed = hold
	close(e.resumes)
	e.resumes = make(chan struct{})
	e.mu.Unlock()
	if before != nil {
		_ = before.Unlock(ctx) // it is the same lock's, and has been lost
	}
	e.engine().TellTerm()
	return nil
}

// options are those of the acquire or import of a term's hold.
func (e *Election) options() []rlock.AcquireOption {
	opts := []rlock.AcquireOption{rlock.Lasting("leads")}
	if e.capped {
		opts = append(opts, rlock.MaxHold(e.most))
	}
	return opts
}

// takeResumed returns what Resume has left, if it can be trusted still; nil for none.
func (e *Election) takeResumed(ctx context.Context) *fenced.Hold {
	e.mu.Lock()
	hold := e.resumed
	e.resumed = nil
	e.mu.Unlock()
	if hold != nil && hold.Err() != nil {
		_ = hold.Unlock(ctx)
		return nil
	}
	return hold
}

// earlyWait is how long a process that is to pause stands in the line before that. Who campaigns already comes first.
const earlyWait = time.Second

// acquire takes the lock, or what Resume has left, also while it waits. early: it has the lock without the pause.
func (e *Election) acquire(ctx context.Context, opts []rlock.AcquireOption) (hold *fenced.Hold, early bool, err error) {
	if ctx == nil {
		return e.acquireAnew(ctx, opts)
	}
	for ctx.Err() == nil {
		e.mu.Lock()
		resumes := e.resumes
		e.mu.Unlock()
		if hold := e.takeResumed(ctx); hold != nil {
			return hold, true, nil
		}
		until, end := context.WithCancelCause(ctx)
		go func() {
			select {
			case <-resumes:
				end(errResumed)
			case <-until.Done():
			}
		}()
		hold, early, err = e.acquireAnew(until, opts)
		resumed := context.Cause(until) == errResumed
		end(nil)
		if err == nil || !resumed {
			return hold, early, err
		}
	}
	return e.acquireAnew(ctx, opts) // says why not
}

// errResumed ends a wait.
var errResumed = errors.New("leader: a term was resumed")

// acquireAnew takes the lock, after the pause where there is one. early: it has the lock without that, as nobody else campaigned.
func (e *Election) acquireAnew(ctx context.Context, opts []rlock.AcquireOption) (hold *fenced.Hold, early bool, err error) {
	left, mayTry := e.pauseLeft()
	over := time.Now().Add(left)
	if mayTry {
		if hold, err := e.lock.Acquire(ctx, append(opts, rlock.Wait(earlyWait))...); err == nil {
			return hold, true, nil
		}
	}
	if err := e.sleep(ctx, time.Until(over)); err != nil {
		return nil, false, fmt.Errorf("%q: %w", e.lock.Name(), err)
	}
	hold, err = e.lock.Acquire(ctx, opts...)
	return hold, false, err
}

// mayLead notes the hold as that of the latest term, and returns the token of the one before, 0 for none; false where this process is to pause.
func (e *Election) mayLead(hold *fenced.Hold, early bool) (last int64, may bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !early && e.pauseLocked() > 0 {
		return 0, false
	}
	last, e.token = e.token, hold.Token()
	e.latest, e.began, e.lostAt = hold, time.Now(), time.Time{}
	return last, true
}

// lost notes that the term of this hold was lost.
func (e *Election) lost(hold *fenced.Hold) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.latest == hold {
		e.latest, e.lostAt = nil, time.Now()
	}
}

// pauseLeft is how long this process does not campaign yet, and whether it may stand in the line once before: only where the lost term began longer
// than a pause ago, so that a process whose terms end at once pauses after each.
func (e *Election) pauseLeft() (left time.Duration, mayTry bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left = e.pauseLocked()
	return left, left > 0 && time.Since(e.began) > e.pause
}

// pauseLocked is how long the pause lasts still, maybe after a term that was lost without a StepDown so far. With e.mu held.
func (e *Election) pauseLocked() time.Duration {
	if e.latest != nil && errors.Is(e.latest.Err(), rlock.ErrLost) {
		e.latest, e.lostAt = nil, time.Now()
	}
	if e.lostAt.IsZero() {
		return 0
	}
	return time.Until(e.lostAt.Add(e.pause))
}

// sleep waits for d, or until ctx ends, or the client is closed or shut down.
func (e *Election) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.engine().Draining():
		return rlock.ErrClosed
	}
}
