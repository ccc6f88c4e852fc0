package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Phases of a load.
const (
	warming int32 = iota
	measuring
	ending // no new acquires; those that wait still get their turn
)

// A load is the goroutines of a round.
type load struct {
	round      round
	phase      atomic.Int32
	over       chan struct{} // closed when the phase is ending
	keys       []keyState
	workers    []*worker
	cancel     context.CancelFunc // of all that wait
	overlaps   atomic.Int64
	outOfOrder atomic.Int64
	tokens     atomic.Bool
	errors     atomic.Int64
	firstError atomic.Pointer[string]
}

// keyState is what those who hold the lock of a key keep, to see whether they are alone.
type keyState struct {
	inside atomic.Int32
	token  atomic.Int64
	_      [48]byte // no two in one cache line
}

// A worker is one goroutine that locks and unlocks.
type worker struct {
	number int
	client int
	locks  []lockFunc // by key
	reads  []lockFunc // of read-write locks
	done   chan struct{}

	mu    sync.Mutex // a worker that hangs is read while it may still come back
	since time.Time  // when its present wait began; zero when it does not wait, or the wait was counted
	waits []time.Duration
	uses  []time.Duration // waits, sections and unlocks together
	pairs int             // within the window
}

// startLoad starts the goroutines. Locks are made before, as a program would.
func startLoad(ctx context.Context, r round, clients []*client) *load {
	names := r.mode.keys(r.prefix())
	l := &load{round: r, over: make(chan struct{}), keys: make([]keyState, len(names))}
	locks, reads := make([][]lockFunc, len(clients)), make([][]lockFunc, len(clients)) // by client and key
	for i, c := range clients {
		for _, name := range names {
			locks[i] = append(locks[i], c.lock(name))
			if r.mode.kind == readWrite {
				reads[i] = append(reads[i], c.read(name))
			}
		}
	}
	ctx, l.cancel = context.WithCancel(ctx)
	for i := range r.mode.goroutines {
		w := &worker{number: i, client: i % len(clients), done: make(chan struct{})}
		w.locks, w.reads = locks[w.client], reads[w.client]
		w.waits, w.uses = make([]time.Duration, 0, 1024), make([]time.Duration, 0, 1024)
		l.workers = append(l.workers, w)
	}
	for _, w := range l.workers {
		// A context for each, as requests have: one for all would be a bottleneck that no program has.
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(ctx, cancel)
		go func() {
			defer close(w.done)
			defer cancel()
			defer stop()
			mean := r.mode.pause()
			l.rest(own, mean, rand.Float64()) // the callers begin one after the other
			for l.phase.Load() != ending && ctx.Err() == nil {
				w.turn(own, l)
				l.rest(own, mean, rand.ExpFloat64())
			}
		}()
	}
	return l
}

// enter begins a phase.
func (l *load) enter(phase int32) {
	l.phase.Store(phase)
	if phase == ending {
		close(l.over)
	}
}

// rest pauses for so much of the mean, or until the load ends.
func (l *load) rest(ctx context.Context, mean time.Duration, part float64) {
	if mean == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-l.over:
	case <-time.After(time.Duration(part * float64(mean))):
	}
}

// turn is one acquire, the section, and the unlock.
func (w *worker) turn(ctx context.Context, l *load) {
	m := l.round.mode
	k, reading, lock := m.pick(w.number), m.reading(w.number), w.locks
	if reading {
		lock = w.reads
	}
	begin := time.Now()
	if m.timed(reading) {
		w.mu.Lock()
		w.since = begin
		w.mu.Unlock()
	}

	token, unlock, err := lock[k](ctx)
	wait := time.Since(begin)
	w.mu.Lock()
	if l.phase.Load() != warming && !w.since.IsZero() {
		w.waits = append(w.waits, wait)
	}
	w.since = time.Time{}
	w.mu.Unlock()
	if err != nil {
		l.failed(ctx, err)
		return
	}

	l.section(ctx, &l.keys[k], token, reading)
	if err := unlock(); err != nil {
		l.failed(ctx, err)
		return
	}
	phase := l.phase.Load()
	if phase == warming {
		return
	}
	w.mu.Lock()
	if m.timed(reading) {
		w.uses = append(w.uses, time.Since(begin))
	}
	if phase == measuring {
		w.pairs++
	}
	w.mu.Unlock()
}

// section checks that no more are inside than may be and that the holder's token is the largest so far, where others read perhaps theirs too, and
// does the mode's work.
func (l *load) section(ctx context.Context, key *keyState, token int64, reading bool) {
	weight := l.round.mode.weight(reading)
	if key.inside.Add(weight) > l.round.mode.room() {
		l.overlaps.Add(1)
	}
	if token != 0 {
		l.tokens.Store(true)
		if before := key.token.Swap(token); before > token || before == token && !reading {
			l.outOfOrder.Add(1)
		}
	}
	if l.phase.Load() != ending {
		l.round.mode.work(ctx, l.round.rdb)
	}
	key.inside.Add(-weight)
}

// failed counts an error, and slows a worker down that does nothing but fail.
func (l *load) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // it hung, and was cancelled
	}
	l.errors.Add(1)
	text := err.Error()
	l.firstError.CompareAndSwap(nil, &text)
	sleep(ctx, time.Millisecond)
}

// drain waits for the goroutines after the end of the load, and returns what they saw. Those that are not back after
// the grace hang: they are cancelled, and left behind if that does not help either.
func (l *load) drain(grace time.Duration) tally {
	hung, stuck := l.missing(grace), 0
	if hung > 0 {
		stuck = l.giveUp()
	}
	t := l.tally()
	t.Hung, t.Stuck = hung, stuck
	return t
}

// giveUp cancels those that hang, and returns how many do not come back then either.
func (l *load) giveUp() int {
	for _, w := range l.workers {
		w.mu.Lock()
		if !w.since.IsZero() {
			waited := time.Since(w.since) // this long at least
			w.waits, w.uses = append(w.waits, waited), append(w.uses, waited)
			w.since = time.Time{}
		}
		w.mu.Unlock()
	}
	l.cancel()
	return l.missing(abandon)
}

// missing returns how many goroutines are not back in time.
func (l *load) missing(within time.Duration) int {
	timer := time.NewTimer(within)
	defer timer.Stop()
	missing := 0
	over := false
	for _, w := range l.workers {
		if !over {
			select {
			case <-w.done:
				continue
			case <-timer.C:
				over = true
			}
		}
		select {
		case <-w.done:
		default:
			missing++
		}
	}
	return missing
}

// tally is what the goroutines saw.
func (l *load) tally() tally {
	t := tally{
		Overlaps: l.overlaps.Load(), OutOfOrder: l.outOfOrder.Load(), Tokens: l.tokens.Load(), Errors: l.errors.Load(),
	}
	if text := l.firstError.Load(); text != nil {
		t.FirstError = *text
	}
	for _, w := range l.workers {
		w.mu.Lock()
		t.Waits = append(t.Waits, w.waits...)
		t.Uses = append(t.Uses, w.uses...)
		t.Pairs = append(t.Pairs, w.pairs)
		t.Clients = append(t.Clients, w.client)
		w.mu.Unlock()
	}
	return t
}
