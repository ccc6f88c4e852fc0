package rlock

import (
	"context"
	"sync"
	"time"

	"github.com/fencelock/fencelock/scripts"
)

// A trace is what became of the attempts to acquire one hold. As long as one of them may still arrive at Redis, or has
// taken the lock without anybody knowing, the hold's release is sent again and again.
type trace struct {
	keys  *scripts.Keys
	field string
	lease time.Duration

	mu     sync.Mutex
	flying int32 // attempts without an outcome yet
	taken  bool  // an attempt took the lock, and the release of that was not confirmed
	late   *late // nil while all is well
}

// late is for how long attempts that got no answer, and holds whose release got none, matter.
type late struct {
	until time.Time // no attempt that got no answer matters after this
	ends  time.Time // when what was taken has run out, released or not; zero while it is held
}

// lateness returns t.late, made if need be. With t.mu held.
func (t *trace) lateness() *late {
	if t.late == nil {
		t.late = new(late)
	}
	return t.late
}

func (t *trace) sent() {
	t.mu.Lock()
	t.flying++
	t.mu.Unlock()
}

// unsent notes that an attempt was taken back.
func (t *trace) unsent() {
	t.mu.Lock()
	t.flying--
	t.mu.Unlock()
}

// doubtful tells whether an attempt may have taken the lock: it has got no answer, or that came too late.
func (t *trace) doubtful() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.taken || t.flying > 0 || t.late != nil && !t.late.until.IsZero()
}

// came notes the outcome of an attempt.
func (t *trace) came(a scripts.Answer, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying--
	if !a.Owed && scripts.Unanswered(err) {
		t.lateness().until = time.Now().Add(t.lease)
	}
	if a.Held || a.Owed { // also what is not confirmed
		t.taken = true
		if t.late != nil && !t.late.ends.IsZero() {
			t.late.ends = time.Now().Add(t.lease)
		}
	}
}

// open tells whether a release is to be sent.
func (t *trace) open() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.openLocked()
}

func (t *trace) openLocked() bool {
	if t.late == nil {
		return t.taken || t.flying > 0
	}
	now := time.Now()
	return t.taken && (t.late.ends.IsZero() || now.Before(t.late.ends)) || t.flying > 0 || now.Before(t.late.until)
}

// longer notes that the hold was promised a longer lease.
func (t *trace) longer(lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = max(t.lease, lease)
}

// released notes that a release was confirmed, and tells whether another is to be sent.
func (t *trace) released() (open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = false
	return t.openLocked()
}

// over notes that nothing extends the hold any more, and returns its lease.
func (t *trace) over() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lateness().ends.IsZero() {
		t.late.ends = time.Now().Add(t.lease)
	}
	return t.lease
}

// behind sends releases that nobody waits for: of holds whose release, or one of whose acquires, got no answer. Each is
// sent again until one lease has passed since the attempt ended: what that has taken has then been released, or has
// expired by itself.
type behind struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[*trace]*time.Timer // until the next release
	room chan struct{}          // bounds the releases under way
}

// releaseAfter is when an unconfirmed release is sent again; then every third of the lease, and where that is long, every
// lastRelease.
var releaseAfter = []time.Duration{0, 100 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

const lastRelease = 30 * time.Second

// maxReleases bounds the releases under way, so that a server that hangs does not collect them.
const maxReleases = 16

func newBehind(c *Client) *behind {
	b := &behind{client: c, open: make(map[*trace]*time.Timer), room: make(chan struct{}, maxReleases)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// release takes over the hold's release.
func (b *behind) release(t *trace) { b.take(t, 0) }

// rest takes over what is left of a release that was confirmed: by most of several servers.
func (b *behind) rest(t *trace) { b.take(t, 1) }

func (b *behind) take(t *trace, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		b.client.log.Warn("rlock: closed before a release was confirmed; the lock is free at the end of its lease", "lock", t.keys.Lock)
		return
	}
	if _, there := b.open[t]; !there {
		b.next(t, t.over(), n)
	}
}

// next plans the release number n of this hold.
func (b *behind) next(t *trace, lease time.Duration, n int) {
	after := min(max(lease/3, time.Millisecond), lastRelease)
	if n < len(releaseAfter) {
		after = min(after, releaseAfter[n])
	}
	b.open[t] = time.AfterFunc(after, func() { b.send(t, lease, n) })
}

func (b *behind) send(t *trace, lease time.Duration, n int) {
	select {
	case b.room <- struct{}{}:
	case <-b.ctx.Done():
		return
	}
	t.mu.Lock()
	final := t.flying == 0
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(b.ctx, max(lease/3, 100*time.Millisecond))
	got, ok := await(ctx, func() outcome[scripts.Answer] {
		answer, err := b.client.store.Do(ctx, scripts.Unlock(t.keys, t.field, b.client.bus.Sharded(ctx)))
		return outcome[scripts.Answer]{answer, err}
	})
	cancel()
	<-b.room
	owed := got.value.Owed // a server may hang for longer than a lease
	if ok && got.err == nil && !owed && final {
		t.released()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return
	}
	if !t.open() && !owed {
		delete(b.open, t)
		return
	}
	b.next(t, lease, n+1)
}

// settle waits until what was taken has been released, as far as that is known, and no longer than so.
func (b *behind) settle(ctx context.Context, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for b.owes() && sleep(ctx, time.Millisecond) {
	}
}

func (b *behind) owes() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for t := range b.open {
		t.mu.Lock()
		owed := t.taken || t.flying > 0
		t.mu.Unlock()
		if owed && !b.confirmed(t) {
			return true
		}
	}
	return false
}

// confirmed tells that all of several servers have said by now that they have not got the hold.
func (b *behind) confirmed(t *trace) bool { return b.client.owes != nil && !b.client.owes(t.field) }

// close drops what is left, and says so.
func (b *behind) close() {
	b.cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	for t, timer := range b.open {
		timer.Stop()
		if b.confirmed(t) {
			continue
		}
		b.client.log.Warn("rlock: closed before a release was confirmed; the lock is free at the end of its lease", "lock", t.keys.Lock)
	}
	clear(b.open)
}
