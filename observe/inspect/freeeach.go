package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/scripts"
)

// ErrPart says that a hold is of a quorum that has more servers than the inspector: to release it on these alone would release nothing, as the others keep it,
// and the holder's next renewal brings it back.
var ErrPart = errors.New("give all servers of the quorum: on a part of them it is not released, and its holder brings it back")

// Freed is what has become of a hold on each server.
type Freed struct {
	Servers []FreedPart
	Of      int // servers of the hold's quorum; 1 for one Redis
}

// FreedPart is what has become of a hold on one server.
type FreedPart struct {
	Server   string // its address; "" for one Redis
	Released bool   // by this call. Otherwise the server had the hold no more, or had never got it
	Err      error  // nobody knows whether the hold is there still
}

// Count returns on how many servers the hold was released by this call.
func (f Freed) Count() (n int) {
	for _, p := range f.Servers {
		if p.Released {
			n++
		}
	}
	return n
}

// Over tells that a majority of the servers has not got the hold any more: it is over, and its holder does not bring it back.
func (f Freed) Over() bool { return f.confirmed() > f.Of/2 }

// confirmed is how many servers have not got the hold.
func (f Freed) confirmed() (n int) {
	for _, p := range f.Servers {
		if p.Err == nil {
			n++
		}
	}
	return n
}

// String returns on how many servers the hold is released, which did not answer, and whether it may have a majority still.
func (f Freed) String() string {
	text := fmt.Sprintf("released on %d of %d servers", f.Count(), f.Of)
	if gone := f.confirmed() - f.Count(); gone > 0 {
		text += fmt.Sprintf(", %d had not got it", gone)
	}
	for _, p := range f.Servers {
		if p.Err != nil {
			text += fmt.Sprintf("; %s: %s", p.Server, plain.Reason(p.Err))
		}
	}
	switch {
	case f.Over() && f.confirmed() < f.Of:
		text += "; no majority has it any more"
	case !f.Over() && f.Of-f.confirmed() > f.Of/2:
		text += "; a majority may have it still"
	case !f.Over():
		text += "; no majority has it, but its holder may bring it back"
	}
	return text
}

// FreeEach releases the hold that was shown on each server of the inspector, also where that is a part of a quorum's, and says what has become of it on
// each. All are asked at the same time, and none is waited for longer than two seconds. It releases as Free does.
func (in *Inspector) FreeEach(ctx context.Context, l Lock) (Freed, error) {
	f := Freed{Of: max(l.Quorum, len(in.parts), 1)}
	if l.Quorum > 0 {
		f.Of = l.Quorum
	}
	if l.Holder == nil || !holderField.MatchString(l.Holder.Field) && !writerField.MatchString(l.Holder.Field) {
		f.Servers = make([]FreedPart, max(len(in.parts), 1))
		return f, nil
	}
	if in.parts == nil {
		released, err := in.freeOne(ctx, l)
		f.Servers = []FreedPart{{Released: released}}
		return f, err
	}
	all, err := within(ctx, in, func() ([]FreedPart, error) {
		all := make([]FreedPart, len(in.parts))
		done := make(chan struct{}, len(all))
		for i, p := range in.parts {
			go func() {
				a := askPart(ctx, p, freeTimeout, func(ctx context.Context, one *Inspector) (bool, error) { return one.withdraw(ctx, l) })
				all[i] = FreedPart{Server: p.name, Released: a.value, Err: a.err}
				done <- struct{}{}
			}()
		}
		for range all {
			<-done
		}
		return all, nil
	})
	if err != nil {
		return f, fmt.Errorf("inspect: FreeEach: %q: %w", l.Name, err)
	}
	f.Servers = all
	return f, nil
}

// withdraw releases the hold on one server of a quorum, and calls the first client in the line there.
func (in *Inspector) withdraw(ctx context.Context, l Lock) (bool, error) {
	if l.Mode != "" {
		return in.freeReadWrite(ctx, l)
	}
	a, err := scripts.NewNode(in.rdb).Do(ctx, scripts.Withdraw(scripts.KeysOf(l.Name), l.Holder.Field, true).CallingInLine("", scripts.NotTheHolder, 0))
	return a.Held, err
}
