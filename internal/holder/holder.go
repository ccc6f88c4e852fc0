package holder

import (
	"context"
	"slices"
	"sync"
)

// A Holder is who has locks: what a thread is in Java. Contexts carry it. It owns its holds, and nothing that lives
// longer points to it but weakly, so that a holder whose contexts were all dropped is garbage, and is noticed (P4).
type Holder struct {
	base context.Context // what it was made from; does not lead to the holder

	mu        sync.Mutex
	holds     []*Hold  // open ones, and those that are over but not unlocked
	holdStore [1]*Hold // for holds, of most holders
}

// New returns the holder of a call with ctx, which carries none.
func New(ctx context.Context) *Holder { return &Holder{base: ctx} }

// Find returns the holder's hold of the lock, open or not unlocked yet, or nil.
func (who *Holder) Find(lock *Lock) *Hold {
	who.mu.Lock()
	defer who.mu.Unlock()
	for _, h := range who.holds {
		if *h.lock == *lock {
			return h
		}
	}
	return nil
}

// token returns the current token of the holder's hold of the lock, as a value of TokenKey, or nil.
func (who *Holder) token(name string) any {
	for _, h := range who.allHolds() {
		if h.lock.Name == name && h.Token() != 0 {
			return h.CurrentToken
		}
	}
	return nil
}

// HoldsAny tells whether the holder has an open hold of a lock of this client.
func (who *Holder) HoldsAny(client any) bool {
	return slices.ContainsFunc(who.allHolds(), func(h *Hold) bool { return h.lock.Client == client && h.Err() == nil })
}

func (who *Holder) allHolds() []*Hold {
	who.mu.Lock()
	defer who.mu.Unlock()
	return slices.Clone(who.holds)
}

// Add gives the holder the hold, until Close has closed its last level.
func (who *Holder) Add(h *Hold) {
	who.mu.Lock()
	defer who.mu.Unlock()
	if who.holds == nil {
		who.holds = who.holdStore[:0]
	}
	who.holds = append(who.holds, h)
}

func (who *Holder) remove(h *Hold) {
	who.mu.Lock()
	defer who.mu.Unlock()
	if i := slices.Index(who.holds, h); i >= 0 {
		who.holds = slices.Delete(who.holds, i, i+1)
	}
}
