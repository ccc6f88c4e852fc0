package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/fencelock/fencelock/scripts"
)

// Free releases the hold that was shown, as ForceUnlock does, and wakes the waiters; of the lock of a slot those who wait for a permit, too. It returns false where another holder has the
// lock by now, or nobody, or where Redis did not answer the first time: a hold that was not shown is never released. The former holder may be in the middle of its work; its context
// ends with rlock.ErrLost, and guards refuse its writes as soon as the next holder has written. Of a read-write lock that is read all Readers that were shown are released.
//
// Of a quorum it releases the hold on all servers, and returns an error where no majority has confirmed that; FreeEach says more. A hold of a quorum that has more servers than
// this inspector it does not release, and returns ErrPart.
func (in *Inspector) Free(ctx context.Context, l Lock) (bool, error) {
	if l.IsPart() {
		return false, fmt.Errorf("inspect: Free: %q is of a quorum of %d servers: %w", l.Name, l.Quorum, ErrPart)
	}
	freed, err := in.FreeEach(ctx, l)
	if err == nil && !freed.Over() {
		err = fmt.Errorf("inspect: Free: %q is not released: %s", l.Name, freed)
	}
	return err == nil && freed.Count() > 0, err
}

// freeOne is Free on one Redis.
func (in *Inspector) freeOne(ctx context.Context, l Lock) (bool, error) {
	if l.Mode != "" {
		return in.freeReadWrite(ctx, l)
	}
	keys := scripts.KeysOf(l.Name)
	field := l.Holder.Field
	a, err := within(ctx, in, func() (scripts.Answer, error) {
		s, sharded := scripts.New(in.rdb), in.sharded(ctx)
		a, err := s.Do(ctx, scripts.Unlock(keys, field, sharded).Calling("", 0))
		if of, slot, is := scripts.SlotOf(l.Name); is && a.Held {
			_, _ = s.Do(ctx, scripts.Leave(scripts.PermitsOf(of, slot+1), "", sharded)) // otherwise they look by themselves
		}
		return a, err
	})
	if err != nil {
		return false, fmt.Errorf("inspect: Free: %q: %w", l.Name, err)
	}
	return a.Held, nil
}

// freeReadWrite is Free of a read-write lock that somebody has.
func (in *Inspector) freeReadWrite(ctx context.Context, l Lock) (freed bool, err error) {
	keys, shown := scripts.ReadWriteOf(l.Name, scripts.Writes), []Holder{*l.Holder}
	if l.Mode == reads {
		keys, shown = scripts.ReadWriteOf(l.Name, scripts.Reads), slices.Clone(l.Readers)
	}
	freed, err = within(ctx, in, func() (any bool, err error) {
		s, sharded := scripts.New(in.rdb), in.sharded(ctx)
		for _, h := range shown {
			a, err := s.Do(ctx, scripts.Unlock(keys, h.Field, sharded).Calling("", scripts.NotTheHolder))
			if err != nil {
				return any, err
			}
			any = any || a.Held
		}
		return any, nil
	})
	if err != nil {
		return freed, fmt.Errorf("inspect: Free: %q: %w", l.Name, err)
	}
	return freed, nil
}
