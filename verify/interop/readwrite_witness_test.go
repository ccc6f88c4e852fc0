package interop

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// rwWitness is who the holders of one read-write lock report to, as those of another lock report to a witness. Redisson's holds
// have the token 0.
type rwWitness struct {
	mu      sync.Mutex
	writer  string
	readers map[string]int64 // who reads, with which token
	token   int64            // the largest so far
	fresh   bool             // somebody has written since the largest token was seen
	holds   map[string]int   // by "<who> reads" and "<who> writes"
	beside  int              // readers that found one of the other side's inside
	first   error            // what was seen that must not be
}

func newRWWitness() *rwWitness {
	return &rwWitness{readers: make(map[string]int64), holds: make(map[string]int)}
}

// reads reports a hold that reads.
func (w *rwWitness) reads(who string, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer != "" {
		w.saw("%s reads, with token %d, while %s writes", who, token, w.writer)
	}
	beside := false
	for other, its := range w.readers {
		beside = beside || (its == 0) != (token == 0)
		if token > 0 && its > 0 && its != token {
			w.saw("%s reads with token %d beside %s with %d", who, token, other, its)
		}
	}
	if beside {
		w.beside++
	}
	if token > 0 && (token < w.token || token == w.token && w.fresh) {
		w.saw("%s reads with token %d after token %d, somebody has written since: %v", who, token, w.token, w.fresh)
	}
	if token > 0 {
		w.token, w.fresh = max(w.token, token), false
	}
	w.readers[who] = token
	w.holds[who+" reads"]++
}

// writes reports a hold that writes.
func (w *rwWitness) writes(who string, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer != "" || len(w.readers) > 0 {
		w.saw("%s writes, with token %d, beside the writer %q and the readers %v", who, token, w.writer, slices.Collect(maps.Keys(w.readers)))
	}
	if token > 0 && token <= w.token {
		w.saw("%s writes with token %d after token %d", who, token, w.token)
	}
	w.token, w.fresh = max(w.token, token), true
	w.writer = who
	w.holds[who+" writes"]++
}

// downgrades reports that the one who writes is about to unlock that, and reads already.
func (w *rwWitness) downgrades(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer != who {
		w.saw("%s downgrades, %q writes", who, w.writer)
	}
	w.writer = ""
	w.readers[who] = 0
	w.holds[who+" downgrades"]++
}

// leaves reports that the holder is about to unlock.
func (w *rwWitness) leaves(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, reads := w.readers[who]; !reads && w.writer != who {
		w.saw("%s leaves, %q writes, and %v read", who, w.writer, w.readers)
	}
	if w.writer == who {
		w.writer = ""
	}
	delete(w.readers, who)
}

// verdict is what was seen first that must not be.
func (w *rwWitness) verdict() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// saw keeps the first of what must not be. With w.mu held.
func (w *rwWitness) saw(format string, args ...any) {
	if w.first == nil {
		w.first = fmt.Errorf(format, args...)
	}
}
