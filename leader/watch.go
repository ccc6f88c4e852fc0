package leader

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fencelock/fencelock/internal/engine"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/rlock"
)

// Watch returns a channel of who leads the election of this name, for those who send requests to the leader: at first who leads now, and then
// each other leader, or larger token. The zero Leader says that nobody leads. Who reads late gets the latest alone; nobody waits for the reader. The channel is
// closed when ctx ends or the client is closed. The client need not have a part in the election; it may be one of quorum.New. Of a leader that has
// just made its client the name may come with one more value.
//
// A leader tells when its term begins, and when it steps down. Of one that dies the channel tells when the lease is over. What no message tells,
// as of a lock that was forced open or is held by other means than this package, it tells within a lease: the leader's, or WithLease of
// the client where that is shorter. While Redis does not answer, the last leader stands until its lease is over, as far as it was seen, and the client's
// log warns. As with Who the answer may be old, and decides nothing.
//
// The error is rlock.ErrClosed, or says why no lock can be made of the client and the name.
func Watch(ctx context.Context, client *rlock.Client, name string) (<-chan Leader, error) {
	if ctx == nil {
		return nil, errors.New("leader: Watch: ctx is nil: pass context.Background(), or one that ends")
	}
	lock := engine.NewLock(engine.ClientOf(client), name, engine.LockOptions{})
	if err := lock.CheckUse(); err != nil {
		return nil, fmt.Errorf("leader: Watch: %w", err)
	}
	select {
	case <-lock.Closed():
		return nil, fmt.Errorf("leader: Watch %q: %w", name, rlock.ErrClosed)
	default:
	}
	in, err := inspectorOf(lock)
	if err != nil {
		return nil, fmt.Errorf("leader: Watch: %w", err)
	}
	w := &watch{
		lock: lock, in: in,
		leaders: make(chan Leader),
		news:    make(chan struct{}, 1),
		looked:  make(chan look, 1),
	}
	go w.run(ctx)
	return w.leaders, nil
}

// inspectorOf returns an Inspector on what the lock's client is on.
func inspectorOf(lock *engine.Lock) (*inspect.Inspector, error) {
	servers, longest := lock.Servers()
	if longest > 0 {
		return inspect.NewQuorum(servers, inspect.WithMaxLease(longest))
	}
	return inspect.New(servers[0])
}

// lookTimeout is how long a look waits for an answer.
const lookTimeout = 3 * time.Second

// firstUnnamed is when a watch looks again at a new leader that has no name, which may have no presence. The time doubles up to
// WithPollInterval.
const firstUnnamed = 10 * time.Millisecond

// A watch is one call of Watch.
type watch struct {
	lock    *engine.Lock
	in      *inspect.Inspector
	terms   engine.Subscription
	leaders chan Leader
	news    chan struct{} // has a value where a term may have begun or ended
	looked  chan look

	now    Leader
	until  time.Time // when its lease is over, as far as it was seen
	failed bool      // the latest look, and the log says so

	unnamed time.Duration // the pause before the next look at a leader that has no name

	told     Leader // what the reader got last,
	toldSome bool   // if it did
	knows    bool   // a look was answered
}

// A look is what one question has brought.
type look struct {
	leader Leader
	until  time.Time
	err    error
}

func (w *watch) run(ctx context.Context) {
	defer close(w.leaders)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // a look under way
	w.terms = w.lock.HearTerms(func() {
		select {
		case w.news <- struct{}{}:
		default:
		}
	})
	defer w.terms.Close()
	next := time.NewTimer(1)
	defer next.Stop()
	looking, again := false, false
	for {
		var reader chan<- Leader
		if w.knows && !(w.toldSome && same(w.told, w.now)) {
			reader = w.leaders
		}
		select {
		case reader <- w.now:
			w.told, w.toldSome = w.now, true
			continue
		case got := <-w.looked:
			looking = false
			next.Reset(w.see(got))
			if !again {
				continue
			}
		case <-w.news:
		case <-next.C:
		case <-ctx.Done():
			return
		case <-w.lock.Closed():
			return
		}
		if again = looking; !looking {
			looking = true
			go func() { w.looked <- w.look(ctx) }()
		}
	}
}

// look asks who leads.
func (w *watch) look(ctx context.Context) look {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	asked := time.Now()
	leader, ttl, err := who(ctx, w.in, w.lock.Name())
	if ttl == inspect.NoExpiry {
		ttl = 100 * 365 * 24 * time.Hour
	}
	return look{leader, asked.Add(ttl), err}
}

// see takes what a look has brought, and returns how long it is until the next one.
func (w *watch) see(got look) time.Duration {
	every, lease, log := w.lock.Looks()
	live := w.terms.Live()
	if got.err != nil {
		if !w.failed {
			log.Warn("leader: Watch cannot see who leads, and looks again", "lock", w.lock.Name(), "error", got.err)
		}
		w.failed = true
		if left := time.Until(w.until); left > 0 {
			return min(every, left)
		}
		w.now = Leader{}
		return every
	}
	if !same(got.leader, w.now) {
		w.unnamed = firstUnnamed
	}
	w.now, w.until, w.knows, w.failed = got.leader, got.until, true, false
	left := min(max(time.Until(w.until), 0), lease)
	switch {
	case w.now.Client == "":
		return every
	case w.now.Name == "" && w.unnamed < every: // a client with presence says its name soon
		left = min(left, w.unnamed)
		w.unnamed *= 2
	case !live:
		left = min(left, every)
	default: // well before the lease is over, so that a short silence of Redis does not hide the leader
		left = min(left, max(left/3, every))
	}
	return left + time.Millisecond // Redis counts whole ones
}

// same tells whether two values tell the same of the same term.
func same(a, b Leader) bool {
	a.For, b.For = 0, 0
	return a == b
}
