package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// news is what a bus has told of one lock, in order, and nobody has seen to. The bus tells with its own mutex held, and is called with
// lockState.mu held.
type news struct {
	any atomic.Bool // all is not empty
	mu  sync.Mutex
	all []told
}

// A told is one thing that a bus has told.
type told struct {
	place   bool   // on the channel of the client's place in the line; otherwise on the lock's own, where a release is told
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

// hearNews notes what was told. A message of a release is nothing to a client that leaves it to others in the line (line.Place.Behind). With
// ls.mu held.
func (ls *lockState) hearNews() {
	n := ls.news.Load()
	if n == nil {
		return
	}
	for _, t := range n.take() {
		p := ls.place()
		switch {
		case t.place && t.message:
			if ghost := p.Hear(time.Now(), t.text); ghost != "" {
				ls.client.leaveLine(ls.contention.keys, ghost)
			}
		case t.place:
			p.ChannelLost()
			ls.mayBeFree(true)
		case !t.message || p == nil || !p.Behind(time.Now()):
			ls.mayBeFree(true)
		}
	}
}
