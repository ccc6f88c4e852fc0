package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/releases"
	"github.com/fencelock/fencelock/scripts"
)

// forcePause is between two attempts to release a lock that was handed on before the first one
// came.
const forcePause = time.Millisecond

// forcedOpenText is how a hold was lost that this client forced open itself.
const forcedOpenText = "forced open"

// goneText is how a hold was lost that Redis has no longer.
const goneText = "the lock was released by someone else, or its key is gone"

// ForceUnlock is rlock.Lock.ForceUnlock. It releases the hold of whoever has the lock, and tells
// whether there was one. A hold that is unlocked or handed on before the release comes is not
// released: ForceUnlock looks again, for as long as the client's patience.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.checkAsk(ctx); err != nil {
		return false, err
	}
	bound, cancel := context.WithTimeout(ctx, l.client.set.Patience)
	defer cancel()
	began := time.Now()
	for missed := 0; ; missed++ {
		freed, again, err := l.kind.force(bound, l)
		if again && !command.Sleep(bound, forcePause) {
			missed++
			err = context.DeadlineExceeded
		}
		switch {
		case err == nil && again:
			continue
		case err == nil:
			return freed, nil
		case ctx.Err() != nil:
			err = holder.ContextError(ctx)
		default:
			err = l.client.withDial(err, began)
		}
		if missed > 0 {
			err = fmt.Errorf("not forced open: handed on %d times between the look at its holder and the release: %w", missed, err)
		}
		return false, err
	}
}

// force releases the hold that it sees, and no other: a repeat must not release the next one.
func (plain) force(bound context.Context, l *Lock) (freed, again bool, err error) {
	state, err := l.look(bound, "")
	if err != nil || state.Field == "" {
		return false, false, err
	}
	answer, maybeExecuted, err := command.Repeat(bound, l.client.set.Patience/3, func(ctx context.Context) (scripts.Answer, error) {
		sharded := l.client.bus.Sharded(ctx)
		return l.client.store.Do(ctx, l.client.callingFirst(scripts.Unlock(l.keys, state.Field, sharded), "", scripts.NotTheHolder))
	})
	if err != nil {
		return false, false, err
	}
	l.client.releaseAnswered(answer, l.keys)
	if answer.Owed {
		lease := max(state.TTL, l.client.set.Lease)
		var until time.Time
		if !strings.HasPrefix(state.Field, l.client.id+":") {
			until = time.Now().Add(lease)
		}
		l.client.releaser.QuorumDone(releases.NewAttempts(l.keys, state.Field, lease), until)
	}
	freed = answer.Held || maybeExecuted || answer.Copies > 0
	ls := l.lockState()
	defer ls.removeUser()
	ls.holdForcedOpen(state, freed)
	return freed, !freed, nil
}

// A forcedHold is a hold of this client that it has released itself, by ForceUnlock.
type forcedHold struct {
	field string
	at    time.Time // the answer came
	until time.Time // no answer that has the hold counts after this
}

// holdForcedOpen ends what this client has of the hold that was seen, which is gone from Redis.
// freed: by ForceUnlock, so that the answer which tells of the hold may still be under way.
func (ls *lockState) holdForcedOpen(seen scripts.State, freed bool) {
	if freed && strings.HasPrefix(seen.Field, ls.client.id+":") {
		// A repeat of the attempt may have extended the lease since it was seen: by no more than
		// that was, or the client's.
		ls.client.noteForced(seen.Field, 2*max(seen.TTL, ls.client.set.Lease))
	}
	if h := ls.currentHold(); h != nil && h.attempts.Field == seen.Field {
		how := forcedOpenText
		if !freed {
			how = goneText
		}
		if h.loseUntold(how, true) {
			h.tellDoneNow(time.Now(), h.endOf(how), h.Loss())
		}
	}
}

// noteForced notes a hold that was forced open. No answer that has the hold counts after this time.
func (c *Client) noteForced(field string, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.forced = append(c.forced, forcedHold{field, now, now.Add(within)})
	c.anyForced.Store(true)
}

// wasForced tells whether the hold of this field, taken by a command that was sent at this time,
// has been released by ForceUnlock meanwhile. The hold is noted as the client's by then:
// ForceUnlock either finds it, or is found here.
func (c *Client) wasForced(field string, sent time.Time) bool {
	if !c.anyForced.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.forced = slices.DeleteFunc(c.forced, func(f forcedHold) bool { return now.After(f.until) })
	c.anyForced.Store(len(c.forced) > 0)
	return slices.ContainsFunc(c.forced, func(f forcedHold) bool { return f.field == field && !sent.After(f.at) })
}
