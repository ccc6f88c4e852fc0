package lockmetrics

import (
	"sync"
	"time"
)

// Open has when those of something began that have not ended: holds by their number, waits by their Began, which several may share. It
// tells HoldOldest and WaiterOldest. A begin and its end may come in either order. The zero Open is ready; its methods may be called at
// the same time.
type Open[K comparable] struct {
	mu  sync.Mutex
	all map[K]began
}

type began struct {
	at time.Time
	n  int // so many have begun and not ended; below 0: have ended, and not begun yet
}

// Begin notes that one began at this time.
func (o *Open[K]) Begin(key K, at time.Time) { o.count(key, at, 1) }

// End notes that one has ended.
func (o *Open[K]) End(key K) { o.count(key, time.Time{}, -1) }

func (o *Open[K]) count(key K, at time.Time, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	b := o.all[key]
	if b.n += n; b.n == 0 {
		delete(o.all, key)
		return
	}
	if n > 0 {
		b.at = at
	}
	if o.all == nil {
		o.all = make(map[K]began)
	}
	o.all[key] = b
}

// Oldest is how long ago the first of those began that have not ended; 0 where all have. It looks at each of them.
func (o *Open[K]) Oldest() time.Duration {
	now := time.Now()
	var oldest time.Duration
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.all {
		if b.n > 0 {
			oldest = max(oldest, now.Sub(b.at))
		}
	}
	return oldest
}
