package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// Unlock is rlock.Lock.Unlock. It releases the level that levelFor finds for ctx. The last level of
// a hold releases the lock, any other lowers the hold count.
func (l *Lock) Unlock(ctx context.Context) error {
	lv, err := l.levelFor(ctx)
	if err != nil {
		return err
	}
	if side := sideOf(lv); side != l.keys.Side() {
		return fmt.Errorf("%w: this level was taken to %[2]s, and is to be unlocked by the %[2]s lock", ErrNotHeld, side.Mode())
	}
	return unlock(ctx, lv)
}

// unlock closes the level, and releases the lock or lowers the hold count. ctx has values alone.
func unlock(ctx context.Context, lv *holder.Level) error {
	h, now := holdOfLevel(lv), time.Now()
	lost := h.lost(now)
	last, err := h.Close(lv)
	switch {
	case err != nil:
		return err
	case last:
		return h.release(lost, now)
	case lost:
		return h.Loss()
	}
	return h.lowerCount(ctx)
}

// levelFor returns the level that an Unlock with ctx releases: ctx's own, or, for a context that
// carries the holder but no level of this lock, the holder's newest.
func (l *Lock) levelFor(ctx context.Context) (*holder.Level, error) {
	if err := l.checkMade(); err != nil {
		return nil, err
	}
	if ctx == nil {
		return nil, errNoContext
	}
	lv := l.levelOf(ctx)
	if holder.HasFailed(ctx, &l.id, lv) {
		return nil, fmt.Errorf("%w: the acquire that returned this context has failed, look at its error before you unlock", ErrNotHeld)
	}
	if lv != nil {
		return lv, nil
	}
	who := holder.Of(ctx)
	if who == nil {
		return nil, fmt.Errorf("%w: no holder in ctx, pass the context that Lock returned", ErrNotHeld)
	}
	if h := l.ownHold(who); h != nil {
		if lv := h.Newest(); lv != nil {
			return lv, nil
		}
	}
	return nil, fmt.Errorf("%w: this holder has no hold of the lock (unlocked already, another holder's, or taken through another Client)", ErrNotHeld)
}

// release gives up a hold whose last level was closed, at this time.
func (h *hold) release(lost bool, now time.Time) (err error) {
	h.lockState.client.underWay.Add(1)
	var said room.Event // what the release has come to
	defer func() {
		h.unregister(&said)
		h.Released()
		h.lockState.client.underWay.Add(-1)
		h.unlocked(now, err) // the last of it: the function that is told may use the client
	}()
	h.lockState.client.dog.Remove(&h.Lease) // before the release, so that no renewal follows it
	// since it was looked at; without a level it cannot be any more
	if lost || h.Loss() != nil {
		h.leaveAttempts()
		return h.Loss()
	}
	bound := max(min(h.lockState.client.set.UnlockTimeout, h.remaining(now)), time.Millisecond)
	x, waited := h.lockState.exit(h, now, bound/3)
	switch {
	case x.local:
		h.wentOn = true
		return nil
	case x.passed:
		h.releaseConfirmed()
		return nil
	}
	used := time.Duration(0)
	if waited {
		used = time.Since(now)
	}
	said, err = h.releaseForAll(now.Add(used), bound-used, x.ticket, x.doubt)
	return err
}

// leaveAttempts leaves to the releaser what may still take the lock for a hold that was lost: a late
// attempt, or a renewal that got no answer.
func (h *hold) leaveAttempts() {
	if h.gone.Load() && !h.lockState.client.limits.several() {
		h.attempts.Released()
	}
	if h.attempts.NeedsRelease() {
		h.lockState.client.releaser.Release(&h.attempts)
	}
}

// releaseForAll releases the lock in Redis, so that any client may take it. The release has begun
// at this time, and takes no longer than bound. ticket: see sendRelease. maybePassed: a handoff
// before the release got no answer, so Redis may have executed it, and a release that finds nothing
// is no loss.
func (h *hold) releaseForAll(began time.Time, bound time.Duration, ticket string, maybePassed bool) (said room.Event, err error) {
	c := h.lockState.client
	answer, maybeExecuted, err := h.sendRelease(ticket, began, bound)
	said = room.Event{What: room.Released, Field: h.attempts.Field, Ticket: ticket, Got: answer.Held, Score: answer.Score, Heard: c.othersHeard(answer.Receivers), Err: err, At: began}
	if err != nil && !scripts.OtherType(err) {
		c.releaser.UnlockFailed(&h.attempts)
		return said, fmt.Errorf("release not confirmed, it is sent again in the background: %w", c.withDial(err, began))
	}
	if answer.Owed {
		c.releaser.QuorumDone(&h.attempts, time.Time{})
	} else {
		h.releaseConfirmed()
	}
	c.releaseAnswered(answer, h.lock.releaseKeys)
	if !answer.Held && !maybePassed && !maybeExecuted && answer.Copies == 0 {
		return said, h.lostTo(err)
	}
	return said, nil
}

// sendRelease sends the release until it is answered, as command.Sender.Do does. ticket is the one
// with which the client enters the line again by the release, or "".
func (h *hold) sendRelease(ticket string, began time.Time, bound time.Duration) (answer scripts.Answer, maybeExecuted bool, err error) {
	c := h.lockState.client
	if sharded, known := c.bus.Known(); known {
		return c.commands.Do(context.Background(), began, bound, bound/3, h.callingFirst(scripts.Unlock(h.lock.releaseKeys, h.attempts.Field, sharded), ticket))
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	return command.Repeat(ctx, bound/3, func(ctx context.Context) (scripts.Answer, error) {
		sharded := c.bus.Sharded(ctx)
		return c.store.Do(ctx, c.callingFirst(scripts.Unlock(h.lock.releaseKeys, h.attempts.Field, sharded), "", 0))
	})
}

// releaseConfirmed notes that Redis has confirmed the end of the hold.
func (h *hold) releaseConfirmed() {
	if h.attempts.Released() {
		h.lockState.client.releaser.Release(&h.attempts)
	}
}

// lowerCount tells Redis the hold count after an inner Unlock.
func (h *hold) lowerCount(ctx context.Context) error {
	if !h.lock.kind.counts() {
		return nil
	}
	c := h.lockState.client
	bound := max(min(c.set.UnlockTimeout, h.remaining(time.Now())), time.Millisecond)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	if !h.changes.begin(ctx) {
		return command.ErrSilence // the change before it has no answer
	}
	defer h.changes.end()
	count := h.Count()
	if count == 0 {
		return nil // the outer level was unlocked meanwhile, and all is released
	}
	answer, _, err := c.commands.Do(ctx, time.Now(), bound, bound/3, scripts.Level(h.lock.keys, false, h.attempts.Field, 0, count, h.changes.next()))
	h.changes.said(count, err)
	if err != nil && !scripts.OtherType(err) {
		return fmt.Errorf("hold count not confirmed, the last Unlock releases the lock in any case: %w", err)
	}
	if !answer.Held && h.Count() > 0 {
		h.lose(foundGone("an unlock", err), true)
		return h.lostTo(err)
	}
	return nil
}

// lostTo is ErrLost of a hold that Redis has not got; err: what Redis said of the other object that
// is at the lock's key, or nil where none is.
func (h *hold) lostTo(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if loss := h.Loss(); loss != nil {
		return loss // says how
	}
	if how := h.mayBeImported(""); how != "" {
		return fmt.Errorf("%w%s", ErrLost, how)
	}
	return ErrLost
}

// foundGone says how a hold was lost that this command has not found. err: as in lostTo.
func foundGone(command string, err error) string {
	if err == nil {
		return command + " found the lock gone"
	}
	return command + " found the lock gone: " + err.Error()
}
