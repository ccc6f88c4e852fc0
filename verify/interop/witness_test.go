package interop

import (
	"fmt"
	"sync"
)

// witness is who the holders of one lock report to, those in the JVM through the answers to their commands. A holder
// enters after its acquire was answered and leaves before its unlock is sent: what the witness sees as held lies within
// what Redis has as held, so two at once are two at once in truth.
type witness struct {
	mu     sync.Mutex
	inside string // who has the lock
	token  int64  // the largest so far
	holds  map[string]int
	first  error // what was seen that must not be
}

func newWitness() *witness { return &witness{holds: make(map[string]int)} }

// enter reports a hold and its token.
func (w *witness) enter(who string, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside != "" {
		w.saw("%s, with token %d, and %s, with token %d, hold the lock at once", who, token, w.inside, w.token)
	}
	w.order(who, token)
	w.inside = who
	w.holds[who]++
}

// again reports a re-entry.
func (w *witness) again(who string, token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside != who {
		w.saw("%s re-enters, %q holds the lock", who, w.inside)
	}
	w.order(who, token)
}

// leave reports that the holder is about to unlock.
func (w *witness) leave(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside != who {
		w.saw("%s leaves, %q holds the lock", who, w.inside)
	}
	w.inside = ""
}

// verdict is what was seen first that must not be.
func (w *witness) verdict() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// order requires that a token is larger than all before. With w.mu held.
func (w *witness) order(who string, token int64) {
	if token <= w.token {
		w.saw("%s has token %d after token %d", who, token, w.token)
	}
	w.token = max(w.token, token)
}

// saw keeps the first of what must not be. With w.mu held.
func (w *witness) saw(format string, args ...any) {
	if w.first == nil {
		w.first = fmt.Errorf(format, args...)
	}
}
