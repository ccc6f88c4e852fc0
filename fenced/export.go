package fenced

import (
	"context"
	"errors"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/rlock"
)

var errExportAll = errors.New("a hold of AcquireAll cannot be exported: export each hold of Each")

// Export names the hold in a text, by which Import takes it over: in another process, on another host, or in this service after a restart. It asks
// nobody. Until it is imported the hold goes on, and is renewed if it was renewed before, also where this Hold is dropped: it ends with the
// import, its Unlock, or its client; what Close leaves taken can be imported until the lease is over. Shutdown waits for it as for any hold.
//
// Who imports the hold has a new hold with a larger token, and this one ends, with all its levels: its context with rlock.ErrImported, as soon as
// the client hears of it, otherwise with rlock.ErrLost at the next renewal, or, with a lease of its own,
// when that is over. A guard refuses what this hold still writes once it has seen the new
// token. Re-entries, inner Unlocks and Extend change nothing about the text. It can be imported once. Whoever has the text, and may use
// Redis, can take the lock: keep it out of logs. It is made of what Redis and a trace show of the holder: import no text of somebody whom
// you do not trust.
//
// The error is that of a hold which is over, or says why this hold cannot be exported: one of AcquireAll, of a side that reads, or of a quorum.
func (h *Hold) Export() (string, error) {
	if h.isAll() {
		return "", wrap("Export", h.engine().Lock(), errExportAll)
	}
	text, err := h.engine().Export()
	return text, wrap("Export", h.engine().Lock(), err)
}

// Import takes over the hold that Export has named, if the lock is still that hold's: in one step it is this new hold's, with a lease of its own and a
// new token, and nobody had the lock in between. It waits for nobody. The options are rlock.Lease, rlock.MaxHold and rlock.Lasting; ctx bounds the
// call, and not the hold.
//
// rlock.ErrNotHeld: the exported hold is over, as it was unlocked or imported before, forced open, or its lease ran out; nothing was changed. A
// text that Export has not returned, or of another lock, is an error. While Redis is away Import tries again for rlock.WithPatience, 10 s by
// default; then the hold may have been taken over without an answer, and is released in the background. So it is where ctx ends first.
func (l *Lock) Import(ctx context.Context, exported string, opts ...rlock.AcquireOption) (*Hold, error) {
	r, err := engine.MakeRequest(opts)
	if err != nil {
		return nil, l.wrap("Import", err)
	}
	held, err := l.engine().Import(ctx, exported, r)
	if err != nil {
		return nil, l.wrap("Import", err)
	}
	return &Hold{held: held}, nil
}

// Import takes over the permit that Export has named, as Import of a Lock does: the permit of the same slot.
func (s *Semaphore) Import(ctx context.Context, exported string, opts ...rlock.AcquireOption) (*Hold, error) {
	return s.acquire(ctx, "Import", opts, func(l *engine.Lock, ctx context.Context, r engine.Request) (engine.Held, error) {
		return l.Import(ctx, exported, r)
	})
}
