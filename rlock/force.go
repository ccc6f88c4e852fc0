package rlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fencelock/fencelock/scripts"
	"github.com/fencelock/fencelock/watchdog"
)

// forcePause is between two attempts to release a lock that was handed on before the first one came.
const forcePause = time.Millisecond

// forcedOpen is how a hold was lost that this client forced open itself.
const forcedOpen = "forced open"

// forceUnlock is ForceUnlock without the wrapping of its errors.
func (l *Lock) forceUnlock(ctx context.Context) (bool, error) {
	if err := l.checkAsk(ctx); err != nil {
		return false, err
	}
	bound, cancel := context.WithTimeout(ctx, l.client.patience)
	defer cancel()
	for missed := 0; ; missed++ {
		freed, again, err := l.forceOnce(bound)
		if again && !sleep(bound, forcePause) {
			missed++
			err = context.DeadlineExceeded
		}
		switch {
		case err == nil && again:
			continue
		case err == nil:
			return freed, nil
		case ctx.Err() != nil:
			err = contextError(ctx)
		}
		if missed > 0 {
			err = fmt.Errorf("not forced open: handed on %d times between the look at its holder and the release: %w", missed, err)
		}
		return false, err
	}
}

// forceOnce releases the hold that it sees, and no other: a repeat must not release the next one. again: that hold was
// gone before the release came.
func (l *Lock) forceOnce(bound context.Context) (freed, again bool, err error) {
	state, err := l.look(bound, "")
	if err != nil || state.Field == "" {
		return false, false, err
	}
	answer, doubt, err := insist(bound, l.client.patience/3, func(ctx context.Context) (scripts.Answer, error) {
		sharded := l.client.bus.Sharded(ctx)
		return l.client.store.Do(ctx, l.client.calling(scripts.Unlock(l.keys, state.Field, sharded), "", 0))
	})
	if err != nil {
		return false, false, err
	}
	l.client.told(answer, l.keys)
	if answer.Owed {
		l.client.releaser.rest(&trace{keys: l.keys, field: state.Field, lease: max(state.TTL, l.client.lease), taken: true})
	}
	freed = answer.Held || doubt
	q := l.client.use(l.name)
	defer q.done()
	q.forcedOpen(state, freed)
	return freed, !freed, nil
}

// A forced hold is one of this client's that it has released itself, by ForceUnlock.
type forced struct {
	field string
	at    time.Time // the answer came
	until time.Time // no answer that has the hold counts after this
}

// forcedOpen ends what this client has of the hold that was seen, which is gone from Redis. freed: by ForceUnlock, so that
// the answer which tells of the hold may still be under way.
func (q *queue) forcedOpen(seen scripts.State, freed bool) {
	q.mu.Lock()
	if now := time.Now(); freed && strings.HasPrefix(seen.Field, q.client.id+":") {
		q.forced = slices.DeleteFunc(q.forced, func(f forced) bool { return now.After(f.until) })
		// A repeat of the attempt may have extended the lease since it was seen: by no more than that was, or the client's.
		q.forced = append(q.forced, forced{seen.Field, now, now.Add(2 * max(seen.TTL, q.client.lease))})
	}
	h := q.hold
	q.mu.Unlock()
	if h != nil && h.trace.field == seen.Field {
		h.lose(forcedOpen, true)
	}
}

// wasForced tells whether the hold of this field, taken by a command that was sent at this time, has been released by
// ForceUnlock meanwhile. With q.mu held.
func (q *queue) wasForced(field string, sent watchdog.Instant) bool {
	return slices.ContainsFunc(q.forced, func(f forced) bool { return f.field == field && !sent.Time().After(f.at) })
}
