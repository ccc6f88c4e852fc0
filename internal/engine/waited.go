package engine

import (
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// A waited tells the user of a hold that somebody waits for the lock. It hears of the waiters of
// its own client when they come, of those for a share when they are refused, and of other clients
// when one enters an empty line. It asks Redis for those who are in the line already, and now and
// then for those whose message was lost.
type waited struct {
	lockState *lockState
	keys      *scripts.Keys
	// of the semaphore, or of the side of a read-write lock; zero of a plain lock
	shared stateKey
	told   chan struct{} // closed when somebody waits
	closed atomic.Bool   // it is
	over   atomic.Bool   // the hold is over; changed with lockState.mu held

	pauses command.Backoff // after errors
	// a question is under way, or waits to be asked again; it guards pauses
	asking atomic.Bool
	// it is to be asked once more after its answer, as something was missed meanwhile
	asksMore atomic.Bool

	// Guarded by lockState.mu; nil for a hold that was over.
	channel Subscription // on which other clients tell
	timer   *time.Timer
}

// asksWaited is the time between two questions whether somebody is in the line.
const asksWaited = 10 * time.Second

// Waited returns the channel that is closed when somebody waits for the lock of the hold.
func (h *Held) Waited() <-chan struct{} {
	if !h.isMade() {
		return nil
	}
	in := holdOfLevel(h.level)
	w, watches := in.lockState.waitedOf(in)
	if watches {
		w.look()
	}
	return w.told
}

// waitedOf returns what tells of those who wait for the hold. watches: it is told from now on of
// calls for a share.
func (ls *lockState) waitedOf(h *hold) (w *waited, watches bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if h.waited != nil {
		return h.waited, false
	}
	w = &waited{lockState: ls, keys: h.lock.releaseKeys, told: make(chan struct{})}
	h.waited = w
	switch {
	case ls.hold != h: // it is over
	case ls.first != nil:
		w.tell()
	default:
		w.channel = ls.client.bus.Subscribe(w.keys, w.keys.Waited(), w.hear)
		w.timer = time.AfterFunc(asksWaited, w.askAgain)
		if watches = h.isShare(); watches {
			w.shared = h.of.key
			ls.client.watch(w)
		}
	}
	return w, watches
}

// sides are the keys of the states in whose queues calls wait for a share of what has this key:
// both sides of a read-write lock, or a semaphore.
func (k stateKey) sides() [2]stateKey {
	both := [2]stateKey{k, k}
	if k.side != scripts.NoSide {
		both[0].side, both[1].side = scripts.Reads, scripts.Writes
	}
	return both
}

// watch has the client tell w of each of its calls for a share that is refused, until unwatch.
func (c *Client) watch(w *waited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := w.shared.sides()[0]
	if c.watched == nil {
		c.watched = make(map[stateKey]map[*waited]struct{})
	}
	if c.watched[key] == nil {
		c.watched[key] = make(map[*waited]struct{})
	}
	c.watched[key][w] = struct{}{}
}

// unwatch ends what watch began, if it did.
func (c *Client) unwatch(w *waited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := w.shared.sides()[0]
	if delete(c.watched[key], w); len(c.watched[key]) == 0 {
		delete(c.watched, key)
	}
}

// tellShares tells the client's own holds of a semaphore or a read-write lock that a call of the
// client has been refused, and waits. With ls.mu held.
func (ls *lockState) tellShares() {
	if ls.first == nil || !ls.first.kind.shared() {
		return
	}
	ls.client.mu.Lock()
	defer ls.client.mu.Unlock()
	for w := range ls.client.watched[ls.key.sides()[0]] {
		w.tell()
	}
}

// look looks for calls of the client that wait for a share already. A call that asks is told to w
// if it is refused.
func (w *waited) look() {
	for _, key := range w.shared.sides() {
		ls := w.lockState.client.stateInUse(key)
		if ls == nil {
			continue
		}
		ls.mu.Lock()
		if ls.room.Watching() {
			w.tell()
		}
		ls.mu.Unlock()
		ls.removeUser()
	}
}

// tell tells that somebody waits.
func (w *waited) tell() {
	if w != nil && !w.closed.Swap(true) {
		close(w.told)
	}
}

// hear is called for each message on the channel, and when messages arrive, or no longer: some may
// have been missed before. It takes no mutex.
func (w *waited) hear(message bool, _ string) {
	if message {
		w.tell()
	} else {
		go w.ask()
	}
}

// ask asks Redis whether somebody is in the line. Where a question is under way it is asked once
// more after that.
func (w *waited) ask() {
	if w.asking.Swap(true) {
		w.asksMore.Store(true)
		return
	}
	w.pauses = command.Backoff{}
	w.send()
}

// send sends a question.
func (w *waited) send() {
	client := w.lockState.client
	if w.closed.Load() || w.over.Load() || isClosed(client.closed) {
		w.asking.Store(false)
		return
	}
	question := scripts.Waiting(w.keys)
	client.store.Send(&question, w)
}

// Sending implements scripts.Caller.
func (*waited) Sending(scripts.Caller) {}

// Answered implements scripts.Caller. After an error that passes the question is asked again.
func (w *waited) Answered(answer scripts.Answer, err error) {
	switch {
	case err == nil && answer.Before > 0:
		w.tell()
	case scripts.Passing(err):
		time.AfterFunc(w.pauses.Next(err, asksWaited), w.send)
		return
	}
	w.asking.Store(false)
	if w.asksMore.Swap(false) {
		w.ask()
	}
}

// askAgain asks when it is time to. In a quorum the line may be on another server by then.
func (w *waited) askAgain() {
	w.lockState.mu.Lock()
	over := w.over.Load() || w.closed.Load() || isClosed(w.lockState.client.closed)
	if !over {
		w.channel.Live() // it moves
		w.timer.Reset(asksWaited)
	}
	w.lockState.mu.Unlock()
	if !over {
		w.ask()
	}
}

// end is for a hold that is over. With lockState.mu held.
func (w *waited) end() {
	if w == nil || w.over.Swap(true) || w.channel == nil {
		return
	}
	w.timer.Stop()
	w.channel.Close()
	w.lockState.client.unwatch(w)
}
