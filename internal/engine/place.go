package engine

import (
	"sync"
	"time"

	"github.com/fencelock/fencelock/internal/line"
)

// A place is this client's place in the line of the clients that wait for one lock, for its leader, whichever waiter that is.
type place struct {
	mu sync.Mutex // a leaf: nothing is called with it held
	line.Place
	lookAt time.Time // when the leader is to look
}

// inPlace returns what do returns of the client's place in the line; false where the client has not had to wait for another one so far.
func (ls *lockState) inPlace(do func(p *line.Place, now time.Time) bool) bool {
	p := ls.place.Load()
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return do(&p.Place, time.Now())
}

// inLine tells whether the client is in the line, as far as Redis has said.
func (ls *lockState) inLine() bool {
	return ls.inPlace(func(p *line.Place, _ time.Time) bool { return p.InLine() })
}

// mayWaitInLine makes sure of the place.
func (ls *lockState) mayWaitInLine() {
	if ls.place.Load() == nil {
		ls.place.CompareAndSwap(nil, new(place))
	}
}

// setLookAt notes when the waiter that leads is to look: another one may lead by then.
func (ls *lockState) setLookAt(due time.Time) {
	if p := ls.place.Load(); p != nil {
		p.mu.Lock()
		p.lookAt = due
		p.mu.Unlock()
	}
}

// untilLook is how long it is until the waiter that leads is to look.
func (ls *lockState) untilLook() time.Duration {
	p := ls.place.Load()
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(time.Until(p.lookAt), 0)
}
