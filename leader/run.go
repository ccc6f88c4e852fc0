package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

// ErrTurnOver is the cause of lead's context where Run ends a term as others wait (WithTurns).
var ErrTurnOver = errors.New("leader: the turn is over, and others wait")

// retryAfter is the pause after an error of a campaign.
const retryAfter = time.Second

// Run campaigns, and runs lead while this process leads, again and again until ctx ends or lead is done. lead's context ends with ctx, with the
// term, and with a turn; lead must work with it and return then, as another process may lead already. term.Context outlasts ctx and the
// turn, until lead has returned. Both have ctx's holder: within a hold of another lock lead re-enters that. The cause of lead's context is
// rlock.ErrLost where the term was lost, rlock.ErrImported where another process has resumed it, rlock.ErrUnlocked after term.StepDown, ErrTurnOver with WithTurns, or ctx's.
//
// Where the term was over before lead returned, Run campaigns anew, whatever lead returned; an error that says more than that the context
// has ended is logged. Otherwise lead has returned by itself: Run steps down, and returns lead's error, joined with that of StepDown, if any.
// A panic in lead steps down and goes on. When ctx ends Run returns its cause, after lead has returned.
//
// While Redis is away, or refuses the campaign, Run logs that and tries again a second later. rlock.ErrClosed ends it, and so does a ctx that is
// already that of a term, or of another hold of the lock. A nil lead is an error.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context, term *Term) error) error {
	if lead == nil {
		return fmt.Errorf("leader: Run %q: lead is nil: there is nothing to do", e.lock.Name())
	}
	var within []rlock.AcquireOption
	if ctx != nil && errors.Is(e.lock.Check(ctx), rlock.ErrNotHeld) {
		within = append(within, rlock.Reenter()) // the term is of ctx's holder, if it has one
	}
	for {
		term, err := e.campaign(ctx, within...)
		switch {
		case ctx == nil:
			return err
		case ctx.Err() != nil && term == nil:
			return fmt.Errorf("leader: Run %q: %w", e.lock.Name(), context.Cause(ctx))
		case errors.Is(err, rlock.ErrClosed), errors.Is(err, engine.ErrOwnHold):
			return err
		case err != nil:
			e.log.Warn("leader: the campaign failed, it goes on in a second", "lock", e.lock.Name(), "error", err)
			_ = e.sleep(ctx, retryAfter)
			continue
		}
		e.log.Info("leader: this process leads", "lock", e.lock.Name(), "token", term.Token())
		if over, err := e.serve(ctx, term, lead); !over {
			return err
		}
	}
}

// serve runs lead for one term. over: the term was over before lead returned, and ctx lives.
func (e *Election) serve(ctx context.Context, term *Term, lead func(ctx context.Context, term *Term) error) (over bool, err error) {
	ends, end := context.WithCancelCause(term.Context())
	defer end(nil)
	inside := &leading{ends, term, ctx}
	defer context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })()
	ended := false
	defer func() {
		if !ended { // lead panics, or ends its goroutine
			_ = term.StepDown(ctx)
		}
	}()
	if e.turn > 0 {
		go e.endTurn(inside, term, end)
	}
	err = lead(inside, term)
	ended = true
	why := context.Cause(inside)
	if why == nil {
		why = inside.Err() // nothing has run since the term was over
	}
	leaves := term.exported.Load() && (term.Err() == nil && ctx.Err() != nil || errors.Is(term.Err(), rlock.ErrClosed))
	var down error
	if !leaves {
		down = term.StepDown(ctx)
	}
	if errors.Is(down, rlock.ErrNotHeld) { // lead has stepped down
		down = nil
	}
	told := errors.Is(term.Err(), rlock.ErrLost) // the lock's client has warned of the loss
	switch {
	case why == nil: // lead is done
		e.log.Info("leader: this process steps down", "lock", e.lock.Name(), "token", term.Token())
		return false, errors.Join(err, down)
	case leaves:
		e.log.Info("leader: this process leaves its term to who resumes it", "lock", e.lock.Name(), "token", term.Token())
	case told:
		e.log.Info("leader: the term was lost", "lock", e.lock.Name(), "token", term.Token(), "error", term.Err())
	case errors.Is(down, rlock.ErrLost):
		e.log.Warn("leader: the term was lost", "lock", e.lock.Name(), "token", term.Token(), "error", down)
	case errors.Is(down, rlock.ErrImported):
		e.log.Info("leader: this process steps down", "lock", e.lock.Name(), "token", term.Token(), "why", down)
	case down != nil:
		e.log.Warn("leader: stepping down is not confirmed, it is sent again in the background", "lock", e.lock.Name(), "token", term.Token(), "error", down)
	case errors.Is(why, rlock.ErrUnlocked) && ctx.Err() == nil: // whose words are for who goes on with the context
		e.log.Info("leader: this process steps down", "lock", e.lock.Name(), "token", term.Token(), "why", "lead called StepDown")
	default:
		e.log.Info("leader: this process steps down", "lock", e.lock.Name(), "token", term.Token(), "why", why)
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, why) && !(told && errors.Is(err, rlock.ErrLost)) {
		e.log.Warn("leader: lead returned an error when its term was over", "lock", e.lock.Name(), "token", term.Token(), "error", err)
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("leader: Run %q: %w", e.lock.Name(), context.Cause(ctx))
	}
	return true, nil
}

// leading is the context of lead. It ends with the term, with the turn, and with the context of Run, and looks at the clocks of the holds that these are of.
type leading struct {
	context.Context
	term *Term
	run  context.Context
}

func (c *leading) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if err := c.term.Err(); err != nil {
		return err
	}
	return c.run.Err()
}

func (c *leading) Deadline() (time.Time, bool) { return c.run.Deadline() }

// endTurn ends the context of a term when others wait, once the term has lasted for a turn.
func (e *Election) endTurn(inside context.Context, term *Term, end context.CancelCauseFunc) {
	select {
	case <-inside.Done():
		return
	case <-term.Waited():
	}
	_ = e.sleep(inside, time.Until(term.Since().Add(e.turn))) // a Shutdown ends the turn at once
	end(ErrTurnOver)                                          // no more, if the context has ended
}
