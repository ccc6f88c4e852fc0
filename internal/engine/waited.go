package engine

import (
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/command"
	"github.com/fencelock/fencelock/scripts"
)

// A waited tells the user of a hold that somebody waits for the lock. It hears of the waiters of its own client when they come, and of other
// clients when one enters an empty line. It asks Redis for those who are in the line already, and now and then for those whose message was lost.
type waited struct {
	lockState *lockState
	keys      *scripts.Keys
	told      chan struct{} // closed when somebody waits
	closed    atomic.Bool   // it is
	over      atomic.Bool   // the hold is over; changed with lockState.mu held

	pauses   command.Backoff // after errors
	asking   atomic.Bool     // a question is under way, or waits to be asked again; it guards pauses
	asksMore atomic.Bool     // it is to be asked once more after its answer, as something was missed meanwhile

	// Guarded by lockState.mu; nil for a hold that was over.
	channel Subscription // on which other clients tell
	timer   *time.Timer
}

// asksWaited is the time between two questions whether somebody is in the line.
const asksWaited = 10 * time.Second

// Waited returns the channel that is closed when somebody waits for the lock of the hold.
func (h *Held) Waited() <-chan struct{} {
	in := holdOfLevel(h.level)
	ls := in.lockState
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if w := in.waited; w != nil {
		return w.told
	}
	w := &waited{lockState: ls, keys: in.releaseKeys(), told: make(chan struct{})}
	in.waited = w
	switch {
	case ls.hold != in: // it is over
	case ls.first != nil:
		w.tell()
	default:
		w.channel = ls.client.bus.Subscribe(w.keys, w.keys.Waited(), w.hear)
		w.timer = time.AfterFunc(asksWaited, w.askAgain)
	}
	return w.told
}

// tell tells that somebody waits.
func (w *waited) tell() {
	if w != nil && !w.closed.Swap(true) {
		close(w.told)
	}
}

// hear is called for each message on the channel, and when messages arrive, or no longer: some may have been missed before. It takes no mutex.
func (w *waited) hear(message bool, _ string) {
	if message {
		w.tell()
	} else {
		go w.ask()
	}
}

// ask asks Redis whether somebody is in the line. Where a question is under way it is asked once more after that.
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
}
