package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// news is what a bus has told of one lock, in order, and the room has not heard. The bus tells with
// its own mutex held, and is called with lockState.mu held.
type news struct {
	any atomic.Bool // all is not empty
	mu  sync.Mutex
	all []told
}

// A told is one thing that a bus has told.
type told struct {
	place   bool   // on the channel of the client's place in the line; otherwise on the lock's own
	message bool   // otherwise messages arrive again, or no longer, and some may have been missed
	text    string // of a message about the place
}

func (n *news) add(t told) {
	n.mu.Lock()
	n.all = append(n.all, t)
	n.any.Store(true)
	n.mu.Unlock()
}

func (n *news) take() (all []told) {
	if !n.any.Load() {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	all, n.all = n.all, nil
	n.any.Store(false)
	return all
}

// expectNews is for a subscription that is made next. With ls.mu held.
func (ls *lockState) expectNews() {
	if ls.news.Load() == nil {
		ls.news.Store(new(news))
	}
}

// hearNews gives the room what was told; false where that is nothing. more: another event follows.
// With ls.mu held.
func (ls *lockState) hearNews(now time.Time, more bool) bool {
	n := ls.news.Load()
	if n == nil {
		return false
	}
	all := n.take()
	for i, t := range all {
		ev := room.Event{What: room.Told, More: more || i < len(all)-1}
		ch := room.Own
		if t.place {
			ch = room.Calls
		}
		switch {
		case !t.message:
			ev.What, ev.Channel, ev.Live = room.Changed, ch, ls.channels != nil && ls.channels[ch] != nil && ls.channels[ch].Live()
		case t.place:
			ev.What, ev.Text = room.Message, t.text
		}
		ls.step(now, &ev)
	}
	return len(all) > 0
}

// askAfter is the time from a message to the question whether the client's own hold is still there.
// Most messages are about the hold before it. One question answers all messages of this time, and
// there is none where the hold is over by then.
const askAfter = 100 * time.Millisecond

// onReleaseMessage is called for each message on the lock's own channel, with message true, and
// when messages arrive again or no longer, with message false. The first waiter looks then. In any
// case Redis is asked, askAfter later, whether this client's own hold is still there, because the
// hold may have been forced open: a message is a reason to ask, never a verdict. onReleaseMessage
// takes no mutex but that of the news: the bus calls it with the bus's mutex held, and the bus is
// called with ls.mu held.
func (ls *lockState) onReleaseMessage(message bool, text string) {
	if message && len(text) > 1 { // of an import (P58): nobody who waits can have the lock
		go ls.hearImport(text)
		return
	}
	n := ls.news.Load()
	// With nobody waiting nothing is noted: whoever waits next asks anyway.
	if ls.firstWakeup.Load() != nil || !message && !n.any.Load() {
		n.add(told{message: message})
		ls.Notify()
	}
	if ls.checking.CompareAndSwap(false, true) {
		time.AfterFunc(askAfter, ls.checkHold)
	}
}

// hearImport asks Redis about the client's hold where this message tells that it was imported.
func (ls *lockState) hearImport(message string) {
	if h := ls.currentHold(); h != nil && h.heardImport(message) {
		ls.client.dog.Ask(&h.Lease)
	}
}

func (ls *lockState) checkHold() {
	ls.checking.Store(false)
	if h := ls.currentHold(); h != nil {
		ls.client.dog.Ask(&h.Lease)
	}
}

// onLineMessage is called for each message about the client's place in the line, with message true,
// and when messages arrive again or no longer, with message false: some may have been missed then.
// It takes no mutex but that of the news: the bus calls it with the bus's mutex held, and the bus
// is called with ls.mu held.
func (ls *lockState) onLineMessage(message bool, text string) {
	if !message {
		ls.counted.changes.Add(1)
	}
	ls.news.Load().add(told{place: true, message: message, text: text})
	if ls.firstWakeup.Load() != nil {
		ls.Notify()
		return
	}
	go func() { // it may be a call for a place that the client has left (P19)
		ls.unlock(ls.lock())
	}()
}

// ownListeners is how many of those who hear of a release on the lock's own channel are this
// client: 1 or 0.
func (ls *lockState) ownListeners(keys *scripts.Keys) int {
	if ls.news.Load() != nil && ls.client.bus.Hears(keys) {
		return 1
	}
	return 0
}
