package leader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

// Term is the time for which one process leads. It may be used by any number of goroutines.
type Term struct {
	election *Election
	hold     *fenced.Hold
	since    time.Time
	exported atomic.Bool
}

// Token returns the number of the term: larger than that of any term before, also after a loss of the counter where the lock has
// fenced.WithClockFloor. Show it with each write, to storage that refuses a smaller one (package guard). After the term it stays the same.
func (t *Term) Token() int64 { return t.hold.Token() }

// Since returns when the term began, by the clock of this process.
func (t *Term) Since() time.Time { return t.since }

// Context returns the context of the term. It has the values of the context that Campaign was given, and ends with the term: its cause is
// rlock.ErrLost or rlock.ErrUnlocked.
func (t *Term) Context() context.Context { return t.hold.Context() }

// Done returns the channel that is closed when the term ends.
func (t *Term) Done() <-chan struct{} { return t.hold.Done() }

// Err returns nil while this process leads, as far as it can know, and otherwise why not: rlock.ErrLost, rlock.ErrUnlocked or rlock.ErrClosed.
// It asks nobody, and looks at the clocks itself.
func (t *Term) Err() error { return t.hold.Err() }

// Waited returns a channel that is closed when another process waits to lead, as fenced.Hold.Waited.
func (t *Term) Waited() <-chan struct{} { return t.hold.Waited() }

// Export names the term in a text, by which Election.Resume of the next process goes on leading: nobody leads in between. It is fenced.Hold.Export of
// the term's hold: this term ends with rlock.ErrImported when it is resumed elsewhere, and whoever has the text can lead. Run does not step down from
// an exported term when its context ends, or the client is closed: the term is left to who resumes it, until the lease is over after Close.
func (t *Term) Export() (string, error) {
	text, err := t.hold.Export()
	if err != nil {
		return "", fmt.Errorf("leader: Export: %w", err)
	}
	t.exported.Store(true)
	return text, nil
}

// StepDown ends the term: the process that has waited longest leads next. Call it also for a term that was lost. It works with a ctx that has
// ended. The error is as that of fenced.Hold.Unlock: rlock.ErrLost where the term had been lost before, rlock.ErrImported where another process
// has resumed it, rlock.ErrNotHeld where it was over, or what Redis said; the release is sent again in the background then.
func (t *Term) StepDown(ctx context.Context) error {
	err := t.hold.Unlock(ctx)
	t.election.engine().TellTerm()
	if errors.Is(err, rlock.ErrLost) {
		t.election.lost(t.hold)
	}
	if err != nil {
		return fmt.Errorf("leader: StepDown: %w", err)
	}
	return nil
}
