package lockgocron

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/rlock"
)

var _ gocron.Elector = (*Elector)(nil)

// ErrNotLeader: another process is the leader, or none is, as the error says. From IsLeader and Leading.
var ErrNotLeader = errors.New("lockgocron: this process is not the leader")

// An Elector makes one process the leader, for gocron.WithDistributedElector. The leader holds a fenced lock until Close, or until it loses it.
// NewElector makes one.
type Elector struct {
	lock   *fenced.Lock
	stop   context.CancelFunc
	asked  chan struct{} // closed when Redis has been asked for the first time
	ended  chan struct{} // closed when the campaign is over
	result error         // of the last Unlock, once ended is closed

	mu   sync.Mutex
	hold *fenced.Hold
	why  error // why there is none
}

// NewElector campaigns in the background, from now until Close, for the lock of this name, which is the key in Redis: choose one that nothing else
// uses, such as "billing:cron:leader", the same in all processes that elect one leader. When the leader closes its Elector another process follows at
// once; when it dies, at the end of its lease, that of rlock.WithLease. While Redis is away the campaign goes on, with an attempt each second.
func NewElector(client *rlock.Client, name string) (*Elector, error) {
	switch {
	case client == nil:
		return nil, errors.New("lockgocron: NewElector was given no client: make one with rlock.New")
	case name == "":
		return nil, errors.New(`lockgocron: NewElector was given no name: give one such as "billing:cron:leader"`)
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Elector{lock: fenced.NewLock(client, name), stop: stop, asked: make(chan struct{}), ended: make(chan struct{})}
	go e.campaign(ctx)
	return e, nil
}

// campaign takes the lock, again and again, until ctx ends or the client is closed. The first attempt does not wait for others, so that IsLeader
// has an answer soon.
func (e *Elector) campaign(ctx context.Context) {
	defer close(e.ended)
	var first sync.Once
	for opts := []rlock.AcquireOption{rlock.Wait(0)}; ; opts = nil {
		hold, err := e.lock.Acquire(ctx, opts...)
		e.set(hold, err)
		first.Do(func() { close(e.asked) })
		switch {
		case err == nil:
			select {
			case <-hold.Done():
			case <-ctx.Done():
			}
			err = hold.Unlock(context.Background())
			e.set(nil, err)
		case errors.Is(err, rlock.ErrNotAcquired): // the first attempt
			continue
		}
		if ctx.Err() != nil || errors.Is(err, rlock.ErrClosed) {
			if hold != nil {
				e.result = err
			}
			e.set(nil, rlock.ErrClosed)
			return
		}
		if hold == nil { // Redis was away for longer than a call waits for it, or has refused the call
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}
}

func (e *Elector) set(hold *fenced.Hold, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hold, e.why = hold, why
}

// IsLeader returns nil if this process is the leader, otherwise ErrNotLeader with the reason. It looks at the clocks and asks nobody, but for the
// first call: that waits, for about a second at most if Redis is away, until NewElector's attempt has had its answer, or until ctx ends.
func (e *Elector) IsLeader(ctx context.Context) error {
	_, _, err := e.Leading(ctx)
	return err
}

// Leading returns what a job of the leader works with: the context of the hold, which ends when the leader loses its lock or is closed, and the
// token to show to a guard. It is not derived from ctx, which bounds the wait of the first call, as in IsLeader. The error is that of IsLeader.
func (e *Elector) Leading(ctx context.Context) (held context.Context, token int64, err error) {
	select {
	case <-e.asked:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("%w: %w", ErrNotLeader, ctx.Err())
	}
	e.mu.Lock()
	hold, why := e.hold, e.why
	e.mu.Unlock()
	if hold != nil {
		why = hold.Err()
	}
	switch {
	case why != nil:
		return nil, 0, fmt.Errorf("%w: %w", ErrNotLeader, why)
	case hold == nil:
		return nil, 0, ErrNotLeader
	}
	return hold.Context(), hold.Token(), nil
}

// Close steps down: it ends the campaign and releases the lock, so that another process follows. A job that runs still is not waited for: shut the
// scheduler down first. Close takes up to rlock.WithUnlockTimeout, 5 s by default, when Redis does not answer. The error is that of the release; a
// second call returns the same.
func (e *Elector) Close() error {
	e.stop()
	<-e.ended
	return e.result
}
