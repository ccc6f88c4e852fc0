package holder

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/fencelock/fencelock/watchdog"
)

// A Lock tells one lock from others.
type Lock struct {
	Client any // a pointer to the client that takes the lock: two clients may have locks of one name
	Name   string
	Side   byte // of a read-write lock, both of whose sides have one name; 0 of another lock
}

// A Hold is one holder's possession of one lock, from its first acquire to its last Unlock. It begins with Begin.
type Hold struct {
	Lease watchdog.Lease // its Owner is set before Begin, and is told too where a context finds that the lease has run out

	lock       *Lock
	firstLevel Level     // the outermost one
	levelStore [1]*Level // for levels, of most holds

	mu         sync.Mutex
	holder     *Holder // until Weaken; most holds end before that, and need no weak pointer
	weakHolder weak.Pointer[Holder]
	levels     []*Level      // the open ones, oldest first
	token      int64         // 0: none
	end        *EndError     // why its contexts are over, although it was not unlocked
	changed    chan struct{} // closed at the next change of the levels, or of end; nil where nobody watches
}

// Begin opens the first level, for a call with ctx. renewable: the watchdog renews the lease for this level. token: the hold's, 0 for none.
func (h *Hold) Begin(ctx context.Context, who *Holder, lock *Lock, renewable bool, token int64) *Level {
	h.lock, h.holder, h.token = lock, who, token
	lv := &h.firstLevel
	lv.begin(ctx, who, h, renewable)
	lv.Token = token
	h.levels = append(h.levelStore[:0], lv)
	return lv
}

// Open opens one level more, for a call with ctx that re-enters, if the hold is still there. token: the hold's from now on, 0 where that
// does not change.
func (h *Hold) Open(ctx context.Context, who *Holder, renewable bool, token int64) (*Level, error) {
	lv := new(Level)
	lv.begin(ctx, who, h, renewable)
	h.checkLease()
	h.mu.Lock()
	defer h.mu.Unlock()
	if token != 0 {
		h.token = token
	}
	lv.Token = h.token
	switch {
	case h.end != nil:
		lv.end(h.end)
		return nil, h.end.withoutLock()
	case len(h.levels) == 0:
		lv.end(&EndError{Lock: h.lock.Name, Err: ErrUnlocked})
		return nil, ErrUnlocked
	}
	h.levels = append(h.levels, lv)
	h.notifyChanged()
	return lv, nil
}

// Close closes a level, and ends its context. last: it was the hold's last one, and its holder has the hold no longer.
func (h *Hold) Close(lv *Level) (last bool, err error) {
	h.mu.Lock()
	if !lv.open {
		h.mu.Unlock()
		return false, fmt.Errorf("%w: unlocked already", ErrNotHeld)
	}
	lv.open = false
	i := slices.Index(h.levels, lv)
	h.levels = slices.Delete(h.levels, i, i+1)
	lv.end(&EndError{Lock: h.lock.Name, Err: ErrUnlocked})
	if len(h.levels) > 0 {
		h.notifyChanged()
		h.mu.Unlock()
		return false, nil
	}
	who := h.owner()
	h.holder = nil
	h.mu.Unlock()
	if who != nil {
		who.remove(h)
	}
	return true, nil
}

// Released wakes those who watch the hold: its last level was closed, and what is done to release the lock is done.
func (h *Hold) Released() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notifyChanged()
}

// End ends the hold's contexts with this error although the hold is not unlocked. how and renewal are those of EndError. End does nothing,
// and returns false, where the contexts have ended with ErrLost or with this error before, or where no level of the hold is open.
func (h *Hold) End(err error, how string, renewal error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil && (h.end.Err == err || h.end.isLoss()) || len(h.levels) == 0 {
		return false
	}
	h.end = &EndError{h.lock.Name, err, how, renewal}
	for _, lv := range h.levels {
		lv.end(h.end)
	}
	h.notifyChanged()
	return true
}

// Err is nil while the hold is trusted, else why it is not. It looks at the clocks.
func (h *Hold) Err() error {
	h.checkLease()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return h.end.withoutLock()
	}
	return nil
}

// Err is nil while the level is open and trusted, else why it is not. It looks at the clocks.
func (lv *Level) Err() error {
	if err := lv.Hold.Err(); err != nil {
		return err
	}
	if !lv.isOpen() {
		return ErrUnlocked
	}
	return lv.outerContextError()
}

func (lv *Level) isOpen() bool {
	lv.Hold.mu.Lock()
	defer lv.Hold.mu.Unlock()
	return lv.open
}

// checkLease has the hold ended if its lease can no longer be trusted.
func (h *Hold) checkLease() {
	if h.Lease.Passed() {
		h.Lease.Owner.Lost(watchdog.ErrExpired)
	}
}

// Loss is ErrLost, with how it came to that, or ErrImported; nil for a hold that is not lost. It does not look at the clocks.
func (h *Hold) Loss() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil && h.end.isLoss() {
		return h.end.withoutLock()
	}
	return nil
}

// Renewable tells whether an open level was taken without a lease of its own. why: the watchdog does not renew the lease for such levels
// any more, as the contexts that they were taken with have ended.
func (h *Hold) Renewable() (is bool, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.renewable()
}

// renewable is Renewable with h.mu held.
func (h *Hold) renewable() (is bool, why error) {
	for _, lv := range h.levels {
		if !lv.renewable {
			continue
		}
		if is, why = true, lv.outerContextError(); why == nil {
			break
		}
	}
	return is, why
}

// Renewed tells whether the watchdog is to renew the lease: somebody is there to unlock a level that has no lease of its own. dropped:
// nobody is, as the holder is garbage. That is told once.
func (h *Hold) Renewed() (is, dropped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if is, why := h.renewable(); h.end != nil || !is || why != nil {
		return false, false
	}
	if h.owner() != nil {
		h.weaken()
		return true, false
	}
	for _, lv := range h.levels {
		lv.renewable = false
	}
	return false, true
}

// Weaken lets the holder become garbage from now on.
func (h *Hold) Weaken() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.weaken()
}

// weaken is Weaken with h.mu held.
func (h *Hold) weaken() {
	if h.holder != nil {
		h.weakHolder, h.holder = weak.Make(h.holder), nil
	}
}

// owner returns the hold's holder; nil if that is garbage. With h.mu held.
func (h *Hold) owner() *Holder {
	if h.holder != nil {
		return h.holder
	}
	return h.weakHolder.Value()
}

// Count returns the hold count: how many levels are open.
func (h *Hold) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.levels)
}

// ReentryCount returns the hold count after a re-entry by a call with ctx. It is 0 where such a call does not re-enter: the hold's newest
// open level is not on the call's own chain.
func (h *Hold) ReentryCount(ctx context.Context) int {
	nearest := levelOf(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.levels); n > 0 && nearest.reaches(h.levels[n-1]) {
		return n + 1
	}
	return 0
}

// Newest returns the newest open level, or nil.
func (h *Hold) Newest() *Level {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.levels) == 0 {
		return nil
	}
	return h.levels[len(h.levels)-1]
}

// Changed returns a channel that is closed at the next change of the hold's levels, or its end.
func (h *Hold) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// notifyChanged wakes those who watch. With h.mu held.
func (h *Hold) notifyChanged() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// Token returns the hold's latest token; 0 for none.
func (h *Hold) Token() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token
}

// CurrentToken returns the hold's token; false once the hold is over.
func (h *Hold) CurrentToken() (int64, bool) {
	if h.Err() != nil {
		return 0, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.token, len(h.levels) > 0
}
