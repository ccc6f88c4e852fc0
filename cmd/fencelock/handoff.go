package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// examineHandoff measures how a lock passes from one client to another. mayLine: nothing is known for which the other could not be in the line.
func (d *doctor) examineHandoff(ctx context.Context, t *trial, mayLine bool) {
	inLine, took, err := handoff(ctx, d.rdb, t, mayLine)
	took = took.Round(10 * time.Microsecond)
	switch {
	case err != nil:
		d.note(wrong, "handoff", "%v", err)
	case inLine:
		d.note(fine, "handoff", "a second client waited in the line, and had the lock %v after its release", took)
	case mayLine:
		d.note(warning, "handoff", "a second client waited in no line, and had the lock %v after its release: PUBLISH in a script does not count who listens, "+
			"so that all who wait hear of each release, and try, or look once a second", took)
	default:
		d.note(fine, "handoff", "a second client had the lock %v after its release", took)
	}
}

// handoff has one client release a lock for which another one waits, and tells whether that one was in the line, and how long after the release it
// had the lock.
func handoff(ctx context.Context, rdb redis.UniversalClient, t *trial, mayLine bool) (inLine bool, took time.Duration, err error) {
	comes := 50 * time.Millisecond // it waits by then
	if mayLine {
		comes = 2 * time.Second
	}
	err = withClient(rdb, func(one *rlock.Client) error {
		return withClient(rdb, func(other *rlock.Client) error {
			held, err := fenced.NewLock(one, t.name).Acquire(ctx, rlock.Wait(0))
			if err != nil {
				return err
			}
			var got time.Time
			done := make(chan error, 1)
			go func() {
				next, err := fenced.NewLock(other, t.name).Acquire(ctx, rlock.Wait(answerTime))
				if got = time.Now(); err == nil {
					err = next.Unlock(ctx)
				}
				done <- err
			}()
			select {
			case <-held.Waited():
				inLine = true
			case <-time.After(comes):
			}
			released := time.Now()
			err = errors.Join(held.Unlock(ctx), <-done)
			took = got.Sub(released)
			return err
		})
	})
	return inLine, took, err
}
