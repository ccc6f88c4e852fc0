package scripts

import (
	"sync/atomic"
	"time"
)

// A pace is how long answers take, as the quickest ones of late have shown. Behind a link on which each takes a second, a command without an answer for
// 300 ms says nothing of its connection.
type pace struct{ nanoseconds atomic.Int64 }

// note notes how long an answer took: a quicker one than before counts at once, a slower one by an eighth.
func (p *pace) note(took time.Duration) {
	usual := p.nanoseconds.Load()
	if slower := int64(took) - usual; usual > 0 && slower > 0 {
		took = time.Duration(usual + slower/8)
	}
	p.nanoseconds.Store(max(int64(took), 1))
}

// silence is how long a command may be without an answer before the client looks whether its server answers.
func (p *pace) silence() time.Duration {
	return min(max(silentAfter, 2*time.Duration(p.nanoseconds.Load())), maxSilentAfter)
}
